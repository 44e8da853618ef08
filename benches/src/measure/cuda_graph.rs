//! CUDA graphs, which `cust` does not wrap: the work given to a stream, to be read back or
//! repeated (CUDA driver API, "Graph Management"; PyTorch's `torch.cuda.graph` is the same
//! tool).

use crate::error::{Error, driver};
use cust::stream::Stream;
use cust::sys;
use std::mem::MaybeUninit;
use std::ptr;

/// A captured graph; null where the capture failed.
pub struct Graph(sys::CUgraph);

impl Graph {
    /// Records what `enqueue` puts on `stream`; nothing of it runs. The stream
    /// is no longer capturing afterwards, whatever happened.
    ///
    /// # Errors
    /// `enqueue` failed, or did what cannot be captured, such as waiting.
    pub fn captured(
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives; the capture ends below, whatever happens.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) };
        driver("cuStreamBeginCapture", begun)?;
        let enqueued = enqueue();
        let mut graph = Graph(ptr::null_mut());
        // SAFETY: the stream is capturing; the handle outlives the call.
        let ended = unsafe { sys::cuStreamEndCapture(stream.as_inner(), &mut graph.0) };
        enqueued?;
        driver("cuStreamEndCapture", ended)?;
        Ok(graph)
    }

    /// The parameters of its kernel node, the only node there is. Their
    /// arguments live as long as the graph.
    ///
    /// # Errors
    /// It has another number of nodes, or one of another kind.
    pub fn only_kernel(&self) -> Result<sys::CUDA_KERNEL_NODE_PARAMS, Error> {
        // Room for one more than there should be.
        let (mut nodes, mut count) = ([ptr::null_mut(); 2], 2);
        // SAFETY: the graph lives; there is room for `count` nodes.
        let listed = unsafe { sys::cuGraphGetNodes(self.0, nodes.as_mut_ptr(), &mut count) };
        driver("cuGraphGetNodes", listed)?;
        if count != 1 {
            return Err(Error::Usage(format!(
                "a run enqueues {count} things, not 1"
            )));
        }
        let mut parameters = MaybeUninit::uninit();
        // SAFETY: a node of the graph (one of another kind is answered by an
        // error); the parameters outlive the call.
        let read = unsafe { sys::cuGraphKernelNodeGetParams(nodes[0], parameters.as_mut_ptr()) };
        driver("cuGraphKernelNodeGetParams", read)?;
        // SAFETY: the call succeeded and has written them.
        Ok(unsafe { parameters.assume_init() })
    }

    /// Makes it ready to be launched into `stream`. The executable graph outlives this one.
    ///
    /// # Errors
    /// The driver refuses, or is too old (before CUDA 11.4).
    pub fn instantiate<'s>(&self, stream: &'s Stream) -> Result<Executable<'s>, Error> {
        let mut executable = Executable {
            handle: ptr::null_mut(),
            stream,
        };
        // SAFETY: the graph lives; the handle outlives the call.
        let instantiated =
            unsafe { sys::cuGraphInstantiateWithFlags(&mut executable.handle, self.0, 0) };
        driver("cuGraphInstantiateWithFlags", instantiated)?;
        Ok(executable)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: destroyed once. A failure would leak a few bytes.
            unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

/// An instantiated graph, and the stream it is launched into; null where it
/// could not be instantiated.
pub struct Executable<'s> {
    handle: sys::CUgraphExec,
    stream: &'s Stream,
}

impl Executable<'_> {
    /// Enqueues the whole graph again.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Safety
    /// The memory that the captured launches read and write must live until the stream has
    /// run them.
    pub unsafe fn launch(&self) -> Result<(), Error> {
        // SAFETY: the handle lives; the rest is the caller's duty.
        let launched = unsafe { sys::cuGraphLaunch(self.handle, self.stream.as_inner()) };
        driver("cuGraphLaunch", launched)
    }
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: destroyed once; the driver keeps what still runs. A
            // failure would leak a few bytes.
            unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}
