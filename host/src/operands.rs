//! [`Operands`]: the layouts and alignments of A, B and C that a plan is made for, without
//! addresses.

use gpu_kernels::{DType, GemmParams, OutputType};

use crate::epilogue::Epilogue;
use crate::epilogue_form::EpilogueForm;
use crate::error::Error;
use crate::layout::Layout;
use crate::operand::Operand;
use crate::problem::{Problem, Strides};

/// Layouts and alignments of A, B and C. The shapes match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operands {
    layouts: [Layout; 3],
    /// Alignments as in [`Strides::alignment`].
    alignments: [u64; 3],
}

impl Operands {
    /// A, B and C with these layouts and `element_bytes`, and with the alignment of
    /// `addresses`, for a product with `epilogue`.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::BatchMismatch`], [`Error::Epilogue`].
    pub(crate) fn new(
        layouts: [Layout; 3],
        addresses: [u64; 3],
        element_bytes: [usize; 3],
        epilogue: &Epilogue,
    ) -> Result<Self, Error> {
        let layouts = layouts.map(Layout::normalized);
        let [a, b, c] = layouts;
        check_shapes(a, b, epilogue.product_of(b, c)?)?;
        check_batches(a, b, Some(c))?;
        let alignments = [0, 1, 2].map(|index: usize| {
            let step = layouts[index]
                .batch_stride
                .wrapping_mul(element_bytes[index]);
            // The lowest bit of the result is the lowest bit of either.
            Strides::alignment_of(addresses[index] | step as u64)
        });
        Ok(Operands {
            layouts,
            alignments,
        })
    }

    /// A, B and C with these layouts, at the start of allocations.
    ///
    /// # Errors
    /// Those of [`Operands::new`]; [`Error::SizeOverflow`] if a matrix with `element_bytes`
    /// (of A, B and C) is too large for an allocation; [`Error::Aliasing`] if two elements
    /// of C share an address.
    pub(crate) fn of_layouts(
        layouts: [Layout; 3],
        element_bytes: [usize; 3],
        epilogue: &Epilogue,
    ) -> Result<Self, Error> {
        for (layout, bytes) in layouts.into_iter().zip(element_bytes) {
            if layout.allocation(bytes).is_none() {
                return Err(Error::SizeOverflow { layout });
            }
        }
        let [.., c] = layouts;
        if c.aliases() {
            return Err(Error::Aliasing { layout: c });
        }
        Operands::new(layouts, [0; 3], element_bytes, epilogue)
    }

    /// The same operands, with alignments reduced to at most `bytes`, a power of two.
    pub(crate) fn aligned_at_most(self, bytes: u64) -> Self {
        Operands {
            alignments: self.alignments.map(|alignment| alignment.min(bytes)),
            ..self
        }
    }

    /// M, N and K. N is the number of columns of B.
    pub(crate) fn shape(&self) -> [usize; 3] {
        let [a, b, _] = self.layouts;
        [a.rows, b.cols, a.cols]
    }

    /// Number of products.
    pub(crate) fn batches(&self) -> usize {
        let [.., c] = self.layouts;
        c.batches
    }

    /// The product as the selection sees it.
    ///
    /// # Errors
    /// [`Error::DimensionTooLarge`].
    pub(crate) fn problem(
        &self,
        input: DType,
        output: OutputType,
        epilogue: EpilogueForm,
    ) -> Result<Problem, Error> {
        let [m, n, k] = self.shape();
        let [a, b, c] = [0, 1, 2].map(|index| Strides {
            row_stride: self.layouts[index].row_stride as u64,
            col_stride: self.layouts[index].col_stride as u64,
            batch_stride: self.layouts[index].batch_stride as u64,
            alignment: self.alignments[index],
        });
        Ok(Problem {
            m: dimension("M", m)?,
            n: dimension("N", n)?,
            k: dimension("K", k)?,
            batches: dimension("batches", self.batches())?,
            input,
            output,
            a,
            b,
            c,
            epilogue,
        })
    }

    /// Returns an error unless A, B and C have the layouts `found`.
    pub(crate) fn check_layouts(&self, found: [Layout; 3]) -> Result<(), Error> {
        for (index, operand) in Operand::ALL.into_iter().enumerate() {
            if found[index].normalized() != self.layouts[index] {
                return Err(Error::PlanMismatch {
                    operand,
                    found: found[index],
                    planned: self.layouts[index],
                });
            }
        }
        Ok(())
    }
}

/// Returns an error unless A is M×K, B is K×N and C is M×N; `c` is (rows, columns).
pub(crate) fn check_shapes(a: Layout, b: Layout, c: (usize, usize)) -> Result<(), Error> {
    let product = (a.rows, b.cols);
    if a.cols != b.rows || c != product {
        return Err(Error::ShapeMismatch {
            a: (a.rows, a.cols),
            b: (b.rows, b.cols),
            c,
        });
    }
    Ok(())
}

/// The number of products. Returns an error unless A and B have as many matrices as C, or
/// one. Where there is no C yet, it has as many as either.
pub(crate) fn check_batches(a: Layout, b: Layout, c: Option<Layout>) -> Result<usize, Error> {
    let (a, b) = (a.batches, b.batches);
    let c = c.map_or(if a == 1 { b } else { a }, |c| c.batches);
    if [a, b].iter().any(|batches| ![1, c].contains(batches)) {
        return Err(Error::BatchMismatch { a, b, c });
    }
    Ok(c)
}

/// A dimension as a `u32`, as the kernels index it.
fn dimension(dimension: &'static str, value: usize) -> Result<u32, Error> {
    if value as u64 > GemmParams::MAX_DIM {
        return Err(Error::DimensionTooLarge {
            dimension,
            value,
            max: GemmParams::MAX_DIM as usize,
        });
    }
    Ok(value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_past_what_a_kernel_can_index_are_named() {
        let max = GemmParams::MAX_DIM as usize;
        assert_eq!(dimension("K", max), Ok(max as u32));
        let value = max + 1;
        let error = dimension("K", value).unwrap_err();
        assert_eq!(
            error,
            Error::DimensionTooLarge {
                dimension: "K",
                value,
                max
            }
        );
        assert_eq!(
            error.to_string(),
            "K = 2147479552; accepted: at most 2147479551"
        );
    }

    #[test]
    fn a_problem_knows_alignments_up_to_a_cache_line() {
        let square = Layout::row_major(4, 4);
        let plain = Epilogue::new();
        let operands = Operands::new([square; 3], [1 << 20, 0x7010, 2], [2; 3], &plain).unwrap();
        let alignments = |operands: Operands| {
            let problem = operands.problem(DType::F16, OutputType::Input, plain.form());
            let problem = problem.unwrap();
            [problem.a, problem.b, problem.c].map(|operand| operand.alignment)
        };
        assert_eq!(alignments(operands), [128, 16, 2]);
        assert_eq!(alignments(operands.aligned_at_most(8)), [8, 8, 2]);
        // A matrix without elements has address zero, which has every alignment.
        let allocations = Operands::of_layouts([square; 3], [2; 3], &plain).unwrap();
        assert_eq!(alignments(allocations), [128; 3]);
        // Every matrix of a batch counts: 24 elements are 48 bytes.
        let batch = [square.batched_by(3, 24), square, square.batched_by(3, 64)];
        let batch = Operands::of_layouts(batch, [2; 3], &plain).unwrap();
        assert_eq!(alignments(batch), [16, 128, 128]);
    }
}
