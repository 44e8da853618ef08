//! Zeroed memory of the process for elements, which is freed on drop.

use std::alloc::{self, handle_alloc_error};
use std::ptr::NonNull;

use crate::element::Element;
use crate::error::Error;

/// Elements in the process's memory. Views share the buffer, and the types of the views
/// control who may write, so the buffer hands out a raw pointer.
#[derive(Debug)]
pub(crate) struct HostBuffer<T> {
    pointer: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its elements.
unsafe impl<T: Send> Send for HostBuffer<T> {}
// SAFETY: `&HostBuffer` gives access to a raw pointer and the length only.
unsafe impl<T: Sync> Sync for HostBuffer<T> {}

impl<T: Element> HostBuffer<T> {
    /// Allocates `len` zeros. The caller has checked that their bytes fit an `isize`.
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        let layout = Self::layout(len);
        let pointer = if len == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: the size of the layout is not zero.
            let pointer = unsafe { alloc::alloc_zeroed(layout) };
            NonNull::new(pointer.cast()).ok_or_else(|| Error::OutOfMemory {
                device: "the CPU".into(),
                wanted: layout.size() as u64,
                free: available_memory().unwrap_or_else(|| handle_alloc_error(layout)),
            })?
        };
        Ok(HostBuffer { pointer, len })
    }
}

impl<T> HostBuffer<T> {
    fn layout(len: usize) -> alloc::Layout {
        alloc::Layout::array::<T>(len).expect("the caller has seen that it fits")
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The elements, of which there is no view.
    pub(crate) fn elements(&mut self) -> &mut [T] {
        // SAFETY: the buffer has so many elements, and is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.len) }
    }

    /// A pointer to the first element. It is valid for reads, and for writes by the code
    /// that holds the matrix exclusively.
    pub(crate) fn pointer(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated with this layout.
            unsafe { alloc::dealloc(self.pointer.as_ptr().cast(), Self::layout(self.len)) };
        }
    }
}

/// Bytes that the system can still allocate (`MemAvailable`, proc(5)).
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
