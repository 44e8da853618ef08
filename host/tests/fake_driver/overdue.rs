//! Kernels that take longer than the time limit of a wait, against the fake driver, which
//! ends the process at any call that could wait for them.

use std::mem;
use std::time::{Duration, Instant};

use tilewise::{Device, Error};

use super::driver::Module;
use super::with_driver;

/// Enqueues the kernel `name`, which the fake knows.
fn launch(device: &Device, name: &str) {
    let ptx = format!(".version 8.0\n.target sm_75\n.entry {name}() {{}}\n");
    let module = Module::load(device, &ptx).unwrap();
    // SAFETY: the kernel takes no parameters.
    unsafe { module.launch(device, name, (1, 1), &mut []) }.unwrap();
    // Unloading it would wait.
    mem::forget(module);
}

/// The error of a wait of `limit`.
fn timed_out(limit: Duration) -> Error {
    Error::TimedOut {
        device: "GPU 0 (Fake 0)".into(),
        waited: limit,
    }
}

#[test]
fn a_kernel_that_never_ends_is_an_error_in_time_and_blocks_nothing_after() {
    let name = "overdue::a_kernel_that_never_ends_is_an_error_in_time_and_blocks_nothing_after";
    with_driver(name, "fine", || {
        let device = Device::gpu(0).unwrap();
        let mut matrix = device.from_slice(&[1.0_f32; 6], 2, 3).unwrap();
        launch(&device, "endless");
        let (limit, start) = (Duration::from_millis(100), Instant::now());
        let error = timed_out(limit);
        assert_eq!(device.synchronize_within(limit), Err(error.clone()));
        let took = start.elapsed();
        assert!(limit <= took && took < Duration::from_secs(20), "{took:?}");
        let message = error.to_string();
        assert!(
            message.starts_with("GPU 0 (Fake 0) was not done within 100ms"),
            "{message}"
        );

        let start = Instant::now();
        assert_eq!(device.synchronize(), Err(error.clone()));
        assert_eq!(device.make_current(), Err(error.clone()));
        assert_eq!(matrix.to_vec(), Err(error.clone()));
        assert_eq!(matrix.copy_from_slice(&[2.0; 6]), Err(error.clone()));
        assert_eq!(device.zeros::<f32>(2, 2).unwrap_err(), error);
        assert!(start.elapsed() < limit, "at once: {:?}", start.elapsed());

        // Asked again, it waits again.
        let (longer, start) = (Duration::from_millis(150), Instant::now());
        let error = timed_out(longer);
        assert_eq!(device.synchronize_within(longer), Err(error.clone()));
        assert!(start.elapsed() >= longer);

        // With no handle left, the GPU stays open, because closing it would wait.
        drop(matrix);
        drop(device);
        let device = Device::gpu(0).unwrap();
        assert_eq!(device.synchronize(), Err(error));
        // Another GPU has nothing to do with it. (It stays open: to the fake, both are
        // busy.)
        let other = Device::gpu(1).unwrap();
        assert_eq!(other.make_current(), Ok(()));
        mem::forget(other);
    });
}

#[test]
fn a_kernel_that_ends_late_makes_the_device_as_good_as_before() {
    let name = "overdue::a_kernel_that_ends_late_makes_the_device_as_good_as_before";
    with_driver(name, "fine", || {
        let device = Device::gpu(0).unwrap();
        let mut matrix = device.from_slice(&[1.0_f32; 6], 2, 3).unwrap();
        let leaked = device.zeros::<f32>(2, 2).unwrap();
        launch(&device, "slow");
        let limit = Duration::from_millis(20);
        assert_eq!(device.synchronize_within(limit), Err(timed_out(limit)));
        drop(leaked);
        assert_eq!(device.synchronize(), Err(timed_out(limit)));
        assert_eq!(device.synchronize_within(Duration::from_secs(60)), Ok(()));
        assert_eq!(device.synchronize(), Ok(()));
        matrix.copy_from_slice(&[3.0; 6]).unwrap();
        assert_eq!(matrix.to_vec(), Ok(vec![3.0; 6]));
        assert_eq!(device.synchronize_within(Duration::ZERO), Ok(()));
    });
}

#[test]
fn a_stream_that_captures_is_an_error_and_no_time_out() {
    let name = "overdue::a_stream_that_captures_is_an_error_and_no_time_out";
    with_driver(name, "capturing", || {
        let device = Device::gpu(0).unwrap();
        match device.synchronize_within(Duration::from_secs(60)) {
            Err(Error::Driver { call, code, .. }) => {
                assert_eq!((call, code), ("cuStreamQuery", 900));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(device.make_current(), Ok(()));
    });
}
