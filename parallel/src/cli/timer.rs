//! The time of work on several GPUs at once.

use std::ptr;
use std::time::Duration;

use cudarc::driver::sys::{self, CUevent};
use tilewise::Device;
use tilewise_parallel::Error;

/// Events on every rank's stream.
pub struct Timer<'d> {
    devices: &'d [Device],
    /// At a rank: ready, begun, ended.
    events: Vec<[CUevent; 3]>,
}

impl<'d> Timer<'d> {
    /// A timer for GPUs of the driver.
    pub fn new(devices: &'d [Device]) -> Result<Self, Error> {
        let mut timer = Timer {
            devices,
            events: Vec::new(),
        };
        for device in devices {
            device.make_current()?;
            let mut events = [ptr::null_mut(); 3];
            for event in &mut events {
                // SAFETY: the handle outlives the call.
                check("cuEventCreate", unsafe { sys::cuEventCreate(event, 0) })?;
            }
            timer.events.push(events);
        }
        Ok(timer)
    }

    /// The time that the slowest rank takes for what `run` enqueues, from a moment at which all
    /// ranks are free. `occupy` enqueues work that lasts until `run` has returned, so that the
    /// host's time does not count.
    pub fn time(
        &self,
        occupy: impl FnOnce() -> Result<(), Error>,
        run: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        occupy()?;
        self.record(0)?;
        for device in self.devices {
            device.make_current()?;
            for events in &self.events {
                // SAFETY: stream and event exist.
                check("cuStreamWaitEvent", unsafe {
                    sys::cuStreamWaitEvent(stream(device), events[0], 0)
                })?;
            }
        }
        self.record(1)?;
        run()?;
        self.record(2)?;
        let mut slowest = 0.0_f32;
        for (device, [_, begin, end]) in self.devices.iter().zip(&self.events) {
            device.synchronize()?;
            device.make_current()?;
            let mut milliseconds = 0.0;
            // SAFETY: both events were recorded, and have happened.
            check("cuEventElapsedTime", unsafe {
                sys::cuEventElapsedTime_v2(&mut milliseconds, *begin, *end)
            })?;
            slowest = slowest.max(milliseconds);
        }
        Ok(Duration::from_secs_f64(f64::from(slowest) / 1e3))
    }

    fn record(&self, which: usize) -> Result<(), Error> {
        for (device, events) in self.devices.iter().zip(&self.events) {
            device.make_current()?;
            // SAFETY: stream and event exist.
            check("cuEventRecord", unsafe {
                sys::cuEventRecord(events[which], stream(device))
            })?;
        }
        Ok(())
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        for event in self.events.iter().flatten() {
            // SAFETY: created by `new`, destroyed once.
            unsafe { sys::cuEventDestroy_v2(*event) };
        }
    }
}

/// The stream of a GPU of the driver.
pub fn stream(device: &Device) -> sys::CUstream {
    device
        .stream()
        .map_or(ptr::null_mut(), |stream| stream.as_raw().cast())
}

/// An error unless `result` is success.
pub fn check(call: &'static str, result: sys::CUresult) -> Result<(), Error> {
    match result {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(Error::Driver {
            call,
            code: other as u32,
            name: format!("{other:?}"),
        }),
    }
}
