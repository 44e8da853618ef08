//! The [`Backend`] of the CUDA driver. Each function is one call of the driver.

use gpu_kernels::{Form, GemmParams, KernelInfo, TensorMaps};

use super::binding::{self, CUstreamCaptureStatus_enum as CaptureStatus, cudaError_enum as Code};
use super::open::DriverGpu;
use super::timer::EventTimer;
use super::{check, launch, module, tensor_map};
use crate::error::Error;
use crate::gpu::backend::{Backend, CudaStream, Function, LaunchConfig, Lines, Pattern, Timer};
use crate::gpu::tensor_map::{EncodedMap, TensorMapSpec};
use crate::operand::Operand;
use crate::problem::Catalog;

impl Backend for DriverGpu {
    fn catalog(&self) -> Catalog<'static> {
        Catalog::embedded()
    }

    fn make_current(&self) -> Result<(), Error> {
        self.context.make_current()
    }

    fn allocate(&self, bytes: usize) -> Result<Option<u64>, Error> {
        let mut address = 0;
        // SAFETY: `address` outlives the call.
        let result = unsafe { binding::cuMemAlloc_v2(&mut address, bytes) };
        if result == Code::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(None);
        }
        check("cuMemAlloc", result).map(|()| Some(address))
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        let result = unsafe { binding::cuMemGetInfo_v2(&mut free, &mut total) };
        check("cuMemGetInfo", result).map(|()| free as u64)
    }

    unsafe fn free(&self, address: u64) {
        // SAFETY: the caller ensures it. A failure would come from an earlier call.
        unsafe { binding::cuMemFree_v2(address) };
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        check("cuMemsetD8Async", unsafe {
            binding::cuMemsetD8Async(address, 0, bytes, DriverGpu::stream(self))
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
        function: &Function,
        config: LaunchConfig,
        params: &GemmParams,
        maps: &TensorMaps,
    ) -> Result<(), Error> {
        // SAFETY: the caller ensures it.
        unsafe { launch::launch(DriverGpu::stream(self), function, config, params, maps) }
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

    fn is_capturing(&self) -> Result<bool, Error> {
        let mut status = CaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: `status` outlives the call, and `self` owns the stream.
        let result = unsafe { binding::cuStreamIsCapturing(DriverGpu::stream(self), &mut status) };
        check("cuStreamIsCapturing", result)?;
        Ok(status != CaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    fn stream(&self) -> Option<CudaStream> {
        Some(CudaStream(DriverGpu::stream(self).cast()))
    }

    #[cfg(feature = "cust")]
    fn cust_stream(&self) -> Option<&cust::stream::Stream> {
        Some(self.stream.as_cust())
    }
}
