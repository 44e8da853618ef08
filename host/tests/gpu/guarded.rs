//! Matrices with guard bands.
//!
//! A matrix lies in the middle of a larger buffer. All that is not one of its
//! elements, before, after and between, is NaN. Whatever reads there poisons
//! the product, and whatever writes there is found when the buffer comes back.

use tilewise::{Device, Element, Error, Matrix, MatrixView, MatrixViewMut};

use crate::arrangement::Placement;

/// Elements of the bands before and after. A multiple of 8, so that it keeps
/// the alignment of 16 bytes.
const BAND: usize = 1024;

/// A matrix, its surroundings, and a copy of both on the host.
pub struct Guarded<T> {
    buffer: Matrix<T>,
    /// What the buffer should hold.
    pub expected: Vec<T>,
    placement: Placement,
    start: usize,
}

impl<T: Element> Guarded<T> {
    /// A matrix of elements drawn from `draw`. Elements that share a place are
    /// one.
    pub fn filled(
        device: &Device,
        placement: Placement,
        mut draw: impl FnMut() -> T,
    ) -> Result<Self, Error> {
        let (mut elements, start) = surroundings(placement);
        for place in places(placement) {
            elements[start + place] = draw();
        }
        let buffer = device.from_slice(&elements, 1, elements.len())?;
        Ok(Guarded {
            buffer,
            expected: elements,
            placement,
            start,
        })
    }

    /// A matrix of NaN.
    pub fn poisoned(device: &Device, placement: Placement) -> Result<Self, Error> {
        Self::filled(device, placement, poison)
    }

    /// Makes the buffer again what it was at first.
    pub fn restore(&mut self) -> Result<(), Error> {
        self.buffer.copy_from_slice(&self.expected)
    }

    /// The matrix, to read.
    pub fn view(&self) -> Result<MatrixView<'_, T>, Error> {
        let layout = self.placement.layout;
        self.buffer
            .view()
            .slice(0..1, self.start..self.expected.len())?
            .with_strides(
                layout.rows,
                layout.cols,
                layout.row_stride,
                layout.col_stride,
            )
    }

    /// The matrix, to write.
    pub fn view_mut(&mut self) -> Result<MatrixViewMut<'_, T>, Error> {
        let layout = self.placement.layout;
        let end = self.expected.len();
        self.buffer
            .view_mut()
            .slice(0..1, self.start..end)?
            .with_strides(
                layout.rows,
                layout.cols,
                layout.row_stride,
                layout.col_stride,
            )
    }

    /// The whole buffer as it is on the device now.
    pub fn read_back(&self) -> Result<Vec<T>, Error> {
        self.buffer.to_vec()
    }

    /// The elements of the matrix, row by row, in a copy of the buffer.
    pub fn elements(&self, buffer: &[T]) -> Vec<T> {
        places(self.placement)
            .map(|place| buffer[self.start + place])
            .collect()
    }

    /// Whether a copy of the buffer has all bits as they should be.
    pub fn is_unchanged(&self, buffer: &[T]) -> bool {
        bytemuck::cast_slice::<T, u8>(buffer) == bytemuck::cast_slice::<T, u8>(&self.expected)
    }

    /// The first place around the matrix, relative to its first element, that
    /// is not the NaN it should be.
    pub fn trespass(&self, buffer: &[T]) -> Option<isize> {
        let mut around = buffer.to_vec();
        for place in places(self.placement) {
            around[self.start + place] = poison();
        }
        let clean = poison::<T>();
        let clean = bytemuck::bytes_of(&clean);
        let found = around
            .iter()
            .position(|element| bytemuck::bytes_of(element) != clean)?;
        Some(found as isize - self.start as isize)
    }
}

fn poison<T: Element>() -> T {
    T::from_f64(f64::NAN)
}

/// A buffer of NaN for a matrix, and where its element (0, 0) stands.
fn surroundings<T: Element>(placement: Placement) -> (Vec<T>, usize) {
    let span = placement.layout.span().expect("test matrices are small");
    let start = BAND + placement.shift;
    (vec![poison(); start + span + BAND], start)
}

/// Where the elements stand, row by row, from element (0, 0).
fn places(placement: Placement) -> impl Iterator<Item = usize> {
    let layout = placement.layout;
    (0..layout.rows).flat_map(move |row| {
        (0..layout.cols).map(move |col| row * layout.row_stride + col * layout.col_stride)
    })
}
