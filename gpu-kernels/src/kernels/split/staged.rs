//! Splitting lines of any layout: 8 of them, through shared memory, 512 of K at a time.
//!
//! The second pass reads again what the first has read, mostly from L2: the lines of all CTAs
//! that run at once are some 70 MB at K = 4096.

use super::group::{self, Group, THREADS};
use crate::f16x3;
use crate::isa::{global, shared, thread};
use crate::unroll::unroll;

/// Lines of a CTA. Where they are contiguous along M or N, 8 of them are a sector of 32 bytes.
pub(super) const LINES: u32 = 8;

/// Threads that read the same line.
const ALONG_K: u32 = THREADS / LINES;

/// Depth that a CTA reads at a time.
pub(super) const DEPTH: u32 = 16 * ALONG_K;

/// Words from one line of the staged chunk to the next, so that a warp's elements fall into 32
/// banks along K, and along the lines with four of K.
const PITCH: u32 = DEPTH + 4;

/// Shared address of the staged chunk, in bytes.
const CHUNK: u32 = group::SHARED_BYTES;

/// Bytes of shared memory from its base on.
pub(super) const SHARED_BYTES: u32 = CHUNK + LINES * PITCH * 4;

/// The element that a thread reads: its line, and its depth in each [`ALONG_K`] of K.
#[derive(Clone, Copy)]
struct Place {
    line: u32,
    offset: u32,
}

/// Splits the lines of the group.
///
/// # Safety
/// All threads of the CTA call this; the operand and its copy are live.
#[inline(always)]
pub(super) unsafe fn split(group: &Group) {
    let thread = thread::thread_index();
    // Neighbouring threads read neighbouring elements.
    let along_k = group.from.col_stride <= group.from.row_stride;
    let place = if along_k {
        Place {
            line: thread / ALONG_K,
            offset: thread % ALONG_K,
        }
    } else {
        Place {
            line: thread % LINES,
            offset: thread / LINES,
        }
    };
    let chunk = shared::base() + CHUNK;
    // SAFETY: masked to the lines; the barriers separate stores to shared memory from loads.
    unsafe {
        group.gather(place.line, place.offset, largest(group, place));
        if thread < LINES {
            group.store_exponent(thread, group.exponent(thread, 1));
        }
        let mut first = 0;
        while first < group.k {
            unroll!(I < 16, {
                let at = place.line * PITCH + I as u32 * ALONG_K + place.offset;
                shared::store_u32(chunk + at * 4, load(group, place, first, I as u32));
            });
            thread::sync_cta();
            // A warp stores a line.
            let (line, lane) = (thread / 32, thread % 32);
            let exponent = group.exponent(line, 1);
            unroll!(I < 8, {
                let at = 2 * (I as u32 * 32 + lane);
                if line < group.count && first + at < group.k {
                    store_pair(group, exponent, (line, first, at));
                }
            });
            thread::sync_cta();
            first += DEPTH;
        }
    }
}

/// The bits of a thread's element `index` of 16 in the chunk from depth `first` on; 0 outside the
/// operand.
///
/// # Safety
/// The operand is live.
#[inline(always)]
unsafe fn load(group: &Group, place: Place, first: u32, index: u32) -> u32 {
    let k = first + index * ALONG_K + place.offset;
    if place.line < group.count && k < group.k {
        let from = &group.from;
        let element = place.line as u64 * from.row_stride + k as u64 * from.col_stride;
        // SAFETY: inside the operand.
        unsafe { global::load_u32(from.address + 4 * element) }
    } else {
        0
    }
}

/// The largest magnitude that a thread finds in its line.
///
/// # Safety
/// The operand is live.
#[inline(always)]
unsafe fn largest(group: &Group, place: Place) -> u32 {
    let mut largest = 0;
    let mut first = 0;
    while first < group.k {
        let mut bits = [0; 16];
        unroll!(I < 16, {
            // SAFETY: the caller's duty.
            bits[I] = unsafe { load(group, place, first, I as u32) }
        });
        unroll!(I < 16, {
            largest = f16x3::magnitude(f32::from_bits(bits[I])).max(largest);
        });
        first += DEPTH;
    }
    largest
}

/// Splits the elements `at` and `at + 1` of a line of the chunk from depth `first` on, and stores
/// each part as a pair. A line of the copy has room for the second, which is 0 past the end.
///
/// # Safety
/// The chunk is in shared memory; the copy is live; the first element exists.
#[inline(always)]
unsafe fn store_pair(group: &Group, exponent: i32, (line, first, at): (u32, u32, u32)) {
    // SAFETY: the caller's duty.
    unsafe {
        let pair = shared::load_f32x2(shared::base() + CHUNK + (line * PITCH + at) * 4);
        let [one, other] = pair.map(|element| f16x3::split(element, exponent));
        let element = line as u64 * group.to.row_stride + (first + at) as u64;
        let address = group.to.address + 2 * element;
        global::store_u32(address, one[0] | other[0] << 16);
        global::store_u32(address + group.plane, one[1] | other[1] << 16);
    }
}
