//! How TMA sees the operands of a hopper kernel: the one place that says which
//! matrices it can read, and the shape of every box it copies.
//!
//! TMA copies boxes of a matrix whose elements are contiguous in one direction
//! and whose lines, at a constant pitch, follow in the other (PTX ISA, "Tensors
//! in the `cp.async.bulk.tensor` instructions"; CUDA driver API,
//! `cuTensorMapEncodeTiled`). Everything is stored with the 128-byte swizzle,
//! so a box is at most 128 bytes, 64 elements, wide:
//!
//! | operand | contiguous along | dims | box |
//! |---|---|---|---|
//! | A | K | K, M | 64, BLOCK_M |
//! | A | M | M, K | 64, BLOCK_K |
//! | B | K | K, N | 64, BLOCK_N / cluster_m |
//! | B | N | N, K | 64, BLOCK_K |
//! | C | N | N, M | 64, 64 |
//!
//! A cluster shares its columns of B: each CTA fetches its part and multicasts
//! it, hence the division by `cluster_m`.

use gpu_kernels::{KernelInfo, Major, OutputType};

use crate::select::Problem;

/// Multiple that TMA asks of addresses and pitches, bytes.
pub const ALIGNMENT: u64 = 16;

/// Pitches must stay below this many bytes.
const MAX_PITCH: u64 = 1 << 40;

/// Elements across a box: what the 128-byte swizzle holds of a 2-byte type.
const BOX_WIDTH: u32 = 64;

/// Lines of a box of C.
const C_BOX_LINES: u32 = 64;

/// Why TMA cannot read or write an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The elements are not contiguous in the direction the kernel reads.
    #[error("its stride along {direction} is {stride}, accepted: 1")]
    Stride {
        /// `M`, `N` or `K`.
        direction: &'static str,
        /// Elements.
        stride: u64,
    },
    /// The lines are not a multiple of 16 bytes apart, overlap, or are too far
    /// apart.
    #[error(
        "its lines are {pitch} bytes apart, accepted: multiples of 16 from {line} up to 2^40 - 16"
    )]
    Pitch {
        /// Bytes from one line to the next.
        pitch: u64,
        /// Bytes of a line.
        line: u64,
    },
    /// It does not start at a multiple of 16 bytes.
    #[error("it starts at {address:#x}, accepted: multiples of 16")]
    Address {
        /// The device address.
        address: u64,
    },
}

/// An operand as lines of contiguous elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Elements of a line, and lines.
    pub dims: [u64; 2],
    /// Bytes from one line to the next.
    pub pitch_bytes: u64,
}

impl Lines {
    /// A of `problem`, contiguous along `major`.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn of_a(problem: &Problem, major: Major) -> Result<Lines, Unreadable> {
        let along_m = (problem.m, problem.a.row_stride, "M");
        let along_k = (problem.k, problem.a.col_stride, "K");
        let bytes = problem.input.bytes();
        match major {
            Major::K => Lines::new(problem.a.address, bytes, along_k, along_m),
            Major::Mn => Lines::new(problem.a.address, bytes, along_m, along_k),
        }
    }

    /// B of `problem`, contiguous along `major`.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn of_b(problem: &Problem, major: Major) -> Result<Lines, Unreadable> {
        let along_n = (problem.n, problem.b.col_stride, "N");
        let along_k = (problem.k, problem.b.row_stride, "K");
        let bytes = problem.input.bytes();
        match major {
            Major::K => Lines::new(problem.b.address, bytes, along_k, along_n),
            Major::Mn => Lines::new(problem.b.address, bytes, along_n, along_k),
        }
    }

    /// C of `problem`, contiguous along N, if a hopper kernel can write it
    /// through TMA: that takes the input type, too.
    pub fn of_c(problem: &Problem) -> Option<Lines> {
        let along_m = (problem.m, problem.c.row_stride, "M");
        let along_n = (problem.n, problem.c.col_stride, "N");
        let bytes = problem.input.bytes();
        let lines = Lines::new(problem.c.address, bytes, along_n, along_m);
        lines.ok().filter(|_| problem.output == OutputType::Input)
    }

    /// Lines along one direction, given as (extent, stride, name), that follow
    /// each other in another. A stride over an extent of 1 is never taken, so
    /// any will do.
    fn new(
        address: u64,
        element_bytes: u32,
        (length, stride, direction): (u32, u64, &'static str),
        (lines, line_stride, _): (u32, u64, &'static str),
    ) -> Result<Lines, Unreadable> {
        if length > 1 && stride != 1 {
            return Err(Unreadable::Stride { direction, stride });
        }
        let line = u64::from(length) * u64::from(element_bytes);
        let pitch = if lines > 1 {
            line_stride.saturating_mul(element_bytes.into())
        } else {
            line.next_multiple_of(ALIGNMENT)
        };
        if pitch % ALIGNMENT != 0 || pitch < line || pitch >= MAX_PITCH {
            return Err(Unreadable::Pitch { pitch, line });
        }
        if address % ALIGNMENT != 0 {
            return Err(Unreadable::Address { address });
        }
        Ok(Lines {
            dims: [length.into(), lines.into()],
            pitch_bytes: pitch,
        })
    }
}

/// The box of A that `kernel` copies at once, contiguous direction first.
pub fn a_box(kernel: &KernelInfo, major: Major) -> [u32; 2] {
    match major {
        Major::K => [BOX_WIDTH, kernel.block.m],
        Major::Mn => [BOX_WIDTH, kernel.block.k],
    }
}

/// The box of B that `kernel` copies at once, contiguous direction first.
pub fn b_box(kernel: &KernelInfo, major: Major) -> [u32; 2] {
    match major {
        Major::K => [BOX_WIDTH, kernel.block.n / kernel.cluster_m],
        Major::Mn => [BOX_WIDTH, kernel.block.k],
    }
}

/// The box of C that a hopper kernel writes at once, contiguous direction first.
pub fn c_box() -> [u32; 2] {
    [BOX_WIDTH, C_BOX_LINES]
}
