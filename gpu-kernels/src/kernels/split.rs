//! Not a step of the ladder: `split` turns f32 operands into two f16 parts ([`f16x3`]), for
//! kernels of type [`DType::F16x3`].
//!
//! ```text
//! a CTA    8 lines (rows of A, or columns of B)
//! pass 1   the largest magnitude of each line → its exponent
//! pass 2   512 of K at a time: shared memory → low and high parts, contiguous along K;
//!          where lines are contiguous along K, in aligned groups of four: registers → parts
//! ```
//!
//! It takes the parameters of the product. C is the copy of A and the source of the epilogue is
//! the copy of B: a matrix of all low parts, then one of all high parts, for each matrix of a
//! batch, with a line of the operand in each row. `exponents` get what the epilogue of the
//! product needs to scale its sums back.
//!
//! Pass 2 reads again what pass 1 has read, mostly from L2: the lines of all CTAs that run at
//! once are some 30 MB at K = 4096. One launch splits both operands, because a launch takes as
//! long as splitting a small operand.

use core::marker::PhantomData;

use crate::dtype::{DType, ElementType};
use crate::f16x3;
use crate::isa::{global, shared, thread};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress};
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Threads of a CTA.
const THREADS: u32 = 256;

/// Lines of a CTA. Where they are contiguous along M or N, 8 of them are a sector of 32 bytes.
pub const LINES: u32 = 8;

/// Threads that read the same line.
const ALONG_K: u32 = THREADS / LINES;

/// Depth that a CTA reads at a time.
const DEPTH: u32 = 16 * ALONG_K;

/// Words from one line of the staged chunk to the next, so that a warp's elements fall into 32
/// banks along K, and along the lines with four of K.
const PITCH: u32 = DEPTH + 4;

/// Shared addresses, in bytes, of the magnitudes that threads have found, and of the exponents.
const MAGNITUDES: u32 = LINES * PITCH * 4;
const MAGNITUDE_PITCH: u32 = (ALONG_K + 1) * 4;
const EXPONENTS: u32 = MAGNITUDES + LINES * MAGNITUDE_PITCH;

/// Splits the operands of a product.
pub struct Split<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Split<T> {
    const INFO: KernelInfo = KernelInfo {
        ctas_per_sm: 4,
        shared_bytes: EXPONENTS + LINES * 4,
        ..KernelInfo::new(
            Family::Split,
            Arch::Sm75,
            T::DTYPE,
            Block {
                m: LINES,
                n: DEPTH,
                k: 1,
            },
            THREADS,
        )
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        let (a, b) = (Operand::a(params), Operand::b(params));
        let position = thread::cta_position();
        let mut group = position.x as u64;
        while group < a.groups() + b.groups() {
            let (operand, index) = if group < a.groups() {
                (a, group)
            } else {
                (b, group - a.groups())
            };
            // SAFETY: all threads run the same groups; loads and stores are masked to the lines.
            unsafe { split_lines(&operand, index, params.k) };
            group += position.grid_x as u64;
        }
    }
}

/// The lines of an operand, and where their parts go.
#[derive(Clone, Copy)]
struct Operand {
    lines: u32,
    matrices: u32,
    /// A line is a row, whatever the operand.
    from: TensorRef,
    to: TensorRef,
    exponents: u64,
}

impl Operand {
    #[inline(always)]
    fn a(params: &GemmParams) -> Self {
        Operand {
            lines: params.m,
            matrices: matrices(params, &params.a),
            from: params.a,
            to: params.c,
            exponents: params.exponents[0],
        }
    }

    #[inline(always)]
    fn b(params: &GemmParams) -> Self {
        Operand {
            lines: params.n,
            matrices: matrices(params, &params.b),
            from: TensorRef {
                row_stride: params.b.col_stride,
                col_stride: params.b.row_stride,
                ..params.b
            },
            to: params.epilogue.source,
            exponents: params.exponents[1],
        }
    }

    /// Groups of [`LINES`] lines of one matrix.
    #[inline(always)]
    fn groups_of_matrix(&self) -> u32 {
        ceil_div(self.lines, LINES)
    }

    /// Groups of all matrices.
    #[inline(always)]
    fn groups(&self) -> u64 {
        self.groups_of_matrix() as u64 * self.matrices as u64
    }
}

/// Number of different matrices of an operand.
#[inline(always)]
fn matrices(params: &GemmParams, operand: &TensorRef) -> u32 {
    if operand.batch_stride == 0 {
        1
    } else {
        params.batches
    }
}

