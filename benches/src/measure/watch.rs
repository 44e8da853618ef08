//! The watchdog of a run: no call that may wait for the GPU takes longer than it may.
//!
//! A kernel that hangs cannot be cancelled, and the thread that waits for it can do nothing
//! more. So a run says, before each piece of work with the GPU, what it is and how long it
//! should take, and one [`Watchdog`] has a deadline for it. From one piece to the next there
//! is no gap: copies, allocations, the loading of modules, launches into a full queue and
//! destructors belong to the piece that was named last, until the run names another or
//! [rests](Watch::rest).
//!
//! Past a deadline the process ends with exit code 124, an error that names the piece, and
//! what the run has to say of what it measured.

use crate::problem::spec::ProblemSpec;
use clap::Args;
use std::cell::RefCell;
use std::mem;
use std::time::Duration;
use tilewise::Tuner;
use tilewise_watchdog::{Armed, Watchdog};

/// A piece may take this long, whatever is expected: the driver compiles a kernel for
/// seconds when it is first loaded, on a busy machine for ten and more; and opening a GPU,
/// or asking cuBLASLt for its heuristics the first time, takes seconds too.
pub const LEAST: Duration = Duration::from_secs(30);

/// Multiple of what is expected that a piece may take on top. Estimates are wrong by a
/// factor of a few, clocks fall to a half, and another process may share the GPU; no wait
/// that is a hundred times too long is one of those.
pub const ROOM: u32 = 100;

/// Bytes a second that are copied between host and device, or filled in or looked at by the
/// host: what an ordinary machine does in pageable memory.
const COPIED_PER_SECOND: u64 = 5_000_000_000;

/// What the tuner may take beyond its budget. It limits its launches itself, and the driver
/// compiles a hundred kernels for it, seconds each.
pub const TUNING: Duration = Duration::from_secs(900);

/// What the user says of it.
#[derive(Clone, Debug, Default, Args)]
pub struct WaitArgs {
    /// Seconds that one wait for the GPU may take. Past it the program ends at once, with
    /// exit code 124 and an error that names kernel, shape, order and schedule; what was
    /// measured is kept. [default: 30, and 100 times what is expected]
    #[arg(long, value_name = "SECONDS", value_parser = wait_limit)]
    pub wait_limit: Option<Duration>,
}

impl WaitArgs {
    /// `tuner` with this limit, if there is one.
    pub fn limited(&self, tuner: Tuner) -> Tuner {
        match self.wait_limit {
            Some(limit) => tuner.wait_limit(limit),
            None => tuner,
        }
    }
}

/// A number of seconds from the command line.
pub fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("'{text}' is not a number of seconds, 0 or more"))
}

fn wait_limit(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("accepted: more than 0 seconds".to_owned()),
        limit => Ok(limit),
    }
}

/// Watches one run.
pub struct Watch {
    /// `None`: there is nothing to watch.
    watchdog: Option<Watchdog>,
    /// What is under way.
    armed: RefCell<Option<Armed>>,
    /// What the user allows each piece, whatever it is.
    limit: Option<Duration>,
}

impl Watch {
    /// A watch that calls `last_words` before it ends the process: to say what was
    /// measured, without asking the GPU.
    pub fn new(args: &WaitArgs, last_words: impl FnOnce() + Send + 'static) -> Watch {
        let last_words = || {
            eprintln!("(--wait-limit SECONDS allows more)");
            last_words();
        };
        Watch {
            watchdog: Some(Watchdog::new(last_words)),
            armed: RefCell::new(None),
            limit: args.wait_limit,
        }
    }

    /// Nothing is watched: the CPU does not hang.
    pub fn idle() -> Watch {
        Watch {
            watchdog: None,
            armed: RefCell::new(None),
            limit: None,
        }
    }

    /// What is named `label`, and expected to take `expected`, begins; what was named
    /// before is done.
    pub fn begin(&self, expected: Duration, label: impl Into<String>) {
        self.begin_within(self.limit.unwrap_or(allowed(expected)), label);
    }

    /// The same, with a limit that is not the user's to set.
    pub fn begin_within(&self, limit: Duration, label: impl Into<String>) {
        let Some(watchdog) = &self.watchdog else {
            return;
        };
        let mut armed = self.armed.borrow_mut();
        match &*armed {
            Some(armed) => armed.renew(limit, label),
            None => *armed = Some(watchdog.arm(limit, label)),
        }
    }

