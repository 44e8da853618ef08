//! The layout of shared memory and fragments: index arithmetic of the tensor-core kernel.
//!
//! One operand's block of one pipeline stage is a [`Panel`]: lines of 16-byte
//! chunks, a line running along the direction in which the operand is
//! contiguous. Three parties must agree on it, and all three work from here:
//! the threads that copy chunks in, the warps that load fragments out, and the
//! tests, which push symbolic indices through both and through the fragment
//! figures of the PTX ISA.
//!
//! Chunks are permuted inside their line by an XOR with the line's number (a
//! *swizzle*, as in CUTLASS's `Swizzle<>` layouts), so that the eight 16-byte rows of one
//! `ldmatrix` phase, which stand in eight lines at the same chunk, fall into
//! different banks. XOR also keeps addresses cheap: a thread computes one
//! offset, and each of its fragments is that offset XOR a constant plus a
//! constant.

use crate::dtype::Major;

/// Bytes of one chunk: one `cp.async`, one row of an `ldmatrix` matrix.
pub const CHUNK: u32 = 16;

/// Lanes of a warp.
pub const WARP: u32 = 32;

/// Quads (see [`Panel::quad_offset`]) of one operand of one warp and step, at
/// most: 64 along M or N, where a quad has 16.
pub const MAX_QUADS: usize = 4;

/// One of the two operands of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factor {
    /// The left one, M×K.
    A,
    /// The right one, K×N.
    B,
}

/// The block of A or B in one pipeline stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Panel {
    /// The operand whose block this is.
    pub factor: Factor,
    /// The direction of the panel's lines.
    pub major: Major,
    /// BLOCK_M (of A) or BLOCK_N (of B), elements.
    pub extent: u32,
    /// BLOCK_K, elements.
    pub depth: u32,
    /// Bytes of one element, 2 or 4.
    pub element_bytes: u32,
    /// Depth of one `mma` in chunks: 2, or 1 for `mma.m16n8k8` of 16-bit elements.
    pub mma_chunks: u32,
    /// Number of panels, one behind the other: one, or for elements in two parts one of all low
    /// parts, then one of all high parts.
    pub parts: u32,
}

impl Panel {
    /// Elements of one chunk.
    #[inline(always)]
    pub const fn chunk_elements(self) -> u32 {
        CHUNK / self.element_bytes
    }

    /// Lines of the panel.
    #[inline(always)]
    pub const fn lines(self) -> u32 {
        match self.major {
            Major::K => self.extent,
            Major::Mn => self.depth,
        }
    }

    /// Chunks of one line.
    #[inline(always)]
    pub const fn line_chunks(self) -> u32 {
        match self.major {
            Major::K => self.depth * self.element_bytes / CHUNK,
            Major::Mn => self.extent * self.element_bytes / CHUNK,
        }
    }

    /// Bytes of one line.
    #[inline(always)]
    pub const fn line_bytes(self) -> u32 {
        self.line_chunks() * CHUNK
    }

    /// Bytes of one panel.
    #[inline(always)]
    pub const fn bytes(self) -> u32 {
        self.lines() * self.line_bytes()
    }

    /// Bytes of the panels of all parts.
    #[inline(always)]
    pub const fn bytes_of_parts(self) -> u32 {
        self.parts * self.bytes()
    }

    /// Depth of one `mma`.
    #[inline(always)]
    pub const fn step_depth(self) -> u32 {
        self.mma_chunks * self.chunk_elements()
    }

    /// Whether fragments are loaded element by element, because `ldmatrix` can
    /// transpose 16-bit elements only.
    #[inline(always)]
    pub const fn scalar_fragments(self) -> bool {
        matches!(self.major, Major::Mn) && self.element_bytes == 4
    }

    /// The number with which the chunk numbers of `line` are XORed.
    ///
    /// With `ldmatrix`, eight consecutive lines at one chunk reach all eight
    /// 16-byte columns of the banks. With scalar fragments, 32 lanes read eight
    /// consecutive words (two chunks) of four consecutive lines.
    #[inline(always)]
    pub const fn swizzle(self, line: u32) -> u32 {
        if self.scalar_fragments() {
            2 * (line % 4)
        } else {
            match self.line_chunks() {
                4 => line / 2 % 4,
                _ => line % 8,
            }
        }
    }

    /// Lines after which [`Panel::swizzle`] repeats.
    #[inline(always)]
    pub const fn swizzle_period(self) -> u32 {
        if self.scalar_fragments() { 4 } else { 8 }
    }

    /// Byte offset of chunk `chunk` of line `line`.
    #[inline(always)]
    pub const fn offset(self, line: u32, chunk: u32) -> u32 {
        line * self.line_bytes() + (chunk ^ self.swizzle(line)) * CHUNK
    }

    // Copying in. `threads` threads take consecutive chunks, in passes.

    /// Lines that `threads` threads copy in one pass.
    #[inline(always)]
    pub const fn pass_lines(self, threads: u32) -> u32 {
        threads * CHUNK / self.line_bytes()
    }

    /// Passes that `threads` threads make over the panel.
    #[inline(always)]
    pub const fn passes(self, threads: u32) -> u32 {
        self.bytes() / (threads * CHUNK)
    }