/// The lines of one CTA, as one thread sees them.
struct Lines {
    /// Lines of the matrix from the first one of the CTA on.
    count: u32,
    k: u32,
    from: TensorRef,
    /// The line that this thread reads, and its place among the threads that do.
    line: u32,
    offset: u32,
    /// Whether a line is whole groups of four elements, aligned to 16 bytes.
    in_vectors: bool,
}

/// Vectors of four elements that a thread reads at once.
const VECTORS: u32 = 8;

/// Depth that the threads of a line read at once as vectors.
const VECTOR_DEPTH: u32 = VECTORS * 4 * ALONG_K;

impl Lines {
    /// The bits of this thread's element `index` of 16 in the chunk from depth `first` on; 0
    /// outside the operand.
    ///
    /// # Safety
    /// The operand is live.
    #[inline(always)]
    unsafe fn load(&self, first: u32, index: u32) -> u32 {
        let k = first + index * ALONG_K + self.offset;
        if self.line < self.count && k < self.k {
            let element = self.line as u64 * self.from.row_stride + k as u64 * self.from.col_stride;
            // SAFETY: inside the operand.
            unsafe { global::load_u32(self.from.address + 4 * element) }
        } else {
            0
        }
    }

    /// The depth of this thread's vector `index` of the `VECTORS` from depth `first` on.
    #[inline(always)]
    fn vector_depth(&self, first: u32, index: u32) -> u32 {
        first + 4 * (index * ALONG_K + self.offset)
    }

    /// The bits of this thread's vectors from depth `first` on; 0 outside the operand.
    ///
    /// # Safety
    /// The operand is live, and lines are in vectors.
    #[inline(always)]
    unsafe fn load_vectors(&self, first: u32) -> [[u32; 4]; VECTORS as usize] {
        let line = self.from.address + 4 * (self.line as u64 * self.from.row_stride);
        let mut bits = [[0; 4]; VECTORS as usize];
        unroll!(I < 8, {
            let k = self.vector_depth(first, I as u32);
            let exists = self.line < self.count && k < self.k;
            // SAFETY: inside the operand.
            bits[I] = unsafe { global::load_u32x4_if(exists, line + 4 * k as u64) };
        });
        bits
    }

    /// The largest magnitude that this thread finds in its line.
    ///
    /// # Safety
    /// The operand is live.
    #[inline(always)]
    unsafe fn largest(&self) -> u32 {
        let mut largest = 0;
        let mut first = 0;
        if self.in_vectors {
            while first < self.k {
                // SAFETY: the caller's duty.
                let bits = unsafe { self.load_vectors(first) };
                unroll!(I < 8, {
                    let [x, y, z, w] = bits[I].map(|bits| f16x3::magnitude(f32::from_bits(bits)));
                    largest = x.max(y).max(z.max(w)).max(largest);
                });
                first += VECTOR_DEPTH;
            }
            return largest;
        }
        while first < self.k {
            let mut bits = [0; 16];
            // SAFETY: the caller's duty.
            unroll!(I < 16, { bits[I] = unsafe { self.load(first, I as u32) } });
            unroll!(I < 16, {
                largest = f16x3::magnitude(f32::from_bits(bits[I])).max(largest);
            });
            first += DEPTH;
        }
        largest
    }
}

