//! [`Watch`]: sees that a run will not end, and lets everybody go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::control::Control;
use crate::error::Error;
use crate::nccl::Communicator;
use crate::rank_error::RankError;
use crate::wire::Wire;

/// How often runs are looked at, while there are some and while there are none.
const BUSY: Duration = Duration::from_millis(2);
const IDLE: Duration = Duration::from_millis(20);

/// How long after a release of flags its reason may arrive.
pub(super) const REASON: Duration = Duration::from_secs(1);

/// The thread that watches the runs of a member on a GPU. It calls nothing of the driver, which
/// might wait for the GPU; it reads and writes words of shared memory.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A plan, and its communicator if it has one.
type Watched = (Weak<Control>, Option<Weak<Communicator>>);

#[derive(Debug)]
struct Shared {
    wire: Arc<Wire>,
    limit: Duration,
    /// The number of this member.
    rank: usize,
    plans: Mutex<Vec<Watched>>,
    stopped: AtomicBool,
}

impl Watch {
    /// Starts the thread. A member whose runs make no progress for `limit` ends the group.
    pub fn new(wire: &Arc<Wire>, rank: usize, limit: Duration) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            wire: Arc::clone(wire),
            limit,
            rank,
            plans: Mutex::new(Vec::new()),
            stopped: AtomicBool::new(false),
        });
        let watched = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("watch".into())
            .spawn(move || watched.watch())
            .map_err(|error| Error::system("starting a thread", &error))?;
        Ok(Watch {
            shared,
            thread: Some(thread),
        })
    }

    /// Watches the runs of a plan until it is dropped.
    pub fn add(&self, plan: &Arc<Control>, communicator: Option<&Arc<Communicator>>) {
        let watched = (Arc::downgrade(plan), communicator.map(Arc::downgrade));
        self.shared.lock().push(watched);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Watched>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut last_ended = Vec::new();
        let mut since = None;
        while !self.stopped.load(Ordering::Acquire) {
            let mut plans = self.lock();
            plans.retain(|(plan, _)| plan.strong_count() > 0);
            let running: Vec<_> = plans
                .iter()
                .filter_map(|(plan, _)| plan.upgrade())
                .collect();
            drop(plans);
            // Runs that have ended well are not undone by what comes later.
            let is_open = |plan: &Arc<Control>| !plan.is_gone() && !plan.is_verified();
            let running: Vec<_> = running.into_iter().filter(is_open).collect();
            let ended: Vec<_> = running.iter().map(|plan| plan.last_ended()).collect();
            if running.is_empty() {
                since = None;
                thread::park_timeout(IDLE);
                continue;
            }
            if ended != last_ended || since.is_none() {
                since = Some(Instant::now());
            }
            last_ended = ended;
            if let Some(failure) = self.failure(&running, since) {
                self.wire.fail(&failure);
                running.iter().for_each(|plan| plan.release(failure.rank()));
                self.abort(failure.rank());
            }
            thread::park_timeout(BUSY);
        }
    }

    /// Aborts all communicators, whose kernels wait for the other ranks. That calls the driver, so it
    /// has a thread of its own. Their plans are released before, also those that had no run a moment
    /// ago: a run that is aborted must not look like one that has ended.
    fn abort(&self, culprit: usize) {
        for (plan, watched) in self.lock().iter_mut() {
            let Some(communicator) = watched.as_ref().and_then(Weak::upgrade) else {
                continue;
            };
            if let Some(plan) = plan.upgrade() {
                plan.release(culprit);
            }
            let abort = thread::Builder::new().name("abort".into());
            // Where there is no thread now, there may be one at the next look.
            if abort.spawn(move || communicator.abort()).is_ok() {
                *watched = None;
            }
        }
    }

    /// Why the runs of these plans will not end, if they will not.
    fn failure(&self, running: &[Arc<Control>], since: Option<Instant>) -> Option<RankError> {
        if let Some(failure) = failure(&self.wire, running.iter()) {
            return Some(failure);
        }
        let departed = self.wire.departed();
        let is_behind = |plan: &Arc<Control>| plan.is_behind(departed.iter().copied());
        if let Some(rank) = running.iter().find_map(is_behind) {
            return Some(left(rank));
        }
        let is_late = since.is_some_and(|since| since.elapsed() > self.limit);
        let first = running.iter().find(|plan| plan.running() > 0)?;
        is_late.then(|| late(first, self.rank, self.limit))
    }
}

/// Why these plans cannot run any more, if they cannot: the failure of the group. Flags that
/// another rank has released are a failure even if its reason never arrives.
pub(super) fn failure<'p>(
    wire: &Wire,
    mut plans: impl Iterator<Item = &'p Arc<Control>>,
) -> Option<RankError> {
    if let Some(failure) = wire.failure() {
        return Some(failure);
    }
    let rank = plans.find_map(|plan| plan.failed())?;
    let why = "another rank says so".into();
    let reason = wire.failure_within(REASON);
    Some(reason.unwrap_or(RankError::Lost { rank, why }))
}

/// A rank has left without a run that others have begun.
pub(super) fn left(rank: usize) -> RankError {
    let why = "it has left the group, without this run".into();
    RankError::Lost { rank, why }
}

/// A run of `plan` has not ended in time on the rank `own`.
pub(super) fn late(plan: &Control, own: usize, limit: Duration) -> RankError {
    let (rank, what) = match plan.slowest() {
        Some(rank) => (rank, "do its part of a run".into()),
        None => (own, "come to the end of a run".into()),
    };
    RankError::Late { rank, what, limit }
}
