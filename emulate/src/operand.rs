//! Matrices in the memory of a device, with any strides, and checks of the bytes between
//! their elements.

use tilewise::emulator;
use tilewise::select::Strides;
use tilewise::{Device, Element, Error, Matrix, MatrixView, MatrixViewMut};

/// The byte that fills C, and the gaps between its elements, before a launch.
const SENTINEL: u8 = 0xa5;

/// The layout of a matrix in its allocation, in elements.
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

    /// The layout as the library's selection sees it.
    pub(crate) fn strides(&self, element_bytes: u32) -> Strides {
        Strides {
            row_stride: self.row_stride,
            col_stride: self.col_stride,
            batch_stride: 0,
            alignment: Strides::alignment_of(self.offset * u64::from(element_bytes)),
        }
    }
}

/// A matrix on a device, in an allocation that ends with its last element.
#[derive(Debug)]
pub(crate) struct Placed<T> {
    allocation: Matrix<T>,
    placement: Placement,
    rows: usize,
    cols: usize,
}

impl<T: Element> Placed<T> {
    /// A matrix with these elements, row by row; on an emulated GPU the bytes before and
    /// between the elements are unwritten.
    pub(crate) fn holding(
        device: &Device,
        placement: Placement,
        shape: (u32, u32),
        elements: &[T],
    ) -> Result<Self, Error> {
        let mut placed = Placed::allocate(device, placement, shape)?;
        placed.view_mut()?.copy_from_slice(elements)?;
        let bytes = size_of::<T>() as u64;
        let start = placed.allocation.device_address().unwrap_or_default();
        let mut next = 0;
        for (place, is_element) in placed.map().into_iter().chain([true]).enumerate() {
            if is_element {
                let (from, len) = (start + bytes * next, bytes * (place as u64 - next));
                if len > 0 {
                    emulator::leave_undefined(device, from, len)?;
                }
                next = place as u64 + 1;
            }
        }
        Ok(placed)
    }

    /// A matrix whose allocation is filled with the byte that [`Placed::stray`] checks.
    pub(crate) fn of_sentinels(
        device: &Device,
        placement: Placement,
        shape: (u32, u32),
    ) -> Result<Self, Error> {
        let mut placed = Placed::allocate(device, placement, shape)?;
        let sentinel = bytemuck::pod_read_unaligned(&vec![SENTINEL; size_of::<T>()]);
        placed.allocation.view_mut().fill(sentinel)?;
        Ok(placed)
    }

    fn allocate(
        device: &Device,
        placement: Placement,
        (rows, cols): (u32, u32),
    ) -> Result<Self, Error> {
        let last = |extent: u32, stride: u64| u64::from(extent - 1) * stride;
        let span = match (rows, cols) {
            (0, _) | (_, 0) => 0,
            _ => last(rows, placement.row_stride) + last(cols, placement.col_stride) + 1,
        };
        Ok(Placed {
            allocation: device.zeros(1, (placement.offset + span) as usize)?,
            placement,
            rows: rows as usize,
            cols: cols as usize,
        })
    }

    /// The matrix, to read.
    pub(crate) fn view(&self) -> Result<MatrixView<'_, T>, Error> {
        let (from, row_stride, col_stride) = self.strides();
        self.allocation
            .view()
            .slice(0..1, from..self.allocation.cols())?
            .with_strides(self.rows, self.cols, row_stride, col_stride)
    }

    /// The matrix, to write.
    pub(crate) fn view_mut(&mut self) -> Result<MatrixViewMut<'_, T>, Error> {
        let (from, row_stride, col_stride) = self.strides();
        let end = self.allocation.cols();
        self.allocation
            .view_mut()
            .slice(0..1, from..end)?
            .with_strides(self.rows, self.cols, row_stride, col_stride)
    }

    fn strides(&self) -> (usize, usize, usize) {
        let Placement {
            offset,
            row_stride,
            col_stride,
        } = self.placement;
        (offset as usize, row_stride as usize, col_stride as usize)
    }

    /// Whether each place of the allocation holds an element.
    fn map(&self) -> Vec<bool> {
        let (offset, row_stride, col_stride) = self.strides();
        let mut map = vec![false; self.allocation.cols()];
        for row in 0..self.rows {
            for col in 0..self.cols {
                map[offset + row * row_stride + col * col_stride] = true;
            }
        }
        map
    }

    /// The offset in the allocation of a byte between the elements that no longer has the
    /// value from [`Placed::of_sentinels`].
    pub(crate) fn stray(&self) -> Result<Option<u64>, Error> {
        let all = self.allocation.to_vec()?;
        let bytes: &[u8] = bytemuck::cast_slice(&all);
        let map = self.map();
        let stray = bytes
            .iter()
            .enumerate()
            .position(|(at, &byte)| byte != SENTINEL && !map[at / size_of::<T>()]);
        Ok(stray.map(|offset| offset as u64))
    }
}
