//! The interface between the library and a GPU.
//!
//! Every operation that the library needs from a GPU is a function of [`Backend`]. Work that
//! is *enqueued* may run after the call has returned. It runs in the order of a stream: the
//! library's own stream unless the call takes another.

use std::ffi::c_void;
use std::fmt;

use gpu_kernels::{Form, GemmParams, KernelInfo, TensorMaps};

use super::current::Current;
use super::placement::Placement;
use super::stream::CudaStream;
use super::tensor_map::{EncodedMap, TensorMapSpec};
use crate::error::Error;
use crate::operand::Operand;
use crate::problem::Catalog;

/// A GPU of the CUDA driver, or an emulated one.
pub(crate) trait Backend: Send + Sync {
    /// The kernels that can be loaded on this GPU.
    fn catalog(&self) -> Catalog<'static>;

    /// Makes the GPU's context current on the calling thread. Every other call needs it.
    fn make_current(&self) -> Result<Current, Error>;

    /// Allocates `bytes` bytes, at least one, at a multiple of 256, for work on the streams
    /// that `streams` names. Returns `None` if there is not enough memory.
    fn allocate(&self, bytes: usize, streams: Streams) -> Result<Option<Allocation>, Error>;

    /// Number of free bytes.
    fn free_bytes(&self) -> Result<u64, Error>;

    /// Frees an allocation.
    ///
    /// # Safety
    /// The allocation is from [`Backend::allocate`] and is freed once. No enqueued work uses
    /// it, except work on the library's own stream if the allocation is ordered.
    unsafe fn free(&self, allocation: Allocation);

    /// Enqueues zeros for `bytes` bytes at `address` on `stream`, or on the library's own.
    ///
    /// # Safety
    /// The bytes lie in one allocation, and `stream` belongs to the GPU's context.
    unsafe fn zero(
        &self,
        stream: Option<CudaStream>,
        address: u64,
        bytes: usize,
    ) -> Result<(), Error>;

    /// Enqueues a fill of `lines` with one value.
    ///
    /// # Safety
    /// All of `lines` lies in one allocation.
    unsafe fn fill(&self, lines: Lines, value: Pattern) -> Result<(), Error>;

    /// Enqueues a copy of `from` to `address`; `from` has been read when this returns.
    ///
    /// # Safety
    /// The bytes at `address` lie in one allocation.
    unsafe fn write(&self, address: u64, from: &[u8]) -> Result<(), Error>;

    /// Enqueues a copy of the bytes at `address` to `to`.
    ///
    /// # Safety
    /// The bytes at `address` lie in one allocation. `to` is not used before
    /// [`Backend::synchronize`] has returned.
    unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error>;

    /// Marks `bytes` bytes at `address` as undefined. The emulator then reports a kernel
    /// that reads them before a kernel has written them; on a GPU this call does nothing.
    fn leave_undefined(&self, _address: u64, _bytes: u64) {}

    /// The tensor map of `spec` at device address `address`, a multiple of 16. `operand`
    /// is only for the error.
    fn encode(
        &self,
        operand: Operand,
        spec: &TensorMapSpec,
        address: u64,
    ) -> Result<EncodedMap, Error>;

    /// Loads a kernel of the catalog for launches of `form`, unless it is loaded already.
    /// Threads may load different kernels at once.
    fn load(&self, kernel: &KernelInfo, form: &Form) -> Result<Function, Error>;

    /// Enqueues a launch on `stream`, or on the library's own.
    ///
    /// # Safety
    /// `function` is from [`Backend::load`] of this GPU, for the form of `params`. `params` describes live
    /// allocations of this GPU, which stay allocated until the stream has finished. `stream`
    /// belongs to the GPU's context.
    unsafe fn launch(
        &self,
        stream: Option<CudaStream>,
        function: &Function,
        config: LaunchConfig,
        params: &GemmParams,
        maps: &TensorMaps,
    ) -> Result<(), Error>;

    /// Which clusters of a launch share a GPC; measured, if need be.
    fn placement(&self) -> Placement;

    /// An event, by which streams wait for each other.
    fn event(&self) -> Result<Box<dyn Event>, Error>;

