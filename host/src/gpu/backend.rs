//! The seam between the library and a GPU.
//!
//! Everything that the library asks of a GPU is a function of [`Backend`]. All of it
//! happens in the order of one stream; what is *enqueued* may happen after the call
//! has returned.

use std::ffi::c_void;
use std::fmt;

use gpu_kernels::{GemmParams, KernelInfo};

use super::tensor_map::{EncodedMap, TensorMapSpec};
use crate::error::Error;
use crate::operand::Operand;
use crate::problem::Catalog;

/// A GPU of the CUDA driver, or an emulated one.
pub(crate) trait Backend: Send + Sync {
    /// The kernels that this GPU can be given.
    fn catalog(&self) -> Catalog<'static>;

    /// Makes the GPU's context the calling thread's. Every other call comes after it.
    fn make_current(&self) -> Result<(), Error>;

    /// Allocates `bytes`, at least one, at a multiple of 256; `None` where there is not
    /// enough memory.
    fn allocate(&self, bytes: usize) -> Result<Option<u64>, Error>;

    /// Bytes that could be allocated.
    fn free_bytes(&self) -> Result<u64, Error>;

    /// Frees an allocation.
    ///
    /// # Safety
    /// `address` is from [`Backend::allocate`], is freed once, and nothing enqueued uses it.
    unsafe fn free(&self, address: u64);

    /// Enqueues zeros for `bytes` at `address`.
    ///
    /// # Safety
    /// They lie in one allocation.
    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), Error>;

    /// Enqueues copies of one element.
    ///
    /// # Safety
    /// All of `lines` lies in one allocation.
    unsafe fn fill(&self, lines: Lines, value: Pattern) -> Result<(), Error>;

    /// Enqueues a copy of `from` to `address`; `from` has been read when this returns.
    ///
    /// # Safety
    /// As many bytes lie there, in one allocation.
    unsafe fn write(&self, address: u64, from: &[u8]) -> Result<(), Error>;

    /// Enqueues a copy of the bytes at `address` to `to`.
    ///
    /// # Safety
    /// As many bytes lie there, in one allocation. `to` is not touched before
    /// [`Backend::synchronize`] has returned.
    unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error>;

    /// Says that the library has put nothing into `bytes` at `address` that a kernel may
    /// count on. The emulator reports a kernel that reads them before one has written
    /// them; to a GPU it makes no difference.
    fn leave_undefined(&self, _address: u64, _bytes: u64) {}

    /// The tensor map of `spec` at device address `address`, a multiple of 16. `operand`
    /// is for the error.
    fn encode(
        &self,
        operand: Operand,
        spec: &TensorMapSpec,
        address: u64,
    ) -> Result<EncodedMap, Error>;

    /// Loads a kernel of the catalog, unless it is loaded. Threads may load different
    /// kernels at once.
    fn load(&self, kernel: &KernelInfo) -> Result<Function, Error>;

    /// Enqueues a launch.
    ///
    /// # Safety
    /// `function` is from [`Backend::load`] of this GPU, and `params` describes live
    /// allocations there, which nobody frees before the stream is through.
    unsafe fn launch(
        &self,
        function: &Function,
        config: LaunchConfig,
        params: &GemmParams,
    ) -> Result<(), Error>;

    /// A timer for work on the stream.
    fn timer(&self) -> Result<Box<dyn Timer>, Error>;

    /// Waits until the stream is through.
    fn synchronize(&self) -> Result<(), Error>;

    /// Whether the stream is through.
    fn is_done(&self) -> Result<bool, Error>;

    /// Whether the stream records a graph instead of running.
    fn is_capturing(&self) -> Result<bool, Error>;

    /// The driver's handle of the stream; `None` where no driver is involved.
    fn stream(&self) -> Option<CudaStream>;

    /// The same as `cust` has it.
    #[cfg(feature = "cust")]
    fn cust_stream(&self) -> Option<&cust::stream::Stream> {
        None
    }

    /// Whether this is the emulator.
    #[cfg(feature = "emulator")]
    fn is_emulated(&self) -> bool {
        false
    }

    /// What the emulator counted in the last launch.
    #[cfg(feature = "emulator")]
    fn counts(&self) -> Option<tilewise_emulator::Counts> {
        None
    }
}

/// Two events on the stream of a GPU, whose context is current at every call.
pub(crate) trait Timer: Send + Sync + fmt::Debug {
    /// Enqueues the start.
    fn start(&self) -> Result<(), Error>;
    /// Enqueues the stop.
    fn stop(&self) -> Result<(), Error>;
    /// Milliseconds between the two, which have happened. Of an emulated GPU: a number
    /// that grows with the instructions executed.
    fn milliseconds(&self) -> Result<f32, Error>;
}

/// A loaded kernel, valid while its GPU is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// What it was loaded from.
    pub(crate) kernel: KernelInfo,
    /// CTAs that one SM holds at once.
    pub(crate) ctas_per_sm: u32,
    /// What the backend knows it by.
    pub(super) handle: FunctionHandle,
}

/// A function's handle, which only the backend that gave it understands.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionHandle(pub(super) *mut c_void);

// SAFETY: driver handles, and functions, may be used from any thread.
unsafe impl Send for FunctionHandle {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for FunctionHandle {}

/// The launch configuration that a kernel's constants leave open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchConfig {
    /// CTAs along x and y. For a kernel with clusters x is a multiple of the cluster.
    pub(crate) ctas: (u32, u32),
    /// Whether the grid may start, and wait by itself, while the kernel ahead of it
    /// in the stream still runs. Its kernel executes `griddepcontrol.wait`.
    pub(crate) overlaps: bool,
}

/// Lines of contiguous elements at a pitch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Of the first element.
    pub(crate) address: u64,
    /// Elements of a line.
    pub(crate) length: usize,
    /// Lines.
    pub(crate) count: usize,
    /// Bytes from one line to the next.
    pub(crate) pitch_bytes: usize,
}

/// The bits of one element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern {
    /// Of two bytes.
    Two(u16),
    /// Of four bytes.
    Four(u32),
}

/// A stream of the CUDA driver, for calls of the driver of your own: the handle that its
/// API names `CUstream`. Valid as long as the device it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaStream(pub(super) *mut c_void);

impl CudaStream {
    /// The driver's handle.
    pub fn as_raw(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}
