//! Lines that begin at any element, on their way to shared memory.
//!
//! A line goes along the operand's major direction, and 64 lines of 64 elements are a [`Block`]. A
//! warp loads 16 lines of it, a word of two elements a lane and line. Half of all addresses of
//! elements lie in the middle of a word:
//!
//! ```text
//! even line    word j = elements 2j, 2j + 1         stored as it is
//! odd line     word j = elements 2j − 1, 2j         its upper half, and the lower half of word j + 1,
//!                                                   which the next lane has
//! ```
//!
//! So the words of an odd line reach one element beyond the line on both sides, which belong to its
//! neighbours, and no lane has element 63. Three kinds of elements are therefore loaded singly: the
//! last ones of odd lines; the last one of the operand, where its word would reach beyond the
//! operand; and the first one, where its word would begin before.
//!
//! A warp loads a line that begins in mid-word by one instruction, and the single elements of 16 lines
//! by one more, where the halves of words took two for each line (`docs/perf-log.md`, "Unaligned lines
//! word by word").

use crate::dtype::Major;
use crate::isa::arithmetic::multiply_add_wide;
use crate::isa::hint::{compute_here, compute_here_u64};
use crate::isa::{global, shared, thread};
use crate::kernels::hopper::shared_memory::OperandTile;
use crate::kernels::hopper::traits::ROW_BYTES;
use crate::unroll::unroll;

/// Lines of a block that a warp loads.
const LINES: u32 = 16;

/// Elements of a line in a block.
const LENGTH: u32 = 64;

/// 64 rows of A, or columns of B, of one tile of C.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    major: Major,
    address: u64,
    /// Bytes from line to line.
    pitch: u64,
    /// The first row of the tile, and the number of rows of the operand.
    rows: (u32, u32),
}

/// This lane's elements of 16 lines.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// A word of each line.
    words: [u32; LINES as usize],
    /// Whether lines of even places among the 16 begin in mid-word, bit 0, and those of odd ones, bit 1.
    odd: u32,
    /// Whether the block lies inside the operand, so that no word has a part outside.
    is_inside: bool,
    /// The bits of a shifted word that are inside the operand.
    mask: u32,
    single: Single,
}

/// An element that is loaded singly.
#[derive(Clone, Copy)]
struct Single {
    /// The element, in the lower half.
    value: u32,
    /// Where it belongs, in bytes from the first of the 16 lines; [`Single::NOWHERE`] where the lane
    /// has none.
    place: u32,
}

impl Single {
    const NOWHERE: u32 = u32::MAX;
    const NONE: Single = Single {
        value: 0,
        place: Single::NOWHERE,
    };
}

impl Lines {
    /// The rows from `rows.0` on, of `rows.1`, of an operand at `address` with lines along `major`
    /// that are `pitch` elements apart.
    #[inline(always)]
    pub(super) fn new(major: Major, (address, pitch): (u64, u64), rows: (u32, u32)) -> Self {
        Lines {
            major,
            address,
            pitch: 2 * pitch,
            rows,
        }
    }

    /// Loads this lane's elements of the lines of `warp`, in the k-block from `k.0` on, of `k.1`.
    /// Elements outside the operand are zeros.
    ///
    /// The loads are coherent. `ld.global.nc` may be served by what L1 kept, and the launch before,
    /// which this one overlaps, may write the operands until
    /// [`dependency::wait`](crate::isa::dependency::wait) returns.
    ///
    /// # Safety
    /// The operand is live and not written during the launch. Lines are at different addresses.
    #[inline(always)]
    pub(super) unsafe fn load(&self, k: (u32, u32), warp: u32, lane: u32) -> Block {
        let (across, along) = match self.major {
            Major::K => (self.rows, k),
            Major::Mn => (k, self.rows),
        };
        let pitch = self.pitch;
        let line = across.0 + warp * LINES;
        let place = Place {
            address: self.address + line as u64 * pitch + 2 * along.0 as u64,
            pitch,
            lines: across.1.saturating_sub(line),
            left: along.1.saturating_sub(along.0),
            is_first: line == 0 && along.0 == 0,
        };
        // SAFETY: the caller's duty.
        unsafe { place.load(lane) }
    }
}

