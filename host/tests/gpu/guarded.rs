//! Matrices with guard bands.
//!
//! A matrix lies in the middle of a larger buffer. All of the buffer before, after and
//! between the elements of the matrix is NaN. A kernel that reads there poisons the
//! product, and a kernel that writes there is found when the buffer is copied back.

use tilewise::{Device, Element, Error, Layout, Matrix, MatrixView, MatrixViewMut};

use crate::arrangement::Placement;

/// Elements of the bands before and after. A multiple of 8, so that it keeps
/// the alignment of 16 bytes.
const BAND: usize = 1024;

/// A matrix and its surroundings, on the host.
pub struct Guarded<T> {
    /// The expected contents of the buffer.
    pub expected: Vec<T>,
    placement: Placement,
    start: usize,
}

impl<T: Element> Guarded<T> {
    /// A matrix of elements drawn from `draw`. Elements that share an address have one
    /// value.
    pub fn filled(placement: Placement, mut draw: impl FnMut() -> T) -> Self {
        let (mut expected, start) = surroundings(placement);
        for place in places(placement) {
            expected[start + place] = draw();
        }
        Guarded {
            expected,
            placement,
            start,
        }
    }

    /// A matrix of NaN.
    pub fn poisoned(placement: Placement) -> Self {
        Self::filled(placement, poison)
    }

    /// A copy on `device`.
    pub fn upload(&self, device: &Device) -> Result<Resident<T>, Error> {
        Ok(Resident {
            buffer: device.from_slice(&self.expected, 1, self.expected.len())?,
            layout: self.placement.layout,
            start: self.start,
        })
    }

    /// The elements of the matrix, row by row, in a copy of the buffer.
    pub fn elements(&self, buffer: &[T]) -> Vec<T> {
        places(self.placement)
            .map(|place| buffer[self.start + place])
            .collect()
    }

    /// Whether a copy of the buffer has the expected bits.
    pub fn is_unchanged(&self, buffer: &[T]) -> bool {
        bytemuck::cast_slice::<T, u8>(buffer) == bytemuck::cast_slice::<T, u8>(&self.expected)
    }

    /// The first position outside the matrix, relative to its first element, that is no
    /// longer the expected NaN.
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

/// A guarded matrix on a device.
pub struct Resident<T> {
    buffer: Matrix<T>,
    layout: Layout,
    start: usize,
}

impl<T: Element> Resident<T> {
    /// The matrix, to read.
    pub fn view(&self) -> Result<MatrixView<'_, T>, Error> {
        self.buffer
            .view()
            .slice(0..1, self.start..self.buffer.cols())?
            .with_layout(self.layout)
    }

    /// The matrix, to write.
    pub fn view_mut(&mut self) -> Result<MatrixViewMut<'_, T>, Error> {
        let end = self.buffer.cols();
        self.buffer
            .view_mut()
            .slice(0..1, self.start..end)?
            .with_layout(self.layout)
    }

    /// Makes the whole buffer a copy of `matrix`, of the same placement.
    pub fn write(&mut self, matrix: &Guarded<T>) -> Result<(), Error> {
        self.buffer.copy_from_slice(&matrix.expected)
    }

    /// The whole buffer as it is now.
    pub fn read_back(&self) -> Result<Vec<T>, Error> {
        self.buffer.to_vec()
    }

    /// The whole buffer: one row.
    pub fn buffer(&self) -> &Matrix<T> {
        &self.buffer
    }

    /// The same, to write.
    pub fn buffer_mut(&mut self) -> &mut Matrix<T> {
        &mut self.buffer
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

/// Where the elements stand, matrix by matrix and row by row, from the first.
fn places(placement: Placement) -> impl Iterator<Item = usize> {
    let layout = placement.layout;
    (0..layout.batches).flat_map(move |batch| {
        (0..layout.rows).flat_map(move |row| {
            let first = batch * layout.batch_stride + row * layout.row_stride;
            (0..layout.cols).map(move |col| first + col * layout.col_stride)
        })
    })
}
