//! Each check of the emulator, on micro-kernels: exactly that check must report a kernel
//! that breaks the rule, and the corrected kernel must pass.

mod accumulators;
mod barriers;
mod clusters;
mod conversions;
mod copies;
mod instances;
mod memory;
mod proxies;
mod races;
mod scheduling;

use gpu_kernels::isa::tma::CachePolicy;
use gpu_kernels::{DType, isa};
use tilewise_emulator::semantics::swizzle::Swizzle;
use tilewise_emulator::semantics::tensor_map::TensorMap;
use tilewise_emulator::{Check, Counts, Error, Grid, Memory, Options, Report, launch};

/// A CTA of `threads` threads, or a cluster or grid of such CTAs.
#[derive(Clone, Copy)]
struct LaunchConfig {
    ctas: u32,
    ctas_per_cluster: u32,
    threads: u32,
    shared_bytes: u32,
}

/// One CTA of `threads` threads with 64 KiB of shared memory.
const fn cta(threads: u32) -> LaunchConfig {
    LaunchConfig {
        ctas: 1,
        ctas_per_cluster: 1,
        threads,
        shared_bytes: 64 << 10,
    }
}

/// One cluster of `ctas` CTAs, of `threads` threads each.
const fn cluster(ctas: u32, threads: u32) -> LaunchConfig {
    LaunchConfig {
        ctas,
        ctas_per_cluster: ctas,
        ..cta(threads)
    }
}

fn run_with(
    memory: &mut Memory,
    config: LaunchConfig,
    options: &Options,
    body: impl Fn() + Sync,
) -> Result<Counts, Vec<Report>> {
    let grid = Grid {
        kernel: "micro",
        ctas: (config.ctas, 1),
        threads: config.threads,
        ctas_per_cluster: config.ctas_per_cluster,
        shared_bytes: config.shared_bytes,
        body: &body,
    };
    match launch(memory, &grid, options) {
        Ok(counts) => Ok(counts),
        Err(Error::Broken(reports)) => Err(reports),
        Err(error) => panic!("{error}"),
    }
}

/// The first report of a run in the plain order of events. Several runs in random orders
/// must agree on the check. `None` if no check fails.
fn run(memory: &mut Memory, config: LaunchConfig, body: impl Fn() + Sync) -> Option<Report> {
    let mut first: Option<Option<Report>> = None;
    for seed in 0..6 {
        let options = Options {
            seed,
            ..Options::default()
        };
        let report = run_with(memory, config, &options, &body).err();
        let report = report.map(|reports| reports.into_iter().next().expect("a report"));
        let check = |report: &Option<Report>| report.as_ref().map(|report| report.check);
        match &first {
            None => first = Some(report),
            Some(first) => assert_eq!(
                check(first),
                check(&report),
                "seed 0: {first:?}, seed {seed}: {report:?}"
            ),
        }
    }
    first.flatten()
}

/// The check that fails for a kernel without global memory.
fn verdict(config: LaunchConfig, body: impl Fn() + Sync) -> Option<Check> {
    run(&mut Memory::new(), config, body).map(|report| report.check)
}

/// Memory with a matrix of 64×64 f16 elements, all 1, and the addresses of the
/// matrix and of its tensor map, whose box is the whole matrix.
fn matrix() -> (Memory, u64, u64) {
    let mut memory = Memory::new();
    let address = memory.allocate(64 * 128);
    let ones: Vec<u8> = 0x3c00_u16.to_le_bytes().repeat(64 * 64);
    memory.write(address, &ones).unwrap();
    let map = memory.allocate(128);
    memory
        .write(map, &map_of(address).encode().unwrap())
        .unwrap();
    (memory, address, map)
}

fn map_of(address: u64) -> TensorMap {
    TensorMap {
        address,
        dtype: DType::F16.into(),
        dims: [64, 64],
        pitch_bytes: 128,
        planes: None,
        box_dims: [64, 64],
        swizzle: Swizzle::Bytes128,
    }
}

/// Bytes of the box of [`matrix`].
const BOX_BYTES: u32 = 64 * 128;

/// The policy of loads, which the emulator has no L2 for.
const NORMAL: CachePolicy = CachePolicy::EVICT_NORMAL;

/// `%tid.x`.
fn tid() -> u32 {
    isa::thread::thread_index()
}

/// Shared address `offset` bytes from the first, which is a multiple of 1024.
fn shared(offset: u32) -> u32 {
    isa::shared::base().wrapping_add(offset)
}

/// Thread 0 initialises an mbarrier at `barrier`; afterwards all threads may use it.
unsafe fn set_up(barrier: u32, arrivals: u32) {
    // SAFETY: all threads of the CTA call it.
    unsafe {
        if tid() == 0 {
            isa::mbarrier::init(barrier, arrivals);
            isa::mbarrier::fence_init();
        }
        isa::thread::sync_cta();
    }
}
