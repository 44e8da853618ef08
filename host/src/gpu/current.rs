//! [`Current`]: the context of a GPU is current on the calling thread.
//!
//! Every call of the driver works in the context that is current on its thread, which other
//! libraries of the process rely on too. The library makes its context current for each of
//! its calls, and then makes the context current again that it found.

use std::ffi::c_void;

/// While this exists, the context of a GPU is current on the thread that made it. Dropping it
/// makes the context current that was current before, if that is another.
#[must_use]
#[derive(Debug)]
pub(crate) struct Current {
    found: Option<Found>,
}

/// Another context, or none (null), that was current before.
#[derive(Debug)]
struct Found {
    context: *mut c_void,
    restore: fn(*mut c_void),
}

impl Current {
    /// The GPU's context was current already, or the GPU has none.
    pub(super) const UNCHANGED: Current = Current { found: None };

    /// The GPU's context is current in place of `context`, which `restore` makes current.
    pub(super) fn in_place_of(context: *mut c_void, restore: fn(*mut c_void)) -> Self {
        Current {
            found: Some(Found { context, restore }),
        }
    }

    /// Leaves the GPU's context current.
    pub(crate) fn keep(mut self) {
        self.found = None;
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(Found { context, restore }) = self.found.take() {
            restore(context);
        }
    }
}
