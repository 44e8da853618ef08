//! Copies elements between a window and the caller's slices, and fills windows.
//!
//! A dense window is copied directly. For a strided window on a GPU, the whole span that
//! it covers is copied, and the host picks or places the elements. A fill runs on the
//! window's device.

use crate::element::Element;
use crate::error::Error;
use crate::gpu::backend::Pattern;
use crate::layout::Layout;
use crate::memory::Place;
use crate::window::Window;

/// Copies the elements of `window`, row by row.
pub(crate) fn read<T: Element>(window: Window<T>) -> Result<Vec<T>, Error> {
    let layout = window.layout();
    if layout.is_empty() {
        return Ok(Vec::new());
    }
    // A broadcast view may have more elements than memory.
    let bytes = (layout.elements()).and_then(|elements| elements.checked_mul(size_of::<T>()));
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Error::SizeOverflow { layout });
    }
    match window.memory().place() {
        Place::Host(start) => {
            // SAFETY: the window's offset lies inside its memory.
            let first = unsafe { start.add(window.offset()) };
            // SAFETY: the window's layout lies inside its memory.
            Ok(unsafe { gather(first, layout) })
        }
        Place::Gpu(bytes) => {
            let mut span = vec![T::zeroed(); span(layout)];
            let offset = window.offset() * size_of::<T>();
            bytes.read(offset, bytemuck::cast_slice_mut(&mut span))?;
            if layout.is_dense_row_major() {
                return Ok(span);
            }
            // SAFETY: `span` holds every element of the layout.
            Ok(unsafe { gather(span.as_ptr(), layout) })
        }
    }
}

/// Writes `row_major` into `window`. Memory between its elements keeps its values.
///
/// # Safety
/// No other code reads or writes the memory meanwhile, and `row_major` has as many
/// elements as the window.
pub(crate) unsafe fn write<T: Element>(window: Window<T>, row_major: &[T]) -> Result<(), Error> {
    let layout = window.layout();
    if layout.is_empty() {
        return Ok(());
    }
    match window.memory().place() {
        Place::Host(start) => {
            // SAFETY: the window lies inside its memory, which is the caller's alone.
            unsafe { scatter(row_major, start.add(window.offset()), layout) };
            Ok(())
        }
        Place::Gpu(bytes) => {
            let offset = window.offset() * size_of::<T>();
            if layout.is_dense_row_major() {
                return bytes.write(offset, bytemuck::cast_slice(row_major));
            }
            let mut span = vec![T::zeroed(); span(layout)];
            bytes.read(offset, bytemuck::cast_slice_mut(&mut span))?;
            // SAFETY: `span` holds every element of the layout.
            unsafe { scatter(row_major, span.as_mut_ptr(), layout) };
            bytes.write(offset, bytemuck::cast_slice(&span))
        }
    }
}

/// Writes `value` to every element of `window`. Memory between the elements keeps its
/// values.
///
/// # Safety
/// No other code reads or writes the memory meanwhile, and no two elements of the window
/// share an address.
pub(crate) unsafe fn fill<T: Element>(window: Window<T>, value: T) -> Result<(), Error> {
    let layout = window.layout();
    if layout.is_empty() {
        return Ok(());
    }
    match window.memory().place() {
        Place::Host(start) => {
            // SAFETY: the window's offset lies inside its memory.
            let first = unsafe { start.add(window.offset()) };
            for place in places(layout) {
                // SAFETY: the window lies inside its memory, which is the caller's alone.
                unsafe { *first.add(place) = value };
            }
            Ok(())
        }
        Place::Gpu(bytes) => {
            let size = size_of::<T>();
            let lines = Lines::of(layout, MAX_FILL_PITCH / size);
            let first = window.offset();
            let offsets = (0..layout.batches).flat_map(|batch| {
                let first = first + batch * layout.batch_stride;
                (0..lines.groups).map(move |group| (first + group * lines.group_stride) * size)
            });
            let pattern = match *bytemuck::bytes_of(&value) {
                [a, b] => Pattern::Two(u16::from_ne_bytes([a, b])),
                [a, b, c, d] => Pattern::Four(u32::from_ne_bytes([a, b, c, d])),
                _ => unreachable!("elements have two or four bytes"),
            };
            bytes.fill(
                offsets,
                (lines.length, lines.count, lines.pitch * size),
                pattern,
            )
        }
    }
}

/// Largest pitch of a fill in two dimensions, bytes (CUDA driver API,
/// `CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
const MAX_FILL_PITCH: usize = i32::MAX as usize;

/// The elements of a matrix as groups of lines of contiguous elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    /// Number of elements per line.
    length: usize,
    /// Number of lines per group.
    count: usize,
    /// Elements from one line of a group to the next.
    pitch: usize,
    /// Number of groups.
    groups: usize,
    /// Elements from one group to the next.
    group_stride: usize,
}

