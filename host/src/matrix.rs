//! [`Matrix`]: a matrix that owns its elements on one device.

use crate::device::Device;
use crate::element::Element;
use crate::error::Error;
use crate::layout::Layout;
use crate::storage::Storage;
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut};
use crate::window::Window;

/// A matrix that owns its elements on one device. It is row-major unless it was made
/// by [`Device::zeros_strided`].
#[derive(Debug)]
pub struct Matrix<T> {
    storage: Storage<T>,
    layout: Layout,
}

impl<T: Element> Matrix<T> {
    pub(crate) fn zeroed(device: &Device, layout: Layout) -> Result<Self, Error> {
        if layout.aliases() {
            return Err(Error::Aliasing { layout });
        }
        let storage = device.with_room(|| Storage::zeroed(device, layout))?;
        Ok(Matrix { storage, layout })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.storage.device()
    }

    /// Address of element (0, 0) in GPU memory; `None` on the CPU device.
    pub fn device_address(&self) -> Option<u64> {
        self.device()
            .is_gpu()
            .then(|| self.storage.memory().address())
    }

    /// A view of the whole matrix, to read.
    pub fn view(&self) -> MatrixView<'_, T> {
        MatrixView(self.window())
    }

    /// A view of the whole matrix, to write.
    pub fn view_mut(&mut self) -> MatrixViewMut<'_, T> {
        MatrixViewMut::new(self.window()).expect("checked when the matrix was made")
    }

    fn window(&self) -> Window<'_, T> {
        Window::new(self.storage.memory(), 0, self.layout)
            .expect("the storage was made for this layout")
    }

    /// Copies the elements, row by row. Waits for enqueued work first.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device has failed.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        self.view().to_vec()
    }

    /// Writes `row_major`, row by row. Waits until the copy is done.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `rows · cols` elements.
    pub fn copy_from_slice(&mut self, row_major: &[T]) -> Result<(), Error> {
        self.view_mut().copy_from_slice(row_major)
    }
}

impl<T: Element> AsView<T> for &Matrix<T> {
    fn as_view(&self) -> MatrixView<'_, T> {
        self.view()
    }
}

impl<T: Element> AsViewMut<T> for &mut Matrix<T> {
    fn as_view_mut(&mut self) -> MatrixViewMut<'_, T> {
        self.view_mut()
    }
}

/// Matrices on this device.
impl Device {
    /// A `rows`×`cols` matrix of zeros, row-major.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::SizeOverflow`].
    pub fn zeros<T: Element>(&self, rows: usize, cols: usize) -> Result<Matrix<T>, Error> {
        Matrix::zeroed(self, Layout::row_major(rows, cols))
    }

    /// A `rows`×`cols` matrix of zeros with any strides, in elements. This allows
    /// a pitch, column-major matrices and gaps.
    ///
    /// # Errors
    /// The errors of [`Device::zeros`], and [`Error::Aliasing`] when two elements would
    /// share an address.
    pub fn zeros_strided<T: Element>(
        &self,
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<Matrix<T>, Error> {
        let layout = Layout {
            rows,
            cols,
            row_stride,
            col_stride,
        };
        Matrix::zeroed(self, layout)
    }

    /// A `rows`×`cols` matrix, row-major, with the elements of `row_major`.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `rows · cols` elements, and the errors of
    /// [`Device::zeros`].
    pub fn from_slice<T: Element>(
        &self,
        row_major: &[T],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>, Error> {
        if rows.checked_mul(cols) != Some(row_major.len()) {
            let got = row_major.len();
            return Err(Error::ElementCount { rows, cols, got });
        }
        let mut matrix = self.zeros(rows, cols)?;
        matrix.copy_from_slice(row_major)?;
        Ok(matrix)
    }
}
