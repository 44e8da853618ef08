//! `bench`: each operation beside the product alone, and beside NCCL and the product.

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::{Device, Gemm, Matrix, bf16};
use tilewise_parallel::program::Operation;
use tilewise_parallel::{Engine, Error, Group, Options, Plan, PlanInfo};
use tilewise_watchdog::Watchdog;

use super::devices::{self, Kind};
use super::operations::operation;
use super::timer::Timer;

/// The layers of the table in docs/parallel.md.
const SHAPES: &str =
    "1024x8192x8192,4096x8192x8192,8192x8192x8192,8192x28672x8192,16384x8192x28672";

/// What to measure.
#[derive(clap::Args)]
pub struct Arguments {
    /// Number of GPUs
    #[arg(long, default_value_t = 2)]
    pub gpus: usize,
    /// Layers, MxNxK over all ranks, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = shape, default_value = SHAPES)]
    pub shapes: Vec<[usize; 3]>,
    /// Operations, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = operation(),
        default_value = "all-gather,reduce-scatter,all-reduce"
    )]
    pub operations: Vec<Operation>,
    /// Also measure these numbers of chunks
    #[arg(long, value_delimiter = ',')]
    chunks: Vec<usize>,
    /// Rounds: in each, all candidates run once, in an order of its own
    #[arg(long, default_value_t = 30)]
    pub rounds: usize,
    /// Seed of the operands and of the orders
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Each rank is a process of its own, which this one starts; runs follow each other
    #[arg(long)]
    pub processes: bool,
}

/// Parses MxNxK.
pub fn shape(text: &str) -> Result<[usize; 3], String> {
    let sides: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    let sides = sides.map_err(|error| format!("{text}: {error}"))?;
    sides.try_into().map_err(|_| format!("{text}: not MxNxK"))
}

/// The operation in the head of its table.
pub fn title(operation: Operation) -> &'static str {
    match operation {
        Operation::AllGather => "all-gather + GEMM",
        Operation::ReduceScatter => "GEMM + reduce-scatter",
        Operation::AllReduce => "GEMM + all-reduce",
    }
}

/// What a candidate does in one round.
type Work<'w> = Box<dyn FnMut() -> Result<(), Error> + 'w>;

/// Something that is measured.
struct Candidate<'w> {
    name: String,
    work: Work<'w>,
    times: Vec<Duration>,
}

