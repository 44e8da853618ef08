//! Whether operands that TMA cannot read are copied ([`pack`](super::pack)), or read where they are.
//!
//! Packing A moves 2·M·K elements through DRAM, and lets the faster kernel do 2·M·N·K operations.
//! Both grow with M·K, so N decides for A, and M decides for B.
//!
//! - Elements may also be read where they are: by hopper kernels whose producers load lines through
//!   registers (`_unaligned`), or element by element by tensor_core. Three times are estimated, and
//!   the shortest one decides ([`Nanoseconds`]). The times of the first two were fitted to 20 and 27
//!   products on an H200, cold, with every kernel: small products are read in place (73×223×115:
//!   6.4 µs, packed 8.8, tensor_core 9.8), and so are large operands beside narrow ones
//!   (8041×71×13895: 166 µs, packed 236); others are packed (700×501×900: 11.7 µs, in place 13.8).
//!   (`docs/perf-log.md`, "Operands that TMA cannot read", "Unaligned lines word by word".) Those of
//!   tensor_core follow from 141 products of 1 to 16384 in each dimension; it is left with shallow
//!   products of many tiles.
//! - Where tensor_core could copy the operand 16 bytes at a time, and hopper needs it in another
//!   direction (TF32 that is not contiguous along K, where no kernel that takes it through registers
//!   computes the rest of the product), two times are estimated too. Fitted to 38 products on an
//!   H200, cold, of 64 to 4096 in M and N: the path chosen takes 0.02 % longer than the faster one,
//!   0.7 % at most. With row-major operands, 4096³ takes 391 µs packed and 784 by tensor_core,
//!   64×4096×4096 takes 77 and 59. (`docs/perf-log.md`, "TMA rounds to TF32".)

use gpu_kernels::{DType, Family, KernelInfo, Major, Schedule};

use super::choice::{Packed, Packing, Request};
use super::cost::{self, Task};
use super::pack::{in_lines, kernel_for};
use super::{check, registers};
use crate::problem::{Catalog, Problem, Target};
use crate::rejection::Rejection;
use crate::tma::GlobalTensor;

