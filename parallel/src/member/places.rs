//! [`Places`]: where the buffers of a plan lie in the memory of each rank.

use std::collections::HashMap;

use tilewise::Layout;

use crate::operands::Operands;
use crate::plan::{buffers, layout_of};
use crate::program::{Buffer, Part, Program, Work};

/// A buffer in the memory of its rank.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Bytes from the start of the rank's memory.
    first: usize,
    layout: Layout,
    /// Bytes of an element.
    size: usize,
}

/// The buffers of a program, in one piece of memory for each rank. All ranks compute the same
/// places.
#[derive(Debug)]
pub(super) struct Places {
    places: HashMap<Buffer, Place>,
    bytes: Vec<usize>,
}

impl Places {
    /// Places for the buffers of `program`, whose elements are of type `T` in gathered rows and of
    /// type `O` in sums.
    pub fn new<T, O>(program: &Program, operands: &Operands) -> Self {
        let rows = buffers(program);
        let mut places = Places {
            places: HashMap::new(),
            bytes: vec![0; program.ranks],
        };
        // In the order of the steps, which is the same on all ranks.
        for step in &program.steps {
            if let Work::Copy { to: part, .. } | Work::Product { c: part, .. } = &step.work
                && let Some(&rows) = rows.get(&part.buffer)
                && !places.places.contains_key(&part.buffer)
            {
                let size = match part.buffer {
                    Buffer::Gathered { .. } => size_of::<T>(),
                    _ => size_of::<O>(),
                };
                places.push(
                    part.buffer,
                    layout_of(operands, part.buffer, rows, size),
                    size,
                );
            }
        }
        places
    }

    fn push(&mut self, buffer: Buffer, layout: Layout, size: usize) {
        let end = &mut self.bytes[buffer.rank()];
        let place = Place {
            first: *end,
            layout,
            size,
        };
        // A size that no memory has is refused where it is allocated.
        let elements = layout.span().unwrap_or(usize::MAX);
        let elements = elements.max(layout.rows.saturating_mul(layout.cols));
        let bytes = elements.saturating_mul(size).min(isize::MAX as usize);
        *end = end.saturating_add(bytes.next_multiple_of(Operands::ALIGNMENT as usize));
        self.places.insert(buffer, place);
    }

    /// Bytes of each rank.
    pub fn bytes(&self) -> &[usize] {
        &self.bytes
    }

    /// Where the rows of `part` begin in the memory of their rank, and their layout; `None` for the
    /// caller's matrices.
    pub fn find(&self, part: &Part) -> Option<(usize, Layout)> {
        let place = self.places.get(&part.buffer)?;
        let first = place.first + part.rows.start * place.layout.row_stride * place.size;
        let rows = part.rows.len();
        Some((
            first,
            Layout {
                rows,
                ..place.layout
            },
        ))
    }

    /// The same where all rows lie one behind the other, without gaps: the bytes, and the number of
    /// rows and columns.
    pub fn find_dense(&self, part: &Part) -> Option<(usize, (usize, usize))> {
        let place = self.places.get(&part.buffer)?;
        let cols = place.layout.cols;
        let first = place.first + part.rows.start * cols * place.size;
        Some((first, (part.rows.len(), cols)))
    }
}
