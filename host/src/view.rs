//! Views: shape and strides over a matrix's memory.
//!
//! A view copies nothing: transposing, slicing, stepping and broadcasting only change
//! shape and strides. Every view is checked against its allocation when it is made, so
//! code that takes views cannot access memory outside the allocation. [`MatrixView`]
//! reads. [`MatrixViewMut`] writes: it borrows its matrix exclusively, and no two of its
//! elements share an address.

use std::marker::PhantomData;
use std::ops::Range;

use crate::device::Device;
use crate::element::Element;
use crate::error::Error;
use crate::layout::Layout;
use crate::memory::Memory;
use crate::window::Window;

/// A matrix, or a batch of matrices, to read: shape and strides over memory that someone
/// else owns.
///
/// Strides count elements; a stride of 0 repeats a row, a column or a matrix. The other
/// views of a batch ([`MatrixView::t`], [`MatrixView::slice`], [`MatrixView::step`]) have the
/// same part of each of its matrices.
#[derive(Debug)]
pub struct MatrixView<'a, T>(pub(crate) Window<'a, T>);

impl<T> Clone for MatrixView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MatrixView<'_, T> {}

macro_rules! accessors {
    () => {
        /// Number of rows.
        pub fn rows(&self) -> usize {
            self.layout().rows
        }

        /// Number of columns.
        pub fn cols(&self) -> usize {
            self.layout().cols
        }

        /// Elements between (r, c) and (r + 1, c).
        pub fn row_stride(&self) -> usize {
            self.layout().row_stride
        }

        /// Elements between (r, c) and (r, c + 1).
        pub fn col_stride(&self) -> usize {
            self.layout().col_stride
        }

        /// Number of matrices; 1 unless this is a view of a batch.
        pub fn batches(&self) -> usize {
            self.layout().batches
        }

        /// Elements from one matrix of the batch to the next; 0 repeats the matrix.
        pub fn batch_stride(&self) -> usize {
            self.layout().batch_stride
        }

        /// Shape and strides.
        pub fn layout(&self) -> Layout {
            self.0.layout()
        }

        /// The device that holds the elements.
        pub fn device(&self) -> &Device {
            self.0.memory().device()
        }

        /// Address of the first element, in the memory of [`Self::device`].
        pub fn address(&self) -> u64 {
            self.0.address()
        }

        /// Copies the elements, matrix by matrix and row by row. Waits for enqueued work first.
        ///
        /// # Errors
        /// [`Error::Driver`] when the device has failed.
        pub fn to_vec(&self) -> Result<Vec<T>, Error> {
            crate::transfer::read(self.0)
        }
    };
}

impl<'a, T: Element> MatrixView<'a, T> {
    accessors!();

    /// A view of memory that the library does not own: a tensor of another library, or an
    /// allocation of your own. `address` is the address of the first element: a device pointer
    /// on a GPU, a pointer of this process on the CPU device.
    ///
    /// ```
    /// use tilewise::{Device, Layout, MatrixView};
    ///
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = Device::cpu();
    /// // The first two columns of three rows of four elements.
    /// let elements: Vec<f32> = (0..12).map(|i| i as f32).collect();
    /// let layout = Layout { rows: 3, cols: 2, ..Layout::row_major(3, 4) };
    /// let address = elements.as_ptr().expose_provenance() as u64;
    /// // SAFETY: `elements` outlives the view, and nothing writes to it.
    /// let view = unsafe { MatrixView::<f32>::from_raw(&device, address, layout)? };
    /// assert_eq!(view.to_vec()?, [0.0, 1.0, 4.0, 5.0, 8.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`] for a layout that no memory can hold; [`Error::Address`] for
    /// an address that is 0, is not a multiple of the element's bytes, or is so high that
    /// the matrix would leave the address space.
    ///
    /// # Safety
    /// Unless the layout is empty:
    /// - The whole span of the layout lies in one allocation. On a GPU, the primary context
    ///   of that GPU can access the allocation.
    /// - The allocation lives for `'a`, and further until all work that was enqueued with
    ///   this view has finished: on [`Device::stream`], and on the streams of
    ///   [`Plan::run_on`](crate::Plan::run_on) and [`Gemm::run_on`](crate::Gemm::run_on).
    /// - Nothing writes to the elements while the library reads them. Work of other streams
    ///   that writes to them has finished, or the stream that reads them has been made to
    ///   wait for it. [`Self::to_vec`] and all calls that name no stream read on
    ///   [`Device::stream`].
    /// - The elements are initialised. On the CPU device, the provenance of the pointer has
    ///   been exposed.
    pub unsafe fn from_raw(
        device: &'a Device,
        address: u64,
        layout: Layout,
    ) -> Result<Self, Error> {
        // SAFETY: the caller ensures it.
        let memory = unsafe { Memory::foreign(device, address, layout)? };
        Window::new(memory, 0, layout).map(MatrixView)
    }

