//! `order`: which tiles of C run together, drawn, and what the model of
//! [`tilewise::l2`] says of it. After the figure in Triton's matmul tutorial, "L2
//! Cache Optimizations". Needs no GPU.

use crate::error::Error;
use crate::problem::names::parse_dtype;
use crate::problem::shape::GemmShape;
use clap::Args;
use gpu_kernels::{Block, DType, GemmParams, TileGrid, TileOrder};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::str::FromStr;
use tilewise::l2::gpu::Gpu;
use tilewise::l2::{self, Bound, Traffic, WaveLoads, Workload};

/// The most tiles that are walked, and the most blocks of A and B that the model of L2
/// follows.
const MOST: u64 = 1 << 24;

/// Waves whose blocks are printed one by one.
const WAVES_SHOWN: usize = 9;

/// Options of `order`.
#[derive(Clone, Debug, Args)]
pub struct OrderArgs {
    /// MxNxK, or one number for a cube.
    #[arg(long, default_value = "8192")]
    pub shape: GemmShape,
    /// CTA tile: MxN, or MxNxK with BLOCK_K. [BLOCK_K: 64]
    #[arg(long, default_value = "128x256", value_parser = parse_tile)]
    pub tile: Block,
    /// row, col, grouped:SIZE, groupedn:SIZE, serpentine:SIZE, serpentinen:SIZE,
    /// morton, hilbert; or cutlass:MAX_SWIZZLE, what CUTLASS would choose.
    #[arg(long, default_value = "grouped:8")]
    pub order: OrderChoice,
    /// h200, h100, a100, t4 or rtx4090.
    #[arg(long, default_value = "h200")]
    pub gpu: Gpu,
    /// SMs. [default: those of the GPU]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub sms: Option<u32>,
    /// CTAs that one SM runs at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub ctas_per_sm: u32,
    /// Type of A, B and C: f16, bf16, tf32, f32.
    #[arg(long, default_value = "f16", value_parser = parse_dtype)]
    pub dtype: DType,
    /// Also draw the tiles into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also write a page that explores orders in a browser, starting with this one.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the model's figures as JSON and draw nothing in the terminal.
    #[arg(long)]
    pub json: bool,
}

/// An order, or a rule that picks one for a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderChoice {
    /// This one.
    Order(TileOrder),
    /// [`TileOrder::cutlass`] with this largest swizzle.
    Cutlass(u32),
}

impl FromStr for OrderChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let swizzle = text.strip_prefix("cutlass:");
        match swizzle.and_then(|size| size.parse().ok()) {
            Some(size @ (1 | 2 | 4 | 8)) => Ok(OrderChoice::Cutlass(size)),
            _ => text
                .parse()
                .map(OrderChoice::Order)
                .map_err(|error| format!("{error}; or cutlass:MAX_SWIZZLE of 1, 2, 4 or 8")),
        }
    }
}

/// `MxN` or `MxNxK`, each from 1 to 65536.
fn parse_tile(text: &str) -> Result<Block, String> {
    let sides: Option<Vec<u32>> = text
        .split('x')
        .map(|side| side.parse().ok().filter(|side| (1..=65_536).contains(side)))
        .collect();
    match sides.as_deref() {
        Some(&[m, n]) => Ok(Block { m, n, k: 64 }),
        Some(&[m, n, k]) => Ok(Block { m, n, k }),
        _ => Err(format!(
            "'{text}' is not a tile; accepted: MxN or MxNxK, each from 1 to 65536, such as 128x256"
        )),
    }
}

/// A tile order of one product, counted.
#[derive(Clone, Debug)]
pub struct OrderAnalysis {
    /// C in tiles.
    pub grid: TileGrid,
    /// How they run.
    pub order: TileOrder,
    /// CTAs that run at once: the tiles of a wave.
    pub ctas: u32,
    /// SMs that run them.
    pub sms: u32,
    /// Blocks that each wave loads.
    pub waves: Vec<WaveLoads>,
    /// The traffic by the model of L2.
    pub traffic: Traffic,
    bound: Bound,
    /// What was asked for.
    pub args: OrderArgs,
}

