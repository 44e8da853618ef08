//! The [`Backend`] of the CUDA driver. Each function is one call of the driver.

use std::ffi::c_void;

use gpu_kernels::{Form, GemmParams, KernelInfo, TensorMaps};

use super::binding::{
    self, CUstream, CUstreamCaptureStatus_enum as CaptureStatus, cudaError_enum as Code,
};
use super::capture_mode;
use super::event::OrderEvent;
use super::libcuda::Entry;
use super::open::DriverGpu;
use super::timer::EventTimer;
use super::{check, context, failure, launch, module, placement, tensor_map};
use crate::error::Error;
use crate::gpu::backend::{
    Allocation, Backend, Event, Function, LaunchConfig, Lines, Pattern, Streams, Timer,
};
use crate::gpu::current::Current;
use crate::gpu::placement::Placement;
use crate::gpu::stream::CudaStream;
use crate::gpu::tensor_map::{EncodedMap, TensorMapSpec};
use crate::operand::Operand;
use crate::problem::Catalog;

impl Backend for DriverGpu {
    fn catalog(&self) -> Catalog<'static> {
        Catalog::embedded()
    }

    fn make_current(&self) -> Result<Current, Error> {
        context::make_current(self.context.as_raw())
    }

    fn allocate(&self, bytes: usize, streams: Streams) -> Result<Option<Allocation>, Error> {
        if let Some(allocation) = self.try_allocate(bytes, streams)? {
            return Ok(Some(allocation));
        }
        let Some(pool) = &self.pool else {
            return Ok(None);
        };
        // The pool may hold what is missing, some of it until the stream has finished.
        Backend::synchronize(self)?;
        pool.trim();
        self.try_allocate(bytes, streams)
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        let result = unsafe { binding::cuMemGetInfo_v2(&mut free, &mut total) };
        check("cuMemGetInfo", result).map(|()| free as u64)
    }

    unsafe fn free(&self, allocation: Allocation) {
        let Allocation {
            address,
            is_ordered,
        } = allocation;
        match &self.pool {
            // SAFETY: the caller ensures it.
            Some(pool) if is_ordered => unsafe { pool.free(address, DriverGpu::stream(self)) },
            // SAFETY: the caller ensures it. A failure would come from an earlier call.
            _ => drop(unsafe { binding::cuMemFree_v2(address) }),
        }
    }

    unsafe fn zero(
        &self,
        stream: Option<CudaStream>,
        address: u64,
        bytes: usize,
    ) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        check("cuMemsetD8Async", unsafe {
            binding::cuMemsetD8Async(address, 0, bytes, self.handle(stream))
        })
    }

    unsafe fn fill(&self, lines: Lines, value: Pattern) -> Result<(), Error> {
        let Lines {
            address,
            length,
            count,
            pitch_bytes,
        } = lines;
        let stream = DriverGpu::stream(self);
        let is_one_line = count == 1;
        match value {
            Pattern::Two(bits) if is_one_line => {
                // SAFETY: the caller ensures it.
                let result = unsafe { binding::cuMemsetD16Async(address, bits, length, stream) };
                check("cuMemsetD16Async", result)
            }
            Pattern::Four(bits) if is_one_line => {
                // SAFETY: the caller ensures it.
                let result = unsafe { binding::cuMemsetD32Async(address, bits, length, stream) };
                check("cuMemsetD32Async", result)
            }
            Pattern::Two(bits) => {
                // SAFETY: the caller ensures it.
                let result = unsafe {
                    binding::cuMemsetD2D16Async(address, pitch_bytes, bits, length, count, stream)
                };
                check("cuMemsetD2D16Async", result)
            }
            Pattern::Four(bits) => {
                // SAFETY: the caller ensures it.
                let result = unsafe {
                    binding::cuMemsetD2D32Async(address, pitch_bytes, bits, length, count, stream)
                };
                check("cuMemsetD2D32Async", result)
            }
        }
    }

    /// The driver has read `from` when this returns, because it stages pageable memory (CUDA
    /// driver API, "API synchronization behavior").
    unsafe fn write(&self, address: u64, from: &[u8]) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        check("cuMemcpyHtoDAsync", unsafe {
            binding::cuMemcpyHtoDAsync_v2(
                address,
                from.as_ptr().cast(),
                from.len(),
                DriverGpu::stream(self),
            )
        })
    }

    unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        check("cuMemcpyDtoHAsync", unsafe {
            binding::cuMemcpyDtoHAsync_v2(
                to.as_mut_ptr().cast(),
                address,
                to.len(),
                DriverGpu::stream(self),
            )
        })
    }

    fn encode(
        &self,
        operand: Operand,
        spec: &TensorMapSpec,
        address: u64,
    ) -> Result<EncodedMap, Error> {
        tensor_map::encode(operand, spec, address)
    }

    fn load(&self, kernel: &KernelInfo, form: &Form) -> Result<Function, Error> {
        module::function(&self.modules, kernel, form)
    }

    unsafe fn launch(
        &self,
        stream: Option<CudaStream>,
        function: &Function,
        config: LaunchConfig,
        params: &GemmParams,
        maps: &TensorMaps,
    ) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        unsafe { launch::launch(self.handle(stream), function, config, params, maps) }
    }

    fn placement(&self) -> Placement {
        // Products run without it, too, and an error of theirs would say more.
        capture_mode::relaxed(|| placement::measure(self)).unwrap_or_default()
    }

    fn event(&self) -> Result<Box<dyn Event>, Error> {
        let own = CudaStream::of(DriverGpu::stream(self).cast());
        Ok(Box::new(OrderEvent::new(own)?))
    }

    fn timer(&self) -> Result<Box<dyn Timer>, Error> {
        Ok(Box::new(EventTimer::new(DriverGpu::stream(self))?))
    }

    fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: `self` owns the stream.
        let result = unsafe { binding::cuStreamSynchronize(DriverGpu::stream(self)) };
        check("cuStreamSynchronize", result)
    }

    fn is_done(&self) -> Result<bool, Error> {
        // SAFETY: `self` owns the stream.
        match unsafe { binding::cuStreamQuery(DriverGpu::stream(self)) } {
            Code::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuStreamQuery", result).map(|()| true),
        }
    }

    fn capture(&self, stream: Option<CudaStream>) -> Result<Option<u64>, Error> {
        let mut status = CaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let mut number = 0;
        // SAFETY: both outlive the call, and the stream exists.
        let result = unsafe {
            binding::cuStreamGetCaptureInfo(self.handle(stream), &mut status, &mut number)
        };
        check("cuStreamGetCaptureInfo", result)?;
        Ok((status != CaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE).then_some(number))
    }

    fn stream_number(&self, stream: CudaStream) -> Result<Option<u64>, Error> {
        type GetId = unsafe extern "C" fn(stream: *mut c_void, number: *mut u64) -> u32;
        // SAFETY: the driver API has had this signature since CUDA 12.0.
        static GET_ID: Entry<GetId> = unsafe { Entry::new("cuStreamGetId\0") };

        let Some(get_id) = GET_ID.find() else {
            return Ok(None);
        };
        let mut number = 0;
        // SAFETY: the number outlives the call, and the stream exists.
        let code = unsafe { get_id(stream.as_raw(), &mut number) };
        failure::check("cuStreamGetId", code).map(|()| Some(number))
    }

    fn stream(&self) -> Option<CudaStream> {
        Some(CudaStream::of(DriverGpu::stream(self).cast()))
    }

    #[cfg(feature = "cust")]
    fn cust_stream(&self) -> Option<&cust::stream::Stream> {
        Some(self.stream.as_cust())
    }
}

impl DriverGpu {
    /// [`Backend::allocate`] from what the device or the pool has now. While the library's
    /// stream captures, an allocation from the pool would become a part of the graph.
    fn try_allocate(&self, bytes: usize, streams: Streams) -> Result<Option<Allocation>, Error> {
        let allocation = |is_ordered| {
            move |address| Allocation {
                address,
                is_ordered,
            }
        };
        if let Some(pool) = &self.pool
            && streams == Streams::Own
            && self.capture(None)?.is_none()
        {
            let address = pool.allocate(bytes, DriverGpu::stream(self))?;
            return Ok(address.map(allocation(true)));
        }
        let mut address = 0;
        // SAFETY: `address` outlives the call.
        let result = unsafe { binding::cuMemAlloc_v2(&mut address, bytes) };
        if result == Code::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(None);
        }
        check("cuMemAlloc", result)?;
        Ok(Some(address).map(allocation(false)))
    }

    /// The driver's handle of `stream`, or of the library's own.
    fn handle(&self, stream: Option<CudaStream>) -> CUstream {
        stream.map_or(DriverGpu::stream(self), |stream| stream.as_raw().cast())
    }
}