/// Where 16 lines are in global memory.
#[derive(Clone, Copy)]
struct Place {
    /// Of the first element of the first line.
    address: u64,
    /// Bytes from line to line.
    pitch: u64,
    /// Lines from here to the end of the operand.
    lines: u32,
    /// Elements of each from here to its end.
    left: u32,
    /// Whether the operand begins here.
    is_first: bool,
}

impl Place {
    /// Loads words, and single elements.
    ///
    /// # Safety
    /// See [`Lines::load`].
    #[inline(always)]
    unsafe fn load(self, lane: u32) -> Block {
        let Place {
            address,
            pitch,
            lines,
            left,
            is_first,
        } = self;
        let is_odd = |address: u64| (address / 2) as u32 % 2;
        let odd = [is_odd(address), is_odd(address + pitch)];
        let odd_of = |line: u32| {
            if line.is_multiple_of(2) {
                odd[0]
            } else {
                odd[1]
            }
        };

        // The lane with the last element of the operand, if its word reaches beyond.
        let last_line = lines.wrapping_sub(1);
        let last_odd = odd_of(last_line);
        let last = left.wrapping_sub(1).wrapping_add(last_odd);
        let reaches_beyond =
            last_line < LINES && left.wrapping_sub(1) < LENGTH && last.is_multiple_of(2);
        let begins_before = is_first && odd[0] != 0;

        let first = [address & !3, (address + pitch) & !3].map(|word| word + 4 * lane as u64);
        // All lanes take the same branch.
        let is_inside =
            lines >= LINES && left >= LENGTH && !begins_before && pitch <= u32::MAX as u64;
        let words = if is_inside {
            // SAFETY: all words lie inside the operand, or reach into the line before.
            unsafe { words_inside(first, pitch as u32) }
        } else {
            // How many lines have a word for this lane that lies inside the operand.
            let in_operand = lines - (reaches_beyond && lane == last / 2) as u32;
            let count = odd.map(|odd| {
                let has_word = left != 0 && 2 * lane < left + odd;
                if has_word { in_operand } else { 0 }
            });
            // SAFETY: these words have an element of their line, and lie inside the operand.
            unsafe { words_in_part(first, pitch, count, begins_before && lane == 0) }
        };

        // Lane i has the last element of line i; the two lanes behind have the other kinds.
        let (has_single, line, element) = match lane {
            LINES => (
                reaches_beyond && last < 2 * 32,
                last_line,
                left.wrapping_sub(1),
            ),
            BEHIND => (begins_before && lines != 0 && left != 0, 0, 0),
            line => (
                line < LINES.min(lines) && left >= LENGTH && odd_of(line) != 0,
                line,
                LENGTH - 1,
            ),
        };
        let source = address + line as u64 * pitch + 2 * element as u64;
        let single = Single {
            // SAFETY: the element is inside the operand.
            value: unsafe { global::load_written_u16_if(has_single, source) },
            place: match has_single {
                true => line * ROW_BYTES + chunk(element / 8, line) + element % 8 * 2,
                false => Single::NOWHERE,
            },
        };
        Block {
            words,
            odd: odd[0] | odd[1] << 1,
            is_inside,
            mask: match left.saturating_sub(2 * lane) {
                0 => 0,
                1 => 0xffff,
                _ => u32::MAX,
            },
            single,
        }
    }
}

/// A word of each of 16 lines, whose first two are at `first`, in lines `pitch` bytes apart.
///
/// Most blocks lie inside their operand. The instructions that a word takes decide how fast a k-block
/// is loaded: without conditions there are two.
///
/// # Safety
/// All words are readable, and not written during the launch.
#[inline(always)]
unsafe fn words_inside(first: [u64; 2], pitch: u32) -> [u32; LINES as usize] {
    let mut next = first;
    // A product with a number that the compiler does not know, or it would make two additions of 32
    // bits of each. Computed anew for each k-block: kept, the addresses would take registers.
    let (pitch, two) = (compute_here(pitch), compute_here(2));
    let mut words = [0; LINES as usize];
    unroll!(I < 16, {
        if I >= 2 {
            next[I % 2] = multiply_add_wide(pitch, two, next[I % 2]);
        }
        // SAFETY: the caller's duty.
        words[I] = unsafe { global::load_word_in_part(next[I % 2]) };
    });
    words
}

