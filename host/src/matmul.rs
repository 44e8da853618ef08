//! [`Device::matmul`]: a product in one line.

use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::Error;
use crate::gemm::Gemm;
use crate::matrix::Matrix;
use crate::operands::check_shapes;
use crate::plan::Plan;
use crate::plan_cache::Key;
use crate::view::{AsView, MatrixView};

impl Device {
    /// The product of A (M×K) and B (K×N): M×N, in the input type, accumulated
    /// in f32. The kernel and its order are chosen by [`select`](crate::select).
    ///
    /// ```
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = tilewise::Device::best();
    /// let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
    /// let product = device.matmul(&a, a.view().t())?;
    /// assert_eq!(product.to_vec()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::DeviceMismatch`],
    /// [`Error::OutOfMemory`], and those of [`Gemm::plan`].
    pub fn matmul<T: Element>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
    ) -> Result<Matrix<T>, Error> {
        self.multiply(a.as_view(), b.as_view())
    }

    /// [`Device::matmul`], compiled once for all kinds of operands.
    fn multiply<T: Element>(&self, a: MatrixView<T>, b: MatrixView<T>) -> Result<Matrix<T>, Error> {
        check_shapes(a.layout(), b.layout(), None)?;
        let mut c = self.zeros(a.rows(), b.cols())?;
        let gemm = Gemm::new(self);
        let operands = gemm.operands(a, b, &c.view_mut())?;
        let dtype = T::DTYPE;
        let key = Key { dtype, operands };
        let may_keep = self.may_keep_plans()?;
        let kept = match may_keep {
            true => self.plans().take(&key),
            false => None,
        };
        let plan = match kept {
            Some(plan) => plan,
            None => gemm.untyped_plan::<T, T>(operands)?,
        };
        let mut plan = Plan::<T, T>::new(self, plan);
        plan.run(a, b, c.view_mut())?;
        if may_keep {
            self.plans().put(key, plan.into_untyped());
        }
        Ok(c)
    }

    /// Whether plans may come from the cache and go there: not while the stream records a
    /// graph, which would use a plan's workspace after the plan has left the cache.
    fn may_keep_plans(&self) -> Result<bool, Error> {
        match self.kind() {
            Kind::Cpu => Ok(true),
            Kind::Gpu(gpu) => Ok(!gpu.is_capturing()?),
        }
    }
}
