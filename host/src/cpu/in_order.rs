//! A·B in an order that K alone decides: each element is one chain of fused multiply-adds,
//! from k = 0 up.
//!
//! The crate `gemm`, which multiplies where nobody asks for this, chooses blocks of K and
//! vectors by the shape. Here the shape decides only which elements are computed side by side.
//! A fused multiply-add is rounded once wherever it is computed, so the bits are the same on
//! every processor, with vectors or without.
//!
//! The factors are first copied into *strips*, as in GotoBLAS and BLIS (Goto and van de Geijn,
//! "Anatomy of High-Performance Matrix Multiplication", 2008): a strip holds the elements of
//! some rows of A, or columns of B, for each k in turn, and zeros past the last row.

use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};
use rayon::slice::ParallelSliceMut as _;

use crate::element::Element;
use crate::host_matrix::HostMatrix;

/// Rows of a strip of A.
const ROWS: usize = 4;

/// Columns of a strip of B: with [`ROWS`], as many sums as half of the registers of a processor
/// with AVX2 hold.
const COLS: usize = 16;

/// Fewer multiply-adds, or copied elements, are left to one thread.
const MANY: usize = 1 << 16;

/// `rows` of A and `cols` of B, rounded up to whole strips.
pub(super) const fn padded(rows: usize, cols: usize) -> (usize, usize) {
    (rows.next_multiple_of(ROWS), cols.next_multiple_of(COLS))
}

/// Number of strips of `width` lines.
const fn strips(lines: usize, width: usize) -> usize {
    lines.div_ceil(width)
}

/// The strips of A in `panel`, in f32.
///
/// # Safety
/// `a` can be read; the panel has room for the [`padded`] rows.
pub(super) unsafe fn pack_a<T: Element>(a: HostMatrix<T>, panel: &mut [f32]) -> &[f32] {
    // SAFETY: the caller ensures it.
    unsafe { pack::<T, ROWS>(a, panel) }
}

/// The strips of B in `panel`, in f32.
///
/// # Safety
/// `b` can be read; the panel has room for the [`padded`] columns.
pub(super) unsafe fn pack_b<T: Element>(b: HostMatrix<T>, panel: &mut [f32]) -> &[f32] {
    // SAFETY: the caller ensures it.
    unsafe { pack::<T, COLS>(b.transposed(), panel) }
}

/// Strips of `WIDTH` rows of `matrix`.
///
/// # Safety
/// The matrix can be read.
unsafe fn pack<T: Element, const WIDTH: usize>(matrix: HostMatrix<T>, panel: &mut [f32]) -> &[f32] {
    let (rows, depth) = (matrix.layout.rows, matrix.layout.cols);
    let panel = &mut panel[..strips(rows, WIDTH) * WIDTH * depth];
    let matrix = Shared(matrix);
    let strip = |(index, strip): (usize, &mut [f32])| {
        let row = index * WIDTH;
        let height = WIDTH.min(rows - row);
        if height < WIDTH {
            strip.fill(0.0);
        }
        let part = matrix.get().part(row, 0, height, depth);
        // SAFETY: inside the matrix, which can be read.
        unsafe { pack_strip::<T, WIDTH>(part, strip) };
    };
    let length = (WIDTH * depth).max(1);
    if panel.len() < MANY {
        panel.chunks_exact_mut(length).enumerate().for_each(strip);
    } else {
        panel
            .par_chunks_exact_mut(length)
            .enumerate()
            .for_each(strip);
    }
    panel
}

