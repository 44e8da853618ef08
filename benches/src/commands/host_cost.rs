//! `tilewise-bench host-cost`: the host's time for `Plan::run` beyond the driver's own
//! launch, and for `Device::matmul`, whose plan the device keeps after the first call.
//!
//! The reference is `cuLaunchKernel` of the very same launch: the plan's launch
//! is captured into a graph, and function, grid and arguments are read back
//! from the graph's one node. All are timed on the host's clock, launch by
//! launch, in random turns (see [`crate::measure::turns`]), and the stream is
//! synchronised often enough that its queue never fills, where a launch would
//! wait for the GPU.

use crate::candidates::candidate::Candidate;
use crate::candidates::planned::Planned;
use crate::error::{Error, driver};
use crate::measure::cuda_graph::Graph;
use crate::measure::machine::Machine;
use crate::measure::problem_data::ProblemData;
use crate::measure::stats::Quartiles;
use crate::measure::turns::Turns;
use crate::measure::watch::{WaitArgs, Watch};
use crate::problem::names::{KernelChoice, Placement};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::text_table::Table;
use clap::Args;
use cust::stream::Stream;
use cust::sys;
use gpu_kernels::DType;
use std::time::{Duration, Instant};
use tilewise::{Device, f16};

/// Options of `host-cost`.
#[derive(Debug, Args)]
pub struct HostCostArgs {
    /// The f16 problem; small, so that the GPU keeps up with the host.
    #[arg(long, default_value = "128x128x128")]
    pub shape: GemmShape,
    /// Family or entry point. [default: chosen by the library]
    #[arg(long)]
    pub kernel: Option<KernelChoice>,
    /// Timed launches of each.
    #[arg(long, default_value_t = 10_000)]
    pub launches: usize,
    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Seed of the inputs, and of the order of launches.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
}

/// Launches between two synchronisations.
const SYNCHRONISE_EVERY: usize = 64;

/// Launches of each before the timed ones.
const WARM_UP: usize = 256;

/// Runs the command; prints a table.
///
/// # Errors
/// There is no GPU, it failed, or the library cannot plan the problem.
pub fn run(args: &HostCostArgs) -> Result<(), Error> {
    let watch = Watch::new(&args.wait, || ());
    watch.begin(Duration::ZERO, "opening the GPU");
    let device = Device::gpu(0)?;
    device.make_current()?;
    let result = on_gpu(args, &device, &watch);
    watch.close();
    result
}

fn on_gpu(args: &HostCostArgs, device: &Device, watch: &Watch) -> Result<(), Error> {
    let no_stream = || Error::Usage("launches are timed on a GPU".to_owned());
    let stream = device.cust_stream().ok_or_else(no_stream)?;
    let problem = ProblemSpec::row_major(args.shape, DType::F16);
    watch.begin(Duration::ZERO, format!("planning, {problem}"));
    let mut workload = ProblemData::<f16, f16>::new(device, problem, args.seed)?;
    let mut planned = Planned::new(device, args.kernel, Placement::default(), &mut workload)?;
    let label = format!("{problem}, {}", Candidate::<f16, f16>::label(&planned));
    let product = Candidate::<f16, f16>::estimate(&planned);
    watch.begin(product, format!("checking, {label}"));
    // The first run comes before the capture, because its preparations cannot be captured.
    checked(workload.check(|workload| planned.launch(workload))?)?;
    let bare = BareLaunch::captured(stream, || planned.launch(&mut workload))?;
    checked(workload.check(|_| bare.launch(stream))?)?;

    let mut launch = |which: usize| match which {
        0 => planned.launch(&mut workload),
        1 => bare.launch(stream),
        _ => {
            let (a, b, _) = workload.operands();
            device.matmul(a, b)?;
            Ok(())
        }
    };
    let mut synchronise = || {
        stream.synchronize()?;
        // Covers the launches from here on, and the next wait for them.
        watch.begin(SYNCHRONISE_EVERY as u32 * product, label.as_str());
        Ok(())
    };
    let mut turns = Turns::new(args.seed);
    rounds(&mut turns, WARM_UP, &mut launch, &mut synchronise)?;
    let times = rounds(&mut turns, args.launches, &mut launch, &mut synchronise)?;
    println!(
        "{}  {}  {}  f16  kernels by {}\n\
         host time of one launch, {} of each in random turns, synchronised every {SYNCHRONISE_EVERY}\n\n{}",
        device.name(),
        Candidate::<f16, f16>::label(&planned).kernel,
        args.shape,
        Machine::of(device).toolchain,
        args.launches,
        table(&times)
    );
    Ok(())
}

