//! Products of tensors on a GPU, on the stream of their device.

use std::sync::{Mutex, PoisonError};

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView, DeviceRepr};
use candle_core::cuda_backend::{CudaDType, CudaDevice};
use candle_core::{CudaStorage, DType, Error, Result};
use tilewise::{Device, Element, Epilogue, Gemm, Layout, bf16, f16};
use tilewise_cudarc::{Blas, Inputs, MatrixSlice, MatrixSliceMut};

use crate::launches::{Launches, NAME};

/// Computes a product into new storage. The bias is contiguous, from an offset in its storage.
pub(crate) fn forward(
    epilogue: Epilogue,
    launches: &Launches,
    a: &CudaStorage,
    b: &CudaStorage,
    bias: Option<(&CudaStorage, usize)>,
) -> Result<CudaStorage> {
    match a.dtype() {
        DType::F32 => typed::<f32>(epilogue, launches, a, b, bias),
        DType::F16 => typed::<f16>(epilogue, launches, a, b, bias),
        DType::BF16 => typed::<bf16>(epilogue, launches, a, b, bias),
        other => Err(Error::UnsupportedDTypeForOp(other, NAME).bt()),
    }
}

/// [`forward`], with the element type known.
fn typed<T: Element + CudaDType + DeviceRepr>(
    epilogue: Epilogue,
    launches: &Launches,
    a: &CudaStorage,
    b: &CudaStorage,
    bias: Option<(&CudaStorage, usize)>,
) -> Result<CudaStorage> {
    let device = a.device();
    let blas = blas(device)?;
    let gemm = Gemm::new(blas.device()).epilogue(epilogue);
    let (a, b) = (a.as_cuda_slice::<T>()?, b.as_cuda_slice::<T>()?);
    let bias = match bias {
        None => None,
        Some((storage, offset)) => Some(tail(storage.as_cuda_slice::<T>()?, offset)?),
    };
    let mut inputs = Inputs::new();
    if let Some(bias) = &bias {
        let row = Layout::row_major(1, launches.c.cols);
        inputs = inputs.bias(MatrixSlice::new(bias, row));
    }
    // cuMemAlloc refuses to allocate nothing.
    let elements = launches.shape.elem_count().max(1);
    // SAFETY: the launches write every element of the tensor before anything reads one, on
    // the same stream.
    let mut c = unsafe { device.alloc::<T>(elements) }?;
    for &[a_offset, b_offset, c_offset] in &launches.offsets {
        let (a, b) = (tail(a, a_offset)?, tail(b, b_offset)?);
        let mut c = c
            .try_slice_mut(c_offset..)
            .ok_or_else(|| too_short(c_offset))?;
        blas.run(
            &gemm,
            MatrixSlice::new(&a, launches.a),
            MatrixSlice::new(&b, launches.b),
            MatrixSliceMut::new(&mut c, launches.c),
            &inputs,
        )
        .map_err(Error::wrap)?;
    }
    Ok(CudaStorage::wrap_cuda_slice(c, device.clone()))
}

/// Products on the stream of `device`.
fn blas(device: &CudaDevice) -> Result<Blas> {
    // A device keeps its plans as long as there is a handle of it.
    static DEVICES: Mutex<Vec<Device>> = Mutex::new(Vec::new());

    let blas = Blas::new(device.cuda_stream()).map_err(Error::wrap)?;
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if !devices.contains(blas.device()) {
        devices.push(blas.device().clone());
    }
    Ok(blas)
}

/// The elements of `slice` from `offset` on.
fn tail<T>(slice: &CudaSlice<T>, offset: usize) -> Result<CudaView<'_, T>> {
    slice.try_slice(offset..).ok_or_else(|| too_short(offset))
}

/// The error for a storage that ends before its tensor's first element.
fn too_short(offset: usize) -> Error {
    Error::Msg(format!("{NAME}: a storage has no element {offset}")).bt()
}
