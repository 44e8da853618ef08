//! Splitting lines that are contiguous along K, in aligned groups of four, without shared memory
//! for elements.
//!
//! As many threads as hold a line in their registers, up to all of the CTA, share it, so that a
//! line of up to 8192 elements is read once. Of a deeper line they still hold the last elements
//! when its largest is known, and read the others again, backwards.

use super::group::{Group, THREADS};
use crate::f16x3;
use crate::isa::{global, thread};
use crate::unroll::unroll;

/// Vectors of four elements that a thread holds. With 8, the CTAs that fit an SM ask for 128 KiB
/// at a time, and there are registers for four of them.
const VECTORS: u32 = 8;

/// Elements that a thread holds.
const OF_THREAD: u32 = 4 * VECTORS;

/// The binary logarithm of the number of threads that share a line: whole warps.
#[inline(always)]
fn threads_log2(k: u32) -> u32 {
    let threads = k.saturating_sub(1) / OF_THREAD;
    (u32::BITS - threads.leading_zeros()).clamp(5, THREADS.ilog2())
}

/// The binary logarithm of the number of lines that a CTA splits at a time.
#[inline(always)]
pub(super) fn lines_log2(k: u32) -> u32 {
    THREADS.ilog2() - threads_log2(k)
}

/// What a thread holds of a line.
struct Held {
    /// Whether the line exists.
    exists: bool,
    k: u32,
    /// The place of the thread among those of its line, and their number.
    offset: u32,
    threads: u32,
    /// Addresses of the line and of its low parts.
    from: u64,
    to: u64,
    plane: u64,
}

impl Held {
    /// The depth of vector `index` of those from depth `first` on.
    #[inline(always)]
    fn depth(&self, first: u32, index: u32) -> u32 {
        first + 4 * (index * self.threads + self.offset)
    }

    /// Depth that the threads of a line hold at a time.
    #[inline(always)]
    fn step(&self) -> u32 {
        OF_THREAD * self.threads
    }

    /// The bits of this thread's vectors from depth `first` on; 0 outside the operand.
    ///
    /// # Safety
    /// The operand is live.
    #[inline(always)]
    unsafe fn load(&self, first: u32) -> [[u32; 4]; VECTORS as usize] {
        let mut bits = [[0; 4]; VECTORS as usize];
        unroll!(I < 8, {
            let k = self.depth(first, I as u32);
            let exists = self.exists && k < self.k;
            // SAFETY: inside the operand.
            bits[I] = unsafe { global::load_u32x4_if(exists, self.from + 4 * k as u64) };
        });
        bits
    }

    /// Splits the vectors from depth `first` on, and stores each part as pairs of pairs.
    ///
    /// # Safety
    /// The copy is live.
    #[inline(always)]
    unsafe fn store(&self, first: u32, bits: &[[u32; 4]; VECTORS as usize], exponent: i32) {
        unroll!(I < 8, {
            let k = self.depth(first, I as u32);
            if self.exists && k < self.k {
                let parts = bits[I].map(|bits| f16x3::split(f32::from_bits(bits), exponent));
                let [x, y, z, w] = parts;
                let pairs = |part: usize| [x[part] | y[part] << 16, z[part] | w[part] << 16];
                let address = self.to + 2 * k as u64;
                // SAFETY: inside the copy.
                unsafe {
                    global::store_u32x2(address, pairs(0));
                    global::store_u32x2(address + self.plane, pairs(1));
                }
            }
        });
    }
}

/// The largest magnitude of these elements and `largest`.
#[inline(always)]
fn largest_of(bits: &[[u32; 4]; VECTORS as usize], mut largest: u32) -> u32 {
    unroll!(I < 8, {
        let [x, y, z, w] = bits[I].map(|bits| f16x3::magnitude(f32::from_bits(bits)));
        largest = x.max(y).max(z.max(w)).max(largest);
    });
    largest
}

/// Splits the lines of the group.
///
/// # Safety
/// All threads of the CTA call this; the operand, whose lines are in vectors, and its copy are
/// live.
#[inline(always)]
pub(super) unsafe fn split(group: &Group) {
    let thread = thread::thread_index();
    let threads_log2 = threads_log2(group.k);
    let threads = 1 << threads_log2;
    let (line, offset) = (thread >> threads_log2, thread & (threads - 1));
    let held = Held {
        exists: line < group.count,
        k: group.k,
        offset,
        threads,
        from: group.from.address + 4 * line as u64 * group.from.row_stride,
        to: group.to.address + 2 * line as u64 * group.to.row_stride,
        plane: group.plane,
    };
    // SAFETY: the caller's duty.
    unsafe {
        let (mut first, mut largest) = (0, 0);
        let mut bits = held.load(first);
        loop {
            largest = largest_of(&bits, largest);
            if first + held.step() >= held.k {
                break;
            }
            first += held.step();
            bits = held.load(first);
        }
        group.gather(thread / 32, thread % 32, largest);
        let exponent = group.exponent(line, threads / 32);
        if offset == 0 {
            group.store_exponent(line, exponent);
        }
        loop {
            held.store(first, &bits, exponent);
            if first == 0 {
                break;
            }
            first -= held.step();
            bits = held.load(first);
        }
    }
}
