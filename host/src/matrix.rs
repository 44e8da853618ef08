//! [`Matrix`]: elements that live on one device.

use crate::device::Device;
use crate::element::Element;
use crate::error::Error;
use crate::layout::Layout;
use crate::storage::Storage;
use crate::view::{MatrixView, MatrixViewMut, Window};

/// A matrix that owns its elements on one device, row-major unless it was made
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
        let storage = Storage::zeroed(device, layout)?;
        Ok(Matrix { storage, layout })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Columns.
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
        self.device().is_gpu().then(|| self.storage.address())
    }

    /// The whole matrix, to read.
    pub fn view(&self) -> MatrixView<'_, T> {
        MatrixView(self.window())
    }

    /// The whole matrix, to write.
    pub fn view_mut(&mut self) -> MatrixViewMut<'_, T> {
        MatrixViewMut::new(self.window()).expect("checked when the matrix was made")
    }

    fn window(&self) -> Window<'_, T> {
        Window::new(&self.storage, 0, self.layout).expect("the storage was made for this layout")
    }

    /// The elements, row by row. Waits for work that is under way.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device has failed.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        self.view().to_vec()
    }

    /// Writes `row_major`, row by row. Waits until it is done.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `rows · cols` elements.
    pub fn copy_from_slice(&mut self, row_major: &[T]) -> Result<(), Error> {
        self.view_mut().copy_from_slice(row_major)
    }
}