/// Splits group `index` of the operand's lines.
///
/// # Safety
/// All threads of the CTA call this; the operand and its copy are live.
#[inline(always)]
unsafe fn split_lines(operand: &Operand, index: u64, k: u32) {
    // At least one, which the compiler has to see: a kernel cannot panic.
    let groups = operand.groups_of_matrix().max(1) as u64;
    let (matrix, first_line) = ((index / groups) as u32, (index % groups) as u32 * LINES);
    let thread = thread::thread_index();
    // Neighbouring threads read neighbouring elements.
    let along_k = operand.from.col_stride <= operand.from.row_stride;
    let (line, offset) = if along_k {
        (thread / ALONG_K, thread % ALONG_K)
    } else {
        (thread % LINES, thread / LINES)
    };
    let from = operand.from.of_batch(matrix, DType::F32);
    let lines = Lines {
        count: operand.lines - first_line,
        k,
        from: TensorRef {
            address: from.address + 4 * first_line as u64 * from.row_stride,
            ..from
        },
        line,
        offset,
        in_vectors: from.col_stride == 1
            && (from.address | (4 * from.row_stride) | (4 * k as u64)).is_multiple_of(16),
    };
    let base = shared::base();
    // SAFETY: masked to the lines; the barriers separate stores to shared memory from loads.
    unsafe {
        let found = base + MAGNITUDES + line * MAGNITUDE_PITCH + offset * 4;
        shared::store_u32(found, lines.largest());
        thread::sync_cta();
        if thread < LINES {
            let mut largest = 0;
            let mut from = base + MAGNITUDES + thread * MAGNITUDE_PITCH;
            let end = from + ALONG_K * 4;
            while from < end {
                unroll!(I < 8, {
                    largest = shared::load_u32(from + 4 * I as u32).max(largest);
                });
                from += 32;
            }
            let exponent = f16x3::exponent(largest) as u32;
            shared::store_u32(base + EXPONENTS + thread * 4, exponent);
            if thread < lines.count {
                let line = matrix as u64 * operand.lines as u64 + (first_line + thread) as u64;
                global::store_u32(operand.exponents + line * 4, exponent);
            }
        }
        thread::sync_cta();
        if lines.in_vectors {
            store_vectors(operand, matrix, first_line, &lines);
            return;
        }
        let mut first = 0;
        while first < k {
            unroll!(I < 16, {
                let at = line * PITCH + I as u32 * ALONG_K + offset;
                shared::store_u32(base + at * 4, lines.load(first, I as u32));
            });
            thread::sync_cta();
            // A warp stores a line.
            let (line, lane) = (thread / 32, thread % 32);
            unroll!(I < 8, {
                let at = 2 * (I as u32 * 32 + lane);
                if line < lines.count && first + at < k {
                    store_pair(operand, matrix, first_line, (line, first, at));
                }
            });
            thread::sync_cta();
            first += DEPTH;
        }
    }
}

/// Splits this thread's line, whose elements are in vectors, and stores each part as pairs of
/// pairs.
///
/// # Safety
/// The exponents are in shared memory; the operand and its copy are live.
#[inline(always)]
unsafe fn store_vectors(operand: &Operand, matrix: u32, first_line: u32, lines: &Lines) {
    let to = operand.to.of_batch(matrix, DType::F16);
    let plane = 2 * operand.lines as u64 * to.row_stride;
    let line = to.address + 2 * (first_line + lines.line) as u64 * to.row_stride;
    // SAFETY: the caller's duty.
    unsafe {
        let exponent = shared::load_u32(shared::base() + EXPONENTS + lines.line * 4) as i32;
        let mut first = 0;
        while first < lines.k {
            let bits = lines.load_vectors(first);
            unroll!(I < 8, {
                let k = lines.vector_depth(first, I as u32);
                if lines.line < lines.count && k < lines.k {
                    let parts = bits[I].map(|bits| f16x3::split(f32::from_bits(bits), exponent));
                    let [x, y, z, w] = parts;
                    let address = line + 2 * k as u64;
                    let pairs = |part: usize| [x[part] | y[part] << 16, z[part] | w[part] << 16];
                    global::store_u32x2(address, pairs(0));
                    global::store_u32x2(address + plane, pairs(1));
                }
            });
            first += VECTOR_DEPTH;
        }
    }
}

/// Splits the elements `at` and `at + 1` of a line of the chunk from depth `first` on, and stores
/// each part as a pair. A line of the copy has room for the second, which is 0 past the end.
///
/// # Safety
/// The chunk and the exponents are in shared memory; the first element exists.
#[inline(always)]
unsafe fn store_pair(
    operand: &Operand,
    matrix: u32,
    first_line: u32,
    (line, first, at): (u32, u32, u32),
) {
    let to = operand.to.of_batch(matrix, DType::F16);
    let plane = operand.lines as u64 * to.row_stride;
    // SAFETY: the caller's duty.
    unsafe {
        let exponent = shared::load_u32(shared::base() + EXPONENTS + line * 4) as i32;
        let pair = shared::load_f32x2(shared::base() + (line * PITCH + at) * 4);
        let [one, other] = pair.map(|element| f16x3::split(element, exponent));
        let element = (first_line + line) as u64 * to.row_stride + (first + at) as u64;
        let address = to.address + 2 * element;
        global::store_u32(address, one[0] | other[0] << 16);
        global::store_u32(address + 2 * plane, one[1] | other[1] << 16);
    }
}
