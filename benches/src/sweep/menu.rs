//! Which tiles are worth a kernel, by the library's estimate of a product's cycles.
//!
//! The question is asked of the estimate, before a kernel exists: every width of `wgmma` in
//! steps of 8 columns, with every height, kernel schedule and cluster that registers and shared
//! memory allow, with consumers that divide rows or columns, and with C along N or along M, on
//! problems drawn from a seed. Beginning with the kernels that exist, the tile that lowers the mean
//! time most is added, again and again. What adds nothing is not built.

use crate::problem::spec::ProblemSpec;
use crate::text_table::Table;
use gpu_kernels::entry::KERNELS;
use gpu_kernels::kernels::hopper::MAX_M64_TILES;
use gpu_kernels::{Block, Cluster, DType, Family, KernelInfo, Major};
use tilewise::select::EpilogueForm;
use tilewise::select::{Strides, Target, cost, tile_grid};

/// Cycles of a launch that no tile changes, so that short products do not decide: 3 µs.
const LAUNCH: u64 = 5000;

/// Shared memory for the stages of a kernel, beside staged tiles of C and barriers.
const SHARED_BYTES: u32 = 226 << 10;

/// Accumulators of a thread, at most: 232 registers without those of the main loop.
const ACCUMULATORS: u32 = 192;

/// Stages of a kernel, at most: as many as the list of kernels has.
const STAGES: u32 = 16;

/// CTAs of a cluster along M and along N.
const CLUSTERS: [(u32, u32); 7] = [(1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 4), (4, 2)];

