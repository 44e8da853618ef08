//! Which thread holds which elements: pure index functions of the tiled kernel, and
//! the proofs (as tests) that they are bijections and free of bank conflicts.
//!
//! Shared memory has 32 banks of 4 bytes; one wavefront serves each bank once.
//! A warp's 128-bit access takes one wavefront for each half-warp when the 16 lanes
//! touch at most one word in each bank; lanes that read the same word share it.

/// Elements of a register tile that are adjacent in C and in shared memory:
/// one 128-bit access of f32.
pub const QUAD: u32 = 4;

/// The thread block: block shape, and the register tile of each thread.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// BLOCK_M.
    pub block_m: u32,
    /// BLOCK_N.
    pub block_n: u32,
    /// BLOCK_K.
    pub block_k: u32,
}

impl Threads {
    /// Rows of C a thread computes. Small blocks take a smaller register tile,
    /// so that they still fill the SM with warps.
    pub const fn register_m(self) -> u32 {
        if self.block_m * self.block_n >= 128 * 128 {
            2 * QUAD
        } else {
            QUAD
        }
    }

    /// Columns of C a thread computes.
    pub const fn register_n(self) -> u32 {
        2 * QUAD
    }

    /// Threads of the CTA.
    pub const fn count(self) -> u32 {
        (self.block_m / self.register_m()) * (self.block_n / self.register_n())
    }

    /// Refuses at compile time every block shape that the index functions
    /// below do not cover.
    pub const fn check(self) {
        assert!(
            self.block_m.is_power_of_two()
                && self.block_n.is_power_of_two()
                && self.block_k.is_power_of_two(),
            "block sizes are powers of two"
        );
        assert!(
            self.block_k >= 16,
            "the swizzle repeats every 16 steps of K"
        );
        // A warp covers 8×4 quads.
        assert!(
            self.block_m / self.register_m() >= 8,
            "BLOCK_M is too small"
        );
        assert!(
            self.block_n / self.register_n() >= 4,
            "BLOCK_N is too small"
        );
        let threads = self.count();
        assert!(threads >= 32 && threads <= 1024, "32 to 1024 threads a CTA");
        // With one element a thread, the threads must at least cover a line along M
        // or N ...
        assert!(
            threads >= self.block_m && threads >= self.block_n,
            "too few threads to copy a line of a tile at once"
        );
        // ... and every thread must have a whole 16-byte vector of 16-bit
        // elements to copy, but no more elements than it has registers for.
        let (a, b) = (
            self.block_m * self.block_k / threads,
            self.block_n * self.block_k / threads,
        );
        assert!(
            a >= 8 && b >= 8,
            "BLOCK_K is too small for this many threads"
        );
        assert!(
            a <= 16 && b <= 16,
            "BLOCK_K is too large for this few threads"
        );
    }

    /// First row and column, inside the block, of a thread's register tile.
    /// The tile's other quads follow at distances of [`Threads::quad_step_m`] and
    /// [`Threads::quad_step_n`].
    ///
    /// A warp covers 8 quads along M by 4 along N. Bits 1 to 3 of the lane select
    /// M, bits 0 and 4 select N, so that each half-warp reads 8 adjacent quads of
    /// A (all 32 banks once) and 2 quads of B.
    #[inline(always)]
    pub const fn register_tile(self, thread: u32) -> (u32, u32) {
        let (warp, lane) = (thread / 32, thread % 32);
        let warps_m = self.block_m / self.register_m() / 8;
        let quad_m = (warp % warps_m) * 8 + ((lane >> 1) & 7);
        let quad_n = (warp / warps_m) * 4 + ((lane & 1) | ((lane >> 3) & 2));
        (quad_m * QUAD, quad_n * QUAD)
    }

    /// Distance along M between the quads of one register tile.
    pub const fn quad_step_m(self) -> u32 {
        self.block_m * QUAD / self.register_m()
    }

    /// Distance along N between the quads of one register tile.
    pub const fn quad_step_n(self) -> u32 {
        self.block_n * QUAD / self.register_n()
    }
}

/// A place in a tile of A (M×K) or B (N×K).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index along M or N.
    pub mn: u32,
    /// Index along K.
    pub k: u32,
}

/// The elements that each thread copies from global to shared memory. An item is
/// `vector` elements, adjacent along the direction of the copy; neighbouring
/// threads take neighbouring items.
#[derive(Clone, Copy, Debug)]
pub struct CopyMap {
    /// BLOCK_M or BLOCK_N.
    pub block_mn: u32,
    /// BLOCK_K.
    pub block_k: u32,
    /// Threads that take part.
    pub threads: u32,
    /// Elements of an item.
    pub vector: u32,
    /// Whether items and neighbouring threads run along K; otherwise along M or N.
    pub along_k: bool,
}

impl CopyMap {
    /// Items of one thread.
    pub const fn items(self) -> u32 {
        self.block_mn * self.block_k / (self.threads * self.vector)
    }

    /// First element of the first item of `thread`.
    #[inline(always)]
    pub const fn first(self, thread: u32) -> Place {
        if self.along_k {
            let items = self.block_k / self.vector;
            Place {
                mn: thread / items,
                k: thread % items * self.vector,
            }
        } else {
            let items = self.block_mn / self.vector;
            Place {
                mn: thread % items * self.vector,
                k: thread / items,
            }
        }
    }

    /// Distance from one item of a thread to its next.
    pub const fn step(self) -> Place {
        if self.along_k {
            Place {
                mn: self.threads * self.vector / self.block_k,
                k: 0,
            }
        } else {
            Place {
                mn: 0,
                k: self.threads * self.vector / self.block_mn,
            }
        }
    }
}

/// Byte offset of an element in a tile in shared memory.
///
/// The tile is stored along M or N, one line of `block_mn` f32 for each k.
/// Lines are permuted in units of 8 elements: threads that copy along K write
/// four lines at once, and the permutation puts the four writes in different banks.
#[inline(always)]
pub const fn shared_offset(block_mn: u32, place: Place) -> u32 {
    (place.k * block_mn + (place.mn ^ swizzle(place.k))) * 4
}

/// The number with which the position along M or N is XORed in line `k`.
#[inline(always)]
pub const fn swizzle(k: u32) -> u32 {
    (k / 4 % 4) * 8
}

#[cfg(test)]
mod tests;
