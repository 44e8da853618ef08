//! [`Closing`]: how many communicators are being closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The communicators of a member that wait for other ranks to close theirs.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    open: AtomicUsize,
    is_over: AtomicBool,
}

/// A communicator that is being closed, until this is dropped.
pub(super) struct Closed(Arc<Closing>);

impl Closing {
    /// Counts one more.
    pub(super) fn begin(self: &Arc<Self>) -> Closed {
        self.open.fetch_add(1, Ordering::AcqRel);
        Closed(Arc::clone(self))
    }

    /// Whether some are not closed yet.
    pub(crate) fn is_under_way(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Leaves what is not closed to the end of the process.
    pub(crate) fn give_up(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether it was given up.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}
