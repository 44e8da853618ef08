//! Ends the process when work on a GPU takes longer than its limit.
//!
//! A kernel that hangs cannot be cancelled, and almost any call of the CUDA driver may
//! wait for it: a copy, freeing memory, loading a module, a launch into a full queue,
//! even the handlers that run when a process exits. A thread that sits in such a call
//! can do nothing any more. Hence a [`Watchdog`] has a thread of its own. A program arms
//! it before work on the GPU, with a limit and a text that names the work. Past the limit
//! it prints that text, lets the program say its last words, and ends the process without
//! running a destructor or an exit handler.
//!
//! ```
//! use std::time::Duration;
//! use tilewise_watchdog::Watchdog;
//!
//! let watchdog = Watchdog::new(|| println!("what was measured is in rows.csv"));
//! let armed = watchdog.arm(Duration::from_secs(30), "512x512x512 by the first kernel");
//! // ... launch, copy, wait ...
//! armed.renew(Duration::from_secs(60), "512x512x512 by the second kernel");
//! // ... launch, copy, wait ...
//! drop(armed);
//! // Nothing is limited here.
//! ```

mod deadlines;

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use deadlines::{Deadlines, Id};

/// The exit code of a process that a watchdog has ended: that of timeout(1).
pub const EXIT_CODE: i32 = 124;

/// The time for printing and the last words. They write tables and small files, which
/// takes milliseconds; but the thread that hangs may hold a lock that they need.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Work that took longer than its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Overdue {
    label: String,
    limit: Duration,
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.limit.as_secs_f64();
        write!(f, "not done within {seconds:.1} s: {}", self.label)
    }
}

/// A thread that ends the process when armed work takes longer than its limit. The thread
/// stops when this value and all work that it armed are dropped.
pub struct Watchdog {
    shared: Arc<Shared>,
}

/// Work under way; dropping it says that the work is done.
#[must_use = "the limit ends when this is dropped"]
pub struct Armed {
    shared: Arc<Shared>,
    id: Id,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when the thread has to look sooner than it meant to.
    changed: Condvar,
}

type LastWords = Box<dyn FnOnce() + Send>;

struct State {
    deadlines: Deadlines,
    /// `None` once they are being said.
    last_words: Option<LastWords>,
    /// Whether nothing more can be armed.
    closed: bool,
}

impl Watchdog {
    /// Starts the thread. When it ends the process it prints why, and then calls
    /// `last_words`: to print or to write what there is. Both together get 10 seconds. They
    /// must not ask anything of the GPU.
    ///
    /// # Panics
    /// The system has no thread to give.
    pub fn new(last_words: impl FnOnce() + Send + 'static) -> Watchdog {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                deadlines: Deadlines::default(),
                last_words: Some(Box::new(last_words)),
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let watched = Arc::clone(&shared);
        thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watched.watch())
            .expect("a thread for the watchdog");
        Watchdog { shared }
    }

    /// Limits the time from now to when the result is dropped. `label` names the work in
    /// the message. Several may be armed at once, by any threads: each has its own limit.
    pub fn arm(&self, limit: Duration, label: impl Into<String>) -> Armed {
        let mut state = self.shared.lock();
        let id = state.deadlines.add(Instant::now(), limit, label.into());
        self.shared.look_again_if_first(&state, id);
        drop(state);
        Armed {
            shared: Arc::clone(&self.shared),
            id,
        }
    }

    /// Ends the process as if a limit had passed, with `message` for the reason: for a
    /// program that learns in another way that the GPU hangs.
    pub fn end(&self, message: &str) -> ! {
        self.shared.end(message)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Armed {
    /// Says that the earlier work is done and the work that `label` names begins.
    pub fn renew(&self, limit: Duration, label: impl Into<String>) {
        let mut state = self.shared.lock();
        let now = Instant::now();
        state.deadlines.replace(self.id, now, limit, label.into());
        self.shared.look_again_if_first(&state, self.id);
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.deadlines.remove(self.id);
        if state.closed {
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread if `id` is now the first to be due. After later deadlines it wakes
    /// when it meant to, finds nothing, and waits on.
    fn look_again_if_first(&self, state: &State, id: Id) {
        if state.deadlines.is_first(id) {
            self.changed.notify_one();
        }
    }

    /// The body of the watchdog's thread.
    fn watch(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if let Some((label, limit)) = state.deadlines.overdue(now) {
                let label = label.to_owned();
                drop(state);
                self.end(&Overdue { label, limit }.to_string());
            }
            state = match state.deadlines.next(now) {
                None if state.closed => return,
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let woken = self.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Prints, says the last words, and ends the process.
    fn end(&self, message: &str) -> ! {
        let Some(last_words) = self.lock().last_words.take() else {
            // Another thread is at it, and ends the process.
            loop {
                thread::park();
            }
        };
        let message = message.to_owned();
        let (said, all_said) = mpsc::channel::<()>();
        // On a thread of its own, because both may wait for what the hanging thread holds. A
        // panic drops `said`, which counts.
        let speaker = thread::Builder::new().spawn(move || {
            let _said = said;
            // A progress bar may stand in the line.
            let line = if io::stderr().is_terminal() { "\n" } else { "" };
            eprintln!("{line}error: {message}");
            last_words();
            // The reader may be gone.
            let _ = io::stdout().flush();
        });
        if speaker.is_ok() {
            let _ = all_said.recv_timeout(LAST_WORDS);
        }
        // SAFETY: it takes a number, and does not return.
        unsafe { libc::_exit(EXIT_CODE) }
    }
}