/// Copies `matrix`, of at most `WIDTH` rows, in runs as long as its elements are side by side.
///
/// # Safety
/// The matrix can be read.
unsafe fn pack_strip<T: Element, const WIDTH: usize>(matrix: HostMatrix<T>, strip: &mut [f32]) {
    /// Elements of a row that are converted at once.
    const RUN: usize = 64;

    let (rows, depth) = (matrix.layout.rows, matrix.layout.cols);
    // SAFETY: the runs lie inside the matrix.
    let run = |row, col, length| unsafe {
        std::slice::from_raw_parts(matrix.element(row, col).cast_const(), length)
    };
    if matrix.layout.row_stride == 1 {
        for (k, to) in strip.chunks_exact_mut(WIDTH).enumerate() {
            T::widen(run(0, k, rows), &mut to[..rows]);
        }
        return;
    }
    let length = if matrix.layout.col_stride == 1 {
        RUN
    } else {
        1
    };
    for row in 0..rows {
        for first in (0..depth).step_by(length) {
            let mut wide = [0.0; RUN];
            let wide = &mut wide[..length.min(depth - first)];
            T::widen(run(row, first, wide.len()), wide);
            for (to, value) in strip.chunks_exact_mut(WIDTH).skip(first).zip(wide) {
                to[row] = *value;
            }
        }
    }
}

/// Computes `c` = A·B from the strips of A and B, `depth` deep.
///
/// # Safety
/// The strips are those of a matrix with as many rows, and one with as many columns, as `c`
/// has. `c` can be written, and no other code uses it.
pub(super) unsafe fn multiply(a: &[f32], b: &[f32], depth: usize, c: HostMatrix<f32>) {
    let (rows, cols) = (c.layout.rows, c.layout.cols);
    let (tiles_m, tiles_n) = (strips(rows, ROWS), strips(cols, COLS));
    let c = Shared(c);
    let tile = |index: usize| {
        let (row, col) = (index % tiles_m, index / tiles_m);
        let a = &a[row * ROWS * depth..][..ROWS * depth];
        let b = &b[col * COLS * depth..][..COLS * depth];
        let sums = sums(a, b);
        let c = c.get();
        for (row, sums) in (row * ROWS..rows).zip(&sums) {
            for (col, sum) in (col * COLS..cols).zip(sums) {
                // SAFETY: inside C; each element is in one tile.
                unsafe { *c.element(row, col) = *sum };
            }
        }
    };
    let tiles = 0..tiles_m * tiles_n;
    if tiles.len() * ROWS * COLS * depth < MANY {
        tiles.for_each(tile);
    } else {
        tiles.into_par_iter().for_each(tile);
    }
}

/// A matrix that several threads read, or whose elements they write, each other ones.
struct Shared<T>(HostMatrix<T>);

// SAFETY: no two threads use an element that one of them writes.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn get(&self) -> HostMatrix<T> {
        self.0
    }
}

/// The sums of one strip of A times one of B.
fn sums(a: &[f32], b: &[f32]) -> [[f32; COLS]; ROWS] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both.
        return unsafe { sums_by_avx2(a, b) };
    }
    sums_generic(a, b)
}

/// [`sums_generic`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn sums_by_avx2(a: &[f32], b: &[f32]) -> [[f32; COLS]; ROWS] {
    sums_generic(a, b)
}

#[inline(always)]
fn sums_generic(a: &[f32], b: &[f32]) -> [[f32; COLS]; ROWS] {
    let mut sums = [[0.0_f32; COLS]; ROWS];
    let (a, _) = a.as_chunks::<ROWS>();
    let (b, _) = b.as_chunks::<COLS>();
    for (a, b) in a.iter().zip(b) {
        for (sums, a) in sums.iter_mut().zip(a) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = a.mul_add(*b, *sum);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of AVX2 and the generic code have the same bits.
    #[test]
    fn a_sum_is_one_chain_of_fused_multiply_adds() {
        let numbers =
            |len, step: f32| -> Vec<f32> { (0..len).map(|i| (step * i as f32).sin()).collect() };
        for depth in [0, 1, 7, 300] {
            let (a, b) = (numbers(ROWS * depth, 0.37), numbers(COLS * depth, 0.73));
            let found = sums(&a, &b);
            assert_eq!(found, sums_generic(&a, &b));
            for (i, j) in [(0, 0), (3, 15), (2, 7)] {
                let chain = (0..depth).fold(0.0_f32, |sum, k| {
                    a[k * ROWS + i].mul_add(b[k * COLS + j], sum)
                });
                assert_eq!(found[i][j].to_bits(), chain.to_bits());
            }
        }
    }
}
