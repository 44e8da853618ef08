//! [`Matrix`]: a matrix, or a batch of matrices, that owns its elements on one device.

use crate::device::Device;
use crate::element::Element;
use crate::error::Error;
use crate::layout::Layout;
use crate::storage::Storage;
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut, check_count};
use crate::window::Window;

/// A matrix, or a batch of matrices, that owns its elements on one device. It is row-major
/// unless it was made by [`Device::zeros_strided`].
#[derive(Debug)]
pub struct Matrix<T> {
    storage: Storage<T>,
    layout: Layout,
}

impl<T: Element> Matrix<T> {
    fn zeroed(device: &Device, layout: Layout) -> Result<Self, Error> {
        Matrix::allocate(device, layout, Storage::zeroed)
    }

    /// A batch of `rows`×`cols` matrices whose elements the caller writes before it lets
    /// anybody read them.
    pub(crate) fn unwritten(
        device: &Device,
        batches: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Self, Error> {
        Matrix::allocate(device, dense(batches, rows, cols), Storage::unwritten)
    }

    /// A matrix of `layout` in what `storage` allocates.
    fn allocate(
        device: &Device,
        layout: Layout,
        storage: impl Fn(&Device, Layout) -> Result<Storage<T>, Error>,
    ) -> Result<Self, Error> {
        if layout.allocation(size_of::<T>()).is_none() {
            return Err(Error::SizeOverflow { layout });
        }
        if layout.aliases() {
            return Err(Error::Aliasing { layout });
        }
        let storage = device.with_room(|| storage(device, layout))?;
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

    /// Number of matrices; 1 unless this is a batch.
    pub fn batches(&self) -> usize {
        self.layout.batches
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.storage.device()
    }

    /// Address of the first element in GPU memory; `None` on the CPU device. The memory is
    /// allocated, filled and freed in the order of [`Device::stream`], so work of yours on
    /// other streams waits for that stream, and ends before the matrix is dropped.
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

    /// Copies the elements, matrix by matrix and row by row. Waits for enqueued work first.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device has failed.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        self.view().to_vec()
    }

    /// Writes `row_major`, matrix by matrix and row by row. Waits until the copy is done.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `batches · rows · cols` elements.
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
        Matrix::zeroed(self, Layout::strided(rows, cols, row_stride, col_stride))
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
        self.from_slice_batched(row_major, 1, rows, cols)
    }

    /// A batch of `rows`×`cols` matrices of zeros, each row-major, one after the other.
    ///
    /// # Errors
    /// Those of [`Device::zeros`].
    pub fn zeros_batched<T: Element>(
        &self,
        batches: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>, Error> {
        Matrix::zeroed(self, dense(batches, rows, cols))
    }

    /// A batch of `rows`×`cols` matrices with the elements of `row_major`, matrix by matrix
    /// and row by row.
    ///
    /// ```
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = tilewise::Device::cpu();
    /// let a = device.from_slice_batched(&[1.0_f32, 2.0, 3.0, 4.0], 2, 1, 2)?;
    /// // [1 2]·[1 2]ᵀ and [3 4]·[3 4]ᵀ.
    /// let squares = device.matmul(&a, a.view().t())?;
    /// assert_eq!(squares.to_vec()?, [5.0, 25.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `batches · rows · cols` elements, and the
    /// errors of [`Device::zeros`].
    pub fn from_slice_batched<T: Element>(
        &self,
        row_major: &[T],
        batches: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>, Error> {
        let layout = dense(batches, rows, cols);
        check_count(layout, row_major.len())?;
        let mut matrix = Matrix::zeroed(self, layout)?;
        matrix.copy_from_slice(row_major)?;
        Ok(matrix)
    }
}

/// Dense matrices, one after the other.
fn dense(batches: usize, rows: usize, cols: usize) -> Layout {
    Layout::row_major(rows, cols).batched(batches).normalized()
}
