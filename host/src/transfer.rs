//! Elements between a window and the caller's slices.
//!
//! A dense window moves as it is. A strided one on a GPU moves as the span it
//! covers, and the host picks or places the elements.

use crate::element::Element;
use crate::error::Error;
use crate::layout::Layout;
use crate::storage::Memory;
use crate::window::Window;

/// The elements of `window`, row by row.
pub(crate) fn read<T: Element>(window: Window<T>) -> Result<Vec<T>, Error> {
    let layout = window.layout();
    if layout.is_empty() {
        return Ok(Vec::new());
    }
    // A broadcast view may have more elements than memory.
    let bytes = (layout.rows.checked_mul(layout.cols))
        .and_then(|elements| elements.checked_mul(size_of::<T>()));
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Error::SizeOverflow { layout });
    }
    match window.storage().memory() {
        Memory::Host(buffer) => {
            // SAFETY: the window's offset lies inside the buffer.
            let first = unsafe { buffer.pointer().add(window.offset()) };
            // SAFETY: the window's layout lies inside the buffer.
            Ok(unsafe { gather(first, layout) })
        }
        Memory::Gpu(buffer) => {
            let mut span = vec![T::zeroed(); span(layout)];
            let offset = window.offset() * size_of::<T>();
            buffer.read(offset, bytemuck::cast_slice_mut(&mut span))?;
            if layout.is_dense_row_major() {
                return Ok(span);
            }
            // SAFETY: `span` holds every place of the layout.
            Ok(unsafe { gather(span.as_ptr(), layout) })
        }
    }
}

/// Writes `row_major` into `window`, leaving what lies between its elements.
///
/// # Safety
/// Nobody else reads or writes the storage meanwhile, and `row_major` has one
/// element for each of the window.
pub(crate) unsafe fn write<T: Element>(window: Window<T>, row_major: &[T]) -> Result<(), Error> {
    let layout = window.layout();
    if layout.is_empty() {
        return Ok(());
    }
    match window.storage().memory() {
        Memory::Host(buffer) => {
            // SAFETY: the window lies inside the buffer, which is the caller's alone.
            unsafe { scatter(row_major, buffer.pointer().add(window.offset()), layout) };
            Ok(())
        }
        Memory::Gpu(buffer) => {
            let offset = window.offset() * size_of::<T>();
            if layout.is_dense_row_major() {
                return buffer.write(offset, bytemuck::cast_slice(row_major));
            }
            let mut span = vec![T::zeroed(); span(layout)];
            buffer.read(offset, bytemuck::cast_slice_mut(&mut span))?;
            // SAFETY: `span` holds every place of the layout.
            unsafe { scatter(row_major, span.as_mut_ptr(), layout) };
            buffer.write(offset, bytemuck::cast_slice(&span))
        }
    }
}

/// Elements from the first to one past the farthest.
fn span(layout: Layout) -> usize {
    layout.span().expect("a window's span fits its allocation")
}

/// The elements of `layout`, row by row.
///
/// # Safety
/// `first` is element (0, 0) of memory that holds all of `layout`.
unsafe fn gather<T: Element>(first: *const T, layout: Layout) -> Vec<T> {
    let mut elements = Vec::with_capacity(layout.rows * layout.cols);
    for row in 0..layout.rows {
        for col in 0..layout.cols {
            // SAFETY: the caller's duty.
            elements.push(unsafe { *first.add(row * layout.row_stride + col * layout.col_stride) });
        }
    }
    elements
}

/// Places `row_major` as `layout` says.
///
/// # Safety
/// `first` is element (0, 0) of writable memory that holds all of `layout`, and
/// `row_major` has one element for each of it.
unsafe fn scatter<T: Element>(row_major: &[T], first: *mut T, layout: Layout) {
    for (row, elements) in row_major.chunks_exact(layout.cols).enumerate() {
        for (col, element) in elements.iter().enumerate() {
            let place = row * layout.row_stride + col * layout.col_stride;
            // SAFETY: the caller's duty.
            unsafe { *first.add(place) = *element };
        }
    }
}
