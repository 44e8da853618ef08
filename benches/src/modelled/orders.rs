//! One problem, modelled: kernels and orders beside each other, and row-major order against
//! the library's choice.

use crate::modelled::selection::{GpuDescription, choose, seen_by_l2};
use crate::problem::names::{KernelChoice, Placement, short_kernel};
use crate::problem::spec::ProblemSpec;
use crate::text_table::{Table, TableLine, shorten, three_digits, under_headings};
use gpu_kernels::{Block, KernelInfo, TileGrid, TileOrder};
use tilewise::l2::{self, Traffic, WaveLoads};
use tilewise::select::Choice;

/// One problem as the model sees it.
pub struct ModelledProblem {
    problem: ProblemSpec,
    /// Every kernel in every order, once.
    launches: Vec<ModelledLaunch>,
    /// Places in `launches`: row-major order, and the order that is compared with it.
    compared: Vec<(usize, usize)>,
    /// Kernels that cannot run the problem, and why: lines for below the table.
    notes: String,
}

/// A kernel in an order.
struct ModelledLaunch {
    kernel: KernelInfo,
    order: TileOrder,
    grid: TileGrid,
    block: Block,
    ctas: u32,
    loads: MeanLoads,
    traffic: Traffic,
}

impl ModelledProblem {
    /// Models `problem` by `kernels` in the orders of `placements`. Without forced
    /// `placements` and kernels, `nothing_forced`, the library's choice is compared with
    /// row-major order; else every order is.
    pub fn new(
        problem: ProblemSpec,
        kernels: &[KernelChoice],
        placements: &[Placement],
        nothing_forced: bool,
        gpu: &GpuDescription,
    ) -> ModelledProblem {
        let mut modelled = ModelledProblem {
            problem,
            launches: Vec::new(),
            compared: Vec::new(),
            notes: String::new(),
        };
        if nothing_forced && let Err(reason) = modelled.compare_choice(gpu) {
            modelled.note("the library's choice", &reason);
        }
        for &kernel in kernels {
            let choose = |placement| choose(problem, Some(kernel), placement, &gpu.target);
            // A kernel that cannot run at all is reported once, not once for each order.
            let placements = match choose(Placement::default()) {
                Ok(_) => placements,
                Err(_) => &[Placement::default()],
            };
            for &placement in placements {
                match choose(placement) {
                    Ok(choice) => _ = modelled.add(&choice, gpu),
                    Err(reason) => modelled.note(&kernel.to_string(), &reason),
                }
            }
        }
        if !nothing_forced {
            modelled.compare_all();
        }
        modelled
    }

    fn note(&mut self, kernel: &str, reason: &str) {
        self.notes += &format!("  not modelled: {kernel}: {}\n", shorten(reason));
    }

    /// Adds the library's choice and its kernel in row-major order.
    fn compare_choice(&mut self, gpu: &GpuDescription) -> Result<(), String> {
        let chosen = choose(self.problem, None, Placement::default(), &gpu.target)?;
        let row_major = Choice {
            order: TileOrder::RowMajor,
            ..chosen
        };
        let row_major = self.add(&row_major, gpu);
        let chosen = self.add(&chosen, gpu);
        self.compared.push((row_major, chosen));
        Ok(())
    }

    /// Compares every other order with row-major order by the same kernel.
    fn compare_all(&mut self) {
        for (at, launch) in self.launches.iter().enumerate() {
            let is_base = |base: &ModelledLaunch| {
                base.order == TileOrder::RowMajor && base.kernel.name == launch.kernel.name
            };
            if launch.order != TileOrder::RowMajor
                && let Some(base) = self.launches.iter().position(is_base)
            {
                self.compared.push((base, at));
            }
        }
    }

    /// The place of a launch, which is modelled if it is new. Schedules do not differ in the
    /// model, because their waves are the same.
    fn add(&mut self, choice: &Choice, gpu: &GpuDescription) -> usize {
        let same = |known: &ModelledLaunch| {
            (known.kernel.name, known.order) == (choice.kernel.name, choice.order)
        };
        if let Some(known) = self.launches.iter().position(same) {
            return known;
        }
        self.launches
            .push(ModelledLaunch::new(self.problem, choice, gpu));
        self.launches.len() - 1
    }

    /// Each kernel with each order, and below it the kernels that cannot run.
    pub fn table(&self) -> String {
        let mut table = Table::of(
            "kernel | tile | grid | order | CTAs/wave | loads/wave unshared | of A | \
         of B | shared | L2 hit % | L2 to SM GB | DRAM read GB | C write GB",
        );
        for launch in &self.launches {
            table.row(launch.cells());
        }
        let body = match self.launches.is_empty() {
            true => String::new(),
            false => table.render(),
        };
        let ProblemSpec { shape, .. } = self.problem;
        format!("\n{shape}  {}\n{body}{}", self.heading(), self.notes)
    }

