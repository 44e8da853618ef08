//! The list of all tests by name, and how a test runs.

use gpu_kernels::entry::KERNELS;
use tilewise::select::Catalog;
use tilewise::{DType, Device, Family, KernelInfo};

use crate::args::Args;
use crate::capture::{self, Scene};
use crate::case::{Case, Failure, Outcome, is_fatal};
use crate::cases;
use crate::epilogue::EpilogueCase;
use crate::invariant::{self, InvariantCase};
use crate::large::{self, Large};
use crate::shared::Shared;
use crate::{
    by_gpc, chain, endless, epilogue_cases, errors, eviction, f16x3, foreign, own, random, repeat,
    tune,
};

/// What one test does.
pub enum Work {
    /// One product, once.
    Product(Case),
    /// One product with an epilogue, or a batch, once.
    Epilogue(EpilogueCase),
    /// One product under every walk.
    Walks(Case),
    /// Parts of a product, compared with the whole.
    Invariant(InvariantCase),
    /// One plan, a hundred times.
    Hundred(Case),
    /// One plan in a CUDA graph.
    Capture(Case, Scene),
    /// Operands past 2³¹ elements.
    Large(&'static KernelInfo, Large),
    /// Errors that need a GPU, tuning, chains, eviction, clusters by GPC, f16x3, foreign streams, kernels that never
    /// end.
    Device(fn(&Device) -> Result<(), String>),
    /// A test of the test program itself, without a GPU.
    Own(fn() -> Result<(), String>),
}

/// One line of `--list`.
pub struct Test {
    /// The name; a filter with it selects only this test.
    pub name: String,
    /// The group under which the summary counts it.
    pub kind: &'static str,
    /// The kernel it needs, by which tests are grouped: compiling a kernel in
    /// the driver takes longer than many cases.
    pub kernel: Option<&'static KernelInfo>,
    /// Whether it belongs to the reduced set, too.
    pub quick: bool,
    /// What it does.
    pub work: Work,
}

/// The result of a test.
pub enum Verdict {
    /// The result is right. The number is the largest error divided by its bound.
    Passed(f64),
    /// The library refused the case, as it should.
    Refused,
    /// This build or this device lacks something.
    Skipped(&'static str),
    /// The result is wrong; the text says how.
    Failed(String),
    /// The test failed, and no later result can be trusted.
    DeviceLost(String),
    /// The test was skipped, because the device had failed before.
    NotRun,
}

/// All tests that `args` can select. The tests of one group are adjacent.
pub fn all_tests(args: &Args) -> Vec<Test> {
    let own = own::CASES.into_iter().map(|(name, run)| Test {
        name: name.into(),
        kind: "own",
        kernel: None,
        quick: false,
        work: Work::Own(run),
    });
    let on_device = |kind| {
        move |(name, run, quick): errors::ErrorCase| Test {
            name: name.into(),
            kind,
            kernel: None,
            quick,
            work: Work::Device(run),
        }
    };
    let errors = errors::CASES.into_iter().map(on_device("errors"));
    let tuning = tune::CASES.into_iter().map(on_device("tuning"));
    let chains = chain::CASES.into_iter().map(on_device("chains"));
    let eviction = eviction::CASES.into_iter().map(on_device("eviction"));
    let by_gpc = by_gpc::CASES.into_iter().map(on_device("by-gpc"));
    let f16x3 = f16x3::CASES.into_iter().map(on_device("f16x3"));
    let foreign = foreign::CASES.into_iter().map(on_device("foreign"));
    let endless = endless::CASES.into_iter().map(on_device("endless"));
    let other_sums = invariant::DEVICE_CASES
        .into_iter()
        .map(on_device("batch-invariant"));
    let on_device = (errors.chain(tuning).chain(chains))
        .chain(eviction)
        .chain(by_gpc)
        .chain(f16x3)
        .chain(foreign)
        .chain(endless)
        .chain(other_sums);
    let mut tests: Vec<Test> = own.chain(on_device).collect();
    // A kernel that packs is tested with the kernels that read the packed operand.
    let products = |kernel: &&KernelInfo| kernel.family.multiplies();
    for kernel in KERNELS.iter().filter(products) {
        tests.extend(of_kernel(kernel, args.sms()));
    }
    tests.extend(cases::unforced().into_iter().map(|planned| Test {
        name: planned.case.to_string(),
        kind: "products",
        kernel: None,
        quick: planned.quick,
        work: Work::Product(planned.case),
    }));
    tests.extend(epilogue_cases::unforced().into_iter().map(with_epilogue));
    tests.extend(
        capture::cases()
            .into_iter()
            .map(|(name, case, scene)| Test {
                name,
                kind: "capture",
                kernel: case.kernel,
                quick: true,
                work: Work::Capture(case, scene),
            }),
    );
    tests.extend((0..args.random_cases()).map(|index| {
        let case = random::case(args.seed, index);
        Test {
            name: format!("random/{index}/{case}"),
            kind: "random",
            kernel: case.kernel,
            quick: random::is_quick(&case),
            work: Work::Product(case),
        }
    }));
    let (emulated, invariant_cases) = match (args.emulated(), invariant::CASES) {
        (true, (_, cases)) => (true, cases),
        (false, (cases, _)) => (false, cases),
    };
    tests.extend((0..invariant_cases).map(|index| {
        let case = invariant::case(args.seed, index, emulated);
        Test {
            name: case.to_string(),
            kind: "batch-invariant",
            kernel: None,
            quick: false,
            work: Work::Invariant(case),
        }
    }));
    #[cfg(feature = "emulator")]
    if args.emulated {
        tests.retain(crate::emulated::selects);
    }
    tests
}

/// The tests of `kernel` on a GPU of `sms` SMs.
fn of_kernel(kernel: &'static KernelInfo, sms: u32) -> Vec<Test> {
    let products = cases::of_kernel(kernel).into_iter().map(|planned| {
        let name = planned.case.to_string();
        let (name, kind, work) = if planned.repeat {
            (
                format!("{name}/repeat"),
                "repeats",
                Work::Walks(planned.case),
            )
        } else {
            (name, "products", Work::Product(planned.case))
        };
        Test {
            name,
            kind,
            kernel: Some(kernel),
            quick: planned.quick,
            work,
        }
    });
    let mut tests: Vec<Test> = products.collect();
    let epilogues = epilogue_cases::of_kernel(kernel).into_iter();
    tests.extend(epilogues.map(with_epilogue));
    if kernel.family == Family::Hopper || is_first_of_family(kernel) {
        let case = repeat::in_many_tiles(kernel, sms);
        tests.push(Test {
            name: format!("{case}/repeat-100"),
            kind: "repeats",
            kernel: Some(kernel),
            quick: false,
            work: Work::Hundred(case),
        });
    }
    if is_first_of_family(kernel) {
        tests.extend(Large::ALL.map(|large| Test {
            name: format!("{}/large/{}", kernel.name, large.name()),
            kind: "large",
            kernel: Some(kernel),
            quick: false,
            work: Work::Large(kernel, large),
        }));
    }
    tests
}

/// The test of a product with an epilogue.
fn with_epilogue(case: EpilogueCase) -> Test {
    Test {
        name: case.to_string(),
        kind: "epilogues",
        kernel: case.kernel,
        quick: case.index.is_multiple_of(32),
        work: Work::Epilogue(case),
    }
}

/// Only the first f16 kernel of each family runs large cases.
fn is_first_of_family(kernel: &KernelInfo) -> bool {
    let first = |family: Family| {
        KERNELS
            .iter()
            .find(|other| other.family == family && other.input == DType::F16)
    };
    first(kernel.family).is_some_and(|first| first.name == kernel.name)
}

/// Whether `device` is emulated; an emulated GPU has no stream of the driver.
pub fn is_emulated(device: &Device) -> bool {
    device.is_gpu() && device.stream().is_none()
}

/// Whether this build has the PTX of `kernel`.
pub fn is_built(kernel: &KernelInfo) -> bool {
    (Catalog::embedded().is_built)(kernel.entry)
}

impl Test {
    /// Runs the test. Without a device, only tests that need no device run.
    pub fn run(&self, device: Option<&Shared>, seed: u64) -> Verdict {
        if device.is_some_and(Shared::has_failed) {
            return Verdict::NotRun;
        }
        if let Some(why) = device.and_then(|device| self.why_impossible(device.device())) {
            return Verdict::Skipped(why);
        }
        let replay = format!("--seed {seed} --exact '{}'", self.name);
        let device = device.map(|device| device.of_test(replay));
        let outcome = match (&self.work, device.as_ref()) {
            (Work::Own(run), _) => run().map(|()| Outcome::Right(0.0)).map_err(Failure::Wrong),
            (_, None) => return Verdict::Skipped("no GPU"),
            (Work::Product(case), Some(device)) => case.run(device, seed),
            (Work::Epilogue(case), Some(device)) => case.run(device, seed),
            (Work::Walks(case), Some(device)) => {
                let walks = case.kernel.map(cases::walks).unwrap_or_default();
                repeat::over_walks(case, device, seed, &walks)
            }
            (Work::Invariant(case), Some(device)) => case.run(device, seed),
            (Work::Hundred(case), Some(device)) => repeat::a_hundred_times(case, device, seed),
            (Work::Capture(case, scene), Some(device)) => capture::run(case, *scene, device, seed),
            (Work::Large(kernel, large), Some(device)) => {
                match large::run(device, seed, kernel, *large) {
                    Ok(true) => Ok(Outcome::Right(0.0)),
                    Ok(false) => return Verdict::Skipped("too little device memory"),
                    Err(failure) => Err(failure),
                }
            }
            (Work::Device(run), Some(device)) => device
                .turn(|device| run(device).map_err(Failure::Wrong))
                .map(|()| Outcome::Right(0.0)),
        };
        match outcome {
            Ok(Outcome::Right(share)) => Verdict::Passed(share),
            Ok(Outcome::Refused) => Verdict::Refused,
            Err(Failure::Wrong(why)) => Verdict::Failed(why),
            Err(Failure::NotRun) => Verdict::NotRun,
            Err(Failure::Error(error)) if is_fatal(&error) => {
                Verdict::DeviceLost(error.to_string())
            }
            Err(Failure::Error(error)) => Verdict::Failed(error.to_string()),
        }
    }

