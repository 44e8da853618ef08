//! One problem on one device: its matrices, and the check that guards them.

use crate::check::{self, POISON, Reference};
use crate::choice::output_name;
use crate::error::Error;
use crate::inputs::Pool;
use crate::memory;
use crate::record::Record;
use crate::shape::{Layout, Shape};
use gpu_kernels::{DType, OutputType};
use std::fmt;
use tilewise::{Device, Element, Matrix, MatrixView, MatrixViewMut, Output};

/// What is computed, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// M, N, K.
    pub shape: Shape,
    /// Storage of A and B.
    pub layout: Layout,
    /// Type of A and B, and how it is multiplied.
    pub dtype: DType,
    /// Type of C.
    pub output: OutputType,
}

/// Shape, type and layout.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.shape, self.dtype.name(), self.layout)
    }
}

impl Problem {
    /// Bytes of A, B and C.
    pub fn bytes(&self) -> usize {
        let Shape { m, n, k } = self.shape;
        (m * k + k * n) * self.dtype.bytes() as usize + m * n * self.output_bytes()
    }

    /// Whether `record` is of this problem.
    pub fn is_of(&self, record: &Record) -> bool {
        record.shape() == self.shape
            && record.dtype == self.dtype.name()
            && record.output == output_name(self.dtype, self.output)
            && record.layout == self.layout.to_string()
    }

    /// Bytes of an element of C.
    fn output_bytes(&self) -> usize {
        let bytes = match self.output {
            OutputType::Input => self.dtype.bytes(),
            OutputType::F32 => DType::F32.bytes(),
        };
        bytes as usize
    }

    /// Whether the rows of A, B and C, as they are stored, are multiples of 16 bytes apart:
    /// what TMA, and copies of 16 bytes, ask for.
    pub fn has_aligned_pitches(&self) -> bool {
        let input = self.dtype.bytes() as usize;
        let pitches = [
            self.layout.stored_a(self.shape).1 * input,
            self.layout.stored_b(self.shape).1 * input,
            self.shape.n * self.output_bytes(),
        ];
        pitches.iter().all(|pitch| pitch % 16 == 0)
    }
}

/// Every shape in every type and layout, in the order of measuring.
pub fn problems(
    dtypes: &[DType],
    layouts: &[Layout],
    output: OutputType,
    shapes: &[Shape],
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for &dtype in dtypes {
        for &layout in layouts {
            for &shape in shapes {
                problems.push(Problem {
                    shape,
                    layout,
                    dtype,
                    output,
                });
            }
        }
    }
    problems
}

/// A problem with its matrices; every candidate runs on the same ones.
pub struct Workload<T, O> {
    /// What is computed.
    pub problem: Problem,
    a: Matrix<T>,
    b: Matrix<T>,
    c: Matrix<O>,
    reference: Reference,
}

impl<T: Element, O: Output<T>> Workload<T, O> {
    /// Fills A and B from `seed` and computes the reference.
    ///
    /// # Errors
    /// No memory on the device.
    pub fn new(device: &Device, problem: Problem, seed: u64) -> Result<Self, Error> {
        let Problem { shape, layout, .. } = problem;
        let (a_rows, a_cols) = layout.stored_a(shape);
        let (b_rows, b_cols) = layout.stored_b(shape);
        // C first: it is the cheapest to fail on.
        let c = device.zeros(shape.m, shape.n)?;
        let pool = Pool::<T>::new(seed, (shape.m * shape.k).max(shape.k * shape.n));
        let a = pool.matrix(a_rows, a_cols, 0);
        let b = pool.matrix(b_rows, b_cols, 1);
        Ok(Workload {
            problem,
            reference: Reference::new(&a, &b, shape, layout, seed),
            a: device.from_slice(&a, a_rows, a_cols)?,
            b: device.from_slice(&b, b_rows, b_cols)?,
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
        self.poison()?;
        launch(self)?;
        // Reading C waits for the launch.
        let c = self.c.to_vec()?;
        let Problem {
            dtype,
            output,
            shape,
            ..
        } = self.problem;
        let tolerance = check::tolerance(dtype, output, shape.k);
        Ok(self.reference.check(&c, tolerance))
    }

    fn poison(&mut self) -> Result<(), Error> {
        let device = self.c.device().clone();
        if let Some(stream) = device.cust_stream() {
            return memory::set_bytes(&mut self.c, POISON, stream);
        }
        let poison: O = bytemuck::pod_read_unaligned(&[POISON; 4][..size_of::<O>()]);
        let elements = self.c.rows() * self.c.cols();
        Ok(self.c.copy_from_slice(&vec![poison; elements])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitches_are_of_the_matrices_as_they_are_stored() {
        let aligned = |layout, dtype, output| {
            let shape = Shape::new(4, 8, 16);
            let problem = Problem {
                shape,
                layout,
                dtype,
                output,
            };
            problem.has_aligned_pitches()
        };
        let [nn, nt, tn, tt] = Layout::ALL;
        // Rows of M elements are 8 bytes apart, in f32 they are 16.
        for (layout, expected) in [(nn, true), (nt, true), (tn, false), (tt, false)] {
            let found = aligned(layout, DType::F16, OutputType::Input);
            assert_eq!(found, expected, "{layout}");
            assert!(aligned(layout, DType::F32, OutputType::Input), "{layout}");
        }
        let narrow = Problem {
            shape: Shape::new(16, 4, 16),
            layout: nt,
            dtype: DType::F16,
            output: OutputType::Input,
        };
        assert!(!narrow.has_aligned_pitches());
        let wide = Problem {
            output: OutputType::F32,
            ..narrow
        };
        assert!(wide.has_aligned_pitches());
    }
}
