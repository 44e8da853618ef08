//! One launch: a problem, a kernel, an order and a schedule.

use std::time::Duration;

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{DType, Family, KernelInfo, Major, OutputType, Schedule, TileOrder};
use tilewise::emulator::EmulatedGpu;
use tilewise::select::{self, Choice, Packed, Problem};

use crate::operand::Placement;

/// What the matrices hold.
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
    /// Kernel, order, schedule, and what is packed.
    pub choice: Choice,
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A and rows of B.
    pub k: u32,
    /// Element type of C.
    pub output: OutputType,
    /// Where A lies.
    pub a: Placement,
    /// Where B lies.
    pub b: Placement,
    /// Where C lies.
    pub c: Placement,
    /// CTAs that run at once: the grid of persistent schedules.
    pub resident: u32,
    /// What A and B hold.
    pub values: Values,
    /// Seed of A and B.
    pub seed: u64,
}

impl Case {
    /// A product of `m`×`n`×`k` by `kernel`, in the layouts that it is made for,
    /// nothing between the lines but what TMA needs, C row-major, of the input's
    /// type; one tile a CTA in rows, where the kernel can.
    pub fn new(kernel: &KernelInfo, m: u32, n: u32, k: u32) -> Case {
        let bytes = kernel.input.bytes();
        let packs = kernel.family == Family::Pack;
        let along_k = |major: Option<Major>| major.unwrap_or(Major::K) == Major::K;
        let is_stream_k = kernel.runs_under(Schedule::StreamK);
        // TMA does not round: the library packs, and rounds, before.
        let rounds = kernel.family == Family::Hopper && kernel.input == DType::Tf32;
        Case {
            choice: Choice {
                kernel: *kernel,
                transposed: false,
                packed: Packed {
                    a: rounds,
                    b: rounds,
                },
                pack: rounds.then(|| *crate::kernel("pack_tf32").expect("there is one")),
                grid: select::tile_grid(kernel, m, n),
                order: TileOrder::RowMajor,
                schedule: match is_stream_k {
                    true => Schedule::StreamK,
                    false => Schedule::Grid1d,
                },
                stream_k_ctas: if is_stream_k { 2 } else { 0 },
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
            c: Placement::rows(n, bytes),
            resident: 4,
            values: Values::Uniform,
            seed: 1,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &KernelInfo {
        &self.choice.kernel
    }

    /// Columns of A: K, but for kernels that pack A to C.
    pub fn a_columns(&self) -> u32 {
        match self.kernel().family {
            Family::Pack => self.n,
            _ => self.k,
        }
    }

    /// The GPU that has [`Case::resident`] CTAs run at once, and never says that it takes
    /// too long.
    pub fn gpu(&self) -> EmulatedGpu {
        EmulatedGpu {
            sms: self.resident,
            ctas_per_sm: Some(1),
            time_limit: Duration::MAX,
            ..EmulatedGpu::default()
        }
    }

    /// As the library's selection sees it, of operands at address 0.
    pub fn problem(&self) -> Problem {
        let input = self.kernel().input;
        let output = match self.output {
            OutputType::Input => input.bytes(),
            OutputType::F32 => 4,
        };
        Problem {
            m: self.m,
            n: self.n,
            k: self.k,
            input,
            output: self.output,
            a: self.a.strides(input.bytes()),
            b: self.b.strides(input.bytes()),
            c: self.c.strides(output),
        }
    }
}

/// The kernel of this name.
pub fn kernel(name: &str) -> Option<&'static KernelInfo> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