    /// Nothing asks the GPU for anything, until something begins.
    pub fn rest(&self) {
        *self.armed.borrow_mut() = None;
    }

    /// Ends the process if `error` says that the GPU was not done in time: whatever is
    /// asked of it after that, and the driver's exit handlers, may wait for ever.
    pub fn end_if_timed_out(&self, error: &tilewise::Error) {
        use tilewise::Error::{TimedOut, TuningTimedOut};
        if let (Some(watchdog), TimedOut { .. } | TuningTimedOut { .. }) = (&self.watchdog, error) {
            watchdog.end(&error.to_string());
        }
    }

    /// The run is over, and the process soon: closing the GPU and the driver's exit
    /// handlers are watched to the end.
    pub fn close(self) {
        self.begin(Duration::ZERO, "closing the GPU, all work done");
        mem::forget(self.armed.take());
    }
}

/// What may pass where `expected` is expected.
fn allowed(expected: Duration) -> Duration {
    LEAST.saturating_add(expected.saturating_mul(ROOM))
}

/// What copying this many bytes is expected to take.
pub fn copying(bytes: usize) -> Duration {
    Duration::from_secs_f64(bytes as f64 / COPIED_PER_SECOND as f64)
}

/// The candidates of one problem, as a watch knows them.
pub struct Watched<'a> {
    watch: &'a Watch,
    problem: ProblemSpec,
    candidates: Vec<Expected>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Implementation, kernel, order, schedule.
    pub name: String,
    /// What one product takes, about; zero where nobody knows.
    pub product: Duration,
}

impl<'a> Watched<'a> {
    /// The candidates of `problem`, in their order. Of those of which nobody knows what they
    /// take, as much is expected as of the slowest.
    pub fn new(watch: &'a Watch, problem: ProblemSpec, mut candidates: Vec<Expected>) -> Self {
        let products = candidates.iter().map(|candidate| candidate.product);
        let slowest = products.max().unwrap_or_default();
        for candidate in &mut candidates {
            if candidate.product.is_zero() {
                candidate.product = slowest;
            }
        }
        Watched {
            watch,
            problem,
            candidates,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// Something of all candidates begins, which takes no time.
    pub fn begin(&self, doing: &str) {
        let label = format!("{doing}, {}", self.problem);
        self.watch.begin(Duration::ZERO, label);
    }

    /// From now on, products take these milliseconds.
    pub fn expect(&mut self, milliseconds: &[f64]) {
        for (candidate, milliseconds) in self.candidates.iter_mut().zip(milliseconds) {
            let measured = Duration::try_from_secs_f64(milliseconds / 1e3);
            candidate.product = measured.unwrap_or(candidate.product);
        }
    }

    /// A wait for `products` products of `candidate` begins; `doing` says what for.
    pub fn wait(&self, doing: &str, candidate: usize, products: usize) {
        self.enqueue(doing, candidate, products, None);
    }

    /// Launches of `products` products of `candidate` begin. They wait where the queue is
    /// full of those of the candidate `ahead`.
    pub fn enqueue(&self, doing: &str, candidate: usize, products: usize, ahead: Option<usize>) {
        let ahead = ahead.filter(|&ahead| ahead != candidate);
        let before = ahead.map_or(Duration::ZERO, |ahead| self.expected(ahead, products));
        let expected = before.saturating_add(self.expected(candidate, products));
        self.watch
            .begin(expected, self.label(doing, candidate, ahead));
    }

    fn label(&self, doing: &str, candidate: usize, ahead: Option<usize>) -> String {
        let (problem, name) = (self.problem, &self.candidates[candidate].name);
        match ahead.map(|ahead| &self.candidates[ahead].name) {
            None => format!("{doing}, {problem}, {name}"),
            Some(ahead) => format!("{doing}, {problem}, {ahead}, or {name} behind it"),
        }
    }

    fn expected(&self, candidate: usize, products: usize) -> Duration {
        let products = u32::try_from(products).unwrap_or(u32::MAX);
        self.candidates[candidate].product.saturating_mul(products)
    }
}

#[cfg(test)]
pub(crate) mod tests;
