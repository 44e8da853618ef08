//! Tests of tuning on an emulated GPU. Its time is the number of instructions, which is the
//! same each time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tilewise::emulator::{EmulatedGpu, Fault, Instruction};
use tilewise::{Device, Error, Family, Gemm, Origin, Schedule, TileOrder, Tuner, oracle};

use super::{naive, open, small};

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
    let gpu = plan.info().gpu().unwrap();
    Ok((gpu.origin, gpu.kernel.name))
}

/// A GPU on which the tiled kernels break a rule, and the naive ones do not: they need no
/// barrier.
fn without_tiled() -> Device {
    open(EmulatedGpu {
        sms: 3,
        faults: vec![Fault {
            instruction: Instruction::SyncCta,
            change: |_, _| false,
        }],
        ..EmulatedGpu::default()
    })
}

fn tuner(file: &Path) -> Tuner {
    Tuner::with_cache_file(file).budget(Duration::from_millis(50))
}

#[test]
fn the_winner_is_measured_once_and_what_does_not_launch_never_wins() {
    let device = without_tiled();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tune.json");
    let gemm = Gemm::new(&device);
    // The rule would have taken a tiled kernel.
    let first = tune(&device, &gemm, &mut tuner(&file)).unwrap();
    assert_eq!(first, (Origin::Measured, "naive_f32"));
    // A new tuner, as in the next process.
    let next = tune(&device, &gemm, &mut tuner(&file)).unwrap();
    assert_eq!(next, (Origin::Remembered, "naive_f32"));
    // With a forced choice, the cache has another key.
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
}

#[test]
fn one_choice_is_not_measured() {
    let device = small();
    let gemm = naive(&device)
        .order(TileOrder::RowMajor)
        .schedule(Schedule::Grid1d);
    let forced = tune(&device, &gemm, &mut Tuner::in_memory()).unwrap();
    assert_eq!(forced, (Origin::Rule, "naive_f32"));
}

#[test]
fn where_nothing_launches_the_error_says_why() {
    let device = without_tiled();
    let gemm = Gemm::new(&device).family(Family::Tiled);
    let error = tune(&device, &gemm, &mut Tuner::in_memory()).unwrap_err();
    assert!(
        matches!(&error, Error::KernelBroken { reports } if reports[0].kernel.starts_with("tiled")),
        "{error}"
    );
}