/// The operands that must be packed for `kernel` to run `problem`.
///
/// # Errors
/// The reason why the kernel cannot run; [`Rejection::Tma`] or [`Rejection::Unsplit`] where it
/// cannot read an operand and packing is not possible, not allowed, or does not pay.
pub(super) fn needed(
    catalog: Catalog,
    kernel: &KernelInfo,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<Packed, Rejection> {
    let refused = match check::check(catalog, kernel, problem, target) {
        Ok(())
            if registers::are_loaded_through(kernel)
                && !may_load_through_registers(kernel, problem, target, request) =>
        {
            return Err(Rejection::ThroughRegisters);
        }
        Ok(()) => return Ok(Packed::default()),
        Err(reason @ (Rejection::Tma { .. } | Rejection::Unsplit)) => reason,
        // Where packing pays, another kernel reads the copies faster.
        Err(reason @ Rejection::NoLines { .. }) if request.kernel.is_some() => reason,
        Err(reason) => return Err(reason),
    };
    let splits = kernel.input.parts() > 1;
    let packed = if registers::are_loaded_through(kernel) {
        Packed {
            a: check::check_lines_of_a(kernel, problem).is_err(),
            b: check::check_lines_of_b(kernel, problem).is_err(),
        }
    } else {
        Packed {
            a: splits || GlobalTensor::of_a(problem, check::a_major(kernel, problem)).is_err(),
            b: splits || GlobalTensor::of_b(problem, check::b_major(kernel, problem)).is_err(),
        }
    };
    // A packed B whose lines are rows still has the columns of gated pairs side by side.
    if packed.b && problem.epilogue.gated.is_some() && kernel.b_major == Some(Major::Mn) {
        return Err(refused);
    }
    let is_forced = request.kernel.is_some() || request.family.is_some() || request.batch_invariant;
    if request.packing == Packing::Auto
        && (is_forced || pays(packed, kernel, problem, target))
        && kernel_for(catalog, problem.input, target).is_some()
    {
        Ok(packed)
    } else {
        Err(refused)
    }
}

/// Whether `kernel`, which loads through registers, is asked for, or is
/// faster than packing and than tensor_core, as far as `request` allows these.
fn may_load_through_registers(
    kernel: &KernelInfo,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> bool {
    if request.kernel.is_some() {
        return true;
    }
    let packed = Packed {
        a: GlobalTensor::of_a(problem, problem.a_major()).is_err(),
        b: GlobalTensor::of_b(problem, problem.b_major()).is_err(),
    };
    let loads = Nanoseconds::by_producers(kernel, problem, target).0;
    let may_pack = request.packing == Packing::Auto;
    let may_be_tensor_core = request.family.is_none() && !request.batch_invariant;
    packed.any()
        && !(may_pack && Nanoseconds::packed(packed, problem).0 <= loads)
        && !(may_be_tensor_core && Nanoseconds::by_elements(packed, problem, target).0 <= loads)
}

/// Whether packing pays, by the rules of this module.
fn pays(packed: Packed, kernel: &KernelInfo, problem: &Problem, target: &Target) -> bool {
    if problem.input == DType::F16x3 {
        let split = Nanoseconds::split(kernel.family, problem, target);
        return split.0 < Nanoseconds::tiled(problem, target).0;
    }
    if in_lines(problem) {
        let lines = Nanoseconds::by_lines(problem, target);
        return Nanoseconds::turned(packed, problem).0 < lines.0;
    }
    let elements = Nanoseconds::by_elements(packed, problem, target);
    Nanoseconds::packed(packed, problem).0 < elements.0
}

/// The estimated time of a product whose operands TMA cannot read, without what both ways to
/// compute it share.
struct Nanoseconds(u128);

impl Nanoseconds {
    /// By tensor_core with 64×64 tiles, which copies the operands that would be `packed` element
    /// by element, k-block by k-block. CTAs that share an SM slow each other down.
    fn by_elements(packed: Packed, problem: &Problem, target: &Target) -> Self {
        const BLOCK: u32 = 64;
        let sms = u128::from(target.sms.max(1));
        let [m, n, k] =
            [problem.m, problem.n, problem.k].map(|size| u128::from(size.div_ceil(BLOCK)));
        let tiles = m * n * u128::from(problem.batches);
        let waves = tiles.div_ceil(sms);
        Nanoseconds(700 + 860 * tiles / sms + k * operands(packed) * (640 + 410 * waves))
    }

    /// By a hopper kernel whose producers load through registers, at the highest clock of an H200: as
    /// many tiles at once as there are clusters, 0.9 µs to store a wave before the last, and what CTAs
    /// that split K take to exchange their sums. With a second launch that adds the sums, 2 µs more
    /// than the estimate of `cost`, beside packing (17 packed products and 32 such launches, cold).
    fn by_producers(kernel: &KernelInfo, problem: &Problem, target: &Target) -> Self {
        if kernel.leaves_sums {
            let task = Task::of(kernel, problem, Packed::default(), 1);
            let cost = cost::under(Some(Schedule::SplitK), kernel, &task, target);
            return Nanoseconds(3000 + u128::from(cost.cycles) * 100 / 198);
        }
        let block = kernel.block;
        let [m, n, k] = [
            (problem.m, block.m),
            (problem.n, block.n),
            (problem.k, block.k),
        ]
        .map(|(size, block)| u128::from(size.div_ceil(block)));
        let tiles = m * n * u128::from(problem.batches);
        let waves = tiles.div_ceil(u128::from(target.clusters_at_once(kernel).max(1)));
        let k_blocks = k.div_ceil(kernel.cluster.k.into());
        let k_block = u128::from(registers::k_block_cycles(kernel)) * 100 / 198;
        let exchange = u128::from(registers::exchange_cycles(kernel)) * 100 / 198;
        let later = 900 * waves.saturating_sub(1);
        Nanoseconds(1000 + waves * (k_block * k_blocks + exchange) + later)
    }

    /// By copies in one launch, read and written at 2.4 TB/s, and hopper at 600 TFLOP/s, which writes
    /// C at 2 TB/s and takes 0.04 µs a k-block at least, where it splits K.
    fn packed(packed: Packed, problem: &Problem) -> Self {
        let copied = u128::from(packed.elements(problem)) * u128::from(2 * problem.input.bytes());
        let written = [
            problem.m,
            problem.n,
            problem.batches,
            problem.output_dtype().bytes(),
        ];
        let written: u128 = written.map(u128::from).iter().product();
        let launch = 4600 + 200 * operands(packed);
        let k_blocks = u128::from(problem.k.div_ceil(64));
        Nanoseconds(
            launch + copied / 2400 + written / 2000 + flop(problem) / 600_000 + 40 * k_blocks,
        )
    }

    /// By copies of TF32 at 2.9 TB/s, and hopper at 300 TFLOP/s; a 64×64 tile is multiplied at
    /// 1100 FLOP/ns.
    fn turned(packed: Packed, problem: &Problem) -> Self {
        let copied = u128::from(packed.elements(problem)) * u128::from(2 * problem.input.bytes());
        let tile = 2 * 64 * 64 * u128::from(problem.k) / 1100;
        let product = tile.max(flop(problem) / 300_000);
        Nanoseconds(2200 * operands(packed) + copied / 2900 + product)
    }

    /// By tensor_core, which copies both operands of TF32 16 bytes at a time, in 64×64 tiles: at
    /// 580 FLOP/ns, at 400 where A is contiguous along M. The tiles of an SM overlap by half.
    fn by_lines(problem: &Problem, target: &Target) -> Self {
        let rate = match problem.a_major() {
            Major::K => 580,
            Major::Mn => 400,
        };
        let one = 2 * 64 * 64 * u128::from(problem.k) / rate;
        Nanoseconds((one + by_tiles(problem, target, rate)) / 2)
    }

    /// By splitting both operands ([`f16x3`](gpu_kernels::f16x3)) at 3 TB/s, which moves 12
    /// bytes an element, and hopper at 200 TFLOP/s or tensor_core at 110. A tile is multiplied at
    /// 600 FLOP/ns, and by tiled at 160: so 256³ takes 11.7 µs by hopper, 15.7 by tensor_core
    /// and 18.8 by tiled on an H200, 64×4096×4096 96, 129 and 233 µs.
    fn split(family: Family, problem: &Problem, target: &Target) -> Self {
        let both = Packed { a: true, b: true };
        let copied = u128::from(both.elements(problem)) * 12;
        let rate = match family {
            Family::Hopper => 200_000,
            _ => 110_000,
        };
        let product = by_tiles(problem, target, 600).max(flop(problem) / rate);
        Nanoseconds(6000 + copied / 3000 + product)
    }

    /// By tiled, which multiplies f32, with 64×64 tiles or at its best rate.
    fn tiled(problem: &Problem, target: &Target) -> Self {
        Nanoseconds(by_tiles(problem, target, 160).max(flop(problem) / 45_000))
    }
}

/// Nanoseconds of a product in waves of 64×64 tiles, at `rate` FLOP/ns a tile.
fn by_tiles(problem: &Problem, target: &Target, rate: u128) -> u128 {
    let [m, n] = [problem.m, problem.n].map(|size| u128::from(size.div_ceil(64)));
    let tiles = m * n * u128::from(problem.batches);
    let tile = 2 * 64 * 64 * u128::from(problem.k) / rate;
    tiles.div_ceil(target.sms.max(1).into()) * tile
}

/// FLOP of a product.
fn flop(problem: &Problem) -> u128 {
    let [m, n, k] = [problem.m, problem.n, problem.k].map(u128::from);
    2 * m * n * k * u128::from(problem.batches)
}

/// Number of packed operands.
fn operands(packed: Packed) -> u128 {
    u128::from(packed.a) + u128::from(packed.b)
}
