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

/// Every piece of work may take this long: the driver compiles a kernel for seconds when it
/// is first loaded, on a busy machine for ten and more; and opening a GPU, or asking
/// cuBLASLt for its heuristics the first time, takes seconds too.
pub const LEAST: Duration = Duration::from_secs(30);

/// A piece of work may take this multiple of its expected time on top. Estimates are wrong
/// by a factor of a few, clocks fall to a half, and another process may share the GPU; none
/// of these makes a wait a hundred times too long.
pub const ROOM: u32 = 100;

/// Bytes a second that are copied between host and device, or filled in or looked at by the
/// host: what an ordinary machine does in pageable memory.
const COPIED_PER_SECOND: u64 = 5_000_000_000;

/// Time that the tuner may take beyond its budget. It limits its launches itself, and the
/// driver compiles a hundred kernels for it, seconds each.
pub const TUNING: Duration = Duration::from_secs(900);

/// The user's limit on waits.
#[derive(Clone, Debug, Default, Args)]
pub struct WaitArgs {
    /// Seconds that one wait for the GPU may take. Past it the program ends at once, with
    /// exit code 124 and an error that names kernel, shape, order and schedule; what was
    /// measured is kept. [default: 30 plus 100 times the expected time]
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
        Duration::ZERO => Err("a limit of 0 seconds; accepted: more than 0".to_owned()),
        limit => Ok(limit),
    }
}

/// Watches one run.
pub struct Watch {
    /// `None` where nothing is watched.
    watchdog: Option<Watchdog>,
    /// The piece of work that is under way.
    armed: RefCell<Option<Armed>>,
    /// The user's limit for each piece of work.
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

    /// A watch for a run on the CPU, which cannot hang: nothing is watched.
    pub fn idle() -> Watch {
        Watch {
            watchdog: None,
            armed: RefCell::new(None),
            limit: None,
        }
    }

    /// Begins the piece of work `label`, which is expected to take `expected`. The piece
    /// before it is over.
    pub fn begin(&self, expected: Duration, label: impl Into<String>) {
        self.begin_within(self.limit.unwrap_or(allowed(expected)), label);
    }

    /// As [`Self::begin`], with a limit that the user does not set.
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

    /// Ends the piece of work. The GPU is not used until the next one begins.
    pub fn rest(&self) {
        *self.armed.borrow_mut() = None;
    }

    /// Ends the process if `error` says that the GPU was not done in time. Any later call,
    /// and the driver's exit handlers, might wait for ever.
    pub fn end_if_timed_out(&self, error: &tilewise::Error) {
        use tilewise::Error::{TimedOut, TuningTimedOut};
        if let (Some(watchdog), TimedOut { .. } | TuningTimedOut { .. }) = (&self.watchdog, error) {
            watchdog.end(&error.to_string());
        }
    }

    /// Ends the run. Closing the GPU and the driver's exit handlers are watched until the
    /// process ends.
    pub fn close(self) {
        self.begin(Duration::ZERO, "closing the GPU, all work done");
        mem::forget(self.armed.take());
    }
}

/// The limit of a piece of work that is expected to take `expected`.
fn allowed(expected: Duration) -> Duration {
    LEAST.saturating_add(expected.saturating_mul(ROOM))
}

/// The expected time of copying this many bytes.
pub fn copying(bytes: usize) -> Duration {
    Duration::from_secs_f64(bytes as f64 / COPIED_PER_SECOND as f64)
}

/// The candidates of one problem, as a watch knows them.
pub struct Watched<'a> {
    watch: &'a Watch,
    problem: ProblemSpec,
    candidates: Vec<Expected>,
}

/// One candidate of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Implementation, kernel, order, schedule.
    pub name: String,
    /// About how long one product takes; zero where that is unknown.
    pub product: Duration,
}

impl<'a> Watched<'a> {
    /// The candidates of `problem`, in their order. A candidate without an estimate is
    /// expected to take as long as the slowest one.
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

    /// The number of candidates.
    pub fn count(&self) -> usize {
        self.candidates.len()
    }

    /// Begins a piece of work for all candidates, which should take no time.
    pub fn begin(&self, doing: &str) {
        let label = format!("{doing}, {}", self.problem);
        self.watch.begin(Duration::ZERO, label);
    }

    /// Sets how many milliseconds a product of each candidate takes.
    pub fn expect(&mut self, milliseconds: &[f64]) {
        for (candidate, milliseconds) in self.candidates.iter_mut().zip(milliseconds) {
            let measured = Duration::try_from_secs_f64(milliseconds / 1e3);
            candidate.product = measured.unwrap_or(candidate.product);
        }
    }

    /// Begins a wait for `products` products of `candidate`; `doing` says what it is for.
    pub fn wait(&self, doing: &str, candidate: usize, products: usize) {
        self.enqueue(doing, candidate, products, None);
    }

    /// Begins the launches of `products` products of `candidate`. A launch waits where the
    /// queue is full of launches of the candidate `ahead`.
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