impl Lines {
    /// The lines of one matrix of `layout`, in as few groups as lines with a pitch up to `max_pitch`
    /// allow. The layout must not be empty, and no two of its elements may share an address.
    fn of(layout: Layout, max_pitch: usize) -> Lines {
        // (extent, stride), the smaller stride first. The stride of an extent of one does
        // not matter.
        let mut along = [
            (layout.cols, layout.col_stride),
            (layout.rows, layout.row_stride),
        ];
        along.sort_by_key(|&(extent, stride)| if extent == 1 { 0 } else { stride });
        let [(inner, inner_stride), (outer, outer_stride)] = along;
        let lines = |length, (count, pitch), (groups, group_stride)| Lines {
            length,
            count,
            pitch,
            groups,
            group_stride,
        };
        let one = (1, 0);
        if inner > 1 && inner_stride != 1 {
            // The layout is contiguous in neither direction, so lines have one element.
            let (many, few) = match inner >= outer && inner_stride <= max_pitch {
                true => ((inner, inner_stride), (outer, outer_stride)),
                false => ((outer, outer_stride), (inner, inner_stride)),
            };
            return match many.1 <= max_pitch {
                true => lines(1, many, few),
                false => lines(1, few, many),
            };
        }
        if outer == 1 || outer_stride == inner {
            lines(inner * outer, one, one)
        } else if outer_stride <= max_pitch {
            lines(inner, (outer, outer_stride), one)
        } else {
            lines(inner, one, (outer, outer_stride))
        }
    }
}

/// The place of each element, counted in elements from the first; matrix by matrix and row
/// by row.
fn places(layout: Layout) -> impl Iterator<Item = usize> {
    (0..layout.batches).flat_map(move |batch| {
        (0..layout.rows).flat_map(move |row| {
            let first = batch * layout.batch_stride + row * layout.row_stride;
            (0..layout.cols).map(move |col| first + col * layout.col_stride)
        })
    })
}

/// Number of elements from the first to one past the farthest.
fn span(layout: Layout) -> usize {
    layout.span().expect("a window's span fits its allocation")
}

/// Reads the elements of `layout`, matrix by matrix and row by row.
///
/// # Safety
/// `first` is the first element of memory that holds all of `layout`.
unsafe fn gather<T: Element>(first: *const T, layout: Layout) -> Vec<T> {
    let mut elements = Vec::with_capacity(layout.rows * layout.cols * layout.batches);
    // SAFETY: the caller ensures it.
    places(layout).for_each(|place| elements.push(unsafe { *first.add(place) }));
    elements
}

/// Writes `row_major` to the elements of `layout`.
///
/// # Safety
/// `first` is the first element of writable memory that holds all of `layout`, and
/// `row_major` has as many elements as the layout.
unsafe fn scatter<T: Element>(row_major: &[T], first: *mut T, layout: Layout) {
    let mut elements = row_major.iter();
    places(layout).for_each(|place| {
        if let Some(element) = elements.next() {
            // SAFETY: the caller ensures it.
            unsafe { *first.add(place) = *element };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every maximum pitch, the lines cover every element once, and nothing else.
    #[test]
    fn lines_cover_a_layout() {
        for (rows, cols) in [(1, 1), (1, 5), (5, 1), (3, 4), (4, 3)] {
            for row_stride in 1..14 {
                for col_stride in 1..14 {
                    let layout = Layout::strided(rows, cols, row_stride, col_stride);
                    if layout.aliases() {
                        continue;
                    }
                    for max_pitch in [3, 100] {
                        check(layout, Lines::of(layout, max_pitch));
                    }
                }
            }
        }
    }

    fn check(layout: Layout, lines: Lines) {
        let mut expected: Vec<usize> = places(layout).collect();
        let mut found = Vec::new();
        for group in 0..lines.groups {
            for line in 0..lines.count {
                let first = group * lines.group_stride + line * lines.pitch;
                found.extend(first..first + lines.length);
            }
        }
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{layout}: {lines:?}");
    }

    #[test]
    fn lines_are_as_long_as_they_can_be() {
        let of = |rows, cols, row_stride, col_stride| {
            let layout = Layout::strided(rows, cols, row_stride, col_stride);
            let lines = Lines::of(layout, 1000);
            (lines.length, lines.count, lines.pitch, lines.groups)
        };
        assert_eq!(of(30, 40, 40, 1), (1200, 1, 0, 1), "dense");
        assert_eq!(of(30, 40, 1, 30), (1200, 1, 0, 1), "dense, by columns");
        assert_eq!(of(30, 40, 48, 1), (40, 30, 48, 1), "a pitch");
        assert_eq!(of(30, 40, 1, 32), (30, 40, 32, 1), "a pitch, by columns");
        assert_eq!(of(30, 40, 2000, 1), (40, 1, 0, 30), "too wide a pitch");
        assert_eq!(of(30, 40, 100, 2), (1, 40, 2, 30), "gaps both ways");
    }
}
