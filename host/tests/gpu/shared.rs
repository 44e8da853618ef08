//! The device, which the threads use one at a time.
//!
//! Drawing operands and multiplying them in f64 takes longer than the product on the
//! GPU, so tests run on all cores. A test has the device to itself during its turn: a
//! fault belongs to the test that sees it, and no test's work is captured into another's
//! graph.
//!
//! A turn may take only so long. A kernel that hangs would have all other tests wait
//! for ever, so a [`Watchdog`] then ends the program, with the test's name.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tilewise::{Device, Error};
use tilewise_watchdog::Watchdog;

use crate::case::{Failure, is_fatal};

/// A device for one test; the watchdog names that test when a turn takes too long.
#[derive(Clone)]
pub struct Shared {
    pool: Arc<Pool>,
    test: String,
}

/// The state that all tests share.
struct Pool {
    device: Device,
    turn: Mutex<()>,
    failed: AtomicBool,
    /// Ends turns that take longer than this; `None` for the CPU.
    watchdog: Option<(Watchdog, Duration)>,
}

impl Shared {
    /// The CPU, or a device that does not hang.
    pub fn new(device: Device) -> Shared {
        Shared::with(device, None)
    }

    /// A GPU on which a turn may take `limit`.
    pub fn watched(device: Device, watchdog: Watchdog, limit: Duration) -> Shared {
        Shared::with(device, Some((watchdog, limit)))
    }

    fn with(device: Device, watchdog: Option<(Watchdog, Duration)>) -> Shared {
        Shared {
            pool: Arc::new(Pool {
                device,
                turn: Mutex::new(()),
                failed: AtomicBool::new(false),
                watchdog,
            }),
            test: String::new(),
        }
    }

    /// The same device, for the test that `test` names.
    pub fn of_test(&self, test: String) -> Shared {
        Shared {
            pool: Arc::clone(&self.pool),
            test,
        }
    }

    /// The device, to ask what it is.
    pub fn device(&self) -> &Device {
        &self.pool.device
    }

    /// Whether an error of the driver has come up, which stays with the context,
    /// as a fault in a kernel does; or the device is overdue.
    pub fn has_failed(&self) -> bool {
        self.pool.failed.load(Ordering::Acquire)
    }

    /// Does `work` while no other thread uses the device. When it has failed
    /// there are no more turns: [`Failure::NotRun`].
    pub fn turn<R>(&self, work: impl FnOnce(&Device) -> Result<R, Failure>) -> Result<R, Failure> {
        let pool = &self.pool;
        let _turn = pool.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_failed() {
            return Err(Failure::NotRun);
        }
        let _armed = (pool.watchdog.as_ref())
            .map(|(watchdog, limit)| watchdog.arm(*limit, self.test.as_str()));
        let result = work(&pool.device);
        // Some tests have only the text of an error.
        let is_overdue = matches!(pool.device.make_current(), Err(Error::TimedOut { .. }));
        if is_overdue || matches!(&result, Err(Failure::Error(error)) if is_fatal(error)) {
            pool.failed.store(true, Ordering::Release);
        }
        result
    }

    /// From here on the program only ends, and that is limited, too: closing the GPU and
    /// the driver's exit handlers may wait for a kernel.
    pub fn close(self) {
        if let Some((watchdog, limit)) = &self.pool.watchdog {
            mem::forget(watchdog.arm(*limit, "closing the GPU, all tests done"));
        }
    }
}
