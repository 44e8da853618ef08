//! Which tiles are worth a kernel, by the library's estimate of a product's cycles.
//!
//! The question is asked of the estimate, before a kernel exists: every width of `wgmma` in
//! steps of 16 columns, with every height and kernel schedule that registers and shared memory
//! allow, on problems drawn from a seed. Beginning with the kernels that exist, the tile that
//! lowers the mean time most is added, again and again. What adds nothing is not built.

use crate::problem::spec::ProblemSpec;
use crate::text_table::Table;
use gpu_kernels::entry::KERNELS;
use gpu_kernels::{Block, DType, Family, KernelInfo, Major};
use tilewise::select::EpilogueForm;
use tilewise::select::{Target, cost, tile_grid};

/// Cycles of a launch that no tile changes, so that short products do not decide: 3 µs.
const LAUNCH: u64 = 5000;

/// Shared memory for the stages of a kernel, beside staged tiles of C and barriers.
const SHARED_BYTES: u32 = 226 << 10;

/// Accumulators of a thread, at most: 232 registers without those of the main loop.
const ACCUMULATORS: u32 = 192;

/// A tile that may become a kernel.
#[derive(Clone, Copy, Debug)]
struct Tile {
    m: u32,
    n: u32,
    schedule: TileSchedule,
}

/// The kernel schedules that are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TileSchedule {
    Cooperative,
    PingPong,
    StreamK,
}

impl Tile {
    /// All that registers and shared memory allow.
    fn all() -> Vec<Tile> {
        let mut tiles = Vec::new();
        for schedule in [
            TileSchedule::Cooperative,
            TileSchedule::PingPong,
            TileSchedule::StreamK,
        ] {
            for m in [64, 128, 192, 256] {
                for n in (16..=256).step_by(16) {
                    let tile = Tile { m, n, schedule };
                    if tile.accumulators() <= ACCUMULATORS && tile.stages() >= 3 {
                        tiles.push(tile);
                    }
                }
            }
        }
        tiles
    }

    /// Consumers that share a tile.
    fn consumers_per_tile(self) -> u32 {
        match (self.schedule, self.m) {
            (TileSchedule::PingPong, _) | (_, 64) => 1,
            (_, 192) => 3,
            _ => 2,
        }
    }

    fn accumulators(self) -> u32 {
        let registers = self.m / 64 / self.consumers_per_tile() * self.n / 2;
        // Three consumers have 160 registers a thread.
        if self.m == 192 && registers > 96 {
            u32::MAX
        } else {
            registers
        }
    }

    fn consumers(self) -> u32 {
        self.consumers_per_tile() * (1 + u32::from(self.schedule == TileSchedule::PingPong))
    }

    fn staging_bytes(self) -> u32 {
        let whole = self.m * self.n * 2 * (1 + u32::from(self.schedule == TileSchedule::PingPong));
        whole
            .min(SHARED_BYTES - 3 * self.stage_bytes().min(SHARED_BYTES / 3))
            .max(self.consumers() * 2 * 8192)
    }

    fn stage_bytes(self) -> u32 {
        (self.m + self.n) * 128
    }

    fn stages(self) -> u32 {
        SHARED_BYTES.saturating_sub(self.staging_bytes()) / self.stage_bytes()
    }

    /// The kernel of this tile, as far as the estimate reads it.
    fn kernel(self) -> KernelInfo {
        let of_hopper = |kernel: &&KernelInfo| kernel.family == Family::Hopper;
        let any = KERNELS
            .iter()
            .find(of_hopper)
            .expect("there are hopper kernels");
        KernelInfo {
            name: "",
            input: DType::Bf16,
            block: Block {
                m: self.m,
                n: self.n,
                k: 64,
            },
            a_major: Some(Major::K),
            b_major: Some(Major::K),
            ping_pong: self.schedule == TileSchedule::PingPong,
            consumers: self.consumers(),
            stages: self.stages(),
            pipeline_bytes: self.stages() * self.stage_bytes(),
            staging_bytes: self.staging_bytes(),
            stream_k_bytes: u32::from(self.schedule == TileSchedule::StreamK),
            ..*any
        }
    }
}

