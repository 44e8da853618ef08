//! Splitting lines that the threads of a CTA hold in their registers.
//!
//! As many threads as hold a line, up to a limit, share it, so that a line as long as they hold
//! is read once. Of a longer one they still hold the last elements when its largest is known,
//! and read the others again, backwards.

use super::group::{FEWEST, Group, THREADS};
use crate::f16x3;
use crate::isa::{global, hint, thread};
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Runs of four elements along K that a thread holds. With 8, the CTAs that fit an SM ask for
/// 128 KiB at a time, and there are registers for two of them.
const RUNS: u32 = 8;

/// Elements that a thread holds.
const OF_THREAD: u32 = 4 * RUNS;

/// The bits of the elements that a thread holds.
type Bits = [[u32; 4]; RUNS as usize];

/// How threads read lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The lines are contiguous along K, in whole aligned groups of four elements.
    Vectors,
    /// They are contiguous along K, or nearly, but not so.
    AlongK,
    /// Neighbouring lines are nearer to each other than neighbouring elements of a line.
    AcrossK,
}

impl Access {
    /// How lines of `k` elements, the rows of `from`, are read.
    #[inline(always)]
    pub(super) fn of(from: &TensorRef, k: u32) -> Self {
        let steps = from.row_stride | from.batch_stride | k as u64;
        let is_aligned = (from.address | (4 * steps)).is_multiple_of(16);
        // Without branches, which every CTA would take for both operands.
        if (from.col_stride == 1) & is_aligned {
            Access::Vectors
        } else if from.col_stride <= from.row_stride {
            Access::AlongK
        } else {
            Access::AcrossK
        }
    }

    /// The binary logarithm of the number of threads that share a line of `k` elements.
    /// Across K they leave 8 lines to a CTA, because 8 neighbours are a sector of memory.
    #[inline(always)]
    fn threads_log2(self, k: u32) -> u32 {
        let most = THREADS.ilog2() - 3 * u32::from(self == Access::AcrossK);
        let threads = k.saturating_sub(1) / OF_THREAD;
        (u32::BITS - threads.leading_zeros()).clamp(FEWEST.ilog2(), most)
    }

    /// The binary logarithm of the number of lines that a CTA splits at a time.
    #[inline(always)]
    pub(super) fn lines_log2(self, k: u32) -> u32 {
        THREADS.ilog2() - self.threads_log2(k)
    }
}

/// What a thread holds of a line.
struct Held<'g> {
    group: &'g Group,
    access: Access,
    /// Threads that share the line, and the place of this one among them.
    threads: u32,
    place: u32,
    /// Elements of the line; 0 where it does not exist.
    end: u32,
    /// Addresses of the line and of its low parts.
    from: u64,
    to: u64,
}

impl Held<'_> {
    /// Depth that the threads of a line hold at a time.
    #[inline(always)]
    fn step(&self) -> u32 {
        OF_THREAD * self.threads
    }

    /// The depths of a thread's runs from depth `first` on. Neighbouring threads of a line have
    /// neighbouring runs; where neighbouring threads have neighbouring lines, a thread has two
    /// neighbouring runs, which it stores at once.
    #[inline(always)]
    fn depths(&self, first: u32) -> [u32; RUNS as usize] {
        // Eight depths for each loop would fill the registers.
        let place = hint::compute_here(self.place);
        let (own, second) = match self.access {
            Access::Vectors | Access::AlongK => (4 * place, 4 * self.threads),
            Access::AcrossK => (8 * place, 4),
        };
        let mut depths = [0; RUNS as usize];
        unroll!(I < 8, {
            let (pair, is_second) = (I as u32 / 2, I as u32 % 2);
            depths[I] = first + own + pair * 8 * self.threads + is_second * second;
        });
        depths
    }

    /// Elements of the line from depth `k` on; none where it does not exist.
    #[inline(always)]
    fn rest(&self, k: u32) -> u32 {
        self.end.saturating_sub(k)
    }

    /// The bits of this thread's runs from depth `first` on; 0 outside the operand.
    ///
    /// # Safety
    /// The operand is live.
    #[inline(always)]
    unsafe fn load(&self, first: u32) -> Bits {
        let step = 4 * self.group.from.col_stride;
        let depths = self.depths(first);
        let mut bits = [[0; 4]; RUNS as usize];
        unroll!(I < 8, {
            let k = depths[I];
            let rest = self.rest(k);
            // SAFETY: inside the operand.
            unsafe {
                if self.access == Access::Vectors {
                    bits[I] = global::load_u32x4_if(rest > 0, self.from + 4 * k as u64);
                } else {
                    let mut address = self.from + k as u64 * step;
                    unroll!(J < 4, {
                        bits[I][J] = global::load_u32_if(rest > J as u32, address);
                        // One address at a time; eight times four would fill the registers.
                        address = hint::compute_here_u64(address + step);
                    });
                }
            }
        });
        bits
    }

    /// Splits the runs from depth `first` on, and stores each part as pairs of elements. A line
    /// of the copy has room for two whole runs, whose elements past the end are 0.
    ///
    /// # Safety
    /// The copy is live.
    #[inline(always)]
    unsafe fn store(&self, first: u32, bits: &Bits, exponent: i32) {
        let plane = self.group.plane;
        let depths = self.depths(first);
        if self.access == Access::AcrossK {
            unroll!(I < 4, {
                let k = depths[2 * I];
                if self.rest(k) > 0 {
                    let address = self.to + 2 * k as u64;
                    let run = Parts::of(&bits[2 * I], exponent);
                    let next = Parts::of(&bits[2 * I + 1], exponent);
                    // SAFETY: inside the copy.
                    unsafe {
                        global::store_u32x4(address, concatenated(run.low, next.low));
                        global::store_u32x4(address + plane, concatenated(run.high, next.high));
                    }
                }
            });
        } else {
            unroll!(I < 8, {
                let k = depths[I];
                if self.rest(k) > 0 {
                    let address = self.to + 2 * k as u64;
                    let run = Parts::of(&bits[I], exponent);
                    // SAFETY: inside the copy.
                    unsafe {
                        global::store_u32x2(address, run.low);
                        global::store_u32x2(address + plane, run.high);
                    }
                }
            });
        }
    }
}

