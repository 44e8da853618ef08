//! The sweep of a study: shapes, kernels, orders and schedules.

use crate::error::Error;
use crate::measure::machine::DeviceChoice;
use crate::measure::watch::WaitArgs;
use crate::problem::names::{KernelChoice, kernel_named};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::runner::bench_arguments::BenchArgs;
use crate::study::picks::Picks;
use crate::study::products::PRODUCTS;
use crate::study::study_arguments::StudyArgs;
use gpu_kernels::{DType, KernelInfo, Schedule, TileOrder};
use std::time::Duration;
use tilewise::select::Target;

/// Entry points measured by default: the tile that large products get, and half of it,
/// which asks L2 for a third more.
pub const KERNELS_MEASURED: [&str; 2] =
    ["hopper_f16_ak_bn_128x256x64", "hopper_f16_ak_bn_128x128x64"];

/// Orders measured of every product; the rules of [`Picks`] add theirs.
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

/// The sweep of `--quick` where nothing else is asked for.
const QUICK_SHAPES: [GemmShape; 3] = [
    GemmShape::new(4096, 4096, 4096),
    GemmShape::new(8192, 8192, 1024),
    GemmShape::new(5000, 12008, 3000),
];
const QUICK_ORDERS: [TileOrder; 3] = [
    TileOrder::RowMajor,
    TileOrder::GroupedM { size: 8 },
    TileOrder::Hilbert,
];
const QUICK_SUSTAIN: Duration = Duration::from_millis(100);

/// The sweep of one run.
pub struct Sweep {
    /// Products, in the order of measuring.
    pub shapes: Vec<GemmShape>,
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

impl Sweep {
    /// The sweep that the arguments ask for.
    ///
    /// # Errors
    /// Kernels by family, or of more types than one.
    pub fn new(args: &StudyArgs) -> Result<Sweep, Error> {
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
        Ok(Sweep {
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
    pub fn problem(&self, shape: GemmShape) -> ProblemSpec {
        ProblemSpec::row_major(shape, self.dtype())
    }

    /// The orders to measure of `shape`: those of every product, and what rules pick with
    /// any of the kernels.
    pub fn orders_of(&self, shape: GemmShape, target: &Target) -> Vec<TileOrder> {
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
    pub fn bench(&self, shape: GemmShape, orders: Vec<TileOrder>, launch_once: bool) -> BenchArgs {
        BenchArgs {
            shapes: vec![shape],
            dtypes: vec![self.dtype()],
            kernels: (self.kernels.iter())
                .map(|kernel| KernelChoice::Entry(kernel.name))
                .collect(),
            orders,
            schedules: self.schedules.clone(),
            sustain: self.sustain,
            seed: self.seed,
            no_peers: true,
            ncu: launch_once,
            device: Some(DeviceChoice::Gpu),
            wait: self.wait.clone(),
            ..BenchArgs::default()
        }
    }
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
    let kernels: Vec<_> = names.iter().filter_map(|name| kernel_named(name)).collect();
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
    use crate::study::gpus;
    use crate::study::row::StudyRow;
    use clap::Parser;
    use std::collections::HashSet;

    fn sweep(words: &[&str]) -> Result<Sweep, Error> {
        let all = ["tilewise-bench", "study"].iter().chain(words);
        match Cli::parse_from(all).command {
            Command::Study(args) => Sweep::new(&args),
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
        let sweep = sweep(&["--orders=row,grouped:8", "--schedules=grid1d,persistent"]).unwrap();
        for product in &PRODUCTS {
            let orders = sweep.orders_of(product.shape, &h200());
            let distinct: HashSet<_> = orders.iter().collect();
            assert_eq!(distinct.len(), orders.len());
            assert_eq!(orders[..2], sweep.orders);
            for kernel in &sweep.kernels {
                let problem = sweep.problem(product.shape);
                let picks = Picks::of(problem, kernel, Schedule::Grid1d, &h200()).unwrap();
                assert!(orders.contains(&picks.chooser) && orders.contains(&picks.cutlass));
            }
        }
    }

    #[test]
    fn cutlass_is_asked_with_its_largest_swizzle() {
        let problem = ProblemSpec::row_major(GemmShape::new(8192, 28672, 8192), DType::F16);
        let kernel = kernel_named(KERNELS_MEASURED[0]).unwrap();
        let picks = Picks::of(problem, kernel, Schedule::Grid1d, &h200()).unwrap();
        assert_eq!(picks.cutlass, TileOrder::GroupedN { size: 8 });
    }

    #[test]
    fn kernels_are_entry_points_of_one_type() {
        assert_eq!(sweep(&[]).unwrap().dtype(), DType::F16);
        let message = |words: &[&str]| sweep(words).err().unwrap().to_string();
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
        let (quick, whole) = (sweep(&["--quick"]).unwrap(), sweep(&[]).unwrap());
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
            sweep(&["--quick", "--shapes=64"]).unwrap().shapes,
            [GemmShape::new(64, 64, 64)]
        );
    }
}
