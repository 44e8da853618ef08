//! Matrices in emulated memory, any strides.

use gpu_kernels::Operand;
use tilewise::select::Strides;
use tilewise_emulator::{Memory, NoSuchMemory};

/// What lies in C, and between its elements, before a launch.
const SENTINEL: u8 = 0xa5;

/// Where a matrix lies in its allocation, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// From the start of the allocation, a multiple of 256 bytes, to element (0, 0).
    pub offset: u64,
    /// From (r, c) to (r + 1, c).
    pub row_stride: u64,
    /// From (r, c) to (r, c + 1).
    pub col_stride: u64,
}

impl Placement {
    /// Rows of `columns` elements of `bytes`, the next at a multiple of 16 bytes.
    pub fn rows(columns: u32, bytes: u32) -> Placement {
        Placement {
            offset: 0,
            row_stride: u64::from(columns).next_multiple_of(u64::from(16 / bytes)),
            col_stride: 1,
        }
    }

    /// Columns of `rows` elements of `bytes`, the next at a multiple of 16 bytes.
    pub fn columns(rows: u32, bytes: u32) -> Placement {
        Placement::rows(rows, bytes).transposed()
    }

    /// Rows and columns exchanged.
    pub fn transposed(self) -> Placement {
        Placement {
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// As a launch parameter, of an allocation at `start` and elements of
    /// `element_bytes`.
    pub(crate) fn operand_at(&self, start: u64, element_bytes: u32) -> Operand {
        Operand {
            address: start + self.offset * u64::from(element_bytes),
            row_stride: self.row_stride,
            col_stride: self.col_stride,
        }
    }

    /// As the selection sees it.
    pub(crate) fn strides(&self, element_bytes: u32) -> Strides {
        let operand = self.operand_at(0, element_bytes);
        Strides {
            row_stride: operand.row_stride,
            col_stride: operand.col_stride,
            alignment: Strides::alignment_of(operand.address),
        }
    }

    fn index(&self, row: u32, col: u32) -> u64 {
        self.offset + u64::from(row) * self.row_stride + u64::from(col) * self.col_stride
    }
}

/// A matrix in emulated memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    placement: Placement,
    rows: u32,
    cols: u32,
    element_bytes: u32,
    /// Of the allocation.
    start: u64,
    /// Of the allocation.
    bytes: u64,
}

impl Placed {
    /// Room for a matrix: no more than its elements need.
    pub(crate) fn allocate(
        memory: &mut Memory,
        placement: Placement,
        (rows, cols): (u32, u32),
        element_bytes: u32,
    ) -> Placed {
        let elements = if rows == 0 || cols == 0 {
            0
        } else {
            placement.index(rows - 1, cols - 1) + 1
        };
        let bytes = elements * u64::from(element_bytes);
        Placed {
            placement,
            rows,
            cols,
            element_bytes,
            start: memory.allocate(bytes),
            bytes,
        }
    }

    /// As a launch parameter.
    pub(crate) fn operand(&self) -> Operand {
        self.placement.operand_at(self.start, self.element_bytes)
    }

    /// As the selection sees it.
    pub(crate) fn strides(&self) -> Strides {
        self.placement.strides(self.element_bytes)
    }

    fn address(&self, row: u32, col: u32) -> u64 {
        self.start + self.placement.index(row, col) * u64::from(self.element_bytes)
    }

    /// Writes the elements, given row by row, and nothing between them.
    pub(crate) fn upload(&self, memory: &Memory, elements: &[u8]) -> Result<(), NoSuchMemory> {
        let each = self.element_bytes as usize;
        for row in 0..self.rows {
            let line = &elements[row as usize * self.cols as usize * each..];
            let line = &line[..self.cols as usize * each];
            if self.placement.col_stride == 1 {
                memory.write(self.address(row, 0), line)?;
            } else {
                for (col, element) in line.chunks_exact(each).enumerate() {
                    memory.write(self.address(row, col as u32), element)?;
                }
            }
        }
        Ok(())
    }

    /// Fills the allocation with what [`Placed::strays`] looks for.
    pub(crate) fn fill(&self, memory: &Memory) -> Result<(), NoSuchMemory> {
        memory.write(self.start, &vec![SENTINEL; self.bytes as usize])
    }

    /// The elements, row by row.
    pub(crate) fn download(&self, memory: &Memory) -> Result<Vec<u8>, NoSuchMemory> {
        let all = memory.read(self.start, self.bytes)?;
        let mut elements = Vec::with_capacity(self.rows as usize * self.cols as usize * 4);
        for (row, col) in self.places() {
            let at = (self.address(row, col) - self.start) as usize;
            elements.extend_from_slice(&all[at..at + self.element_bytes as usize]);
        }
        Ok(elements)
    }

    /// The offset of a byte between the elements that is no longer what
    /// [`Placed::fill`] put there.
    pub(crate) fn strays(&self, memory: &Memory) -> Result<Option<u64>, NoSuchMemory> {
        let mut all = memory.read(self.start, self.bytes)?;
        for (row, col) in self.places() {
            let at = (self.address(row, col) - self.start) as usize;
            all[at..at + self.element_bytes as usize].fill(SENTINEL);
        }
        let stray = all.iter().position(|&byte| byte != SENTINEL);
        Ok(stray.map(|offset| offset as u64))
    }

    fn places(&self) -> impl Iterator<Item = (u32, u32)> {
        let cols = self.cols;
        (0..self.rows).flat_map(move |row| (0..cols).map(move |col| (row, col)))
    }
}
