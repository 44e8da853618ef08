//! What ranks make for others, and receive from them, on each rank.

use std::collections::HashMap;

use tilewise::{Device, Element, Layout, Matrix, MatrixView, MatrixViewMut, Output};

use crate::error::Error;
use crate::lines::Lines;
use crate::operands::Operands;
use crate::program::{Buffer, Part, Program, Work};
use crate::ranks::Ranks;

/// The layout of the buffer of a plan that holds `rows` rows at most: that of the caller's
/// matrix whose rows it takes, without gaps. All sums have the contiguous direction of the C of
/// rank 0, because copies keep it.
pub(crate) fn layout_of(operands: &Operands, buffer: Buffer, rows: usize, size: usize) -> Layout {
    let like = match buffer {
        Buffer::A { rank } | Buffer::Gathered { from: rank, .. } => operands.layouts[0][rank],
        Buffer::B { rank } => operands.layouts[1][rank],
        Buffer::C { rank } => operands.layouts[2][rank],
        Buffer::Made { .. } | Buffer::Received { .. } | Buffer::Finished { .. } => {
            operands.layouts[2][0]
        }
    };
    Lines::layout_of_copy(Layout { rows, ..like }, size)
}

/// The buffers that a plan needs for its program, and the rows of each.
pub(crate) fn buffers(program: &Program) -> HashMap<Buffer, usize> {
    let mut buffers = HashMap::new();
    for step in &program.steps {
        if let Work::Copy { to: part, .. } | Work::Product { c: part, .. } = &step.work
            && !matches!(part.buffer, Buffer::C { .. })
        {
            let rows = buffers.entry(part.buffer).or_insert(0);
            *rows = part.rows.end.max(*rows);
        }
    }
    buffers
}

/// The buffers of a plan. Each is freed in the order of its own device's stream, on which the
/// last step that reads it is.
#[derive(Debug)]
pub(super) struct Memory<T, O> {
    gathered: HashMap<Buffer, Matrix<T>>,
    sums: HashMap<Buffer, Matrix<O>>,
}

impl<T: Element, O: Output<T>> Memory<T, O> {
    /// Allocates the buffers of `program`.
    pub(super) fn new(
        ranks: &Ranks,
        program: &Program,
        operands: &Operands,
    ) -> Result<Self, Error> {
        let (mut gathered, mut sums) = (HashMap::new(), HashMap::new());
        for (buffer, rows) in buffers(program) {
            match buffer {
                Buffer::Gathered { rank, .. } => {
                    let layout = layout_of(operands, buffer, rows, size_of::<T>());
                    gathered.insert(buffer, zeros(&ranks.devices()[rank], layout)?);
                }
                Buffer::Made { rank, .. }
                | Buffer::Received { rank, .. }
                | Buffer::Finished { rank, .. } => {
                    let layout = layout_of(operands, buffer, rows, size_of::<O>());
                    sums.insert(buffer, zeros(&ranks.devices()[rank], layout)?);
                }
                Buffer::A { .. } | Buffer::B { .. } | Buffer::C { .. } => {}
            }
        }
        Ok(Memory { gathered, sums })
    }

    /// Bytes of all buffers.
    pub(super) fn bytes(&self) -> u64 {
        bytes(self.gathered.values()) + bytes(self.sums.values())
    }

    /// Rows of A, the caller's or gathered.
    pub(super) fn input<'m>(
        &'m self,
        part: &Part,
        a: &[MatrixView<'m, T>],
    ) -> Result<MatrixView<'m, T>, Error> {
        let view = match self.gathered.get(&part.buffer) {
            Some(matrix) => matrix.view(),
            None => a[part.buffer.rank()],
        };
        Ok(view.slice(part.rows.clone(), 0..view.cols())?)
    }

    /// Rows of C, or of sums.
    pub(super) fn output<'m>(
        &'m self,
        part: &Part,
        c: &'m [MatrixViewMut<'_, O>],
    ) -> Result<MatrixView<'m, O>, Error> {
        let view = match self.sums.get(&part.buffer) {
            Some(matrix) => matrix.view(),
            None => c[part.buffer.rank()].as_view(),
        };
        Ok(view.slice(part.rows.clone(), 0..view.cols())?)
    }

    /// Writes gathered rows of A.
    pub(super) fn write_input(&mut self, part: &Part, elements: &[T]) -> Result<(), Error> {
        if let Some(matrix) = self.gathered.get_mut(&part.buffer) {
            let view = matrix.view_mut();
            let cols = view.cols();
            view.slice(part.rows.clone(), 0..cols)?
                .copy_from_slice(elements)?;
        }
        Ok(())
    }

    /// Writes rows of C, or of sums.
    pub(super) fn write_output(
        &mut self,
        part: &Part,
        c: &mut [MatrixViewMut<O>],
        elements: &[O],
    ) -> Result<(), Error> {
        let view = match self.sums.get_mut(&part.buffer) {
            Some(matrix) => matrix.view_mut(),
            None => c[part.buffer.rank()].reborrow(),
        };
        let cols = view.cols();
        view.slice(part.rows.clone(), 0..cols)?
            .copy_from_slice(elements)?;
        Ok(())
    }
}

/// Bytes that the matrices span.
pub(super) fn bytes<'m, E: Element>(matrices: impl Iterator<Item = &'m Matrix<E>>) -> u64 {
    matrices
        .map(|matrix| (matrix.layout().span().unwrap_or(0) * size_of::<E>()) as u64)
        .sum()
}

/// A matrix of zeros with the strides of `layout`.
pub(crate) fn zeros<E: Element>(device: &Device, layout: Layout) -> Result<Matrix<E>, Error> {
    let (rows, cols) = (layout.rows, layout.cols);
    Ok(device.zeros_strided(rows, cols, layout.row_stride, layout.col_stride)?)
}
