//! All errors of the library in one enum. Each message names the argument, its value, and
//! the values that would be accepted.

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
        /// The GPUs that the machine has instead, or why it has none.
        found: String,
    },

    /// The installed driver lacks a function or a PTX version that this library needs.
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

    /// The GPU had not finished its work when the timeout expired. Later calls return
    /// this error too, until a wait succeeds. See
    /// [`Device::synchronize_within`](crate::Device::synchronize_within).
    #[error(
        "{device} was not done within {waited:?}; a kernel that hangs ends with the process, and \
         for one that is only slow, call synchronize_within again with more time"
    )]
    TimedOut {
        /// The device's name.
        device: String,
        /// The timeout.
        waited: Duration,
    },

    /// A launch of the tuner had not finished when its timeout expired. From then on, calls
    /// for this GPU return [`Error::TimedOut`].
    #[error(
        "{device} was not done within {waited:?} with kernel {kernel} for {}×{}×{}, order \
         {order}, schedule {schedule:?}, which the tuner measured; a kernel that hangs ends \
         with the process, and Tuner::wait_limit allows more time",
        shape.0, shape.1, shape.2
    )]
    TuningTimedOut {
        /// The device's name.
        device: String,
        /// The timeout of the launch.
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

    /// This library has no kernel that runs on a GPU.
    #[error(
        "{device} has compute capability {}.{}, for which this build of tilewise has no kernel: \
         {built}",
        compute_capability.0, compute_capability.1
    )]
    NoKernels {
        /// The device's name.
        device: String,
        /// Its compute capability, (major, minor).
        compute_capability: (u32, u32),
        /// The targets that the build has kernels for, or why it has none.
        built: String,
    },

    /// This library does not have the PTX of a kernel, or the PTX is damaged.
    #[error("kernel {kernel} has no PTX in this library ({found}); build the library again")]
    NoPtx {
        /// The entry point.
        kernel: &'static str,
        /// What is wrong with the PTX.
        found: String,
    },

    /// The driver's compiler refused a kernel.
    #[error("the driver could not compile kernel {kernel} (CUDA error {code}): {log}")]
    Compile {
        /// The entry point.
        kernel: &'static str,
        /// The `CUresult` of loading it.
        code: u32,
        /// The log of the compiler.
        log: String,
    },

    /// A tensor map could not be encoded.
    #[error("{operand}: no tensor map for {map} (CUDA error {code})")]
    TensorMap {
        /// The operand.
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

    /// Memory that the library does not own cannot begin at this address.
    #[error(
        "a matrix of {layout} at address {address:#x}; accepted: a multiple of {element_bytes} \
         bytes that is not 0, with the whole matrix below 2^64"
    )]
    Address {
        /// The address of element (0, 0).
        address: u64,
        /// Shape and strides of the view.
        layout: Layout,
        /// Bytes of an element.
        element_bytes: usize,
    },

    /// A slice of elements does not fill a matrix exactly.
    #[error(
        "{got} elements for {}{rows}×{cols} matri{}; accepted: {}",
        if *batches == 1 { "a ".to_owned() } else { format!("{batches} ") },
        if *batches == 1 { "x" } else { "ces" },
        batches.saturating_mul(rows.saturating_mul(*cols))
    )]
    ElementCount {
        /// Number of matrices.
        batches: usize,
        /// Rows of a matrix.
        rows: usize,
        /// Columns of a matrix.
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

    /// A slice asks for rows, columns or matrices that a view does not have.
    #[error(
        "{axis} {start}..{end} of a view with {len} {axis}; accepted: 0 <= start <= end <= {len}"
    )]
    SliceRange {
        /// `rows`, `columns` or `matrices`.
        axis: &'static str,
        /// First index asked for.
        start: usize,
        /// One past the last index asked for.
        end: usize,
        /// Number of rows, columns or matrices that the view has.
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
        /// (rows, columns) of C. If C does not exist yet, these are the rows of A and the
        /// columns of B.
        c: (usize, usize),
    },

    /// The numbers of matrices in A, B and C do not belong together.
    #[error(
        "A has {a} matrices, B has {b}, C has {c}; accepted: as many in A and in B as in C, or \
         1, which all products share"
    )]
    BatchMismatch {
        /// Matrices in A.
        a: usize,
        /// Matrices in B.
        b: usize,
        /// Matrices in C. If C does not exist yet, this is the larger of the other two.
        c: usize,
    },

    /// An epilogue, or an operand of one, cannot be as it is.
    #[error("{argument} is {found}; accepted: {accepted}")]
    Epilogue {
        /// The argument: a method of [`Epilogue`](crate::Epilogue) or of
        /// [`Inputs`](crate::Inputs).
        argument: &'static str,
        /// What was given.
        found: String,
        /// What would be accepted.
        accepted: &'static str,
    },

    /// An operand is on another device than the work.
    #[error("{operand} is on {found}; accepted: {expected}")]
    DeviceMismatch {
        /// The operand.
        operand: Operand,
        /// The operand's device.
        found: String,
        /// The device the work is for.
        expected: String,
    },

    /// The layout of an operand differs from the layout that the plan was made for.
    #[error("{operand} is {found}; accepted by this plan: {planned}")]
    PlanMismatch {
        /// The operand.
        operand: Operand,
        /// The layout of the given operand.
        found: Layout,
        /// The layout that was planned.
        planned: Layout,
    },

    /// The plan's kernel uses TMA, and an operand starts at an address that TMA cannot read.
    #[error(
        "{operand} starts at {address:#x}; kernel {kernel} of the plan accepts multiples of 16 \
         bytes, and Gemm::alignment plans for less"
    )]
    Misaligned {
        /// The operand.
        operand: Operand,
        /// Its address.
        address: u64,
        /// The kernel of the plan.
        kernel: &'static str,
    },

    /// An alignment is not a power of two.
    #[error("alignment = {bytes} bytes; accepted: a power of two")]
    Alignment {
        /// The argument of [`Gemm::alignment`](crate::Gemm::alignment).
        bytes: usize,
    },

    /// Lines cannot be divided into so many classes, whatever the problem.
    #[error("line_classes = {classes}; accepted: 1, 2, 4, 8")]
    LineClasses {
        /// The argument of [`Gemm::line_classes`](crate::Gemm::line_classes).
        classes: u32,
    },

    /// A dimension is larger than a kernel can index.
    #[error("{dimension} = {value}; accepted: at most {max}")]
    DimensionTooLarge {
        /// `M`, `N`, `K` or `batches`.
        dimension: &'static str,
        /// Its value.
        value: usize,
        /// The largest accepted.
        max: usize,
    },

    /// C has more tiles than a launch can number.
    #[error(
        "{tiles_m}×{tiles_n} tiles of {batches} product{} under {schedule:?}; accepted: {}",
        if *batches == 1 { "" } else { "s" },
        match schedule {
            Schedule::Grid2d => "at most 65535 along M and 2147483647 along N",
            Schedule::StreamK | Schedule::SplitK => "at most 2147483647 in all, and 4294967295 k-blocks in one wave",
            Schedule::Grid1d | Schedule::Persistent => "at most 2147483647 CTAs in all",
        }
    )]
    TooManyTiles {
        /// Tiles along M.
        tiles_m: u64,
        /// Tiles along N.
        tiles_n: u64,
        /// Number of products.
        batches: u64,
        /// The schedule of the launch.
        schedule: Schedule,
    },

    /// The forced kernel name is not the name of any kernel.
    #[error(
        "no kernel is named {name:?}; accepted: one of {} names, of which the most similar are {}",
        known.len(),
        most_similar(name, known).join(", ")
    )]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The names of all kernels.
        known: Vec<&'static str>,
    },

    /// The kernel that was forced by name cannot run the problem.
    #[error("kernel {kernel} cannot run this problem: {reason}")]
    KernelCannotRun {
        /// The kernel.
        kernel: &'static str,
        /// Why the kernel cannot run.
        reason: Rejection,
    },

    /// No kernel fits the request. The message names the nearest miss of each family.
    #[error("no kernel for {asked}: {}", rejections(rejected))]
    NoKernel {
        /// Element type, family and block asked for.
        asked: String,
        /// All kernels of that type, and why each cannot run.
        rejected: Vec<Rejected>,
    },

    /// A tile order was forced together with [`Schedule::Grid2d`], under which the hardware
    /// decides the order.
    #[error(
        "order {order} under schedule Grid2d, whose order is the hardware's; accepted there: \
         row, and {order} under Grid1d, Persistent, StreamK or SplitK"
    )]
    OrderIgnored {
        /// The order asked for.
        order: TileOrder,
    },

    /// [`Schedule::Grid2d`] was forced for more than one product. A 2-D grid has no
    /// dimension for a batch.
    #[error(
        "schedule Grid2d for {batches} products; accepted there: 1 product, and a batch under \
         Grid1d, Persistent, StreamK or SplitK"
    )]
    BatchedGrid2d {
        /// Number of products.
        batches: u32,
    },

    /// A precision was asked for that only f32 elements have.
    #[error("precision {precision} for elements of type {}; accepted: f32", input.name())]
    PrecisionIgnored {
        /// The element type of A and B.
        input: DType,
        /// The name of the [`Precision`](crate::Precision).
        precision: &'static str,
    },

    /// A kernel, block or precision was forced on the CPU device, which has no such choices.
    #[error("{what} cannot be forced on the CPU device; accepted there: an order, a schedule")]
    CpuHasNoKernels {
        /// The forced choice.
        what: String,
    },

    /// The stream is capturing a graph. Tuning has to run launches and wait for them, but a
    /// capture only records them.
    #[error("the stream is capturing, and tuning has to run and wait; tune before the capture")]
    TuningWhileCapturing,

    /// A plan with a workspace is to run on another stream than before, and has to wait for
    /// its run before, which is on [`Device::stream`](crate::Device::stream). But that
    /// stream is capturing a graph, so that no other stream can wait for it.
    #[error(
        "the plan's last run is on Device::stream, which is capturing; run the plan on another \
         stream before the capture, or after it"
    )]
    OrderWhileCapturing,

    /// On an emulated GPU, a kernel broke a rule of the PTX ISA, or its threads wait
    /// forever.
    #[cfg(feature = "emulator")]
    #[error("{}", lines(reports))]
    KernelBroken {
        /// The reports of the emulator, by CTA; there is at least one.
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

    /// Emulating a launch would take longer than the time limit.
    #[cfg(feature = "emulator")]
    #[error(
        "emulating kernel {kernel} would take about {estimate:.0?}; accepted: {limit:.0?}, or \
         what EmulatedGpu::time_limit says"
    )]
    EmulationTooLong {
        /// The kernel.
        kernel: &'static str,
        /// Estimated time of the emulation.
        estimate: Duration,
        /// The time limit.
        limit: Duration,
    },

    /// A field of the GPU to emulate is out of range.
    #[cfg(feature = "emulator")]
    #[error("EmulatedGpu::{field} is {value}; accepted: {accepted}")]
    InvalidEmulatedGpu {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The accepted values.
        accepted: &'static str,
    },

    /// A function for emulated GPUs was called with another device.
    #[cfg(feature = "emulator")]
    #[error("{device} is not emulated; accepted: a device of Device::emulated")]
    NotEmulated {
        /// The device's name.
        device: String,
    },
}

/// The reports, one per line.
#[cfg(feature = "emulator")]
fn lines(reports: &[tilewise_emulator::Report]) -> String {
    let reports: Vec<String> = reports.iter().map(ToString::to_string).collect();
    reports.join("\n")
}

/// The names that share most parts, between underscores, with `name`; the shortest first.
fn most_similar<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    const SHOWN: usize = 5;
    let parts: Vec<_> = name.split('_').collect();
    let lacks = |known: &str| {
        let shared = parts
            .iter()
            .filter(|part| known.split('_').any(|own| own == **part));
        parts.len() - shared.count()
    };
    let mut names = known.to_vec();
    names.sort_by_key(|known| (lacks(known), known.len()));
    names.truncate(SHOWN);
    names
}

/// The nearest miss of each family, as `name: reason; name: reason`.
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
