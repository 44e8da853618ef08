//! [`Layout`]: shape and strides. It computes how many elements a layout spans, and
//! whether two of its elements share an address.

mod overlap;

use std::fmt;

use overlap::Axis;

/// Shape and strides of a batch of matrices, which is one matrix unless it was made by
/// [`Layout::batched`] or [`Layout::batched_by`]. Element (r, c) of matrix b is
/// `b · batch_stride + r · row_stride + c · col_stride` elements after the first element.
///
/// ```
/// use tilewise::Layout;
///
/// let matrix = Layout::row_major(3, 5);
/// assert_eq!(matrix.span(), Some(15));
/// // Eight of them, one after the other; and eight times the same one.
/// assert_eq!(matrix.batched(8).span(), Some(120));
/// assert_eq!(matrix.batched_by(8, 0).span(), Some(15));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements between (r, c) and (r + 1, c).
    pub row_stride: usize,
    /// Elements between (r, c) and (r, c + 1).
    pub col_stride: usize,
    /// Number of matrices.
    pub batches: usize,
    /// Elements from one matrix to the next; 0 repeats the matrix.
    pub batch_stride: usize,
}

impl Layout {
    /// One matrix with these strides, in elements.
    pub const fn strided(rows: usize, cols: usize, row_stride: usize, col_stride: usize) -> Self {
        Layout {
            rows,
            cols,
            row_stride,
            col_stride,
            batches: 1,
            batch_stride: 0,
        }
    }

    /// One matrix of dense rows, one after the other.
    pub const fn row_major(rows: usize, cols: usize) -> Self {
        Layout::strided(rows, cols, cols, 1)
    }

    /// `batches` matrices like the first matrix of this layout, one after the other. If
    /// the rows or columns of the matrix have a pitch, so has the last one. The batch
    /// stride of dense matrices is `rows · cols`.
    pub const fn batched(self, batches: usize) -> Self {
        let of_rows = self.rows.saturating_mul(self.row_stride);
        let of_cols = self.cols.saturating_mul(self.col_stride);
        let span = match self.matrix().span() {
            Some(span) => span,
            None => usize::MAX,
        };
        let lines = if of_rows > of_cols { of_rows } else { of_cols };
        self.batched_by(batches, if lines > span { lines } else { span })
    }

    /// `batches` matrices like the first matrix of this layout, each `batch_stride`
    /// elements after the one before. A stride of 0 repeats the matrix.
    pub const fn batched_by(self, batches: usize, batch_stride: usize) -> Self {
        Layout {
            batches,
            batch_stride,
            ..self
        }
    }

    /// The layout of one of the matrices.
    pub const fn matrix(self) -> Self {
        self.batched_by(1, 0)
    }

