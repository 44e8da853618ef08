//! A problem's matrices on one device, and the check that guards them.

use crate::error::Error;
use crate::measure::inputs::Pool;
use crate::measure::memset;
use crate::measure::result_check::{self, POISON, Reference};
use crate::problem::spec::ProblemSpec;
use tilewise::{Device, Element, Matrix, MatrixView, MatrixViewMut, Output};

/// A problem with its matrices; every candidate runs on the same ones.
pub struct ProblemData<T, O> {
    /// What is computed.
    pub problem: ProblemSpec,
    a: Matrix<T>,
    b: Matrix<T>,
    c: Matrix<O>,
    reference: Reference,
}

impl<T: Element, O: Output<T>> ProblemData<T, O> {
    /// Fills A and B from `seed` and computes the reference.
    ///
    /// # Errors
    /// No memory on the device.
    pub fn new(device: &Device, problem: ProblemSpec, seed: u64) -> Result<Self, Error> {
        let ProblemSpec { shape, layout, .. } = problem;
        let pool = Pool::<T>::new(seed, (shape.m * shape.k).max(shape.k * shape.n));
        let (a_rows, a_cols) = layout.stored_a(shape);
        let (b_rows, b_cols) = layout.stored_b(shape);
        let a = pool.matrix(a_rows, a_cols, 0);
        let b = pool.matrix(b_rows, b_cols, 1);
        ProblemData::holding(device, problem, [&a, &b], seed)
    }

    /// A and B hold these elements, as they are stored, row by row. The `seed` chooses the
    /// elements of C that are checked.
    ///
    /// # Errors
    /// No memory on the device.
    pub fn holding(
        device: &Device,
        problem: ProblemSpec,
        [a, b]: [&[T]; 2],
        seed: u64,
    ) -> Result<Self, Error> {
        let ProblemSpec { shape, layout, .. } = problem;
        let (a_rows, a_cols) = layout.stored_a(shape);
        let (b_rows, b_cols) = layout.stored_b(shape);
        // C first: it is the cheapest to fail on.
        let c = device.zeros(shape.m, shape.n)?;
        Ok(ProblemData {
            problem,
            reference: Reference::new(a, b, shape, layout, seed),
            a: device.from_slice(a, a_rows, a_cols)?,
            b: device.from_slice(b, b_rows, b_cols)?,
            c,
        })
    }

    /// A (M×K), B (K×N) and C (M×N) as the library sees them.
    pub fn operands(&mut self) -> (MatrixView<'_, T>, MatrixView<'_, T>, MatrixViewMut<'_, O>) {
        let layout = self.problem.layout;
        let a = if layout.a_transposed {
            self.a.view().t()
        } else {
            self.a.view()
        };
        let b = if layout.b_transposed {
            self.b.view().t()
        } else {
            self.b.view()
        };
        (a, b, self.c.view_mut())
    }

    /// Device addresses of A, B and C as they are stored; `None` on the CPU.
    pub fn addresses(&self) -> Option<[u64; 3]> {
        Some([
            self.a.device_address()?,
            self.b.device_address()?,
            self.c.device_address()?,
        ])
    }

    /// Runs `launch` once on a poisoned C and checks the result; returns its
    /// relative error, or what is wrong with it.
    ///
    /// # Errors
    /// The launch or a copy failed.
    pub fn check(
        &mut self,
        launch: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Result<f64, String>, Error> {
        let c = self.result(launch)?;
        let ProblemSpec {
            dtype,
            output,
            shape,
            ..
        } = self.problem;
        let tolerance = result_check::tolerance(dtype, output, shape.k);
        Ok(self.reference.check(&c, tolerance))
    }

    /// Runs `launch` once on a poisoned C, and returns C row by row.
    ///
    /// # Errors
    /// The launch or a copy failed.
    pub fn result(
        &mut self,
        launch: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Vec<O>, Error> {
        self.poison()?;
        launch(self)?;
        // Reading C waits for the launch.
        Ok(self.c.to_vec()?)
    }

    fn poison(&mut self) -> Result<(), Error> {
        let device = self.c.device().clone();
        if let Some(stream) = device.cust_stream() {
            return memset::set_bytes(&mut self.c, POISON, stream);
        }
        let poison: O = bytemuck::pod_read_unaligned(&[POISON; 4][..size_of::<O>()]);
        let elements = self.c.rows() * self.c.cols();
        Ok(self.c.copy_from_slice(&vec![poison; elements])?)
    }
}