    /// The transpose.
    pub fn t(self) -> Self {
        MatrixView(self.0.transposed())
    }

    /// The part of the view with the rows `rows` and the columns `cols`.
    ///
    /// # Errors
    /// [`Error::SliceRange`] when a range is backwards or leaves the view.
    pub fn slice(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self, Error> {
        self.0.slice(rows, cols).map(MatrixView)
    }

    /// Every `row_step`th row and every `col_step`th column, from the first.
    ///
    /// # Errors
    /// [`Error::ZeroStep`].
    pub fn step(self, row_step: usize, col_step: usize) -> Result<Self, Error> {
        self.0.step(row_step, col_step).map(MatrixView)
    }

    /// Matrix `index` of the batch.
    ///
    /// # Errors
    /// [`Error::SliceRange`] when there is no such matrix.
    pub fn batch(self, index: usize) -> Result<Self, Error> {
        self.0.batch(index).map(MatrixView)
    }

    /// A view with another layout from the same first element. A stride of 0 repeats a row,
    /// a column or a matrix.
    ///
    /// ```
    /// use tilewise::{Device, Layout};
    ///
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let matrix = Device::cpu().from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
    /// // Two batches of one row each.
    /// let rows = matrix.view().with_layout(Layout::row_major(1, 2).batched(2))?;
    /// assert_eq!(rows.batch(1)?.to_vec()?, [3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the new view leaves the allocation.
    pub fn with_layout(self, layout: Layout) -> Result<Self, Error> {
        self.0.with_layout(layout).map(MatrixView)
    }

    /// A view of one matrix with another shape and other strides from the same first
    /// element. A stride of 0 repeats a row or a column.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the new view leaves the allocation.
    pub fn with_strides(
        self,
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<Self, Error> {
        self.with_layout(Layout::strided(rows, cols, row_stride, col_stride))
    }
}

/// A matrix, or a batch of matrices, to write: like [`MatrixView`], but it borrows the matrix exclusively, and no
/// two of its elements share an address.
#[derive(Debug)]
pub struct MatrixViewMut<'a, T>(pub(crate) Window<'a, T>, PhantomData<&'a mut T>);

impl<'a, T: Element> MatrixViewMut<'a, T> {
    accessors!();

    /// A view of memory that the library does not own, to write. This is
    /// [`MatrixView::from_raw`], whose example applies, for memory that only this view
    /// accesses.
    ///
    /// # Errors
    /// Those of [`MatrixView::from_raw`], and [`Error::Aliasing`] when two elements share an
    /// address.
    ///
    /// # Safety
    /// What [`MatrixView::from_raw`] asks for, and: nothing else reads or writes the elements
    /// while the library uses them. So they do not overlap the other operands of a product.
    /// Elements that are only written need not be initialised.
    pub unsafe fn from_raw(
        device: &'a Device,
        address: u64,
        layout: Layout,
    ) -> Result<Self, Error> {
        // SAFETY: the caller ensures it.
        let memory = unsafe { Memory::foreign(device, address, layout)? };
        Self::new(Window::new(memory, 0, layout)?)
    }

    /// A view of `window`. The caller must have exclusive access to its memory.
    pub(crate) fn new(window: Window<'a, T>) -> Result<Self, Error> {
        let layout = window.layout();
        if layout.aliases() {
            return Err(Error::Aliasing { layout });
        }
        Ok(MatrixViewMut(window, PhantomData))
    }

    /// The same view with a shorter lifetime, so that `self` can be used again afterwards.
    pub fn reborrow(&mut self) -> MatrixViewMut<'_, T> {
        MatrixViewMut(self.0, PhantomData)
    }

    /// The same view, to read.
    pub fn as_view(&self) -> MatrixView<'_, T> {
        MatrixView(self.0)
    }