fn checked(result: Result<f64, String>) -> Result<(), Error> {
    let wrong = |what| Error::Usage(format!("wrong result, not timed: {what}"));
    result.map(|_| ()).map_err(wrong)
}

/// One kernel launch as the driver takes it.
struct BareLaunch {
    parameters: sys::CUDA_KERNEL_NODE_PARAMS,
    /// Owns the arguments that `parameters` points to.
    _graph: Graph,
}

impl BareLaunch {
    /// The launch that `enqueue` makes; it is recorded, not run.
    fn captured(
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let graph = Graph::captured(stream, enqueue)?;
        Ok(BareLaunch {
            parameters: graph.only_kernel()?,
            _graph: graph,
        })
    }

    fn launch(&self, stream: &Stream) -> Result<(), Error> {
        let parameters = &self.parameters;
        // SAFETY: the library made this launch; the arguments belong to the
        // graph's node, and what they point to to the workload and the plan,
        // which outlive the last synchronisation.
        let launched = unsafe {
            sys::cuLaunchKernel(
                parameters.func,
                parameters.gridDimX,
                parameters.gridDimY,
                parameters.gridDimZ,
                parameters.blockDimX,
                parameters.blockDimY,
                parameters.blockDimZ,
                parameters.sharedMemBytes,
                stream.as_inner(),
                parameters.kernelParams,
                std::ptr::null_mut(),
            )
        };
        driver("cuLaunchKernel", launched)
    }
}

/// What is timed: `Plan::run`, `cuLaunchKernel` alone, `Device::matmul`.
const CONTENDERS: usize = 3;

/// Microseconds of `launch(0)` and of each further contender, `count` of each; the calls
/// of a round come in random order.
fn rounds(
    turns: &mut Turns,
    count: usize,
    launch: &mut dyn FnMut(usize) -> Result<(), Error>,
    synchronise: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<[Vec<f64>; CONTENDERS], Error> {
    let mut times = std::array::from_fn(|_| Vec::with_capacity(count));
    for round in 0..count {
        if round % (SYNCHRONISE_EVERY / CONTENDERS) == 0 {
            synchronise()?;
        }
        for which in turns.round(CONTENDERS) {
            let start = Instant::now();
            launch(which)?;
            times[which].push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    synchronise()?;
    Ok(times)
}

fn table([plan, bare, matmul]: &[Vec<f64>; CONTENDERS]) -> String {
    let differences: Vec<f64> = plan
        .iter()
        .zip(bare)
        .map(|(plan, bare)| plan - bare)
        .collect();
    let mut table = Table::new(["", "median us", "q1", "q3"]);
    for (name, times) in [
        ("Plan::run", plan),
        ("cuLaunchKernel alone", bare),
        ("difference, in pairs", &differences),
        ("Device::matmul", matmul),
    ] {
        if let Some(Quartiles { q1, median, q3 }) = Quartiles::of(times) {
            table.row([
                name.to_owned(),
                format!("{median:.2}"),
                format!("{q1:.2}"),
                format!("{q3:.2}"),
            ]);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn all_are_launched_equally_often_and_the_queue_stays_short() {
        let waiting = Cell::new(0);
        let mut launched = [0; CONTENDERS];
        let times = rounds(
            &mut Turns::new(1),
            1000,
            &mut |which| {
                launched[which] += 1;
                waiting.set(waiting.get() + 1);
                assert!(waiting.get() <= SYNCHRONISE_EVERY);
                Ok(())
            },
            &mut || {
                waiting.set(0);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(launched, [1000; CONTENDERS]);
        assert_eq!(times.map(|times| times.len()), [1000; CONTENDERS]);
        assert_eq!(waiting.get(), 0);
    }

    #[test]
    fn a_failed_launch_ends_it() {
        let refused = |_| Err(Error::Usage("no".to_owned()));
        let result = rounds(&mut Turns::new(1), 2, &mut { refused }, &mut || Ok(()));
        assert!(result.is_err());
    }

    #[test]
    fn differences_are_taken_in_pairs() {
        let text = table(&[vec![3.0, 12.0, 4.0], vec![2.0, 10.0, 3.5], vec![5.0; 3]]);
        let line = text.lines().find(|line| line.starts_with("difference"));
        assert!(line.is_some_and(|line| line.contains("1.00")), "{text}");
    }
}
