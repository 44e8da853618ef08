//! One launch: a problem, a kernel, an order and a schedule.

use std::time::Duration;

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{Family, KernelInfo, Major, OutputType, Schedule, TileOrder};
use tilewise::emulator::EmulatedGpu;
use tilewise::select::{self, Choice, EpilogueForm, Packed, Problem};

use crate::operand::Placement;

/// The contents of the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Uniform in [−1, 1), rounded to the type.
    Uniform,
    /// Integers from −4 to 4: every sum is exact.
    Integers,
}

/// A product to emulate.
#[derive(Clone, Debug)]
pub struct Case {
    /// Kernel, order, schedule, and the operands to pack.
    pub choice: Choice,
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A and rows of B.
    pub k: u32,
    /// Element type of C.
    pub output: OutputType,
    /// The layout of A.
    pub a: Placement,
    /// The layout of B.
    pub b: Placement,
    /// The layout of C.
    pub c: Placement,
    /// CTAs that run at once: the grid of persistent schedules.
    pub resident: u32,
    /// The contents of A and B.
    pub values: Values,
    /// Seed of A and B.
    pub seed: u64,
}

impl Case {
    /// A product of `m`×`n`×`k` by `kernel`. A and B have the layouts that the kernel is
    /// made for, with only the padding between lines that TMA needs; so has C, which is row-major
    /// for most kernels, and has the input's type. Each CTA runs one tile, in row-major order,
    /// where the kernel can.
    pub fn new(kernel: &KernelInfo, m: u32, n: u32, k: u32) -> Case {
        let bytes = kernel.input.bytes();
        let packs = kernel.family == Family::Pack;
        let along_k = |major: Option<Major>| major.unwrap_or(Major::K) == Major::K;
        let grid = select::tile_grid(kernel, m, n);
        let (schedule, stream_k_ctas) = if kernel.runs_under(Schedule::StreamK) {
            (Schedule::StreamK, 2)
        } else if kernel.leaves_sums {
            let parts = k.div_ceil(kernel.block.k).min(2);
            (Schedule::SplitK, parts * grid.tiles())
        } else {
            (Schedule::Grid1d, 0)
        };
        // No kernel that multiplies splits elements.
        let splits = kernel.input.parts() > 1;
        Case {
            choice: Choice {
                kernel: *kernel,
                transposed: false,
                two_launches: false,
                line_classes: 1,
                packed: Packed {
                    a: splits,
                    b: splits,
                },
                pack: splits.then(|| *crate::kernel("split_f16x3").expect("there is one")),
                grid,
                batches: 1,
                order: TileOrder::RowMajor,
                schedule,
                stream_k_ctas,
                reduce: kernel.leaves_sums.then(|| {
                    let adds = KERNELS.iter().find(|other| other.adds_sums_of(kernel));
                    *adds.expect("there is one for each such kernel")
                }),
            },
            m,
            n,
            k,
            output: OutputType::Input,
            a: if along_k(kernel.a_major) {
                Placement::rows(if packs { n } else { k }, bytes)
            } else {
                Placement::columns(m, bytes)
            },
            b: if along_k(kernel.b_major) {
                Placement::columns(k, bytes)
            } else {
                Placement::rows(n, bytes)
            },
            c: if kernel.c_along_m {
                Placement::columns(m, bytes)
            } else {
                Placement::rows(n, bytes)
            },
            resident: 4,
            values: Values::Uniform,
            seed: 1,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &KernelInfo {
        &self.choice.kernel
    }

    /// Columns of A: K, except for kernels that pack A to C.
    pub fn a_columns(&self) -> u32 {
        match self.kernel().family {
            Family::Pack => self.n,
            _ => self.k,
        }
    }

    /// A GPU that runs [`Case::resident`] CTAs at once and has no time limit.
    pub fn gpu(&self) -> EmulatedGpu {
        EmulatedGpu {
            sms: self.resident,
            ctas_per_sm: Some(1),
            time_limit: Duration::MAX,
            ..EmulatedGpu::default()
        }
    }

    /// The problem as the library's selection sees it, with operands at address 0.
    pub fn problem(&self) -> Problem {
        let input = self.kernel().input;
        let output = self.output.dtype(input).bytes();
        Problem {
            m: self.m,
            n: self.n,
            k: self.k,
            batches: 1,
            input,
            output: self.output,
            a: self.a.strides(input.bytes()),
            b: self.b.strides(input.bytes()),
            c: self.c.strides(output),
            epilogue: EpilogueForm::PLAIN,
        }
    }
}

/// The kernel of this name.
pub fn kernel(name: &str) -> Option<&'static KernelInfo> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
