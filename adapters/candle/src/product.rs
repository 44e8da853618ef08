//! act(A·B + bias) as an operation of candle, with its gradients.

#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Error, Layout, Result, Shape, Tensor};
use tilewise::{Activation, Bias, Epilogue};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::launches::{Launches, NAME};
use crate::{cpu, gradient};

/// act(A·B), or act(A·B + bias) for a bias of shape (N).
pub(crate) fn product(
    a: &Tensor,
    b: &Tensor,
    bias: Option<&Tensor>,
    activation: Activation,
) -> Result<Tensor> {
    let product = Product { activation };
    check_types(a, b)?;
    let Some(bias) = bias else {
        return a.apply_op2(b, product);
    };
    check_types(a, bias)?;
    if bias.dims() != &b.dims()[b.rank().saturating_sub(1)..] {
        return Err(Error::ShapeMismatchBinaryOp {
            lhs: b.shape().clone(),
            rhs: bias.shape().clone(),
            op: NAME,
        }
        .bt());
    }
    a.apply_op3(b, &bias.contiguous()?, product)
}

/// Returns an error unless two tensors have the same element type.
fn check_types(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::DTypeMismatchBinaryOp {
        lhs: a.dtype(),
        rhs: b.dtype(),
        op: NAME,
    }
    .bt())
}

/// act(A·B) of two tensors, or act(A·B + bias) of three, the last of which is contiguous.
#[derive(Clone, Copy, Debug)]
struct Product {
    activation: Activation,
}

impl Product {
    /// The epilogue of act(A·B).
    fn epilogue(self) -> Epilogue {
        Epilogue::new().activation(self.activation)
    }

    /// The epilogue of act(A·B + bias).
    fn epilogue_with_bias(self) -> Epilogue {
        self.epilogue().bias(Bias::PerColumn)
    }
}

impl CustomOp2 for Product {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        a_layout: &Layout,
        b: &CpuStorage,
        b_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let launches = Launches::new(a_layout, b_layout)?;
        let c = cpu::forward(self.epilogue(), &launches, a, b, None)?;
        Ok((c, launches.shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        a: &CudaStorage,
        a_layout: &Layout,
        b: &CudaStorage,
        b_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let launches = Launches::new(a_layout, b_layout)?;
        let c = cuda::forward(self.epilogue(), &launches, a, b, None)?;
        Ok((c, launches.shape))
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        c: &Tensor,
        c_gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let sums = self.sums_gradient([a, b], None, c, c_gradient)?;
        Ok((a_gradient(a, b, &sums)?, b_gradient(a, b, &sums)?))
    }
}

impl CustomOp3 for Product {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        a_layout: &Layout,
        b: &CpuStorage,
        b_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let launches = Launches::new(a_layout, b_layout)?;
        let bias = Some((bias, bias_layout.start_offset()));
        let c = cpu::forward(self.epilogue_with_bias(), &launches, a, b, bias)?;
        Ok((c, launches.shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        a: &CudaStorage,
        a_layout: &Layout,
        b: &CudaStorage,
        b_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let launches = Launches::new(a_layout, b_layout)?;
        let bias = Some((bias, bias_layout.start_offset()));
        let c = cuda::forward(self.epilogue_with_bias(), &launches, a, b, bias)?;
        Ok((c, launches.shape))
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        bias: &Tensor,
        c: &Tensor,
        c_gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let sums = self.sums_gradient([a, b], Some(bias), c, c_gradient)?;
        Ok((
            a_gradient(a, b, &sums)?,
            b_gradient(a, b, &sums)?,
            Some(gradient::sum_to(&sums, bias.shape())?),
        ))
    }
}

impl Product {
    /// dS = dC ∘ act′(S), for C = act(S) and S = A·B + bias.
    fn sums_gradient(
        self,
        [a, b]: [&Tensor; 2],
        bias: Option<&Tensor>,
        c: &Tensor,
        c_gradient: &Tensor,
    ) -> Result<Tensor> {
        if self.activation == Activation::Identity {
            return Ok(c_gradient.clone());
        }
        let derivative = match gradient::derivative_of_result(self.activation, c) {
            Some(derivative) => derivative?,
            None => {
                let (a, b) = (a.detach(), b.detach());
                let bias = bias.map(Tensor::detach);
                let sums = product(&a, &b, bias.as_ref(), Activation::Identity)?;
                gradient::derivative(self.activation, &sums)?
            }
        };
        let sums_gradient = (c_gradient.to_dtype(DType::F32)? * derivative)?;
        sums_gradient.to_dtype(c_gradient.dtype())
    }
}

/// A·B without a bias and an activation.
fn plain(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    product(a, b, None, Activation::Identity)
}

/// dA = dS·Bᵀ, unless nobody asks for it.
fn a_gradient(a: &Tensor, b: &Tensor, sums_gradient: &Tensor) -> Result<Option<Tensor>> {
    if !a.track_op() {
        return Ok(None);
    }
    gradient::sum_to(&plain(sums_gradient, &b.t()?)?, a.shape()).map(Some)
}

/// dB = Aᵀ·dS, unless nobody asks for it.
fn b_gradient(a: &Tensor, b: &Tensor, sums_gradient: &Tensor) -> Result<Option<Tensor>> {
    if !b.track_op() {
        return Ok(None);
    }
    let [b_batches @ .., k, n] = b.dims() else {
        candle_core::bail!("{NAME}: B has the shape {:?}", b.dims());
    };
    if b_batches.iter().any(|&size| size != 1) {
        return gradient::sum_to(&plain(&a.t()?, sums_gradient)?, b.shape()).map(Some);
    }
    // All batches share B, so that dB is one product over the rows of all of them.
    let rows = a.dims()[..a.rank() - 1].iter().product::<usize>();
    let a = a.reshape((rows, *k))?;
    let sums_gradient = sums_gradient.reshape((rows, *n))?;
    plain(&a.t()?, &sums_gradient)?.reshape(b.shape()).map(Some)
}