    /// (line, chunk) that `thread` copies in pass 0. Its chunk in pass p is p ·
    /// `pass_lines` lines and, in the panel, p · `pass_bytes` bytes further.
    #[inline(always)]
    pub const fn first_chunk(self, thread: u32) -> (u32, u32) {
        (thread / self.line_chunks(), thread % self.line_chunks())
    }

    /// Bytes that `threads` threads copy in one pass.
    #[inline(always)]
    pub const fn pass_bytes(threads: u32) -> u32 {
        threads * CHUNK
    }

    // Loading out. A quad is four registers, each 8 along M or N and a chunk (of scalar
    // fragments: half a chunk) along K: what one `ldmatrix.x4` loads. The registers are
    // numbered, where an `mma` is two chunks deep and where it is one chunk deep:
    //
    //                 A                B            A and B
    //            k low  k high    k low  k high
    //   mn  0..8   0       2        0       1          0
    //   mn  8..16  1       3        2       3          1
    //   mn 16..24                                      2
    //   mn 24..32                                      3
    //
    // For A this is the register order of m16n8k*; a quad one chunk deep has two fragments.
    // For B a quad is two or four neighbouring n8 fragments, each of adjacent registers, as
    // the instruction requires.

    /// Elements of a quad along M or N.
    #[inline(always)]
    pub const fn quad_extent(self) -> u32 {
        32 / self.mma_chunks
    }

    /// (eight along M or N, part along K) that register `register` of a quad holds.
    #[inline(always)]
    const fn part(self, register: u32) -> (u32, u32) {
        match (self.mma_chunks, self.factor) {
            (1, _) => (register, 0),
            (_, Factor::A) => (register % 2, register / 2),
            (_, Factor::B) => (register / 2, register % 2),
        }
    }

    /// The part of a quad's byte offset that depends on the lane: the offset of
    /// quad 0 of step 0, for a warp whose part of the panel starts at `origin`
    /// along M or N. For `ldmatrix` it is the row whose address the lane gives.
    #[inline(always)]
    pub const fn lane_offset(self, origin: u32, lane: u32) -> u32 {
        if self.scalar_fragments() {
            let (line, word) = (lane % 4, origin + lane / 4);
            return self.offset(line, word / 4) + word % 4 * 4;
        }
        // Lane 8·i + r gives the address of row r of matrix i, the quad's register i.
        let (mn_part, k_part) = self.part(lane / 8);
        match self.major {
            Major::K => self.offset(origin + lane % 8 + 8 * mn_part, k_part),
            Major::Mn => self.offset(lane % 8 + 8 * k_part, origin / 8 + mn_part),
        }
    }

    /// Byte offset of quad `quad` of step `step`, from this lane's
    /// [`Panel::lane_offset`]: the offset of register `register` where fragments
    /// are scalar, of the whole quad (`register` 0) elsewhere.
    ///
    /// The swizzle changes at most the low three bits of a chunk's number. The
    /// origin is a multiple of the warp tile, so its bits XORed here are zero.
    #[inline(always)]
    pub const fn quad_offset(self, lane_offset: u32, quad: u32, step: u32, register: u32) -> u32 {
        let (chunk, line) = match self.major {
            Major::K => (self.mma_chunks * step, self.quad_extent() * quad),
            Major::Mn if self.scalar_fragments() => {
                let (mn_part, k_part) = self.part(register);
                (4 * quad + 2 * mn_part, 8 * step + 4 * k_part)
            }
            Major::Mn => (self.quad_extent() / 8 * quad, self.step_depth() * step),
        };
        let (swizzled, plain) = (chunk % 8, chunk / 8 * 8);
        (lane_offset ^ (swizzled * CHUNK)) + plain * CHUNK + line * self.line_bytes()
    }
}

/// Pair `index` of the registers of quads: the fragment of n8 tile `index` of B where an
/// `mma` is two chunks deep, and of row `index` of A where it is one chunk deep.
#[inline(always)]
pub fn pair<R: Copy>(quads: &[[R; 4]; MAX_QUADS], index: usize) -> [R; 2] {
    let quad = quads[index / 2];
    if index.is_multiple_of(2) {
        [quad[0], quad[1]]
    } else {
        [quad[2], quad[3]]
    }
}

/// Register `index` of quads: the fragment of n8 tile `index` of B where an `mma` is one chunk
/// deep.
#[inline(always)]
pub fn register<R: Copy>(quads: &[[R; 4]; MAX_QUADS], index: usize) -> R {
    quads[index / 4][index % 4]
}

/// (row, column), inside a 16×8 accumulator, of register `register` of `lane`
/// (PTX ISA, "Matrix Fragments for mma.m16n8k16", C and D; m16n8k8 has the same layout).
#[inline(always)]
pub const fn accumulator_position(lane: u32, register: u32) -> (u32, u32) {
    (lane / 4 + 8 * (register / 2), lane % 4 * 2 + register % 2)
}

/// Byte offset of C(row, col), `col` even, in a warp's tile of f32
/// accumulators `width` columns wide, on its way from registers to C. Pairs of
/// columns are swizzled by the row, so that there are no bank conflicts, neither
/// when a warp writes accumulators (a half warp covers four rows of eight columns)
/// nor when it reads rows.
#[inline(always)]
pub const fn staging_offset(row: u32, col: u32, width: u32) -> u32 {
    let swizzle = (row % 4) << 3 | (row / 4 % 4) << 1;
    (row * width + (col ^ swizzle)) * 4
}