    /// A timer for work on the stream.
    fn timer(&self) -> Result<Box<dyn Timer>, Error>;

    /// Waits until the stream has finished all work.
    fn synchronize(&self) -> Result<(), Error>;

    /// Whether the stream has finished all work.
    fn is_done(&self) -> Result<bool, Error>;

    /// The number of the capture if `stream`, or the library's own, records a graph instead
    /// of running.
    fn capture(&self, stream: Option<CudaStream>) -> Result<Option<u64>, Error>;

    /// The number of `stream`, which no other stream of the process has; `None` if the
    /// driver gives none.
    fn stream_number(&self, stream: CudaStream) -> Result<Option<u64>, Error>;

    /// The driver's handle of the stream; `None` where no driver is involved.
    fn stream(&self) -> Option<CudaStream>;

    /// The stream as a `cust` type.
    #[cfg(feature = "cust")]
    fn cust_stream(&self) -> Option<&cust::stream::Stream> {
        None
    }

    /// Whether this is the emulator.
    #[cfg(feature = "emulator")]
    fn is_emulated(&self) -> bool {
        false
    }

    /// The emulator's counts of the last launch.
    #[cfg(feature = "emulator")]
    fn counts(&self) -> Option<tilewise_emulator::Counts> {
        None
    }
}

/// A place in the work of streams. The GPU's context is current at every call, and `None` is
/// the library's own stream.
pub(crate) trait Event: Send + Sync + fmt::Debug {
    /// Enqueues the event on `stream`.
    fn record(&self, stream: Option<CudaStream>) -> Result<(), Error>;
    /// Makes all work that is enqueued on `stream` from now on wait for the event.
    fn make_wait(&self, stream: Option<CudaStream>) -> Result<(), Error>;
    /// Waits for the event on the calling thread.
    fn synchronize(&self) -> Result<(), Error>;
}

/// Two events on the stream of a GPU. The GPU's context is current at every call.
pub(crate) trait Timer: Send + Sync + fmt::Debug {
    /// Enqueues the start.
    fn start(&self) -> Result<(), Error>;
    /// Enqueues the stop.
    fn stop(&self) -> Result<(), Error>;
    /// Milliseconds between the two events, which must have happened. On an emulated GPU,
    /// this is a number that grows with the instructions executed.
    fn milliseconds(&self) -> Result<f32, Error>;
}

/// The streams whose work uses an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    /// The library's own, or a stream that the caller of the library orders behind it.
    Own,
    /// Any stream at once.
    Any,
}

/// Memory of a GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) address: u64,
    /// Whether it is freed in the order of the library's own stream. Then it may be freed
    /// while work on that stream still uses it.
    pub(crate) is_ordered: bool,
}

/// A loaded kernel, valid while its GPU is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// The kernel that was loaded.
    pub(crate) kernel: KernelInfo,
    /// CTAs that one SM holds at once.
    pub(crate) ctas_per_sm: u32,
    /// Clusters that the GPU holds at once; `None` for a kernel without clusters.
    pub(crate) clusters_at_once: Option<u32>,
    /// The backend's handle of the function.
    pub(super) handle: FunctionHandle,
}

/// A function's handle; its meaning depends on the backend.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionHandle(pub(super) *mut c_void);

// SAFETY: driver handles, and functions, may be used from any thread.
unsafe impl Send for FunctionHandle {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for FunctionHandle {}

/// The part of the launch configuration that the kernel's constants do not fix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchConfig {
    /// CTAs along x and y. For a kernel with clusters, x is a multiple of the cluster's
    /// CTAs.
    pub(crate) ctas: (u32, u32),
    /// Whether the grid may start while the previous kernel in the stream still runs. The
    /// kernel then waits for it with `griddepcontrol.wait`.
    pub(crate) overlaps: bool,
}

/// Lines of contiguous elements at a pitch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Address of the first element.
    pub(crate) address: u64,
    /// Number of elements per line.
    pub(crate) length: usize,
    /// Number of lines.
    pub(crate) count: usize,
    /// Bytes from one line to the next.
    pub(crate) pitch_bytes: usize,
}

/// The bits of one element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern {
    /// An element of two bytes.
    Two(u16),
    /// An element of four bytes.
    Four(u32),
}
