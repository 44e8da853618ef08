//! Device memory of cudarc with a shape and strides.

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DevicePtr, DevicePtrMut};
use tilewise::{Element, Layout};

mod sealed {
    pub trait Sealed {}
}

impl<T> sealed::Sealed for CudaSlice<T> {}
impl<T> sealed::Sealed for CudaView<'_, T> {}
impl<T> sealed::Sealed for CudaViewMut<'_, T> {}

/// Device memory to read: [`CudaSlice`], [`CudaView`] or [`CudaViewMut`].
///
/// The trait is sealed. [`DevicePtr`] is a safe trait, so an implementation of it elsewhere
/// could return any address and any length, and this crate's bounds check relies on both.
pub trait Slice<T>: DevicePtr<T> + sealed::Sealed {}

impl<T> Slice<T> for CudaSlice<T> {}
impl<T> Slice<T> for CudaView<'_, T> {}
impl<T> Slice<T> for CudaViewMut<'_, T> {}

/// Device memory to write: [`CudaSlice`] or [`CudaViewMut`]. Sealed, as [`Slice`] is.
pub trait SliceMut<T>: DevicePtrMut<T> + sealed::Sealed {}

impl<T> SliceMut<T> for CudaSlice<T> {}
impl<T> SliceMut<T> for CudaViewMut<'_, T> {}

/// A matrix to read: the elements of a slice, with a shape and strides. Element (0, 0) is the
/// slice's first.
///
/// Nothing is checked yet: [`Blas::run`](crate::Blas::run) returns an error if the layout
/// does not fit the slice.
#[derive(Clone, Copy)]
pub struct MatrixSlice<'a, T> {
    pub(crate) slice: &'a dyn DevicePtr<T>,
    /// Elements before element (0, 0).
    pub(crate) offset: usize,
    pub(crate) layout: Layout,
}

impl<'a, T: Element> MatrixSlice<'a, T> {
    /// The elements of `slice` as a matrix of `layout`.
    pub fn new(slice: &'a impl Slice<T>, layout: Layout) -> Self {
        MatrixSlice {
            slice,
            offset: 0,
            layout,
        }
    }

    /// Matrix `index` of the batch. (An empty one may begin anywhere.)
    pub(crate) fn batch(self, index: usize) -> Self {
        let step = index.wrapping_mul(self.layout.batch_stride);
        MatrixSlice {
            offset: self.offset.wrapping_add(step),
            layout: self.layout.batched_by(1, 0),
            ..self
        }
    }
}

/// A matrix to write: like [`MatrixSlice`], but it borrows the slice exclusively.
pub struct MatrixSliceMut<'a, T> {
    pub(crate) slice: &'a mut dyn DevicePtrMut<T>,
    /// Elements before element (0, 0).
    pub(crate) offset: usize,
    pub(crate) layout: Layout,
}

impl<'a, T: Element> MatrixSliceMut<'a, T> {
    /// The elements of `slice` as a matrix of `layout`.
    pub fn new(slice: &'a mut impl SliceMut<T>, layout: Layout) -> Self {
        MatrixSliceMut {
            slice,
            offset: 0,
            layout,
        }
    }

    /// Matrix `index` of the batch. (An empty one may begin anywhere.)
    pub(crate) fn batch(&mut self, index: usize) -> MatrixSliceMut<'_, T> {
        let step = index.wrapping_mul(self.layout.batch_stride);
        MatrixSliceMut {
            slice: &mut *self.slice,
            offset: self.offset.wrapping_add(step),
            layout: self.layout.batched_by(1, 0),
        }
    }
}
