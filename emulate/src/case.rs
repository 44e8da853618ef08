//! One launch: a problem, a kernel, an order and a schedule.

use gpu_kernels::entry::{FUNCTIONS, KERNELS};
use gpu_kernels::{Family, GemmParams, KernelInfo, Major, OutputType, Schedule, TileOrder};
use tilewise::select::{self, Choice, Packed};

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
    /// The kernel.
    pub kernel: KernelInfo,
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
    /// Which tile an id means.
    pub order: TileOrder,
    /// Which ids a CTA runs.
    pub schedule: Schedule,
    /// CTAs that run at once: the grid of persistent schedules.
    pub resident: u32,
    /// CTAs that share tiles, under [`Schedule::StreamK`].
    pub sharers: u32,
    /// What A and B hold.
    pub values: Values,
    /// Seed of A and B.
    pub seed: u64,
}

impl Case {
    /// Columns of A: K, but for kernels that pack A to C.
    pub fn a_columns(&self) -> u32 {
        match self.kernel.family {
            Family::Pack => self.n,
            _ => self.k,
        }
    }

    /// As the library's selection would put it.
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            kernel: self.kernel,
            transposed: false,
            packed: Packed::default(),
            pack: None,
            grid: select::tile_grid(&self.kernel, self.m, self.n),
            order: self.order,
            schedule: self.schedule,
            stream_k_ctas: self.sharers,
        }
    }

    /// CTAs to launch.
    pub fn ctas(&self) -> u32 {
        let (x, y) = select::ctas(&self.choice(), self.resident);
        x * y
    }

    /// A product of `m`×`n`×`k` by `kernel`, in the layouts that it is made for,
    /// nothing between the lines but what TMA needs, C row-major, of the input's
    /// type; one tile a CTA in rows, where the kernel can.
    pub fn new(kernel: &KernelInfo, m: u32, n: u32, k: u32) -> Case {
        let bytes = kernel.input.bytes();
        let packs = kernel.family == Family::Pack;
        let along_k = |major: Option<Major>| major.unwrap_or(Major::K) == Major::K;
        let schedule = if kernel.runs_under(Schedule::StreamK) {
            Schedule::StreamK
        } else {
            Schedule::Grid1d
        };
        Case {
            kernel: *kernel,
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
            order: TileOrder::RowMajor,
            schedule,
            resident: 4,
            sharers: match schedule {
                Schedule::StreamK => 2,
                _ => 0,
            },
            values: Values::Uniform,
            seed: 1,
        }
    }
}

/// The kernel of this name.
pub fn kernel(name: &str) -> Option<&'static KernelInfo> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// What a thread of `kernel` runs.
pub(crate) fn function(kernel: &KernelInfo) -> Option<unsafe fn(&GemmParams)> {
    let place = KERNELS.iter().position(|other| other.name == kernel.name);
    place.map(|place| FUNCTIONS[place])
}