/// The parts of a run, as pairs of f16.
#[derive(Clone, Copy)]
struct Parts {
    low: [u32; 2],
    high: [u32; 2],
}

impl Parts {
    #[inline(always)]
    fn of(bits: &[u32; 4], exponent: i32) -> Self {
        let parts = bits.map(|bits| f16x3::split(f32::from_bits(bits), exponent));
        let [x, y, z, w] = parts;
        let pairs = |part: usize| [x[part] | y[part] << 16, z[part] | w[part] << 16];
        Parts {
            low: pairs(0),
            high: pairs(1),
        }
    }
}

#[inline(always)]
fn concatenated([x, y]: [u32; 2], [z, w]: [u32; 2]) -> [u32; 4] {
    [x, y, z, w]
}

/// The largest magnitude of these elements and `largest`.
#[inline(always)]
fn largest_of(bits: &Bits, mut largest: u32) -> u32 {
    unroll!(I < 8, {
        let [x, y, z, w] = bits[I].map(|bits| f16x3::magnitude(f32::from_bits(bits)));
        largest = x.max(y).max(z.max(w)).max(largest);
    });
    largest
}

/// Splits the lines of the group.
///
/// # Safety
/// All threads of the CTA call this; the operand and its copy are live.
#[inline(always)]
pub(super) unsafe fn split(group: &Group, access: Access) {
    let thread = thread::thread_index();
    let threads_log2 = access.threads_log2(group.k);
    let lines_log2 = access.lines_log2(group.k);
    let threads = 1 << threads_log2;
    // Neighbouring threads read neighbouring elements.
    let (line, place) = match access {
        Access::Vectors | Access::AlongK => (thread >> threads_log2, thread & (threads - 1)),
        Access::AcrossK => (thread & ((1 << lines_log2) - 1), thread >> lines_log2),
    };
    let held = Held {
        group,
        access,
        threads,
        place,
        end: if line < group.count { group.k } else { 0 },
        from: group.from.address + 4 * line as u64 * group.from.row_stride,
        to: group.to.address + 2 * line as u64 * group.to.row_stride,
    };
    // SAFETY: the caller's duty.
    unsafe {
        let (mut first, mut largest) = (0, 0);
        let mut bits = held.load(first);
        loop {
            largest = largest_of(&bits, largest);
            if first + held.step() >= group.k {
                break;
            }
            first += held.step();
            bits = held.load(first);
        }
        let line = if hint::KEEPS_INVARIANTS {
            let thread = thread::thread_index_here();
            match access {
                Access::Vectors | Access::AlongK => thread >> threads_log2,
                Access::AcrossK => thread & ((1 << lines_log2) - 1),
            }
        } else {
            line
        };
        group.gather(line * threads + place, largest);
        let exponent = group.exponent(line, threads);
        if place == 0 {
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
