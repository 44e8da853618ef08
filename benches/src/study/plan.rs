//! What the study measures of its products: kernels, orders, and who would pick which order.

use std::time::Duration;

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{DType, KernelInfo, OutputType, Schedule, TileOrder};
use tilewise::select::{self, Target};

use super::StudyArgs;
use super::products::PRODUCTS;
use crate::choice::{KernelChoice, Placement};
use crate::cli::{BenchArgs, DeviceChoice, RegimeChoice};
use crate::error::Error;
use crate::model;
use crate::shape::{Layout, Shape};
use crate::watch::WaitArgs;
use crate::workload::Problem;

/// Entry points measured by default: the tile that large products get, and half of it,
/// which asks L2 for a third more.
pub const KERNELS_MEASURED: [&str; 2] =
    ["hopper_f16_ak_bn_128x256x64", "hopper_f16_ak_bn_128x128x64"];

/// Orders measured of every product; what the rules of [`Picks`] add comes on top.
pub const ORDERS: [TileOrder; 12] = [
    TileOrder::RowMajor,
    TileOrder::ColumnMajor,
    TileOrder::GroupedM { size: 4 },
    TileOrder::GroupedM { size: 8 },
    TileOrder::GroupedM { size: 16 },
    TileOrder::GroupedM { size: 32 },
    TileOrder::GroupedN { size: 4 },
    TileOrder::GroupedN { size: 8 },
    TileOrder::GroupedN { size: 16 },
    TileOrder::SerpentineM { size: 16 },
    TileOrder::Morton,
    TileOrder::Hilbert,
];

/// What `--quick` measures where nothing else is asked for.
const QUICK_SHAPES: [Shape; 3] = [
    Shape::new(4096, 4096, 4096),
    Shape::new(8192, 8192, 1024),
    Shape::new(5000, 12008, 3000),
];
const QUICK_ORDERS: [TileOrder; 3] = [
    TileOrder::RowMajor,
    TileOrder::GroupedM { size: 8 },
    TileOrder::Hilbert,
];
const QUICK_SUSTAIN: Duration = Duration::from_millis(100);

/// The largest swizzle of CUTLASS, and what its profiler's sweeps end with.
const CUTLASS_MAX_SWIZZLE: u32 = 8;

/// The orders that rules pick for one product, kernel and schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picks {
    /// `tilewise::select`, with the kernel and the schedule forced.
    pub chooser: TileOrder,
    /// [`TileOrder::cutlass`] with swizzles up to 8.
    pub cutlass: TileOrder,
}

impl Picks {
    /// Asks the rules; needs no GPU.
    ///
    /// # Errors
    /// `target` cannot run the kernel so.
    pub fn of(
        problem: Problem,
        kernel: &KernelInfo,
        schedule: Schedule,
        target: &Target,
    ) -> Result<Picks, String> {
        let placement = Placement {
            order: None,
            schedule: Some(schedule),
        };
        let choice = model::choose(
            problem,
            Some(KernelChoice::Entry(kernel.name)),
            placement,
            target,
        )?;
        let Shape { m, n, .. } = problem.shape;
        let grid = select::tile_grid(kernel, m as u32, n as u32);
        Ok(Picks {
            chooser: choice.order,
            cutlass: TileOrder::cutlass(grid, CUTLASS_MAX_SWIZZLE),
        })
    }
}

/// What one run measures.
pub struct Plan {
    /// Products, in the order of measuring.
    pub shapes: Vec<Shape>,
    /// Kernels, all of one type.
    pub kernels: Vec<&'static KernelInfo>,
    /// Orders of every product.
    pub orders: Vec<TileOrder>,
    /// Schedules.
    pub schedules: Vec<Schedule>,
    sustain: Duration,
    seed: u64,
    wait: WaitArgs,
}

impl Plan {
    /// What the arguments ask for.
    ///
    /// # Errors
    /// Kernels by family, or of more types than one.
    pub fn new(args: &StudyArgs) -> Result<Plan, Error> {
        let kernels = kernels(&args.kernels)?;
        let shapes = match args.shapes.as_slice() {
            [] if args.quick => QUICK_SHAPES.to_vec(),
            [] => PRODUCTS.iter().map(|product| product.shape).collect(),
            shapes => shapes.to_vec(),
        };
        let orders = match args.orders.as_slice() {
            [] if args.quick => QUICK_ORDERS.to_vec(),
            [] => ORDERS.to_vec(),
            orders => orders.to_vec(),
        };
        let sustain = match args.quick {
            true => args.sustain.min(QUICK_SUSTAIN),
            false => args.sustain,
        };
        Ok(Plan {
            shapes,
            kernels,
            orders,
            schedules: args.schedules.clone(),
            sustain,
            seed: args.seed,
            wait: args.wait.clone(),
        })
    }

    /// Type of A, B and C.
    pub fn dtype(&self) -> DType {
        self.kernels[0].input
    }

    /// How long waits may take.
    pub fn wait(&self) -> &WaitArgs {
        &self.wait
    }

    /// The product of `shape`.
    pub fn problem(&self, shape: Shape) -> Problem {
        problem(shape, self.dtype())
    }

    /// The orders to measure of `shape`: those of every product, and what rules pick with
    /// any of the kernels.
    pub fn orders_of(&self, shape: Shape, target: &Target) -> Vec<TileOrder> {
        let mut orders = self.orders.clone();
        for kernel in &self.kernels {
            for &schedule in &self.schedules {
                // A kernel that cannot run it is reported when it is planned.
                if let Ok(picks) = Picks::of(self.problem(shape), kernel, schedule, target) {
                    orders.extend([picks.chooser, picks.cutlass]);
                }
            }
        }
        let mut distinct = Vec::new();
        for order in orders {
            if !distinct.contains(&order) {
                distinct.push(order);
            }
        }
        distinct
    }