    /// The kernel, the order and the bytes from and to DRAM (in GB) of each launch.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, String, f64)> {
        let launches = self.launches.iter();
        launches.map(|launch| {
            (
                launch.kernel.name,
                launch.order.to_string(),
                launch.dram_gb(),
            )
        })
    }

    /// What a table of several shapes says above them.
    fn heading(&self) -> String {
        let ProblemSpec { layout, dtype, .. } = self.problem;
        format!("{}  layout {layout}", dtype.name())
    }

    fn lines(&self) -> impl Iterator<Item = TableLine> {
        self.compared.iter().map(|&(row_major, order)| {
            let (row_major, order) = (&self.launches[row_major], &self.launches[order]);
            let mut cells = vec![
                self.problem.shape.to_string(),
                short_kernel(order.kernel.name, self.problem.dtype.name()).to_owned(),
                order.order.to_string(),
            ];
            let [blocks, gigabytes] = [
                [row_major, order].map(|launch| launch.loads.shared()),
                [row_major, order].map(ModelledLaunch::dram_gb),
            ];
            cells.extend(blocks.map(|blocks| format!("{blocks:.0}")));
            cells.push(format!("{:.2}", blocks[0] / blocks[1]));
            cells.extend(gigabytes.map(three_digits));
            cells.push(format!("{:.2}", gigabytes[0] / gigabytes[1]));
            TableLine {
                heading: self.heading(),
                cells,
            }
        })
    }
}

/// Row-major order against other orders, a line for each product and kernel.
pub fn comparison(products: &[ModelledProblem], gpu: &GpuDescription) -> String {
    const HEADS: [&str; 9] = [
        "\nshape",
        "\nkernel",
        "\norder",
        "blocks\nrow",
        "a wave\norder",
        "\nx",
        "DRAM\nrow",
        "GB\norder",
        "\nx",
    ];
    let empty = Table::new(HEADS).close([3, 4, 6, 7]);
    let lines: Vec<TableLine> = products.iter().flat_map(ModelledProblem::lines).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "\nRow-major order against others, by the same kernel. Modelled, not measured:\n\
         {}.\n{}\n\
         blocks a wave: blocks of A and B that a wave loads, each counted once. GB: from and to DRAM.\n\
         x: row-major order's figure over the other's. kernel: the end of a hopper kernel's name.\n",
        gpu.name,
        under_headings(&empty, 1, lines)
    )
}

impl ModelledLaunch {
    fn new(problem: ProblemSpec, choice: &Choice, gpu: &GpuDescription) -> ModelledLaunch {
        let product = seen_by_l2(problem, &choice.kernel, choice.transposed);
        let machine = gpu.target.machine(&choice.kernel);
        let (order, grid, depth) = (choice.order, choice.grid, product.tiles_k());
        ModelledLaunch {
            kernel: choice.kernel,
            order,
            grid,
            block: product.block,
            ctas: machine.ctas,
            loads: means(l2::block_loads(order, grid, depth, machine.ctas)),
            traffic: l2::traffic(&product, order, machine),
        }
    }

    fn dram_gb(&self) -> f64 {
        (self.traffic.dram_read_bytes + self.traffic.c_write_bytes) as f64 / 1e9
    }

    fn cells(&self) -> Vec<String> {
        let (block, grid, loads) = (self.block, self.grid, self.loads);
        let gigabytes = |bytes: u64| format!("{:.3}", bytes as f64 / 1e9);
        vec![
            self.kernel.name.to_owned(),
            format!("{}x{}x{}", block.m, block.n, block.k),
            format!("{}x{}", grid.tiles_m, grid.tiles_n),
            self.order.to_string(),
            self.ctas.to_string(),
            format!("{:.0}", loads.unshared),
            format!("{:.0}", loads.a),
            format!("{:.0}", loads.b),
            format!("{:.0}", loads.shared()),
            format!("{:.1}", self.traffic.hit_rate() * 100.0),
            gigabytes(self.traffic.l2_to_sm_bytes),
            gigabytes(self.traffic.dram_read_bytes),
            gigabytes(self.traffic.c_write_bytes),
        ]
    }
}

/// Blocks that a wave loads, the mean over the waves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct MeanLoads {
    unshared: f64,
    a: f64,
    b: f64,
}

impl MeanLoads {
    /// With each block counted once.
    fn shared(&self) -> f64 {
        self.a + self.b
    }
}

fn means(waves: impl Iterator<Item = WaveLoads>) -> MeanLoads {
    let (mut sums, mut count) = ([0; 3], 0);
    for wave in waves {
        count += 1;
        for (sum, loads) in sums.iter_mut().zip([wave.uncached, wave.a, wave.b]) {
            *sum += loads;
        }
    }
    let [unshared, a, b] = sums.map(|sum| sum as f64 / f64::from(count.max(1)));
    MeanLoads { unshared, a, b }
}

#[cfg(test)]
mod tests;