/// The tiles worth adding to the kernels, best first, with what each gains on those of
/// `problems` that TMA can read, as if they were in bf16 and contiguous along K: at most `most`.
pub fn render(problems: &[ProblemSpec], most: usize, target: &Target) -> String {
    let aligned = problems
        .iter()
        .filter(|problem| problem.has_aligned_pitches());
    let problems: Vec<&ProblemSpec> = aligned.collect();
    let cycles = |kernel: &KernelInfo, problem: &ProblemSpec| {
        let [m, n, k] = [problem.shape.m, problem.shape.n, problem.shape.k].map(|x| x as u32);
        let task = cost::Task {
            grid: tile_grid(kernel, m, n),
            batches: 1,
            k,
            rows: m,
            columns: n,
            matrices: [1; 2],
            mid_line: cost::MidLine {
                a: !k.is_multiple_of(64),
                b: !k.is_multiple_of(64),
            },
            by_element: false,
            epilogue: EpilogueForm::PLAIN,
        };
        (cost::estimate(kernel, &task, target).cycles + LAUNCH) as f64
    };
    let built = KERNELS.iter().filter(|kernel| {
        (kernel.family, kernel.input) == (Family::Hopper, DType::Bf16)
            && (kernel.a_major, kernel.b_major) == (Some(Major::K), Some(Major::K))
    });
    let built: Vec<KernelInfo> = built.copied().collect();
    let mut best: Vec<f64> = problems
        .iter()
        .map(|problem| {
            let times = built.iter().map(|kernel| cycles(kernel, problem));
            times.min_by(f64::total_cmp).expect("there are kernels")
        })
        .collect();
    let tiles = Tile::all();
    let times: Vec<Vec<f64>> = tiles
        .iter()
        .map(|tile| {
            let kernel = tile.kernel();
            problems
                .iter()
                .map(|problem| cycles(&kernel, problem))
                .collect()
        })
        .collect();
    let mut table = Table::of("tile | stages | schedule | mean | problems | most");
    for _ in 0..most {
        let gain = |times: &[f64]| {
            let logs = times
                .iter()
                .zip(&best)
                .map(|(time, best)| (best / time).max(1.0).ln());
            logs.sum::<f64>() / best.len() as f64
        };
        let found = (0..tiles.len()).max_by(|a, b| gain(&times[*a]).total_cmp(&gain(&times[*b])));
        let Some(found) = found else { break };
        let ratios: Vec<f64> = times[found]
            .iter()
            .zip(&best)
            .map(|(time, best)| best / time)
            .collect();
        let mean = gain(&times[found]).exp();
        let Tile { m, n, schedule } = tiles[found];
        table.row([
            format!("{m}x{n}x64"),
            tiles[found].stages().to_string(),
            format!("{schedule:?}"),
            format!("{mean:.4}"),
            ratios
                .iter()
                .filter(|ratio| **ratio > 1.02)
                .count()
                .to_string(),
            format!("{:.3}", ratios.iter().copied().fold(0.0, f64::max)),
        ]);
        for (best, time) in best.iter_mut().zip(&times[found]) {
            *best = best.min(*time);
        }
    }
    format!(
        "{} problems; each tile after those above it: mean speedup over all problems, problems \
         that gain more\nthan 2 %, most\n{}",
        problems.len(),
        table.render()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modelled::selection::H200;
    use crate::problem::shape::{BlasLayout, GemmShape};
    use gpu_kernels::OutputType;

    fn problem(m: usize, n: usize, k: usize) -> ProblemSpec {
        ProblemSpec {
            shape: GemmShape::new(m, n, k),
            layout: BlasLayout::NT,
            dtype: DType::Bf16,
            output: OutputType::Input,
        }
    }

    #[test]
    fn every_tile_fits_registers_and_shared_memory() {
        let tiles = Tile::all();
        assert!(tiles.len() > 60);
        for tile in tiles {
            let bytes = tile.stages() * tile.stage_bytes() + tile.staging_bytes();
            assert!(bytes <= SHARED_BYTES && tile.stages() >= 3, "{tile:?}");
        }
    }

    /// 132 tiles of 128×176 fill 132 SMs once; no kernel is as wide.
    #[test]
    fn a_tile_that_fits_is_found() {
        let text = render(&[problem(128 * 12, 176 * 11, 8192)], 1, &H200.target);
        assert!(text.contains("128x176x64"), "{text}");
        // TMA cannot read this one.
        let text = render(&[problem(1000, 1000, 1001)], 1, &H200.target);
        assert!(text.starts_with("0 problems"), "{text}");
    }
}