/// A tile that may become a kernel.
#[derive(Clone, Copy, Debug)]
struct Tile {
    m: u32,
    n: u32,
    /// Columns of a consumer: all, or half of them.
    consumer_n: u32,
    schedule: TileSchedule,
    cluster: Cluster,
    /// Whether C is contiguous along M, so that the kernel computes the transposed product of a
    /// row-major C.
    c_along_m: bool,
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
        for (schedule, clusters) in [
            (TileSchedule::Cooperative, &CLUSTERS[..]),
            (TileSchedule::PingPong, &CLUSTERS[..1]),
            (TileSchedule::StreamK, &CLUSTERS[..1]),
        ] {
            for &(down, across) in clusters {
                let cluster = Cluster {
                    m: down,
                    n: across,
                    k: 1,
                };
                let by_rows = (1..=4).map(|m64| (64 * m64, 1));
                let by_columns = (1..=MAX_M64_TILES as u32).map(|m64| (64 * m64, 2));
                for (m, parts) in by_rows.chain(by_columns) {
                    let widths = (16..=256).step_by(8);
                    for (consumer_n, c_along_m) in widths.flat_map(|n| [(n, false), (n, true)]) {
                        let tile = Tile {
                            m,
                            n: parts * consumer_n,
                            consumer_n,
                            schedule,
                            cluster,
                            c_along_m,
                        };
                        let has_registers = tile.accumulators() <= ACCUMULATORS;
                        if has_registers && tile.can_be_built() && tile.stages(tile.n) >= 3 {
                            tiles.push(tile);
                        }
                    }
                }
            }
        }
        tiles
    }

    /// Whether the CTAs of a cluster can share the loads, in equal parts and boxes of TMA, and there are
    /// kernels of this width and height: only TMA stores eight columns of a group of 16, stream-K
    /// exchanges whole groups, and a consumer has more than two m64 tiles only where it divides columns.
    fn can_be_built(self) -> bool {
        let Cluster { m, n, .. } = self.cluster;
        let in_groups = self.consumer_n.is_multiple_of(16);
        let has_width = in_groups || self.consumer_n > 64 && self.schedule != TileSchedule::StreamK;
        let has_height = match self.divides_columns() {
            true => self.schedule == TileSchedule::Cooperative,
            false => self.m <= 128 * self.consumers_per_tile(),
        };
        let has_boxes = self.n / m <= 256 && self.m / n <= 256;
        has_width && has_height && has_boxes && self.n.is_multiple_of(m) && self.m.is_multiple_of(n)
    }

    /// Whether each consumer computes all rows and half of the columns.
    fn divides_columns(self) -> bool {
        self.consumer_n < self.n
    }

    /// Consumers that share a tile.
    fn consumers_per_tile(self) -> u32 {
        match (self.schedule, self.m) {
            _ if self.divides_columns() => self.n / self.consumer_n,
            (TileSchedule::PingPong, _) | (_, 64) => 1,
            (_, 192) => 3,
            _ => 2,
        }
    }

    fn accumulators(self) -> u32 {
        let consumers = self.consumers_per_tile();
        let registers = self.m * self.n / (128 * consumers);
        // Three consumers have 160 registers a thread.
        if consumers == 3 && registers > 96 {
            u32::MAX
        } else {
            registers
        }
    }

    fn consumers(self) -> u32 {
        self.consumers_per_tile() * (1 + u32::from(self.schedule == TileSchedule::PingPong))
    }

    /// Bytes of the staged tiles of C beside the stages, where a stage holds `columns` columns of B. As
    /// in the kernels, two buffers a consumer give way to a fourth stage.
    fn staging_bytes(self, columns: u32) -> u32 {
        let buffers = self.consumers() * 8192;
        let beside_four = SHARED_BYTES.checked_sub(4 * self.stage_bytes(columns));
        if let (TileSchedule::Cooperative, Some(room)) = (self.schedule, beside_four)
            && room < 2 * buffers
        {
            let staged = room / buffers * buffers;
            // Without, a consumer's columns of B have to hold a buffer.
            if staged > 0 || !self.divides_columns() || self.consumer_n >= 64 {
                return staged;
            }
        }
        let whole = self.m * self.n * 2 * (1 + u32::from(self.schedule == TileSchedule::PingPong));
        whole
            .min(SHARED_BYTES - 3 * self.stage_bytes(columns).min(SHARED_BYTES / 3))
            .max(2 * buffers)
    }

    fn stage_bytes(self, columns: u32) -> u32 {
        (self.m + columns) * 128
    }

    fn stages(self, columns: u32) -> u32 {
        let room = SHARED_BYTES.saturating_sub(self.staging_bytes(columns));
        (room / self.stage_bytes(columns)).min(STAGES)
    }

    /// The kernel of this tile for operands of these directions, as far as the estimate reads it;
    /// `None` if it has too few stages.
    fn kernel(self, [a, b]: [Major; 2]) -> Option<KernelInfo> {
        let of_hopper = |kernel: &&KernelInfo| kernel.family == Family::Hopper;
        let any = KERNELS
            .iter()
            .find(of_hopper)
            .expect("there are hopper kernels");
        // Boxes along N have 64 columns.
        let columns = match b {
            Major::K => self.n,
            Major::Mn if self.divides_columns() && !self.consumer_n.is_multiple_of(64) => {
                return None;
            }
            Major::Mn => self.n.next_multiple_of(64),
        };
        let stages = self.stages(columns);
        (stages >= 3).then(|| KernelInfo {
            name: "",
            input: DType::Bf16,
            block: Block {
                m: self.m,
                n: self.n,
                k: 64,
            },
            a_major: Some(a),
            b_major: Some(b),
            c_along_m: self.c_along_m,
            cluster: self.cluster,
            ping_pong: self.schedule == TileSchedule::PingPong,
            consumers: self.consumers(),
            consumer_n: self.consumer_n,
            stages,
            pipeline_bytes: stages * self.stage_bytes(columns),
            staging_bytes: self.staging_bytes(columns),
            stream_k_bytes: u32::from(self.schedule == TileSchedule::StreamK),
            ..*any
        })
    }

    /// The name in the table.
    fn name(self) -> String {
        let Tile { m, n, cluster, .. } = self;
        let by = match self.divides_columns() {
            true => format!(" by {}", self.consumer_n),
            false => String::new(),
        };
        let along_m = if self.c_along_m { " cm" } else { "" };
        let cluster = match cluster.ctas() {
            1 => String::new(),
            _ => format!(" cluster{}x{}", cluster.m, cluster.n),
        };
        format!("{m}x{n}x64{by}{along_m}{cluster}")
    }
}