    /// The same elements with rows and columns exchanged.
    pub const fn transposed(self) -> Self {
        Layout {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// Whether there is no element.
    pub const fn is_empty(self) -> bool {
        self.rows == 0 || self.cols == 0 || self.batches == 0
    }

    /// Number of elements; `None` when it does not fit a `usize`.
    pub const fn elements(self) -> Option<usize> {
        match self.rows.checked_mul(self.cols) {
            Some(matrix) => matrix.checked_mul(self.batches),
            None => None,
        }
    }

    /// Number of elements from the first to one past the farthest. It is 0 for an empty
    /// layout, and `None` when it does not fit a `usize`.
    pub const fn span(self) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        let mut last = 0_usize;
        let axes = self.axes();
        let mut index = 0;
        while index < axes.len() {
            let Some(along) = (axes[index].extent - 1).checked_mul(axes[index].stride) else {
                return None;
            };
            last = match last.checked_add(along) {
                Some(last) => last,
                None => return None,
            };
            index += 1;
        }
        last.checked_add(1)
    }

    /// Number of elements of an allocation that holds the layout from its first element on,
    /// with `element_bytes` per element. `None` if its bytes exceed `isize::MAX`, which is
    /// the limit of every allocation.
    pub(crate) fn allocation(self, element_bytes: usize) -> Option<usize> {
        let len = self.span()?;
        let bytes = len.checked_mul(element_bytes)?;
        isize::try_from(bytes).is_ok().then_some(len)
    }

    /// Whether the elements lie one after the other, matrix by matrix and row by row,
    /// without gaps.
    pub const fn is_dense_row_major(self) -> bool {
        (self.cols <= 1 || self.col_stride == 1)
            && (self.rows <= 1 || self.row_stride == self.cols)
            && (self.batches <= 1 || self.batch_stride == self.rows * self.cols)
    }

    /// Whether two different elements share an address.
    ///
    /// The result is exact for every layout that an allocation can hold. It takes constant
    /// time where the matrices do not interleave, and otherwise time that grows with the
    /// smallest of the number of rows, of columns and of matrices.
    pub const fn aliases(self) -> bool {
        !self.is_empty() && overlap::aliases(self.axes())
    }

    /// Whether this layout and the same layout `distance` elements further have an element
    /// in common.
    pub(crate) fn meets_itself_at(self, distance: usize) -> bool {
        !self.is_empty() && overlap::meets(self.axes(), distance)
    }

    /// The same layout, in the form in which two layouts of the same elements are equal: the
    /// stride over one matrix is 0.
    pub(crate) const fn normalized(self) -> Self {
        if self.batches <= 1 {
            self.batched_by(self.batches, 0)
        } else {
            self
        }
    }

    const fn axes(self) -> [Axis; 3] {
        [
            Axis::new(self.rows, self.row_stride),
            Axis::new(self.cols, self.col_stride),
            Axis::new(self.batches, self.batch_stride),
        ]
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout {
            rows,
            cols,
            row_stride,
            col_stride,
            batches,
            batch_stride,
        } = self;
        if *batches == 1 {
            return write!(f, "{rows}×{cols} with strides ({row_stride}, {col_stride})");
        }
        write!(
            f,
            "{batches}×{rows}×{cols} with strides ({batch_stride}, {row_stride}, {col_stride})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The place of every element of `layout`.
    fn places(layout: Layout) -> Vec<usize> {
        let mut places = Vec::new();
        for b in 0..layout.batches {
            for r in 0..layout.rows {
                for c in 0..layout.cols {
                    places.push(
                        b * layout.batch_stride + r * layout.row_stride + c * layout.col_stride,
                    );
                }
            }
        }
        places
    }

    fn check(layout: Layout) {
        let places = places(layout);
        let distinct: HashSet<_> = places.iter().copied().collect();
        assert_eq!(layout.aliases(), distinct.len() < places.len(), "{layout}");
        let span = places.iter().max().map_or(0, |last| last + 1);
        assert_eq!(layout.span(), Some(span), "{layout}");
        assert_eq!(layout.elements(), Some(places.len()));
        for distance in [1, 2, 5, 9] {
            let meets = places
                .iter()
                .any(|place| distinct.contains(&(place + distance)));
            assert_eq!(
                layout.meets_itself_at(distance),
                meets,
                "{layout}, {distance}"
            );
        }
    }

    #[test]
    fn aliasing_and_span_agree_with_enumeration() {
        for rows in 0..5 {
            for cols in 0..5 {
                for row_stride in 0..8 {
                    for col_stride in 0..8 {
                        check(Layout::strided(rows, cols, row_stride, col_stride));
                    }
                }
            }
        }
    }

    #[test]
    fn aliasing_and_span_of_batches_agree_with_enumeration() {
        let strides = [0, 1, 2, 3, 5, 6, 8, 15];
        for [rows, cols, batches] in [[2, 3, 4], [4, 2, 3], [3, 4, 2], [1, 5, 3], [2, 2, 0]] {
            for row_stride in strides {
                for col_stride in strides {
                    for batch_stride in strides {
                        let matrix = Layout::strided(rows, cols, row_stride, col_stride);
                        check(matrix.batched_by(batches, batch_stride));
                    }
                }
            }
        }
    }

    #[test]
    fn a_batch_of_distinct_matrices_has_distinct_elements() {
        for [row_stride, col_stride] in [[5, 1], [1, 3], [8, 1], [1, 7], [20, 3], [3, 2], [0, 0]] {
            let matrix = Layout::strided(3, 5, row_stride, col_stride);
            let batch = matrix.batched(4);
            assert_eq!(batch.aliases(), matrix.aliases(), "{batch}");
            assert_eq!(batch.matrix(), matrix);
        }
        assert_eq!(Layout::row_major(3, 5).batched(4).batch_stride, 15);
    }

    #[test]
    fn a_span_past_usize_is_none() {
        let layout = Layout::strided(3, 2, usize::MAX / 2, 2);
        assert_eq!(layout.span(), None);
        let batch = Layout::row_major(3, 2).batched_by(3, usize::MAX / 2);
        assert_eq!((batch.span(), batch.aliases()), (None, true));
    }
}
