//! `cargo bench`: criterion's statistics over times of the device itself (CUDA
//! events on a GPU, wall time on the CPU). Small sizes, so that it ends soon;
//! `tilewise-bench bench` is the full comparison.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::{Duration, Instant};
use tilewise::{Device, Element, Error, bf16, f16};
use tilewise_benches::candidates::candidate::Candidate;
use tilewise_benches::candidates::planned::Planned;
use tilewise_benches::measure::interval::Interval;
use tilewise_benches::measure::machine::Machine;
use tilewise_benches::measure::problem_data::ProblemData;
use tilewise_benches::problem::names::Placement;
use tilewise_benches::problem::shape::{BlasLayout, GemmShape};
use tilewise_benches::problem::spec::ProblemSpec;

const SEED: u64 = 42;

fn shapes(device: &Device) -> &'static [usize] {
    if device.is_gpu() {
        &[1024, 2048, 4096]
    } else {
        &[128, 256]
    }
}

/// The time of `products` products in a row.
fn time<T: Element>(
    device: &Device,
    planned: &mut Planned<T, T>,
    workload: &mut ProblemData<T, T>,
    products: u64,
) -> Duration {
    let run = |planned: &mut Planned<T, T>, workload: &mut ProblemData<T, T>| {
        for _ in 0..products {
            planned.launch(workload).expect("it ran before");
        }
    };
    match device.cust_stream() {
        Some(stream) => {
            let interval = Interval::new().expect("the driver makes events");
            interval.start(stream).expect("the stream takes events");
            run(planned, workload);
            interval.stop(stream).expect("the stream takes events");
            let milliseconds = interval.milliseconds().expect("the launches succeed");
            Duration::from_secs_f64(milliseconds / 1e3)
        }
        None => {
            let start = Instant::now();
            run(planned, workload);
            start.elapsed()
        }
    }
}

fn gemm_of<T: Element>(criterion: &mut Criterion, device: &Device) {
    let mut group = criterion.benchmark_group(format!("gemm/{}", T::DTYPE.name()));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    for &size in shapes(device) {
        let shape = GemmShape::new(size, size, size);
        let problem = ProblemSpec {
            shape,
            layout: BlasLayout::NN,
            dtype: T::DTYPE,
            output: tilewise::OutputType::Input,
        };
        let mut workload = ProblemData::<T, T>::new(device, problem, SEED).expect("memory for it");
        let planned = Planned::new(device, None, Placement::default(), &mut workload);
        let mut planned = match planned {
            Ok(planned) => planned,
            // A build without kernels for this GPU.
            Err(error @ Error::NoKernel { .. }) => {
                eprintln!("{shape} {}: {error}", T::DTYPE.name());
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let right = workload.check(|workload| planned.launch(workload));
        right.expect("it runs").expect("its result is right");
        group.throughput(Throughput::Elements(shape.flop() as u64));
        group.bench_function(BenchmarkId::from_parameter(shape), |bencher| {
            bencher.iter_custom(|products| time(device, &mut planned, &mut workload, products));
        });
    }
    group.finish();
}

fn gemm(criterion: &mut Criterion) {
    let device = Device::best();
    device.make_current().expect("the device was just opened");
    let machine = Machine::of(&device);
    println!("{}  kernels by {}", machine.device, machine.toolchain);
    gemm_of::<f16>(criterion, &device);
    gemm_of::<bf16>(criterion, &device);
    gemm_of::<f32>(criterion, &device);
}

criterion_group!(benches, gemm);
criterion_main!(benches);
