//! Layouts of test matrices in memory.

use tilewise::{Layout, Major};

/// A recipe for strides, for any shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Row-major, dense.
    Rows,
    /// Column-major, dense.
    Cols,
    /// Row-major, lines a multiple of 8 elements apart (16 bytes, at least).
    RowsPadded,
    /// Column-major, likewise.
    ColsPadded,
    /// Row-major, lines an odd number of elements apart.
    RowsOdd,
    /// Column-major, likewise.
    ColsOdd,
    /// Row-major and padded, but starting one element past an aligned address.
    RowsShifted,
    /// Column-major, likewise.
    ColsShifted,
    /// Row-major, a slice of a wider matrix: 8 elements past an aligned address.
    RowsSliced,
    /// Column-major, likewise.
    ColsSliced,
    /// Contiguous in neither direction, columns nearer than rows.
    Scattered,
    /// Contiguous in neither direction, rows nearer than columns.
    ScatteredCols,
    /// All rows are one (stride 0).
    OneRow,
    /// All columns are one (stride 0).
    OneCol,
    /// All elements are one.
    OneElement,
}

/// Layouts in which no two elements share an address, as C needs; one of each kind.
pub const DISTINCT: [Arrangement; 9] = {
    use Arrangement::*;
    [
        Rows,
        Cols,
        RowsPadded,
        ColsPadded,
        RowsOdd,
        ColsOdd,
        RowsShifted,
        ColsShifted,
        Scattered,
    ]
};

/// Layouts that repeat elements.
pub const REPEATING: [Arrangement; 3] = {
    use Arrangement::*;
    [OneRow, OneCol, OneElement]
};

/// Shape, strides, and where element (0, 0) stands in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Shape and strides.
    pub layout: Layout,
    /// Elements before element (0, 0), past an aligned address.
    pub shift: usize,
}

impl Arrangement {
    /// For a `rows`×`cols` matrix.
    pub fn place(self, rows: usize, cols: usize) -> Placement {
        let padded = |line: usize| line.next_multiple_of(8) + 8;
        let odd = |line: usize| (line + 2) | 1;
        let (row_stride, col_stride) = match self {
            Arrangement::Rows => (cols, 1),
            Arrangement::Cols => (1, rows),
            Arrangement::RowsPadded | Arrangement::RowsShifted => (padded(cols), 1),
            Arrangement::ColsPadded | Arrangement::ColsShifted => (1, padded(rows)),
            Arrangement::RowsOdd => (odd(cols), 1),
            Arrangement::ColsOdd => (1, odd(rows)),
            Arrangement::RowsSliced => (padded(cols) + 40, 1),
            Arrangement::ColsSliced => (1, padded(rows) + 40),
            Arrangement::Scattered => (3 * cols + 5, 3),
            Arrangement::ScatteredCols => (2, 2 * rows + 6),
            Arrangement::OneRow => (0, 1),
            Arrangement::OneCol => (1, 0),
            Arrangement::OneElement => (0, 0),
        };
        let shift = match self {
            Arrangement::RowsShifted | Arrangement::ColsShifted => 1,
            Arrangement::RowsSliced | Arrangement::ColsSliced => 8,
            _ => 0,
        };
        Placement {
            layout: Layout::strided(rows, cols, row_stride, col_stride),
            shift,
        }
    }

    /// The same with rows and columns exchanged.
    pub fn turned(self) -> Arrangement {
        use Arrangement::*;
        match self {
            Rows => Cols,
            Cols => Rows,
            RowsPadded => ColsPadded,
            ColsPadded => RowsPadded,
            RowsOdd => ColsOdd,
            ColsOdd => RowsOdd,
            RowsShifted => ColsShifted,
            ColsShifted => RowsShifted,
            RowsSliced => ColsSliced,
            ColsSliced => RowsSliced,
            Scattered => ScatteredCols,
            ScatteredCols => Scattered,
            OneRow => OneCol,
            OneCol => OneRow,
            OneElement => OneElement,
        }
    }

    /// The name used in the names of cases.
    pub fn name(self) -> &'static str {
        match self {
            Arrangement::Rows => "rows",
            Arrangement::Cols => "cols",
            Arrangement::RowsPadded => "rows+padded",
            Arrangement::ColsPadded => "cols+padded",
            Arrangement::RowsOdd => "rows+odd",
            Arrangement::ColsOdd => "cols+odd",
            Arrangement::RowsShifted => "rows+shifted",
            Arrangement::ColsShifted => "cols+shifted",
            Arrangement::RowsSliced => "rows+sliced",
            Arrangement::ColsSliced => "cols+sliced",
            Arrangement::Scattered => "scattered",
            Arrangement::ScatteredCols => "scattered-cols",
            Arrangement::OneRow => "one-row",
            Arrangement::OneCol => "one-col",
            Arrangement::OneElement => "one-element",
        }
    }
}

impl Placement {
    /// The same elements with rows and columns exchanged.
    pub fn transposed(self) -> Placement {
        Placement {
            layout: self.layout.transposed(),
            ..self
        }
    }

    /// Whether TMA can read this matrix, of elements with `bytes` bytes, as one
    /// operand: rows are along M or N, columns along K. This repeats the rules of
    /// `cuTensorMapEncodeTiled` on purpose: the library must pack, or refuse, exactly the
    /// operands that break them.
    pub fn tma_reads(self, major: Major, bytes: usize) -> bool {
        let (line, lines, stride, pitch) = self.lines(major);
        let contiguous = line <= 1 || stride == 1;
        let pitched = lines <= 1 || ((pitch * bytes).is_multiple_of(16) && pitch >= line);
        contiguous && pitched && (self.shift * bytes).is_multiple_of(16)
    }

    /// Whether this matrix has lines of contiguous elements at different addresses.
    pub fn has_lines(self, major: Major) -> bool {
        let (line, lines, stride, pitch) = self.lines(major);
        (line <= 1 || stride == 1) && (lines <= 1 || pitch != 0)
    }

    /// Elements of a line, number of lines, and the strides along and across them.
    fn lines(self, major: Major) -> (usize, usize, usize, usize) {
        match major {
            Major::K => (
                self.layout.cols,
                self.layout.rows,
                self.layout.col_stride,
                self.layout.row_stride,
            ),
            Major::Mn => (
                self.layout.rows,
                self.layout.cols,
                self.layout.row_stride,
                self.layout.col_stride,
            ),
        }
    }
}
