//! Estimates the time and the memory that emulating a product takes.

use std::time::Duration;

use gpu_kernels::{Family, KernelInfo, Schedule};

use super::options::EmulatedGpu;
use crate::select::{self, Choice, Problem, Strides, grid};

/// Nanoseconds that one host thread takes for a multiply-add, by family, with checks. These
/// are CPU times of `tilewise-emulate --workers 1` on a cloud machine, 2026-11-22, at
/// 512×512×512 (hopper), 256×256×256 and 128×128×128 (naive). For other sizes they are good
/// within a factor of three: in small products, the work that does not grow with K has a
/// larger share.
const fn nanoseconds_of(family: Family) -> f64 {
    match family {
        Family::Hopper => 2.0,
        Family::TensorCore => 9.0,
        Family::Tiled => 45.0,
        Family::Naive | Family::Pack | Family::Split | Family::Reduce | Family::Placement => 130.0,
    }
}

/// Host bytes for each byte of emulated memory: one for the byte itself, and eight that
/// record which threads have accessed it.
const HOST_BYTES: u64 = 9;

/// Host bytes that the stack of an emulated thread takes: only the pages that it touches
/// count.
const STACK_BYTES: u64 = 16 << 10;

/// The estimated cost of emulating one launch of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of CTA tiles or cluster tiles of C.
    pub tiles: u64,
    /// Number of k-blocks of all tiles together: the steps of the emulation.
    pub k_blocks: u64,
    /// Number of CTAs.
    pub ctas: u64,
    /// Memory of the host for operands, their shadow and the stacks of threads, bytes.
    pub host_bytes: u64,
    /// Memory of the emulated GPU for operands and workspaces, bytes.
    pub device_bytes: u64,
    /// Time, within a factor of three or so.
    pub time: Duration,
}

impl Estimate {
    /// The estimate for `problem` on `gpu`, launched as `choice` says.
    pub fn of(choice: &Choice, problem: &Problem, gpu: &EmulatedGpu) -> Estimate {
        let kernel = &choice.kernel;
        let (m, n, k) = (problem.m, problem.n, problem.k);
        let resident = gpu
            .sms
            .saturating_mul(gpu.ctas_per_sm.unwrap_or(kernel.ctas_per_sm));
        let (x, y) = select::ctas(choice, resident);
        let ctas = u64::from(x) * u64::from(y);
        let tiles = u64::from(choice.tiles());
        let bytes = |rows: u32, cols: u32, element: u32, strides: &Strides| {
            let matrix = (u64::from(rows) * u64::from(cols)).saturating_mul(element.into());
            matrix.saturating_mul(match strides.batch_stride {
                0 => 1,
                _ => problem.batches.into(),
            })
        };
        let input = problem.input.bytes();
        let (a, b) = (
            bytes(m, k, input, &problem.a),
            bytes(k, n, input, &problem.b),
        );
        let c = bytes(
            m,
            problem.c_cols(),
            problem.output_dtype().bytes(),
            &problem.c,
        );
        let packed = [(choice.packed.a, a), (choice.packed.b, b)];
        let packed = packed.iter().filter(|(packed, _)| *packed);
        let packed: u64 = packed.fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let sums = u64::from(grid::parts(choice)) * u64::from(kernel.stream_k_bytes);
        let device_bytes = [a, b, c, packed, sums]
            .into_iter()
            .fold(0, u64::saturating_add);
        let is_stream_k = choice.schedule == Schedule::StreamK;
        let clusters = ctas / u64::from(kernel.cluster.ctas());
        let slots = if is_stream_k {
            clusters
        } else {
            clusters.min(gpu.slots.into())
        };
        let threads = slots * u64::from(kernel.cluster.ctas() * kernel.threads);
        let workers = (gpu.workers(is_stream_k) as u64).clamp(1, slots.max(1));
        let one_thread = nanoseconds(kernel, tiles, k);
        Estimate {
            tiles,
            k_blocks: k_blocks(kernel, tiles, k),
            ctas,
            host_bytes: device_bytes
                .saturating_mul(HOST_BYTES)
                .saturating_add(threads * STACK_BYTES),
            device_bytes,
            time: duration(one_thread / workers as f64),
        }
    }
}

/// Number of k-blocks of `tiles` tiles.
fn k_blocks(kernel: &KernelInfo, tiles: u64, k: u32) -> u64 {
    tiles.saturating_mul(k.div_ceil(kernel.block.k.max(1)).into())
}

/// The nanoseconds that `tiles` tiles with depth `k` take on one host thread.
fn nanoseconds(kernel: &KernelInfo, tiles: u64, k: u32) -> f64 {
    let (height, width) = kernel.cluster_tile();
    let block = f64::from(height) * f64::from(width) * f64::from(kernel.block.k);
    k_blocks(kernel, tiles, k) as f64 * block * nanoseconds_of(kernel.family)
}

/// About how long it takes to emulate `kernel` for `batches` products of M, N and K on
/// `workers` host threads.
pub fn time(
    kernel: &KernelInfo,
    (m, n, k): (u32, u32, u32),
    batches: u32,
    workers: usize,
) -> Duration {
    let grid = select::tile_grid(kernel, m, n);
    let tiles = u64::from(grid.tiles_m) * u64::from(grid.tiles_n) * u64::from(batches);
    duration(nanoseconds(kernel, tiles, k.max(1)) / workers.max(1) as f64)
}

fn duration(nanoseconds: f64) -> Duration {
    Duration::try_from_secs_f64(nanoseconds * 1e-9).unwrap_or(Duration::MAX)
}
