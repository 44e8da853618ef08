//! What a kernel is expected to take, in cycles of an SM.
//!
//! ```text
//! waves  = clusters that have a tile / clusters that run at once, rounded up
//! step   = max(arithmetic, loads) + power      one BLOCK_K of one tile
//! cycles = start + waves · (steps · step + store)
//! ```
//!
//! The wave count is what decides between tiles: a large tile computes more for
//! each byte it loads, but leaves SMs idle in the last wave. The rates below
//! are those of an H100 or H200 SM; other devices have other rates, but the
//! ratios between a device's units, which are all that a comparison needs, are
//! alike.

use gpu_kernels::{DType, Family, KernelInfo, TileGrid};

use super::Target;

/// FLOP a cycle that an SM sustains in the main loop of a kernel: for hopper
/// the peak of `wgmma` (4096 for 16-bit types), for the others the share of
/// their unit's peak seen at 4096³ on an H200.
fn flop_per_cycle(kernel: &KernelInfo) -> u64 {
    match (kernel.family, kernel.input) {
        (Family::Hopper, DType::Tf32) => 2048,
        (Family::Hopper, _) => 4096,
        (Family::TensorCore, DType::Tf32) => 900,
        (Family::TensorCore, _) => 2300,
        (Family::Tiled, _) => 160,
        (Family::Naive | Family::Pack, _) => 20,
    }
}

/// Bytes a cycle that reach one SM from L2. Seen on an H200, where it is what
/// limits 64×64 and 64×128 tiles at 2048³.
const LOADED_PER_CYCLE: u64 = 75;

/// Loads that cost a cycle although arithmetic hides them: a large product runs
/// at the power limit, where bytes moved are taken from the clock. From 128×192
/// against 128×256 tiles at 8192³ on an H200: as fast, in 1 % fewer cycles.
const LOADED_PER_CYCLE_OF_POWER: u64 = 3000;

/// Bytes a cycle that leave an SM for C.
const STORED_PER_CYCLE: u64 = 64;

/// Cycles between the multiplies of one tile and those of the next, besides
/// those that C takes to leave. By the SM's clock on an H200: 1,640 in all for
/// 128×256 tiles of f16.
const BETWEEN_TILES: u64 = 600;

/// Cycles to start clusters and stop them together. On an H200, at 2048³.
const CLUSTER_LATENCY: u64 = 1200;

/// Cycles for the CTAs of a cluster that split K to hand each other their sums,
/// however many they are: all send at once, behind one barrier.
const EXCHANGE_LATENCY: u64 = 1500;

/// An estimate to compare kernels by: smaller is better, cycles first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Cycles from first to last.
    pub cycles: u64,
    /// Bytes that one step of one CTA loads.
    pub loads: u64,
}

/// What `kernel` takes for `grid` tiles (of its clusters) and `k` products a sum.
pub fn estimate(kernel: &KernelInfo, grid: TileGrid, k: u32, target: &Target) -> Cost {
    let (block, cluster) = (kernel.block, kernel.cluster);
    let [m, n, depth] = [block.m, block.n, block.k].map(u64::from);
    let clusters = u64::from(grid.tiles_m) * u64::from(grid.tiles_n);
    let at_once = u64::from(target.sms * kernel.ctas_per_sm / cluster.ctas()).max(1);
    let waves = clusters.div_ceil(at_once);

    let arithmetic = 2 * m * n * depth / flop_per_cycle(kernel);
    let rows = m / u64::from(cluster.n) + n / u64::from(cluster.m);
    let loads = rows * depth * u64::from(kernel.input.bytes());
    let step = arithmetic.max(loads / LOADED_PER_CYCLE) + loads / LOADED_PER_CYCLE_OF_POWER;
    let step = step * u64::from(kernel.ctas_per_sm);
    let steps = u64::from(k).div_ceil(depth).div_ceil(cluster.k.into());

    // Each CTA stores one part of the tile, and sends the others away as f32.
    let parts = u64::from(cluster.k);
    let part = m * n / parts;
    let exchange = if parts > 1 {
        EXCHANGE_LATENCY + (parts - 1) * 4 * part / STORED_PER_CYCLE
    } else {
        0
    };
    let store =
        BETWEEN_TILES + part * u64::from(kernel.input.bytes()) / STORED_PER_CYCLE + exchange;
    let start = match cluster.ctas() {
        1 => 0,
        _ => CLUSTER_LATENCY,
    };
    Cost {
        cycles: start + waves * (steps * step + store),
        loads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::entry::KERNELS;

    const H200: Target = Target {
        compute_capability: (9, 0),
        sms: 132,
        shared_bytes_per_cta: 232_448,
    };

    /// The cheapest f16 hopper kernel for row-major operands.
    fn cheapest(m: u32, n: u32, k: u32) -> &'static str {
        KERNELS
            .iter()
            .filter(|kernel| kernel.name.starts_with("hopper_f16_ak_bn"))
            .min_by_key(|kernel| {
                let (height, width) = kernel.cluster_tile();
                estimate(kernel, TileGrid::cover(m, n, height, width), k, &H200)
            })
            .unwrap()
            .name
    }

    /// Within 5 % of the fastest measured on an H200 (`docs/perf-log.md`).
    #[test]
    fn picks_what_was_measured_to_be_fast() {
        for (shape, kernel) in [
            ((2048, 2048, 2048), "128x256x64"),
            ((4096, 4096, 4096), "128x256x64_cluster2x1"),
            ((8192, 8192, 8192), "128x192x64"),
            ((16384, 16384, 16384), "256x192x64_cluster1x2"),
            ((1024, 1024, 1024), "64x128x64"),
            ((128, 8192, 8192), "64x128x64"),
            ((512, 512, 512), "64x64x64"),
            ((64, 4096, 4096), "64x64x64_split2"),
            ((16, 1024, 8192), "64x64x64_split4"),
        ] {
            let (m, n, k) = shape;
            assert_eq!(
                cheapest(m, n, k),
                format!("hopper_f16_ak_bn_{kernel}"),
                "{shape:?}"
            );
        }
    }

    #[test]
    fn a_wave_more_costs_more() {
        let kernel = &KERNELS
            .iter()
            .find(|k| k.name == "hopper_f16_ak_bn_128x128x64")
            .unwrap();
        let cost = |tiles| {
            estimate(
                kernel,
                TileGrid {
                    tiles_m: tiles,
                    tiles_n: 1,
                },
                4096,
                &H200,
            )
        };
        assert_eq!(cost(132), cost(1));
        assert_eq!(cost(133).cycles, 2 * cost(132).cycles);
    }
}
