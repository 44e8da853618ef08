//! The device, of which all threads take turns.
//!
//! Drawing operands and multiplying them in f64 takes longer than the GPU
//! does, so tests run on all cores. What they do on the device they do alone:
//! a fault belongs to the test that sees it, and no test's work is captured
//! into another's graph.

use std::sync::{Mutex, PoisonError};

use tilewise::{Device, Error};

use crate::case::Failure;

/// A device, and whether it has failed.
pub struct Shared {
    device: Device,
    failed: Mutex<bool>,
}

impl Shared {
    /// For use by several threads.
    pub fn new(device: Device) -> Shared {
        Shared {
            device,
            failed: Mutex::new(false),
        }
    }

    /// The device, to ask what it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Does `work` while no other thread uses the device. After an error of the
    /// driver, which stays with the context as a fault in a kernel does, there
    /// are no more turns: [`Failure::NotRun`].
    pub fn turn<R>(&self, work: impl FnOnce(&Device) -> Result<R, Failure>) -> Result<R, Failure> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(Failure::NotRun);
        }
        let result = work(&self.device);
        *failed = matches!(&result, Err(Failure::Error(Error::Driver { .. })));
        result
    }
}
