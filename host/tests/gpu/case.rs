//! One product to test: its name, whether it can run, and how it runs.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::{
    DType, Device, Element, Error, Family, Gemm, KernelInfo, Major, Output, OutputType, Packing,
    Plan, PlanInfo, Schedule, TileOrder,
};

use crate::arrangement::{Arrangement, Placement};
use crate::operands::Operands;
use crate::reference;
use crate::shared::Shared;

/// The kind of elements of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Uniform in [-1, 1).
    Uniform,
    /// Integers from -4 to 4 without 0: sums are exact, and never -0.
    Integers,
}

/// One product.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The kernel; `None` leaves it to the library.
    pub kernel: Option<&'static KernelInfo>,
    /// Element type of A and B.
    pub input: DType,
    /// Element type of C.
    pub output: OutputType,
    /// M, N, K.
    pub shape: (usize, usize, usize),
    /// Layouts of A, B, C.
    pub arrangements: [Arrangement; 3],
    /// Schedule and order; `None` leaves them to the library.
    pub walk: Option<(Schedule, TileOrder)>,
    /// Whether operands may be packed.
    pub packing: Packing,
    /// The number of classes of lines; `None` leaves it to the library.
    pub classes: Option<u32>,
    /// The kind of elements.
    pub data: Data,
}

/// The result of a case.
pub enum Outcome {
    /// The result is right. The number is the largest error divided by its bound.
    Right(f64),
    /// The library refused the case, as it should: the kernel cannot read these operands.
    Refused,
}

/// The complete name; a filter with it selects only this case.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kernel {
            Some(kernel) => f.write_str(kernel.name)?,
            None => write!(f, "chosen_{}", self.input.name())?,
        }
        let (m, n, k) = self.shape;
        let [a, b, c] = self.arrangements.map(Arrangement::name);
        let output = match self.output {
            OutputType::Input => "same",
            OutputType::F32 => "f32",
            OutputType::F16 => "f16",
            OutputType::Bf16 => "bf16",
        };
        write!(f, "/{m}x{n}x{k}/a={a}/b={b}/c={c}:{output}")?;
        if let Some((schedule, order)) = self.walk {
            write!(f, "/{}", walk_name(schedule, order))?;
        }
        if self.packing == Packing::Never {
            f.write_str("/never-packed")?;
        }
        if let Some(classes) = self.classes {
            write!(f, "/{classes}-classes")?;
        }
        match self.data {
            Data::Uniform => f.write_str("/uniform"),
            Data::Integers => f.write_str("/integers"),
        }
    }
}

/// A schedule and an order, for names.
pub fn walk_name(schedule: Schedule, order: TileOrder) -> String {
    let schedule = match schedule {
        Schedule::Grid2d => return "grid2d".into(),
        Schedule::Grid1d => "grid1d",
        Schedule::Persistent => "persistent",
        Schedule::StreamK => "stream-k",
        Schedule::SplitK => "split-k",
    };
    format!("{schedule}:{order}")
}

/// Calls a generic function with the element types of a case.
macro_rules! with_types {
    ($case:expr, $function:ident($($argument:expr),*)) => {{
        use tilewise::{DType, bf16, f16};
        let input = $case.input;
        match (input, $case.output.dtype(input)) {
            (DType::F16, DType::F16) => $function::<f16, f16>($($argument),*),
            (DType::F16, DType::Bf16) => $function::<f16, bf16>($($argument),*),
            (DType::F16, _) => $function::<f16, f32>($($argument),*),
            (DType::Bf16, DType::F16) => $function::<bf16, f16>($($argument),*),
            (DType::Bf16, DType::Bf16) => $function::<bf16, bf16>($($argument),*),
            (DType::Bf16, _) => $function::<bf16, f32>($($argument),*),
            (_, DType::F16) => $function::<f32, f16>($($argument),*),
            (_, DType::Bf16) => $function::<f32, bf16>($($argument),*),
            (_, _) => $function::<f32, f32>($($argument),*),
        }
    }};
}
pub(crate) use with_types;

impl Case {
    /// Runs the case once and checks everything.
    pub fn run(&self, device: &Shared, seed: u64) -> Result<Outcome, Failure> {
        with_types!(self, run_once(self, device, seed))
    }

    /// The product with its forced choices.
    pub fn gemm(&self, device: &Device) -> Gemm {
        let mut gemm = Gemm::new(device).packing(self.packing);
        if let Some(kernel) = self.kernel {
            gemm = gemm.kernel(kernel.name);
        }
        gemm = gemm.precision(self.input.into());
        if let Some(classes) = self.classes {
            gemm = gemm.line_classes(classes);
        }
        match self.walk {
            None => gemm,
            Some((schedule, order)) => gemm.schedule(schedule).order(order),
        }
    }

    /// The placements of A, B and C.
    pub fn placements(&self) -> [Placement; 3] {
        let (m, n, k) = self.shape;
        let [a, b, c] = self.arrangements;
        [a.place(m, k), b.place(k, n), c.place(m, n)]
    }

    /// Whether the kernel can run. It can always read packed operands, but a hopper kernel
    /// needs at least one k-block, and some kernels need a C that TMA can write.
    pub fn is_runnable(&self) -> bool {
        let is_hopper = self
            .kernel
            .is_some_and(|kernel| kernel.family == Family::Hopper);
        let writes = self.writes(false) || self.may_turn() && self.writes(true);
        let reads = self.packing == Packing::Auto || self.reads_in_place();
        reads && (!is_hopper || self.shape.2 > 0 && writes)
    }