impl OrderAnalysis {
    /// # Errors
    /// The product is larger than the model is made for.
    pub fn new(args: &OrderArgs) -> Result<OrderAnalysis, Error> {
        let most = GemmParams::MAX_DIM;
        let side = |name: &str, size: usize| match u32::try_from(size) {
            Ok(size) if u64::from(size) <= most => Ok(size),
            _ => Err(Error::Order(format!(
                "--shape: {name} is {size}; accepted: at most {most}"
            ))),
        };
        let GemmShape { m, n, k } = args.shape;
        let workload = Workload {
            m: side("M", m)?,
            n: side("N", n)?,
            k: side("K", k)?,
            block: args.tile,
            input_bytes: args.dtype.bytes(),
            output_bytes: args.dtype.bytes(),
        };
        let (grid, depth) = (workload.grid(), workload.tiles_k());
        let (rows, cols) = (u64::from(grid.tiles_m), u64::from(grid.tiles_n));
        for (what, count) in [
            ("tiles of C", rows * cols),
            ("blocks of A and B", (rows + cols) * u64::from(depth)),
        ] {
            if count > MOST {
                let Block { m, n, k } = args.tile;
                return Err(Error::Order(format!(
                    "{} in tiles of {m}x{n}x{k}: {count} {what}; accepted: at most {MOST}",
                    args.shape
                )));
            }
        }
        let order = match args.order {
            OrderChoice::Order(order) => order,
            OrderChoice::Cutlass(max_swizzle) => TileOrder::cutlass(grid, max_swizzle),
        };
        let sms = args.sms.unwrap_or(args.gpu.sms);
        let machine = Gpu { sms, ..args.gpu }.machine(args.ctas_per_sm);
        let ctas = machine.ctas;
        let traffic = l2::traffic(&workload, order, machine);
        Ok(OrderAnalysis {
            grid,
            order,
            ctas,
            sms,
            waves: l2::block_loads(order, grid, depth, ctas).collect(),
            traffic,
            bound: l2::bound(&workload, &traffic, &args.gpu),
            args: args.clone(),
        })
    }

    /// One line: the product, its tiles, their order.
    pub fn title(&self) -> String {
        let Block { m, n, .. } = self.args.tile;
        let TileGrid { tiles_m, tiles_n } = self.grid;
        format!(
            "{} in {tiles_m}×{tiles_n} tiles of {m}×{n}, order {}, {} at once ({} SMs, L2 of {})",
            self.args.shape, self.order, self.ctas, self.sms, self.args.gpu.name
        )
    }

    /// A line for each wave on the blocks that it loads; later waves are left out.
    pub fn wave_lines(&self) -> Vec<String> {
        let line = |(index, wave): (usize, &WaveLoads)| {
            format!(
                "wave {index}: {} tiles, {} blocks of A + {} of B = {} ({} without a cache)",
                wave.tiles,
                wave.a,
                wave.b,
                wave.shared(),
                wave.uncached
            )
        };
        let waves = self.waves.iter().enumerate();
        let mut lines: Vec<String> = waves.take(WAVES_SHOWN).map(line).collect();
        if self.waves.len() > WAVES_SHOWN {
            lines.push(format!("… {} waves in all", self.waves.len()));
        }
        lines
    }

    /// What `--json` prints. `blocks` are the distinct blocks of A and B within a wave;
    /// `blocks_uncached` counts a block once for each CTA that loads it.
    pub fn figures(&self) -> Value {
        let (traffic, first) = (&self.traffic, self.waves.first());
        json!({
            "shape": self.args.shape.to_string(),
            "tiles_m": self.grid.tiles_m,
            "tiles_n": self.grid.tiles_n,
            "order": self.order.to_string(),
            "gpu": self.args.gpu.name,
            "ctas": self.ctas,
            "waves": self.waves.len(),
            "first_wave_blocks_uncached": first.map_or(0, |wave| wave.uncached),
            "first_wave_blocks": first.map_or(0, WaveLoads::shared),
            "blocks_uncached": self.waves.iter().map(|wave| wave.uncached).sum::<u64>(),
            "blocks": self.waves.iter().map(WaveLoads::shared).sum::<u64>(),
            "l2_requests": traffic.requests,
            "l2_hit_rate": traffic.hit_rate(),
            "l2_read_bytes": traffic.l2_to_sm_bytes,
            "dram_read_bytes": traffic.dram_read_bytes,
            "dram_write_bytes": traffic.c_write_bytes,
            "between_partitions_bytes": traffic.between_partitions_bytes,
            // A lower bound on the time, and what it comes from.
            "bound_milliseconds": self.bound.seconds * 1e3,
            "bound_by": self.bound.limit.name(),
        })
    }

    /// The figures for a reader.
    pub fn summary(&self) -> String {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        format!(
            "{}\nby the model: L2 hits {:.1} %, L2 reads {:.3} GB, DRAM reads {:.3} GB and writes \
             {:.3} GB; at least {:.3} ms, bound by the {}\n",
            self.wave_lines().join("\n"),
            100.0 * self.traffic.hit_rate(),
            gigabytes(self.traffic.l2_to_sm_bytes),
            gigabytes(self.traffic.dram_read_bytes),
            gigabytes(self.traffic.c_write_bytes),
            self.bound.seconds * 1e3,
            self.bound.limit.name(),
        )
    }
}
