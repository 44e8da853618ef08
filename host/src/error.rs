//! What can go wrong: one enum; each variant names the argument, the value it
//! has, and what would be accepted.

use std::time::Duration;

use gpu_kernels::{DType, Schedule, TileOrder};

use crate::layout::Layout;
use crate::operand::Operand;
use crate::rejection::{Rejected, Rejection, nearest_misses};

/// Every error this library returns.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The GPU asked for does not exist, or there is no driver at all.
    #[error("no GPU {ordinal}: {found}")]
    NoDevice {
        /// The GPU asked for.
        ordinal: usize,
        /// What the machine has instead.
        found: String,
    },

    /// The installed driver cannot run what this library asks for.
    #[error("the driver (for CUDA {}.{}) is too old: it has no {lacks}", driver.0, driver.1)]
    DriverTooOld {
        /// The newest CUDA version the driver supports, (major, minor).
        driver: (u32, u32),
        /// The function or the PTX ISA version it lacks.
        lacks: String,
    },

    /// A driver call failed for a reason that no other variant covers.
    #[error("{call} failed with CUDA error {code} ({name})")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// Its `CUresult`.
        code: u32,
        /// The name of that code.
        name: String,
    },

    /// The GPU had not done its work when the time for it was up; or, of any
    /// later call, it was not done then and has not been asked again. See
    /// [`Device::synchronize_within`](crate::Device::synchronize_within).
    #[error(
        "{device} was not done within {waited:?}; a kernel that hangs ends with the process, and \
         for one that is only slow, call synchronize_within again with more time"
    )]
    TimedOut {
        /// The device's name.
        device: String,
        /// The time it had.
        waited: Duration,
    },

    /// A launch of the tuner had not ended when the time for it was up. From then
    /// on, calls for this GPU answer [`Error::TimedOut`].
    #[error(
        "{device} was not done within {waited:?} with kernel {kernel} for {}×{}×{}, order \
         {order}, schedule {schedule:?}, which the tuner measured; a kernel that hangs ends \
         with the process, and Tuner::wait_limit allows more time",
        shape.0, shape.1, shape.2
    )]
    TuningTimedOut {
        /// The device's name.
        device: String,
        /// The time the launch had.
        waited: Duration,
        /// The kernel.
        kernel: &'static str,
        /// M, N, K of the product.
        shape: (usize, usize, usize),
        /// The tile order.
        order: TileOrder,
        /// The schedule.
        schedule: Schedule,
    },

    /// This library does not have the PTX of a kernel, or not whole.
    #[error("kernel {kernel} has no PTX in this library ({found}); build the library again")]
    NoPtx {
        /// The entry point.
        kernel: &'static str,
        /// What the library has instead.
        found: String,
    },

    /// The driver's compiler refused a kernel.
    #[error("the driver could not compile kernel {kernel} (CUDA error {code}): {log}")]
    Compile {
        /// The entry point.
        kernel: &'static str,
        /// The `CUresult` of loading it.
        code: u32,
        /// The compiler's own words.
        log: String,
    },

    /// A tensor map could not be encoded.
    #[error("{operand}: no tensor map for {map} (CUDA error {code})")]
    TensorMap {
        /// Which.
        operand: Operand,
        /// The map, in words.
        map: String,
        /// The `CUresult` of encoding it.
        code: u32,
    },

    /// The device cannot hold an allocation.
    #[error("out of memory on {device}: {wanted} bytes wanted, {free} bytes free")]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free on the device.
        free: u64,
    },

    /// A matrix has more bytes than an address can count.
    #[error("a matrix of {layout} has too many bytes; accepted: at most 2^63 - 1")]
    SizeOverflow {
        /// Its shape and strides.
        layout: Layout,
    },

    /// A slice of elements does not fill a matrix exactly.
    #[error("{got} elements for a {rows}×{cols} matrix; accepted: {}", rows.saturating_mul(*cols))]
    ElementCount {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
        /// Elements given.
        got: usize,
    },

    /// A view reaches past the end of its allocation.
    #[error(
        "a view of {layout}, starting at element {offset}, leaves its allocation; accepted: \
         within its {elements} elements"
    )]
    OutOfBounds {
        /// Shape and strides of the view.
        layout: Layout,
        /// Elements between the allocation's start and the view's.
        offset: usize,
        /// Elements of the allocation.
        elements: usize,
    },

    /// A slice asks for rows or columns that a view does not have.
    #[error(
        "{axis} {start}..{end} of a view with {len} {axis}; accepted: 0 <= start <= end <= {len}"
    )]
    SliceRange {
        /// `rows` or `columns`.
        axis: &'static str,
        /// First index asked for.
        start: usize,
        /// One past the last index asked for.
        end: usize,
        /// How many there are.
        len: usize,
    },

    /// A step of zero would repeat one element for ever.
    #[error("a step of 0 along {axis}; accepted: at least 1")]
    ZeroStep {
        /// `rows` or `columns`.
        axis: &'static str,
    },

    /// Two elements of a matrix that is written share an address.
    #[error(
        "two elements of a matrix of {layout} share an address; accepted where it is written: \
         strides that keep all apart"
    )]
    Aliasing {
        /// Its shape and strides.
        layout: Layout,
    },

    /// The shapes of A, B and C do not belong together.
    #[error(
        "A is {}×{}, B is {}×{}, C is {}×{}; accepted: A M×K, B K×N, C M×N",
        a.0, a.1, b.0, b.1, c.0, c.1
    )]
    ShapeMismatch {
        /// (rows, columns) of A.
        a: (usize, usize),
        /// (rows, columns) of B.
        b: (usize, usize),
        /// (rows, columns) of C; for a product whose C is not there yet, what
        /// A and B ask for.
        c: (usize, usize),
    },

    /// An operand lives on another device.
    #[error("{operand} is on {found}; accepted: {expected}")]
    DeviceMismatch {
        /// Which.
        operand: Operand,
        /// The operand's device.
        found: String,
        /// The device the work is for.
        expected: String,
    },

    /// An operand differs from the one its plan was made for.
    #[error("{operand} is {found}; accepted by this plan: {planned}")]
    PlanMismatch {
        /// Which.
        operand: Operand,
        /// What was given.
        found: Layout,
        /// What was planned.
        planned: Layout,
    },

    /// An operand of a plan through TMA starts at an address TMA cannot read.
    #[error(
        "{operand} starts at {address:#x}; kernel {kernel} of the plan accepts multiples of 16 \
         bytes, and Gemm::alignment plans for less"
    )]
    Misaligned {
        /// Which.
        operand: Operand,
        /// Its address.
        address: u64,
        /// The kernel of the plan.
        kernel: &'static str,
    },

    /// An alignment that no address can have.
    #[error("alignment = {bytes} bytes; accepted: a power of two")]
    Alignment {
        /// What [`Gemm::alignment`](crate::Gemm::alignment) was given.
        bytes: usize,
    },

    /// A dimension is past what a kernel can index.
    #[error("{dimension} = {value}; accepted: at most {max}")]
    DimensionTooLarge {
        /// `M`, `N` or `K`.
        dimension: &'static str,
        /// Its value.
        value: usize,
        /// The largest accepted.
        max: usize,
    },

    /// C has more tiles than a launch can number.
    #[error(
        "{tiles_m}×{tiles_n} tiles under {schedule:?}; accepted: {}",
        match schedule {
            Schedule::Grid2d => "at most 65535 along M and 2147483647 along N",
            Schedule::StreamK => "at most 2147483647 in all, and 4294967295 k-blocks in one wave",
            Schedule::Grid1d | Schedule::Persistent => "at most 2147483647 CTAs in all",
        }
    )]
    TooManyTiles {
        /// Tiles along M.
        tiles_m: u64,
        /// Tiles along N.
        tiles_n: u64,
        /// The schedule that should number them.
        schedule: Schedule,
    },

    /// A forced kernel name that no kernel has.
    #[error("no kernel is named {name:?}; accepted: {}", known.join(", "))]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// Every name there is.
        known: Vec<&'static str>,
    },

    /// A kernel asked for by name that cannot run the problem.
    #[error("kernel {kernel} cannot run this problem: {reason}")]
    KernelCannotRun {
        /// The kernel.
        kernel: &'static str,
        /// What it asks for, and what it got.
        reason: Rejection,
    },

    /// No kernel fits what was asked for. The message names the nearest miss
    /// of each family.
    #[error("no kernel for {asked}: {}", rejections(rejected))]
    NoKernel {
        /// Element type, family and block asked for.
        asked: String,
        /// All kernels of that type, and why each cannot run.
        rejected: Vec<Rejected>,
    },

    /// A tile order was forced on a schedule that takes its order from the
    /// hardware.
    #[error(
        "order {order} under schedule Grid2d, whose order is the hardware's; accepted there: \
         row, and {order} under Grid1d, Persistent or StreamK"
    )]
    OrderIgnored {
        /// The order asked for.
        order: TileOrder,
    },

    /// TF32 is a way to multiply f32, not other types.
    #[error("precision Tf32 for elements of type {}; accepted: f32", input.name())]
    PrecisionIgnored {
        /// The element type of A and B.
        input: DType,
    },

    /// A kernel, block or precision was forced on the CPU device, which has none to
    /// choose from.
    #[error("{what} cannot be forced on the CPU device; accepted there: an order, a schedule")]
    CpuHasNoKernels {
        /// What was forced.
        what: String,
    },

    /// Tuning measures on the stream, which a graph capture only records.
    #[error("the stream is capturing, and tuning has to run and wait; tune before the capture")]
    TuningWhileCapturing,

    /// New addresses would change the tensor maps inside a graph capture.
    #[error(
        "the stream is capturing, and kernel {kernel} would have to copy new tensor maps; \
         run the plan once on the same matrices before the capture"
    )]
    Capturing {
        /// The kernel of the plan.
        kernel: &'static str,
    },

    /// A kernel broke a rule of the PTX ISA on an emulated GPU, or its threads wait for
    /// ever: what the emulator found.
    #[cfg(feature = "emulator")]
    #[error("{}", lines(reports))]
    KernelBroken {
        /// At least one report, by CTA.
        reports: Vec<tilewise_emulator::Report>,
    },

    /// The emulator cannot run a launch.
    #[cfg(feature = "emulator")]
    #[error("kernel {kernel} cannot be emulated: {reason}")]
    CannotEmulate {
        /// The kernel.
        kernel: &'static str,
        /// Why.
        reason: String,
    },

    /// A launch would be emulated for longer than is allowed.
    #[cfg(feature = "emulator")]
    #[error(
        "emulating kernel {kernel} would take about {estimate:.0?}; accepted: {limit:.0?}, or \
         what EmulatedGpu::time_limit says"
    )]
    EmulationTooLong {
        /// The kernel.
        kernel: &'static str,
        /// About how long it would take.
        estimate: Duration,
        /// What is allowed.
        limit: Duration,
    },

    /// A GPU to emulate that there cannot be.
    #[cfg(feature = "emulator")]
    #[error("EmulatedGpu::{field} is {value}; accepted: {accepted}")]
    InvalidEmulatedGpu {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What is accepted.
        accepted: &'static str,
    },

    /// Something that is for emulated GPUs alone was asked of another device.
    #[cfg(feature = "emulator")]
    #[error("{device} is not emulated; accepted: a device of Device::emulated")]
    NotEmulated {
        /// The device's name.
        device: String,
    },
}

/// One report below the other.
#[cfg(feature = "emulator")]
fn lines(reports: &[tilewise_emulator::Report]) -> String {
    let reports: Vec<String> = reports.iter().map(ToString::to_string).collect();
    reports.join("\n")
}

/// `name: reason; name: reason`, one a family.
fn rejections(rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return "the library has none".into();
    }
    let lines: Vec<_> = nearest_misses(rejected)
        .iter()
        .map(|miss| format!("{}: {}", miss.kernel, miss.reason))
        .collect();
    lines.join("; ")
}