    /// The transpose.
    pub fn t(self) -> Self {
        MatrixViewMut(self.0.transposed(), PhantomData)
    }

    /// The part of the view with the rows `rows` and the columns `cols`.
    ///
    /// # Errors
    /// [`Error::SliceRange`] when a range is backwards or leaves the view.
    pub fn slice(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self, Error> {
        Self::new(self.0.slice(rows, cols)?)
    }

    /// Every `row_step`th row and every `col_step`th column, from the first.
    ///
    /// # Errors
    /// [`Error::ZeroStep`].
    pub fn step(self, row_step: usize, col_step: usize) -> Result<Self, Error> {
        Self::new(self.0.step(row_step, col_step)?)
    }

    /// Matrix `index` of the batch.
    ///
    /// # Errors
    /// [`Error::SliceRange`] when there is no such matrix.
    pub fn batch(self, index: usize) -> Result<Self, Error> {
        Self::new(self.0.batch(index)?)
    }

    /// A view with another layout from the same first element.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the new view leaves the allocation,
    /// [`Error::Aliasing`] when two of its elements would share an address.
    pub fn with_layout(self, layout: Layout) -> Result<Self, Error> {
        Self::new(self.0.with_layout(layout)?)
    }

    /// A view of one matrix with another shape and other strides from the same first
    /// element.
    ///
    /// # Errors
    /// Those of [`MatrixViewMut::with_layout`].
    pub fn with_strides(
        self,
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<Self, Error> {
        self.with_layout(Layout::strided(rows, cols, row_stride, col_stride))
    }

    /// Writes `row_major`, matrix by matrix and row by row. Elements of the allocation that
    /// are not in the view keep their values. Waits until the copy is done.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless there are `batches · rows · cols` elements.
    pub fn copy_from_slice(&mut self, row_major: &[T]) -> Result<(), Error> {
        check_count(self.layout(), row_major.len())?;
        // SAFETY: `&mut self` is the only access to the memory.
        unsafe { crate::transfer::write(self.0, row_major) }
    }

    /// Writes `value` to every element. Waits until the writes are done.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device has failed.
    pub fn fill(&mut self, value: T) -> Result<(), Error> {
        // SAFETY: `&mut self` is the only access to the memory.
        unsafe { crate::transfer::fill(self.0, value) }
    }
}

/// Returns an error unless `layout` has `got` elements.
pub(crate) fn check_count(layout: Layout, got: usize) -> Result<(), Error> {
    if layout.elements() == Some(got) {
        return Ok(());
    }
    Err(Error::ElementCount {
        batches: layout.batches,
        rows: layout.rows,
        cols: layout.cols,
        got,
    })
}

/// Types that can be read as a matrix: [`MatrixView`], and references to
/// [`Matrix`](crate::Matrix).
pub trait AsView<T> {
    /// A view of the whole matrix.
    fn as_view(&self) -> MatrixView<'_, T>;
}

impl<T: Element> AsView<T> for MatrixView<'_, T> {
    fn as_view(&self) -> MatrixView<'_, T> {
        *self
    }
}

/// Types that can be written as a matrix: [`MatrixViewMut`], and mutable references to
/// [`Matrix`](crate::Matrix).
pub trait AsViewMut<T> {
    /// A view of the whole matrix, to write.
    fn as_view_mut(&mut self) -> MatrixViewMut<'_, T>;
}

impl<T: Element> AsViewMut<T> for MatrixViewMut<'_, T> {
    fn as_view_mut(&mut self) -> MatrixViewMut<'_, T> {
        // The result borrows `self` mutably, so the view stays exclusive.
        MatrixViewMut(self.0, PhantomData)
    }
}
