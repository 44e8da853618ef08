use super::*;
use crate::candidates::candidate::CHOSEN;
use crate::measure::peak::Chip;
use crate::problem::shape::BlasLayout;
use gpu_kernels::{DType, OutputType, TileOrder};

/// A timed record of a 4096-cube on a made-up GPU.
pub(crate) fn sample(implementation: &str, order: &str, median_ms: f64) -> Record {
    let machine = Machine {
        device: "Test GPU, \"quoted\"".to_owned(),
        driver: "13.0".to_owned(),
        compute_capability: "9.0".to_owned(),
        chip: Some(Chip {
            compute_capability: (9, 0),
            sms: 132,
            max_clock_khz: 1_980_000,
        }),
        toolchain: "rustc 1.95".to_owned(),
    };
    let problem = ProblemSpec {
        shape: GemmShape::new(4096, 4096, 4096),
        layout: BlasLayout::NN,
        dtype: DType::F16,
        output: OutputType::Input,
    };
    let label = Label {
        implementation: implementation.to_owned(),
        kernel: "kernel".to_owned(),
        order: order.to_owned(),
        schedule: "persistent".to_owned(),
        line_classes: None,
        ctas: Some(132),
        note: String::new(),
    };
    let mut record = Record::new(&machine, problem, &label, Regime::Cold, 42);
    record.set_times(&[median_ms]);
    record.relative_error = Some(2e-4);
    record.throttle = "SW_POWER_CAP".to_owned();
    record
}

#[test]
fn row_major_order_is_written_as_orders_write_themselves() {
    assert_eq!(TileOrder::RowMajor.to_string(), ROW_MAJOR);
}

#[test]
fn times_give_throughput_and_share() {
    let record = sample("tilewise", "row", 0.2);
    let tflops = 2.0 * 4096f64.powi(3) / 0.2e-3 / 1e12;
    assert!((record.tflops.unwrap() - tflops).abs() < 1e-9);
    assert!((record.share_of_peak.unwrap() - tflops / 1070.53).abs() < 1e-4);
    assert_eq!((record.samples, record.q1_ms), (1, Some(0.2)));
}

#[test]
fn speedups_are_ratios_of_medians() {
    let mut records = [
        sample("tilewise", "row", 0.3),
        sample("tilewise", "grouped:8", 0.25),
        sample("cuBLASLt 13.0", "", 0.2),
    ];
    fill_speedups(&mut records);
    assert_eq!(records[0].speedup_over_row_major, Some(1.0));
    assert_eq!(records[1].speedup_over_row_major, Some(0.3 / 0.25));
    assert_eq!(records[1].speedup_over_cublaslt, Some(0.2 / 0.25));
    assert_eq!(records[2].speedup_over_row_major, None);
    assert_eq!(records[2].speedup_over_cublaslt, Some(1.0));
}

#[test]
fn the_librarys_choice_compares_with_row_major_forced() {
    let mut records = [
        sample(CHOSEN, "grouped:8", 0.25),
        sample("tilewise", "row", 0.3),
    ];
    fill_speedups(&mut records);
    assert_eq!(records[0].speedup_over_row_major, Some(0.3 / 0.25));
}

#[test]
fn pairs_come_before_the_ratio_of_medians() {
    let mut records = [
        sample("tilewise", "row", 0.4),
        sample("cuBLASLt 13.0", "", 0.2),
    ];
    fill_speedups(&mut records);
    assert_eq!(records[0].over_cublaslt(), Some(0.5));
    records[0].set_pairs(&[1.0, 2.0, 3.0], &[1.0, 4.0, 4.0]);
    assert_eq!(records[0].over_cublaslt(), Some(0.75));
    assert_eq!(records[0].paired_over_cublaslt_q1, Some(0.625));
    assert_eq!(records[0].paired_over_cublaslt_q3, Some(0.875));
    assert_eq!(records[0].speedup_over_cublaslt, Some(0.5));
}

#[test]
fn other_problems_regimes_and_schedules_are_no_base() {
    let grouped = sample("tilewise", "grouped:8", 0.25);
    let mut other_shape = sample("cuBLASLt 13.0", "", 0.2);
    other_shape.k = 512;
    let mut other_regime = sample("cuBLASLt 13.0", "", 0.2);
    other_regime.regime = Regime::Sustained;
    let mut other_schedule = sample("tilewise", "row", 0.3);
    other_schedule.schedule = "grid1d".to_owned();
    let mut records = [grouped, other_shape, other_regime, other_schedule];
    fill_speedups(&mut records);
    assert_eq!(records[0].speedup_over_row_major, None);
    assert_eq!(records[0].speedup_over_cublaslt, None);
}