    /// Whether the test needs a GPU; the tests of the program itself do not.
    pub fn needs_device(&self) -> bool {
        !matches!(self.work, Work::Own(_))
    }

    /// The first part of the name: the kernel, or what has none.
    pub fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The reason why this build or this device cannot run the test.
    fn why_impossible(&self, device: &Device) -> Option<&'static str> {
        let info = device.gpu_info()?;
        let (major, minor) = info.compute_capability;
        match (self.kernel, &self.work) {
            (Some(kernel), _) if !kernel.arch.runs_on(major, minor) => {
                Some("for another compute capability")
            }
            (Some(kernel), _) if kernel.shared_bytes > info.shared_bytes_per_cta => {
                Some("needs more shared memory")
            }
            _ if is_emulated(device) => None,
            (Some(kernel), _) if !is_built(kernel) => Some("not in this build"),
            (None, Work::Product(_) | Work::Epilogue(_) | Work::Invariant(_) | Work::Device(_))
                if !KERNELS.iter().any(is_built) =>
            {
                Some("no kernel in this build")
            }
            (
                None,
                Work::Product(Case { input, .. })
                | Work::Epilogue(EpilogueCase { input, .. })
                | Work::Invariant(InvariantCase { input, .. }),
            ) if *input == DType::Tf32 && major < 8 => Some("no TF32 on this device"),
            _ => None,
        }
    }
}
