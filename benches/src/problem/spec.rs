//! What is computed: a shape, the storage of A and B, and types. The data is
//! [`crate::measure::problem_data`].

use crate::problem::shape::{BlasLayout, GemmShape};
use gpu_kernels::{DType, OutputType};
use std::fmt;

/// What is computed, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemSpec {
    /// M, N, K.
    pub shape: GemmShape,
    /// Storage of A and B.
    pub layout: BlasLayout,
    /// Type of A and B, and how it is multiplied.
    pub dtype: DType,
    /// Type of C.
    pub output: OutputType,
}

/// Shape, type and layout, such as `4096x4096x4096 f16 nn`.
impl fmt::Display for ProblemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.shape, self.dtype.name(), self.layout)
    }
}

impl ProblemSpec {
    /// The product of `shape` with every matrix row-major, and C of the type of A and B.
    pub fn row_major(shape: GemmShape, dtype: DType) -> Self {
        ProblemSpec {
            shape,
            layout: BlasLayout::NN,
            dtype,
            output: OutputType::Input,
        }
    }

    /// Bytes of A, B and C.
    pub fn bytes(&self) -> usize {
        let GemmShape { m, n, k } = self.shape;
        (m * k + k * n) * self.dtype.bytes() as usize + m * n * self.output_bytes()
    }

    /// Bytes of an element of C.
    fn output_bytes(&self) -> usize {
        self.output.dtype(self.dtype).bytes() as usize
    }

    /// Whether the rows of A, B and C, as they are stored, start at multiples of 16 bytes,
    /// which TMA and copies of 16 bytes require.
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
    layouts: &[BlasLayout],
    output: OutputType,
    shapes: &[GemmShape],
) -> Vec<ProblemSpec> {
    let mut problems = Vec::new();
    for &dtype in dtypes {
        for &layout in layouts {
            for &shape in shapes {
                problems.push(ProblemSpec {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitches_are_of_the_matrices_as_they_are_stored() {
        let aligned = |layout, dtype, output| {
            let shape = GemmShape::new(4, 8, 16);
            let problem = ProblemSpec {
                shape,
                layout,
                dtype,
                output,
            };
            problem.has_aligned_pitches()
        };
        let [nn, nt, tn, tt] = BlasLayout::ALL;
        // Rows of M elements are 8 bytes apart, in f32 they are 16.
        for (layout, expected) in [(nn, true), (nt, true), (tn, false), (tt, false)] {
            let found = aligned(layout, DType::F16, OutputType::Input);
            assert_eq!(found, expected, "{layout}");
            assert!(aligned(layout, DType::F32, OutputType::Input), "{layout}");
        }
        let narrow = ProblemSpec {
            shape: GemmShape::new(16, 4, 16),
            layout: nt,
            dtype: DType::F16,
            output: OutputType::Input,
        };
        assert!(!narrow.has_aligned_pitches());
        let wide = ProblemSpec {
            output: OutputType::F32,
            ..narrow
        };
        assert!(wide.has_aligned_pitches());
    }
}