    /// The benchmark that measures `orders` of `shape`; with `launch_once` for a profiler.
    pub fn bench(&self, shape: Shape, orders: Vec<TileOrder>, launch_once: bool) -> BenchArgs {
        BenchArgs {
            shapes: vec![shape],
            suite: None,
            choice: false,
            row_major: false,
            triton: false,
            dtypes: vec![self.dtype()],
            kernels: (self.kernels.iter())
                .map(|kernel| KernelChoice::Entry(kernel.name))
                .collect(),
            orders,
            schedules: self.schedules.clone(),
            layouts: vec![Layout::NN],
            output: OutputType::Input,
            regimes: vec![RegimeChoice::Cold, RegimeChoice::Sustained],
            sustain: self.sustain,
            seed: self.seed,
            tune: false,
            tune_budget: Duration::ZERO,
            tune_cache: None,
            no_peers: true,
            cublaslt: None,
            python: "python3".into(),
            json: None,
            csv: None,
            html: None,
            ncu: launch_once,
            device: Some(DeviceChoice::Gpu),
            wait: self.wait.clone(),
            smoke: false,
        }
    }
}

/// The product of `shape` as the study has it: C of the type of A and B, both row-major.
pub fn problem(shape: Shape, dtype: DType) -> Problem {
    Problem {
        shape,
        layout: Layout::NN,
        dtype,
        output: OutputType::Input,
    }
}

/// The kernel of this name.
pub fn kernel(name: &str) -> Option<&'static KernelInfo> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

fn kernels(choices: &[KernelChoice]) -> Result<Vec<&'static KernelInfo>, Error> {
    let names: Vec<&str> = match choices {
        [] => KERNELS_MEASURED.to_vec(),
        choices => (choices.iter())
            .map(|choice| match choice {
                KernelChoice::Entry(name) => Ok(*name),
                KernelChoice::Family(family) => Err(Error::Usage(format!(
                    "--kernels: '{}' is a family; accepted: entry points, such as {}",
                    family.name(),
                    KERNELS_MEASURED[0]
                ))),
            })
            .collect::<Result<_, _>>()?,
    };
    let kernels: Vec<_> = names.iter().filter_map(|name| kernel(name)).collect();
    match kernels.iter().find(|other| other.input != kernels[0].input) {
        Some(other) => Err(Error::Usage(format!(
            "--kernels: {} multiplies {} and {} multiplies {}; accepted: kernels of one type",
            kernels[0].name,
            kernels[0].input.name(),
            other.name,
            other.input.name()
        ))),
        None => Ok(kernels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::page::data::StudyRow;
    use crate::study::gpus;
    use clap::Parser;
    use std::collections::HashSet;

    fn plan(words: &[&str]) -> Result<Plan, Error> {
        let all = ["tilewise-bench", "study"].iter().chain(words);
        match Cli::parse_from(all).command {
            Command::Study(args) => Plan::new(&args),
            other => unreachable!("the arguments say study, not {other:?}"),
        }
    }

    fn h200() -> Target {
        let row = StudyRow {
            device: "NVIDIA H200".to_owned(),
            ..StudyRow::default()
        };
        gpus::target(&row).unwrap()
    }

    #[test]
    fn what_rules_pick_is_measured_once() {
        let plan = plan(&["--orders=row,grouped:8", "--schedules=grid1d,persistent"]).unwrap();
        for product in &PRODUCTS {
            let orders = plan.orders_of(product.shape, &h200());
            let distinct: HashSet<_> = orders.iter().collect();
            assert_eq!(distinct.len(), orders.len());
            assert_eq!(orders[..2], plan.orders);
            for kernel in &plan.kernels {
                let problem = plan.problem(product.shape);
                let picks = Picks::of(problem, kernel, Schedule::Grid1d, &h200()).unwrap();
                assert!(orders.contains(&picks.chooser) && orders.contains(&picks.cutlass));
            }
        }
    }

    #[test]
    fn cutlass_is_asked_with_its_largest_swizzle() {
        let problem = problem(Shape::new(8192, 28672, 8192), DType::F16);
        let kernel = kernel(KERNELS_MEASURED[0]).unwrap();
        let picks = Picks::of(problem, kernel, Schedule::Grid1d, &h200()).unwrap();
        assert_eq!(picks.cutlass, TileOrder::GroupedN { size: 8 });
    }

    #[test]
    fn kernels_are_entry_points_of_one_type() {
        assert_eq!(plan(&[]).unwrap().dtype(), DType::F16);
        let message = |words: &[&str]| plan(words).err().unwrap().to_string();
        let family = message(&["--kernels=hopper"]);
        assert!(
            family.contains("family") && family.contains("entry points"),
            "{family}"
        );
        let types = message(&["--kernels=naive_f16,naive_f32"]);
        assert!(types.contains("naive_f32 multiplies f32"), "{types}");
    }

    #[test]
    fn quick_is_a_part_of_the_whole() {
        let (quick, whole) = (plan(&["--quick"]).unwrap(), plan(&[]).unwrap());
        assert!(
            quick
                .shapes
                .iter()
                .all(|shape| whole.shapes.contains(shape))
        );
        assert!(
            quick
                .orders
                .iter()
                .all(|order| whole.orders.contains(order))
        );
        assert!(quick.sustain < whole.sustain);
        assert_eq!(
            plan(&["--quick", "--shapes=64"]).unwrap().shapes,
            [Shape::new(64, 64, 64)]
        );
    }
}
