//! [`Inbox`]: what a member has heard of the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::rank_error::RankError;

/// What has arrived. The threads that read the connections fill it, and others wait for it.
#[derive(Debug)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
    failed: AtomicBool,
}

/// The content of an [`Inbox`].
#[derive(Debug)]
pub(super) struct State {
    pub failure: Option<RankError>,
    /// The ranks that have left, in that order.
    pub departed: Vec<usize>,
    /// On rank 0: the parts of each round that have come.
    pub parts: HashMap<u64, Vec<Option<Value>>>,
    /// On other ranks: the rounds that are complete.
    pub rounds: HashMap<u64, Result<Vec<Value>, RankError>>,
}

impl State {
    /// Whether `rank` has left a group that had not failed.
    pub fn has_left(&self, rank: usize) -> bool {
        self.failure.is_none() && self.departed.contains(&rank)
    }
}

impl Inbox {
    pub fn new() -> Self {
        Inbox {
            state: Mutex::new(State {
                failure: None,
                departed: Vec::new(),
                parts: HashMap::new(),
                rounds: HashMap::new(),
            }),
            changed: Condvar::new(),
            failed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the content, and wakes who waits for it.
    pub fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Notes a failure, if it is the first.
    pub fn fail(&self, error: RankError) -> bool {
        let is_first = self.change(|state| {
            let is_first = state.failure.is_none();
            state.failure.get_or_insert(error);
            is_first
        });
        self.failed.store(true, Ordering::Release);
        is_first
    }

    /// The failure, if there is one. It costs one load where there is none.
    pub fn failure(&self) -> Option<RankError> {
        match self.failed.load(Ordering::Acquire) {
            true => self.lock().failure.clone(),
            false => None,
        }
    }

    /// Waits until `probe` finds something, which is returned, or there is a failure, which is
    /// an error, or the deadline has passed.
    pub fn wait<R>(
        &self,
        deadline: Instant,
        mut probe: impl FnMut(&mut State) -> Option<R>,
    ) -> Result<Option<R>, RankError> {
        let mut state = self.lock();
        loop {
            if let Some(found) = probe(&mut state) {
                return Ok(Some(found));
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
