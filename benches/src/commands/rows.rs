//! The records of `bench` for a program that calls this library, such as Python's
//! `tilewise.bench`: no table is printed, no file is written, and no watchdog ends the process.

use crate::candidates::candidate::{Label, TILEWISE};
use crate::candidates::cublaslt::CublasLt;
use crate::commands::bench::with_triton;
use crate::error::Error;
use crate::measure::machine::{self, Machine};
use crate::measure::regime::Regime;
use crate::measure::watch::Watch;
use crate::modelled::orders::ModelledProblem;
use crate::modelled::selection::H200;
use crate::problem::names::{self, KernelChoice};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::records::record::{Record, Status, fill_speedups};
use crate::runner::bench_arguments::BenchArgs;
use crate::runner::run::Runner;
use tilewise::Device;

/// What was measured, and where.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The records that `bench --json` would write, and without a GPU those of the model.
    pub records: Vec<Record>,
    /// Why no GPU was measured; `None` where one was.
    pub no_gpu: Option<String>,
}

/// Measures as `bench` does with the same options. Without a GPU, the given shapes are
/// modelled for an H200, and timed on the CPU device, which gets shapes of its own where none
/// are given.
///
/// # Errors
/// A GPU was asked for and there is none, or the device failed.
pub fn measure(args: &BenchArgs) -> Result<Measured, Error> {
    let device = machine::open(args.device)?;
    let no_gpu = match (device.is_gpu(), Device::gpu(0)) {
        (true, _) => None,
        (_, Err(error)) => Some(error.to_string()),
        (_, Ok(gpu)) => Some(format!(
            "{} was not asked for, or has no kernel",
            gpu.name()
        )),
    };
    let problems = match device.is_gpu() || !args.shapes.is_empty() {
        true => args.problems(&GemmShape::CPU),
        false => args.problems_at(&GemmShape::CPU),
    };
    let mut records = Vec::new();
    if !device.is_gpu() {
        let modelled = args.problems(&[GemmShape::new(4096, 4096, 4096)]);
        records.extend(modelled.iter().flat_map(|problem| model(args, *problem)));
    }
    let cublaslt = match device.is_gpu() && !args.no_peers {
        true => CublasLt::open(&device, args.cublaslt.as_deref(), &args.python).ok(),
        false => None,
    };
    let watch = Watch::idle();
    let mut timed = Vec::new();
    Runner::new(args, &device, cublaslt, &watch)?.run(&problems, &mut timed, &mut |_| Ok(()))?;
    if device.is_gpu() && args.wants_triton() {
        with_triton(args, &problems, &Machine::of(&device), &mut timed);
    }
    fill_speedups(&mut timed);
    records.extend(timed);
    Ok(Measured { records, no_gpu })
}

/// What the library would launch for `problem` on an H200, as records without times.
fn model(args: &BenchArgs, problem: ProblemSpec) -> Vec<Record> {
    let kernels = match args.kernels.as_slice() {
        [] if args.only_choice() => &[],
        [] => KernelChoice::defaults(problem.dtype),
        chosen => chosen,
    };
    let placements = names::placements(&args.orders, &args.schedules);
    let modelled =
        ModelledProblem::new(problem, kernels, &placements, args.forces_nothing(), &H200);
    let machine = Machine {
        device: H200.name.to_owned(),
        ..Machine::default()
    };
    let record = |(kernel, order, dram_gb): (&str, String, f64)| {
        let label = Label {
            kernel: kernel.to_owned(),
            order,
            note: "modelled, not measured".to_owned(),
            ..Label::of(TILEWISE)
        };
        Record {
            status: Status::Modelled,
            modelled_dram_gb: Some(dram_gb),
            ..Record::new(&machine, problem, &label, Regime::Cold, args.seed)
        }
    };
    modelled.figures().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::machine::DeviceChoice;

    #[test]
    fn without_a_gpu_the_rows_are_modelled_and_timed_on_the_cpu() {
        let args = BenchArgs {
            shapes: vec![GemmShape::new(64, 48, 32)],
            device: Some(DeviceChoice::Cpu),
            smoke: true,
            ..BenchArgs::default()
        };
        let measured = measure(&args).unwrap();
        assert!(measured.no_gpu.is_some());
        let of = |status| {
            let records = measured.records.iter();
            records
                .filter(|record| record.status == status)
                .collect::<Vec<_>>()
        };
        let (modelled, timed) = (of(Status::Modelled), of(Status::Timed));
        assert!(!modelled.is_empty() && !timed.is_empty());
        assert!(modelled.iter().all(|record| {
            record.modelled_dram_gb.is_some_and(|gb| gb > 0.0) && record.median_ms.is_none()
        }));
        for record in timed {
            assert_eq!(record.shape(), args.shapes[0]);
            assert!(record.median_ms.is_some_and(|time| time > 0.0));
        }
        assert_eq!(of(Status::Wrong), Vec::<&Record>::new());
    }
}
