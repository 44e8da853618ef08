//! Memory of the WebAssembly module: an arena that lasts one call.
//!
//! A call allocates a few lists, answers and is done. So memory is given out upwards
//! from where the linker's data ends, only the piece given out last can grow or be
//! given back, and all of it is taken back before the next call. The module needs no
//! general allocator, which would be a dependency or most of its code.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::{memory_grow, memory_size};
use core::cell::Cell;
use core::ptr;

/// WebAssembly's unit of memory. (WebAssembly Core Specification, "Memory Instances")
const PAGE_BYTES: usize = 1 << 16;

unsafe extern "C" {
    /// Where the stack and the data end: `wasm-ld` places it.
    static __heap_base: u8;
}

/// The address of the first byte that is free; 0 before the first call.
struct Arena(Cell<usize>);

// SAFETY: the module has no threads.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA: Arena = Arena(Cell::new(0));

/// Takes back everything that was allocated.
///
/// # Safety
/// Nothing that was allocated is used again.
pub(crate) unsafe fn take_back_all() {
    ARENA.0.set((&raw const __heap_base).addr());
}

impl Arena {
    /// Makes `..end` the memory in use. Whether there is that much.
    fn extend(&self, end: usize) -> bool {
        let pages = end.div_ceil(PAGE_BYTES);
        let missing = pages.saturating_sub(memory_size(0));
        if missing > 0 && memory_grow(0, missing) == usize::MAX {
            return false;
        }
        self.0.set(end);
        true
    }
}

// SAFETY: pieces are aligned as asked, lie in memory that exists, and do not overlap:
// each starts where the one before ends.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(start) = self.0.get().checked_next_multiple_of(layout.align()) else {
            return ptr::null_mut();
        };
        match start.checked_add(layout.size()) {
            Some(end) if self.extend(end) => ptr::with_exposed_provenance_mut(start),
            _ => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if piece.addr() + layout.size() == self.0.get() {
            self.0.set(piece.addr());
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let last = piece.addr() + layout.size() == self.0.get();
        if last && let Some(end) = piece.addr().checked_add(size) {
            return match self.extend(end) {
                true => piece,
                false => ptr::null_mut(),
            };
        }
        // SAFETY: `alloc` asks for no more than `realloc`'s caller promises.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: `alloc` gave a new piece; both hold the smaller of the two sizes.
            unsafe { ptr::copy_nonoverlapping(piece, moved, layout.size().min(size)) };
        }
        moved
    }
}
