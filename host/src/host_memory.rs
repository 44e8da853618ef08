//! Memory of the process for elements, zeroed and freed on drop.

use std::alloc::{self, handle_alloc_error};
use std::ptr::NonNull;

use crate::element::Element;
use crate::error::Error;

/// Elements in the process's memory. Views share it and say by their types who
/// may write, so it hands out a raw pointer.
#[derive(Debug)]
pub(crate) struct HostBuffer<T> {
    pointer: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its elements.
unsafe impl<T: Send> Send for HostBuffer<T> {}
// SAFETY: `&HostBuffer` gives nothing but a pointer.
unsafe impl<T: Sync> Sync for HostBuffer<T> {}

impl<T: Element> HostBuffer<T> {
    /// `len` zeros; the caller has seen that their bytes fit an `isize`.
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        let layout = Self::layout(len);
        let pointer = if len == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: the layout has bytes.
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

    /// Elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first element. Valid for reads, and for writes by the code that holds the
    /// matrix exclusively.
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

/// Bytes the system can still give (`MemAvailable`, proc(5)).
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
