//! Matrices as lines of contiguous bytes, which is what copy engines move.

use tilewise::Layout;

/// Lines of contiguous elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Bytes of a line.
    pub bytes: usize,
    /// Number of lines.
    pub count: usize,
    /// Bytes from the start of one line to the start of the next.
    pub pitch: usize,
}

impl Lines {
    /// The lines of a matrix with elements of `size` bytes, if its rows or its columns are
    /// contiguous.
    pub fn of(layout: Layout, size: usize) -> Option<Self> {
        let Layout {
            rows,
            cols,
            row_stride,
            col_stride,
            ..
        } = layout;
        let lines = |length: usize, count: usize, stride: usize| Lines {
            bytes: length * size,
            count,
            pitch: if count <= 1 {
                length * size
            } else {
                stride * size
            },
        };
        let lines = match Lines::are_rows(layout) {
            true if cols <= 1 || col_stride == 1 => lines(cols, rows, row_stride),
            false if rows <= 1 || row_stride == 1 => lines(rows, cols, col_stride),
            _ => return None,
        };
        // Lines that overlap are no layout of a copy.
        (lines.count <= 1 || lines.pitch >= lines.bytes).then_some(lines)
    }

    /// Whether the lines are the rows.
    pub fn are_rows(layout: Layout) -> bool {
        match layout.cols {
            0 => true,
            1 => layout.row_stride != 1,
            _ => layout.col_stride == 1,
        }
    }

    /// Whether the lines follow each other without a gap.
    pub fn is_dense(self) -> bool {
        self.count <= 1 || self.pitch == self.bytes
    }

    /// The layout of a copy of a matrix, with its contiguous direction, in lines of a multiple
    /// of 16 bytes, which TMA can read.
    pub fn layout_of_copy(layout: Layout, size: usize) -> Layout {
        let Layout { rows, cols, .. } = layout;
        let pitch = |length: usize| (length * size).next_multiple_of(16) / size;
        if Lines::are_rows(layout) {
            Layout::strided(rows, cols, pitch(cols), 1)
        } else {
            Layout::strided(rows, cols, 1, pitch(rows))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_layouts() {
        let lines = |rows, cols, row_stride, col_stride| {
            let layout = Layout::strided(rows, cols, row_stride, col_stride);
            Lines::of(layout, 2).map(|lines| (lines.bytes, lines.count, lines.pitch))
        };
        assert_eq!(lines(3, 4, 4, 1), Some((8, 3, 8)));
        assert_eq!(lines(3, 4, 10, 1), Some((8, 3, 20)));
        assert_eq!(lines(3, 4, 1, 5), Some((6, 4, 10)));
        assert_eq!(lines(3, 1, 1, 9), Some((6, 1, 6)));
        assert_eq!(lines(3, 1, 7, 9), Some((2, 3, 14)));
        assert_eq!(lines(1, 4, 9, 1), Some((8, 1, 8)));
        assert_eq!(lines(1, 4, 9, 3), Some((2, 4, 6)));
        assert_eq!(lines(3, 4, 8, 2), None);
        assert_eq!(lines(3, 4, 0, 1), None);
        assert_eq!(lines(3, 4, 1, 1), None);
    }

    #[test]
    fn copies_keep_the_contiguous_direction() {
        let copy = |rows, cols, row_stride, col_stride| {
            let layout = Layout::strided(rows, cols, row_stride, col_stride);
            let Layout {
                row_stride,
                col_stride,
                ..
            } = Lines::layout_of_copy(layout, 2);
            (row_stride, col_stride)
        };
        assert_eq!(copy(3, 4, 9, 1), (8, 1));
        assert_eq!(copy(3, 16, 99, 1), (16, 1));
        assert_eq!(copy(3, 4, 1, 3), (1, 8));
        // A single column is a line where it is contiguous, and its copy too.
        assert_eq!(copy(3, 1, 1, 1), (1, 8));
        assert_eq!(copy(3, 1, 2, 1), (8, 1));
    }
}