    /// Whether the kernel writes C along M, of the product that it computes.
    fn writes_along_m(&self) -> bool {
        self.kernel.is_some_and(|kernel| kernel.c_along_m)
    }

    /// A C that is contiguous in the other direction than the kernel writes may be computed as
    /// Cᵀ = Bᵀ·Aᵀ.
    fn may_turn(&self) -> bool {
        let [_, _, c] = self.placements();
        let strides = (c.layout.col_stride, c.layout.row_stride);
        let (along, across) = match (self.writes_along_m(), strides) {
            (true, (columns, rows)) => (rows, columns),
            (false, strides) => strides,
        };
        along != 1 && across == 1
    }

    /// Whether the kernel can write C, or, `turned`, Cᵀ.
    pub fn writes(&self, turned: bool) -> bool {
        if self.kernel.is_none_or(|kernel| !kernel.c_by_tma_only) {
            return true;
        }
        let ([_, _, c], (m, n, _)) = (self.placements(), self.shape);
        let (c, along) = if turned != self.writes_along_m() {
            (c.transposed(), m)
        } else {
            (c, n)
        };
        let bytes = self.input.bytes() as usize;
        self.output.dtype(self.input).bytes() == self.input.bytes()
            && c.tma_reads(Major::K, bytes)
            && (along * bytes).is_multiple_of(16)
    }

    /// Whether the kernel can read the operands in place. Kernels without TMA can read all
    /// operands, unless they multiply parts of elements, or load lines through registers and there
    /// are none.
    pub fn reads_in_place(&self) -> bool {
        let Some(kernel) = self.kernel else {
            return true;
        };
        if kernel.input.parts() > 1 {
            return false;
        }
        if kernel.family != Family::Hopper {
            return true;
        }
        let (Some(a_major), Some(b_major)) = (kernel.a_major, kernel.b_major) else {
            panic!("hopper kernels have fixed layouts");
        };
        let [a, b, _] = self.placements();
        let bytes = self.input.bytes() as usize;
        let is_read = |operand: Placement, major| match kernel.loads_by_tma {
            true => operand.tma_reads(major, bytes),
            false => operand.has_lines(major),
        };
        let reads = |a: Placement, b: Placement| is_read(a, a_major) && is_read(b, b_major);
        self.writes(false) && reads(a, b.transposed())
            || self.may_turn() && self.writes(true) && reads(b.transposed(), a)
    }

    /// Checks that a forced kernel gets packed copies of exactly the operands that it
    /// cannot read.
    fn check_packing<T, O>(&self, plan: &Plan<T, O>) -> Result<(), String>
    where
        T: Element,
        O: Output<T>,
    {
        let PlanInfo::Gpu(info) = plan.info() else {
            return Ok(());
        };
        let packs = info.packed_a || info.packed_b;
        let (m, n, _) = self.shape;
        let is_empty = m == 0 || n == 0;
        let wanted = self.kernel.is_some() && !is_empty && !self.reads_in_place();
        let has_workspace = info.workspace_bytes > 0;
        // The workspace of stream-K and split-K is for accumulators, if any tile is shared.
        let is_right = match info.schedule {
            Schedule::StreamK | Schedule::SplitK => has_workspace || !packs,
            _ => has_workspace == packs,
        };
        if self.kernel.is_some() && packs != wanted || !is_right {
            return Err(format!(
                "A packed: {}, B packed: {}, {} bytes; should be packed: {wanted}",
                info.packed_a, info.packed_b, info.workspace_bytes
            ));
        }
        Ok(())
    }

    /// A generator of data that depends only on the seed and the name.
    pub fn random(&self, seed: u64) -> StdRng {
        let mut hasher = DefaultHasher::new();
        (seed, self.to_string()).hash(&mut hasher);
        StdRng::seed_from_u64(hasher.finish())
    }

    /// One element of A or B.
    pub fn draw<T: Element>(&self, random: &mut StdRng) -> T {
        T::from_f64(match self.data {
            Data::Uniform => reference::without_tie(random.random_range(-1.0..1.0)),
            Data::Integers => {
                let integer = random.random_range(1..=4);
                f64::from(if random.random() { integer } else { -integer })
            }
        })
    }
}

/// Why a case failed.
pub enum Failure {
    /// A result is wrong.
    Wrong(String),
    /// The library returned an error.
    Error(Error),
    /// The device had failed before.
    NotRun,
}

/// Whether no result after `error` can be trusted: an error of the driver, such as a fault
/// in a kernel, stays with the context, and a kernel that does not end stays on the device.
pub fn is_fatal(error: &Error) -> bool {
    matches!(
        error,
        Error::Driver { .. } | Error::TimedOut { .. } | Error::TuningTimedOut { .. }
    )
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

fn run_once<T: Element, O: Output<T>>(
    case: &Case,
    device: &Shared,
    seed: u64,
) -> Result<Outcome, Failure> {
    let operands = Operands::<T, O>::draw(case, seed);
    let found = device.turn(|device| {
        let mut resident = operands.upload(device)?;
        let mut plan = match (resident.plan(case, device), case.is_runnable()) {
            (Ok(plan), true) => plan,
            (Err(Error::KernelCannotRun { .. }), false) => return Ok(None),
            (Ok(_), false) => {
                return Err(Failure::Wrong("planned, but TMA cannot read it".into()));
            }
            (Err(error), _) => return Err(error.into()),
        };
        case.check_packing(&plan).map_err(Failure::Wrong)?;
        resident.run(&mut plan)?;
        Ok(Some(resident.read_back()?))
    })?;
    match found {
        None => Ok(Outcome::Refused),
        Some(found) => operands.check(case, &found).map(Outcome::Right),
    }
}
