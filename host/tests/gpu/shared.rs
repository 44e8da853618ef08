//! The device, of which all threads take turns.
//!
//! Drawing operands and multiplying them in f64 takes longer than the GPU
//! does, so tests run on all cores. What they do on the device they do alone:
//! a fault belongs to the test that sees it, and no test's work is captured
//! into another's graph.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tilewise::{Device, Error};

use crate::case::Failure;

/// A device, and whether it has failed.
pub struct Shared {
    device: Device,
    turn: Mutex<()>,
    failed: AtomicBool,
}

impl Shared {
    /// For use by several threads.
    pub fn new(device: Device) -> Shared {
        Shared {
            device,
            turn: Mutex::new(()),
            failed: AtomicBool::new(false),
        }
    }

    /// The device, to ask what it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether an error of the driver has come up. It stays with the context,
    /// as a fault in a kernel does.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Does `work` while no other thread uses the device. When it has failed
    /// there are no more turns: [`Failure::NotRun`].
    pub fn turn<R>(&self, work: impl FnOnce(&Device) -> Result<R, Failure>) -> Result<R, Failure> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_failed() {
            return Err(Failure::NotRun);
        }
        let result = work(&self.device);
        if let Err(Failure::Error(Error::Driver { .. })) = &result {
            self.failed.store(true, Ordering::Release);
        }
        result
    }
}