/// Measures.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let devices = match devices::open(Kind::Gpu, arguments.gpus) {
        Ok(devices) => devices,
        Err(error) => {
            println!("nothing is measured: {error}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let group = Group::new(&devices)?;
    let names: Vec<_> = devices.iter().map(ToString::to_string).collect();
    println!(
        "ranks: {}; bf16, milliseconds of the slower rank, median of {}",
        names.join(", "),
        arguments.rounds
    );
    for &shape in &arguments.shapes {
        for &operation in &arguments.operations {
            measure(arguments, &group, shape, operation)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A matrix of random values on `device`.
pub fn random(
    device: &Device,
    rng: &mut SmallRng,
    rows: usize,
    cols: usize,
) -> Result<Matrix<bf16>, Error> {
    // A prime number of them, again and again: no two rows are the same.
    let value = |_| bf16::from_f32(rng.random_range(-1.0..1.0));
    let values: Vec<_> = (0..1_048_583).map(value).collect();
    let elements: Vec<_> = values.into_iter().cycle().take(rows * cols).collect();
    Ok(device.from_slice(&elements, rows, cols)?)
}

/// Matrices for all devices, one from a closure for each.
fn each(
    devices: &[Device],
    mut matrix: impl FnMut(&Device) -> Result<Matrix<bf16>, Error>,
) -> Result<Vec<Matrix<bf16>>, Error> {
    devices.iter().map(&mut matrix).collect()
}

/// The sides of what one rank has. B is stored by columns, as the weights of a linear layer are.
pub struct Sides {
    pub a_rows: usize,
    pub own_n: usize,
    pub own_k: usize,
    pub c_rows: usize,
}

impl Sides {
    /// Of a layer that is split over `ranks`.
    pub fn of(operation: Operation, [m, n, k]: [usize; 3], ranks: usize) -> Self {
        let (a_rows, own_n, own_k) = match operation {
            Operation::AllGather => (m / ranks, n / ranks, k),
            Operation::ReduceScatter | Operation::AllReduce => (m, n, k / ranks),
        };
        let c_rows = match operation {
            Operation::ReduceScatter => m / ranks,
            Operation::AllGather | Operation::AllReduce => m,
        };
        Sides {
            a_rows,
            own_n,
            own_k,
            c_rows,
        }
    }
}

/// Measures one operation at one shape.
fn measure(
    arguments: &Arguments,
    group: &Group,
    [m, n, k]: [usize; 3],
    operation: Operation,
) -> Result<(), Error> {
    let (devices, ranks) = (group.devices(), arguments.gpus);
    let mut rng = SmallRng::seed_from_u64(arguments.seed);
    let Sides {
        a_rows,
        own_n,
        own_k,
        c_rows,
    } = Sides::of(operation, [m, n, k], ranks);
    let a = each(devices, |device| random(device, &mut rng, a_rows, own_k))?;
    let bt = each(devices, |device| random(device, &mut rng, own_n, own_k))?;
    let whole_a = each(devices, |device| random(device, &mut rng, m, own_k))?;
    let mut c = each(devices, |device| Ok(device.zeros(c_rows, own_n)?))?;
    let whole_c = || each(devices, |device| Ok(device.zeros(m, own_n)?));
    let (mut alone_c, mut busy_c) = (whole_c()?, whole_c()?);

    let a_views: Vec<_> = a.iter().map(Matrix::view).collect();
    let b_views: Vec<_> = bt.iter().map(|bt| bt.view().t()).collect();
    let mut c_views: Vec<_> = c.iter_mut().map(Matrix::view_mut).collect();
    let mut alone: Vec<tilewise::Plan<bf16, bf16>> = Vec::new();
    let mut busy = Vec::new();
    for (rank, device) in devices.iter().enumerate() {
        let gemm = Gemm::new(device);
        for plans in [&mut alone, &mut busy] {
            plans.push(gemm.plan(&whole_a[rank], b_views[rank], &mut alone_c[rank])?);
        }
    }
    let mut plans: Vec<(String, Plan<bf16, bf16>)> = Vec::new();
    let engines = [Engine::Nccl, Engine::Peer, Engine::Auto];
    let choices = (engines
        .map(|engine| Options::new().engine(engine))
        .into_iter())
    .chain((arguments.chunks.iter()).map(|&chunks| Options::new().chunks(chunks)));
    for options in choices {
        let plan = group.plan(operation, &options, &a_views, &b_views, &mut c_views);
        let plan = match plan {
            Err(error @ Error::NoNccl { .. }) => {
                println!("\n{error}");
                continue;
            }
            plan => plan?,
        };
        plans.push((name(&options, plan.info()), plan));
    }

    let c_views = RefCell::new(c_views);
    let timer = Timer::new(devices)?;
    let watchdog = Watchdog::new(|| println!("a measurement did not end"));
    let mut candidates = vec![Candidate {
        name: "product alone".into(),
        work: Box::new(|| {
            for (rank, plan) in alone.iter_mut().enumerate() {
                plan.run(&whole_a[rank], b_views[rank], &mut alone_c[rank])?;
            }
            Ok(())
        }),
        times: Vec::new(),
    }];
    for (name, mut plan) in plans {
        let (a_views, b_views, c_views) = (&a_views, &b_views, &c_views);
        candidates.push(Candidate {
            name,
            work: Box::new(move || plan.run(a_views, b_views, &mut c_views.borrow_mut())),
            times: Vec::new(),
        });
    }
    // Enough products that the host has enqueued a candidate before they end.
    let per_product = Duration::from_secs_f64(2e-12 / 700.0 * (m * own_n) as f64 * own_k as f64);
    let products = (Duration::from_micros(600).as_secs_f64() / per_product.as_secs_f64()).ceil();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    for round in 0..arguments.rounds + 3 {
        order.shuffle(&mut rng);
        for &index in &order {
            let candidate = &mut candidates[index];
            let _armed = watchdog.arm(Duration::from_secs(60), candidate.name.clone());
            let occupy = || {
                for _ in 0..products as usize {
                    for (rank, plan) in busy.iter_mut().enumerate() {
                        plan.run(&whole_a[rank], b_views[rank], &mut busy_c[rank])?;
                    }
                }
                Ok(())
            };
            let time = timer.time(occupy, &mut candidate.work)?;
            // The first rounds load kernels and buffers.
            if round >= 3 {
                candidate.times.push(time);
            }
        }
    }
    println!("\n{} {m}×{n}×{k}, {ranks} ranks", title(operation));
    let reference = median(&candidates[0].times);
    for candidate in &candidates {
        let [low, middle, high] = quartiles(&candidate.times);
        println!(
            "{:>9.4}  {:.4}-{:.4}  {:>6.3} × alone  {}",
            ms(middle),
            ms(low),
            ms(high),
            middle.as_secs_f64() / reference.as_secs_f64(),
            candidate.name
        );
    }
    Ok(())
}

/// What was asked of a plan, and what it is.
fn name(options: &Options, info: &PlanInfo) -> String {
    let asked = match (options, info.engine) {
        (options, _) if *options == Options::new().engine(Engine::Auto) => "tilewise, auto",
        (_, Engine::Nccl) => "NCCL and product",
        _ => "tilewise",
    };
    let chunks = match info.engine {
        Engine::Nccl => "NCCL".into(),
        _ => format!("{} chunks", info.chunks),
    };
    format!(
        "{asked} ({chunks}; estimate {:.3} over {:.3})",
        ms(info.estimate),
        ms(info.products)
    )
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn median(times: &[Duration]) -> Duration {
    quartiles(times)[1]
}

fn quartiles(times: &[Duration]) -> [Duration; 3] {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
    [at(1), at(2), at(3)]
}
