//! Tests tuning: what it launches, while the driver's stream captures, and with a kernel that never
//! ends.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tilewise::{Device, Error, Gemm, Tuner};

use super::calls::calls;
use super::{has_kernels, naive, with_driver};

/// Tunes a product by `gemm`.
fn tune(device: &Device, gemm: &Gemm, tuner: &mut Tuner) -> Result<(), Error> {
    let (m, n, k) = (70, 90, 5);
    let a = device.zeros::<f32>(m, k).unwrap();
    let b = device.zeros::<f32>(k, n).unwrap();
    let mut c = device.zeros::<f32>(m, n).unwrap();
    gemm.tune(&a, &b, &mut c, tuner).map(drop)
}

#[test]
fn a_capture_is_refused() {
    with_driver("tuning::a_capture_is_refused", "capturing", || {
        let device = Device::gpu(0).unwrap();
        let gemm = Gemm::new(&device);
        let error = tune(&device, &gemm, &mut Tuner::in_memory()).unwrap_err();
        assert_eq!(error, Error::TuningWhileCapturing);
    });
}

#[test]
fn a_timed_launch_has_another_one_ahead_of_the_overwritten_cache() {
    let name = "tuning::a_timed_launch_has_another_one_ahead_of_the_overwritten_cache";
    with_driver(name, "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        let seen = &mut 0;
        calls(seen);
        let mut tuner = Tuner::in_memory().budget(Duration::from_millis(20));
        tune(&device, &naive(&device), &mut tuner).unwrap();
        let calls = calls(seen);
        let overwrite = format!(
            "cuMemsetD8Async 0 x {}",
            2 * device.gpu_info().unwrap().l2_bytes
        );
        // The buffer's first one is that of its allocation.
        let overwrites = (1..calls.len())
            .filter(|&at| calls[at] == overwrite)
            .skip(1);
        let timed: Vec<_> = overwrites.map(|at| &calls[at - 1..at + 3]).collect();
        assert!(!timed.is_empty(), "{calls:?}");
        for around in timed {
            let [ahead, _, start, launch] = around else {
                unreachable!("four calls")
            };
            assert!(ahead.starts_with("cuLaunchKernel naive_f32"), "{ahead}");
            assert!(start.starts_with("cuEventRecord"), "{start}");
            assert_eq!(ahead, launch);
        }
    });
}

/// Runs a tuner with the cache file `file` into a kernel that never ends.
fn tune_endlessly(gemm: &Gemm, file: &Path) -> Error {
    let limit = Duration::from_millis(100);
    let mut tuner = Tuner::with_cache_file(file)
        .budget(Duration::from_secs(60))
        .wait_limit(limit);
    let device = Device::gpu(0).unwrap();
    let error = tune(&device, gemm, &mut tuner).unwrap_err();
    // The matrices and plans of `tune` were dropped; the fake would have ended the process
    // if that had waited.
    let later = device.synchronize().unwrap_err();
    assert!(matches!(later, Error::TimedOut { waited, .. } if waited == limit));
    error
}

#[test]
fn a_launch_that_never_ends_is_named_and_the_fastest_before_it_remembered() {
    let name = "tuning::a_launch_that_never_ends_is_named_and_the_fastest_before_it_remembered";
    with_driver(name, "endless_others", || {
        if !has_kernels() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tune.json");
        let gemm = naive(&Device::gpu(0).unwrap());
        let error = tune_endlessly(&gemm, &file);
        let message = error.to_string();
        match error {
            Error::TuningTimedOut {
                device,
                waited,
                kernel,
                shape,
                order,
                schedule,
            } => {
                assert_eq!(device, "GPU 0 (Fake 0)");
                assert_eq!(waited, Duration::from_millis(100));
                assert_eq!((kernel, shape), ("naive_f32", (70, 90, 5)));
                let walk = format!("order {order}, schedule {schedule:?},");
                for named in ["naive_f32", "70×90×5", "100ms", walk.as_str()] {
                    assert!(message.contains(named), "{message}");
                }
                // The one before it.
                let remembered = fs::read_to_string(&file).unwrap();
                assert!(remembered.contains("naive_f32"), "{remembered}");
                let has = |text: String| remembered.contains(&format!("\"{text}\""));
                let is_other = !has(order.to_string()) || !has(format!("{schedule:?}"));
                assert!(is_other, "{message}: {remembered}");
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_first_launch_that_never_ends_leaves_nothing_to_remember() {
    let name = "tuning::a_first_launch_that_never_ends_leaves_nothing_to_remember";
    with_driver(name, "endless_tiled", || {
        if !has_kernels() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tune.json");
        let gemm = Gemm::new(&Device::gpu(0).unwrap());
        let error = tune_endlessly(&gemm, &file);
        assert!(
            matches!(error, Error::TuningTimedOut { kernel, .. } if kernel.starts_with("tiled")),
            "{error}"
        );
        assert!(!file.exists());
    });
}