/// The same, of the first `count` lines of even and of odd places, without the first line's if
/// `begins_before`; zeros for all others.
///
/// # Safety
/// These words are readable, and not written during the launch.
#[inline(always)]
unsafe fn words_in_part(
    first: [u64; 2],
    pitch: u64,
    count: [u32; 2],
    begins_before: bool,
) -> [u32; LINES as usize] {
    let mut next = first;
    // Computed anew for each k-block, as above.
    let two_lines = compute_here_u64(2 * pitch);
    let mut words = [0; LINES as usize];
    unroll!(I < 16, {
        let exists = (I as u32) < count[I % 2] && !(I == 0 && begins_before);
        if I >= 2 {
            next[I % 2] += two_lines;
        }
        // SAFETY: the caller's duty.
        words[I] = unsafe { global::load_word_in_part_if(exists, next[I % 2]) };
    });
    words
}

/// The lane behind the one for the operand's last element.
const BEHIND: u32 = LINES + 1;

/// Offset of a chunk of 16 bytes in its line, in the 128-byte swizzle.
#[inline(always)]
fn chunk(chunk: u32, line: u32) -> u32 {
    (chunk ^ (line % 8)) * 16
}

impl Block {
    /// No elements.
    pub(super) const NONE: Block = Block {
        words: [0; LINES as usize],
        odd: 0,
        is_inside: false,
        mask: 0,
        single: Single::NONE,
    };

    /// Stores the words of the lines of `warp` in `tile`, as TMA would.
    ///
    /// # Safety
    /// The stage is free, and a whole warp calls this.
    #[inline(always)]
    pub(super) unsafe fn store_words(&self, tile: OperandTile, warp: u32, lane: u32) {
        // The word of a line that is not swizzled. Its address has the bits of the swizzle as they are
        // in the tile, which begins at a multiple of eight lines.
        let word = tile.address() + warp * (LINES * ROW_BYTES) + 4 * lane;
        let place = |index: usize| {
            let line = index as u32;
            (word ^ chunk(0, line)) + line * ROW_BYTES
        };
        // A shuffle takes as long as the store, so lines that begin with a word go without. All lanes
        // have the same value here; by the broadcast the compiler knows, and cannot let some of them
        // take another way to the shuffles.
        // SAFETY: the caller's duty.
        let odd = unsafe { thread::broadcast(self.odd) };
        unroll!(PARITY < 2, {
            if odd & (1 << PARITY) != 0 {
                unroll!(PAIR < 8, {
                    let index = 2 * PAIR + PARITY;
                    let word = self.words[index];
                    // SAFETY: the caller's duty.
                    unsafe {
                        let word = word >> 16 | thread::shuffle_next(word) << 16;
                        shared::store_u32(place(index), word & self.mask);
                    }
                });
            } else if self.is_inside {
                unroll!(PAIR < 8, {
                    let index = 2 * PAIR + PARITY;
                    // SAFETY: the caller's duty.
                    unsafe { shared::store_u32(place(index), self.words[index]) };
                });
            } else {
                unroll!(PAIR < 8, {
                    let index = 2 * PAIR + PARITY;
                    // SAFETY: the caller's duty.
                    unsafe { shared::store_u32(place(index), self.words[index] & self.mask) };
                });
            }
        });
    }

    /// Stores the single elements.
    ///
    /// # Safety
    /// The warp has stored its words, and a barrier stands between.
    #[inline(always)]
    pub(super) unsafe fn store_single(&self, tile: OperandTile, warp: u32) {
        let Single { value, place } = self.single;
        let address = tile.address() + warp * (LINES * ROW_BYTES);
        // SAFETY: the caller's duty.
        unsafe {
            shared::store_u16_if(place != Single::NOWHERE, address.wrapping_add(place), value);
        }
    }
}