/// A product as kernels see it.
#[derive(Clone, Copy)]
struct Product {
    m: u32,
    n: u32,
    k: u32,
    /// Directions of A and B.
    majors: [Major; 2],
}

impl Product {
    fn of(problem: &ProblemSpec) -> Self {
        let [m, n, k] = [problem.shape.m, problem.shape.n, problem.shape.k].map(|x| x as u32);
        let along_k = |is| if is { Major::K } else { Major::Mn };
        let layout = problem.layout;
        let majors = [along_k(!layout.a_transposed), along_k(layout.b_transposed)];
        Product { m, n, k, majors }
    }

    /// The product whose C is the transpose of this one's.
    fn transposed(self) -> Self {
        let [a, b] = self.majors;
        Product {
            m: self.n,
            n: self.m,
            majors: [b, a],
            ..self
        }
    }

    /// The estimate for `kernel`, or `None` if its operands have other directions.
    fn cycles(self, kernel: &KernelInfo, target: &Target) -> Option<f64> {
        let product = if kernel.c_along_m {
            self.transposed()
        } else {
            self
        };
        let Product { m, n, k, majors } = product;
        if [kernel.a_major, kernel.b_major] != majors.map(Some) {
            return None;
        }
        let of = |major, lines: u32| {
            let pitch = if major == Major::K { k } else { lines };
            Strides::alignment_of(2 * u64::from(pitch))
        };
        let task = cost::Task {
            grid: tile_grid(kernel, m, n),
            batches: 1,
            k,
            rows: m,
            columns: n,
            matrices: [1; 2],
            alignment: cost::Alignment {
                a: of(majors[0], m),
                b: of(majors[1], n),
                c: of(Major::Mn, if kernel.c_along_m { m } else { n }),
            },
            by_element: false,
            line_classes: 1,
            epilogue: EpilogueForm::PLAIN,
        };
        Some((cost::estimate(kernel, &task, target).cycles + LAUNCH) as f64)
    }
}

/// The tiles worth adding to the kernels, best first, with what each gains on those of
/// `problems` that TMA can read, as if they were in bf16: at most `most`.
pub fn render(problems: &[ProblemSpec], most: usize, target: &Target) -> String {
    let aligned = problems
        .iter()
        .filter(|problem| problem.has_aligned_pitches());
    let products: Vec<Product> = aligned.map(Product::of).collect();
    let built: Vec<&KernelInfo> = KERNELS
        .iter()
        .filter(|kernel| {
            (kernel.family, kernel.input) == (Family::Hopper, DType::Bf16) && kernel.loads_by_tma
        })
        .collect();
    let mut best: Vec<f64> = products
        .iter()
        .map(|product| {
            let times = built
                .iter()
                .filter_map(|kernel| product.cycles(kernel, target));
            times.min_by(f64::total_cmp).expect("there are kernels")
        })
        .collect();
    let tiles = Tile::all();
    let times: Vec<Vec<f64>> = tiles
        .iter()
        .map(|tile| {
            let time = |product: &Product| {
                let majors = match tile.c_along_m {
                    true => product.transposed().majors,
                    false => product.majors,
                };
                let kernel = tile.kernel(majors)?;
                product.cycles(&kernel, target)
            };
            products
                .iter()
                .map(|product| time(product).unwrap_or(f64::INFINITY))
                .collect()
        })
        .collect();
    let mut table = Table::of("tile | schedule | mean | problems | most");
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
        table.row([
            tiles[found].name(),
            format!("{:?}", tiles[found].schedule),
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
        products.len(),
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
        assert!(
            tiles
                .iter()
                .any(|tile| tile.divides_columns() && tile.m == 192)
        );
        for tile in tiles {
            let kernel = tile.kernel([Major::K; 2]).expect("three stages fit");
            let bytes = kernel.pipeline_bytes + kernel.staging_bytes;
            assert!(bytes <= SHARED_BYTES && kernel.stages >= 3, "{tile:?}");
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
