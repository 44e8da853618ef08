//! Products of tensors on the CPU.

use std::sync::LazyLock;

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, DType, Error, Result, WithDType};
use tilewise::{
    Device, Element, Epilogue, Gemm, Inputs, Layout, MatrixView, MatrixViewMut, bf16, f16,
};

use crate::launches::{Launches, NAME};

/// The CPU device. This handle keeps its plans.
static CPU: LazyLock<Device> = LazyLock::new(Device::cpu);

/// Computes a product into new storage. The bias is contiguous, from an offset in its storage.
pub(crate) fn forward(
    epilogue: Epilogue,
    launches: &Launches,
    a: &CpuStorage,
    b: &CpuStorage,
    bias: Option<(&CpuStorage, usize)>,
) -> Result<CpuStorage> {
    match a.dtype() {
        DType::F32 => typed::<f32>(epilogue, launches, a, b, bias),
        DType::F16 => typed::<f16>(epilogue, launches, a, b, bias),
        DType::BF16 => typed::<bf16>(epilogue, launches, a, b, bias),
        other => Err(Error::UnsupportedDTypeForOp(other, NAME).bt()),
    }
}

/// [`forward`], with the element type known.
fn typed<T: Element + WithDType>(
    epilogue: Epilogue,
    launches: &Launches,
    a: &CpuStorage,
    b: &CpuStorage,
    bias: Option<(&CpuStorage, usize)>,
) -> Result<CpuStorage> {
    let gemm = Gemm::new(&CPU).epilogue(epilogue);
    let (a, b) = (T::cpu_storage_as_slice(a)?, T::cpu_storage_as_slice(b)?);
    let mut inputs = Inputs::new();
    if let Some((storage, offset)) = bias {
        let bias = T::cpu_storage_as_slice(storage)?;
        let row = Layout::row_major(1, launches.c.cols);
        inputs = inputs.bias(view(bias, offset, row)?);
    }
    let mut c = vec![T::zero(); launches.shape.elem_count()];
    for &[a_offset, b_offset, c_offset] in &launches.offsets {
        let (a, b) = (
            view(a, a_offset, launches.a)?,
            view(b, b_offset, launches.b)?,
        );
        let c = view_mut(&mut c, c_offset, launches.c)?;
        gemm.run(a, b, c, &inputs).map_err(Error::wrap)?;
    }
    Ok(T::to_cpu_storage_owned(c))
}

/// The elements of `storage` from `offset` on, as a matrix to read.
fn view<T: Element>(storage: &[T], offset: usize, layout: Layout) -> Result<MatrixView<'_, T>> {
    let elements = storage.get(offset..).unwrap_or_default();
    check(elements.len(), layout)?;
    let address = elements.as_ptr().expose_provenance() as u64;
    // SAFETY: `elements`, which is borrowed as long as the view, holds the layout.
    unsafe { MatrixView::from_raw(&CPU, address, layout) }.map_err(Error::wrap)
}

/// The elements of `storage` from `offset` on, as a matrix to write.
fn view_mut<T: Element>(
    storage: &mut [T],
    offset: usize,
    layout: Layout,
) -> Result<MatrixViewMut<'_, T>> {
    let elements = storage.get_mut(offset..).unwrap_or_default();
    check(elements.len(), layout)?;
    let address = elements.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: as in `view`, and `elements` is borrowed exclusively.
    unsafe { MatrixViewMut::from_raw(&CPU, address, layout) }.map_err(Error::wrap)
}

/// Returns an error unless `len` elements hold `layout`.
fn check(len: usize, layout: Layout) -> Result<()> {
    if layout.span().is_none_or(|span| span > len) {
        candle_core::bail!("{NAME}: a storage of {len} elements is too short for {layout}");
    }
    Ok(())
}
