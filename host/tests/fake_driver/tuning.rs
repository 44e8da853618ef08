//! Tuning against the fake driver, which runs naive_f32 and refuses to launch
//! the tiled kernels.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tilewise::{Device, Error, Family, Gemm, Origin, Schedule, TileOrder, Tuner, oracle};

use super::{has_kernels, naive, with_driver};

/// Plans a product of small integers with `tuner`, runs it, checks it. Returns
/// who chose, and the kernel.
fn tune(device: &Device, gemm: &Gemm, tuner: &mut Tuner) -> Result<(Origin, &'static str), Error> {
    let (m, n, k) = (70, 90, 5);
    let integers = |count: usize| -> Vec<f32> { (0..count).map(|i| (i % 7) as f32).collect() };
    let a = device.from_slice(&integers(m * k), m, k)?;
    let b = device.from_slice(&integers(k * n), k, n)?;
    let mut c = device.zeros::<f32>(m, n)?;
    let expected = oracle::product(a.view(), b.view())?.values;
    let mut plan = gemm.tune(a.view(), b.view(), c.view_mut(), tuner)?;
    let is_right = |found: Vec<f32>| {
        let found: Vec<f64> = found.into_iter().map(f64::from).collect();
        assert!(found == expected);
    };
    if plan.info().origin() == Origin::Measured {
        is_right(c.to_vec()?);
    }
    c.view_mut().fill(f32::NAN)?;
    plan.run(a.view(), b.view(), c.view_mut())?;
    is_right(c.to_vec()?);
    Ok((plan.info().origin(), plan.info().gpu().unwrap().kernel.name))
}

fn tuner(file: &Path) -> Tuner {
    Tuner::with_cache_file(file).budget(Duration::from_millis(50))
}

#[test]
fn the_winner_is_measured_once_and_what_does_not_launch_never_wins() {
    let name = "tuning::the_winner_is_measured_once_and_what_does_not_launch_never_wins";
    with_driver(name, "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tune.json");
        let gemm = Gemm::new(&device);
        // The rule would have taken a tiled kernel.
        let first = tune(&device, &gemm, &mut tuner(&file)).unwrap();
        assert_eq!(first, (Origin::Measured, "naive_f32"));
        // A new tuner, as in the next process.
        let next = tune(&device, &gemm, &mut tuner(&file)).unwrap();
        assert_eq!(next, (Origin::Remembered, "naive_f32"));
        // With something forced it is another problem.
        let ordered = gemm.clone().order(TileOrder::ColumnMajor);
        let forced = tune(&device, &ordered, &mut tuner(&file)).unwrap();
        assert_eq!(forced, (Origin::Measured, "naive_f32"));

        // The cache names a kernel that this build does not have.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("naive_f32", "nonesuch")).unwrap();
        let again = tune(&device, &gemm, &mut tuner(&file)).unwrap();
        assert_eq!(again, (Origin::Measured, "naive_f32"));
        let next = tune(&device, &gemm, &mut tuner(&file)).unwrap();
        assert_eq!(next.0, Origin::Remembered);

        // The same kernels with another digest are another build.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"kernels\": \"", "\"kernels\": \"f")).unwrap();
        let again = tune(&device, &gemm, &mut tuner(&file)).unwrap();
        assert_eq!(again.0, Origin::Measured);
    });
}

#[test]
fn one_choice_is_not_measured() {
    with_driver("tuning::one_choice_is_not_measured", "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        let gemm = naive(&device)
            .order(TileOrder::RowMajor)
            .schedule(Schedule::Grid1d);
        let forced = tune(&device, &gemm, &mut Tuner::in_memory()).unwrap();
        assert_eq!(forced, (Origin::Rule, "naive_f32"));
    });
}

#[test]
fn where_nothing_launches_the_error_says_why() {
    let name = "tuning::where_nothing_launches_the_error_says_why";
    with_driver(name, "fine", || {
        if !has_kernels() {
            return;
        }
        let device = Device::gpu(0).unwrap();
        let gemm = Gemm::new(&device).family(Family::Tiled);
        let error = tune(&device, &gemm, &mut Tuner::in_memory()).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Driver {
                    call: "cuLaunchKernel",
                    ..
                }
            ),
            "{error}"
        );
    });
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

/// Runs a tuner with the cache file `file` into a kernel that never ends.
fn tune_endlessly(gemm: &Gemm, file: &Path) -> Error {
    let limit = Duration::from_millis(100);
    let mut tuner = tuner(file)
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
