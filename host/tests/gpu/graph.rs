//! CUDA graphs: capture and replay (CUDA driver
//! API, "Graph Management").

use std::ptr;

use tilewise::{Device, Error};

use crate::case::Failure;
use crate::driver::sys::{self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};
use crate::driver::{self, check};

/// A CUDA graph of the work of a stream, ready to be replayed.
pub struct Graph<'d> {
    device: &'d Device,
    stream: CUstream,
    graph: CUgraph,
    executable: CUgraphExec,
}

impl<'d> Graph<'d> {
    /// Records what `enqueue` puts on the stream of `device`, a GPU. Any call
    /// that waits, or allocates, would break the capture and so fail it.
    pub fn captured(
        device: &'d Device,
        enqueue: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        Graph::captured_on(device, driver::stream(device), enqueue)
    }

    /// The same for any stream of the device. Launches go to that stream, too.
    pub fn captured_on(
        device: &'d Device,
        stream: CUstream,
        enqueue: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        Graph::capture(device, stream, enqueue).map_err(|failure| match failure {
            // An operation that is refused in a capture leaves the device unchanged.
            Failure::Error(error @ Error::Driver { .. }) => {
                Failure::Wrong(format!("not captured: {error}"))
            }
            other => other,
        })
    }

    fn capture(
        device: &'d Device,
        stream: CUstream,
        enqueue: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        device.make_current()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: the stream lives; the capture ends below, whatever happens.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(stream, mode) };
        check("cuStreamBeginCapture", begun)?;
        let enqueued = enqueue();
        let mut captured = Graph {
            device,
            stream,
            graph: ptr::null_mut(),
            executable: ptr::null_mut(),
        };
        // SAFETY: the stream is capturing; the handle outlives the call.
        let ended = unsafe { sys::cuStreamEndCapture(stream, &mut captured.graph) };
        enqueued?;
        check("cuStreamEndCapture", ended)?;
        // SAFETY: the graph was just captured; the handle outlives the call.
        let instantiated = unsafe {
            sys::cuGraphInstantiateWithFlags(&mut captured.executable, captured.graph, 0)
        };
        check("cuGraphInstantiateWithFlags", instantiated)?;
        Ok(captured)
    }

    /// Number of launches, copies and fills in the graph.
    pub fn nodes(&self) -> Result<usize, Error> {
        let mut count = 0;
        // SAFETY: the graph lives; without a list, nodes are only counted.
        let counted = unsafe { sys::cuGraphGetNodes(self.graph, ptr::null_mut(), &mut count) };
        check("cuGraphGetNodes", counted)?;
        Ok(count)
    }

    /// Enqueues all of it again.
    ///
    /// # Safety
    /// The memory that the graph uses is still allocated.
    pub unsafe fn launch(&self) -> Result<(), Error> {
        self.device.make_current()?;
        // SAFETY: the graph was instantiated in this context; the rest is the
        // caller's duty.
        let launched = unsafe { sys::cuGraphLaunch(self.executable, self.stream) };
        check("cuGraphLaunch", launched)
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: each is destroyed once, if it came to be; the driver keeps
        // what is still running. A failure would leak a few bytes.
        unsafe {
            if !self.executable.is_null() {
                sys::cuGraphExecDestroy(self.executable);
            }
            if !self.graph.is_null() {
                sys::cuGraphDestroy(self.graph);
            }
        }
    }
}
