//! The formula of the epilogue on fragments of accumulators.
//!
//! A lane has eight sums of each group of 16 columns: pairs of neighbouring columns, one
//! pair in each of two rows eight apart, then the same two rows eight columns further
//! ([`wgmma::Accumulator::columns`](crate::isa::wgmma)). The bias and the scales of columns
//! come from shared memory, where [`Fusion::stage_vectors`] has put them as f32.

use core::marker::PhantomData;

use super::pipeline::Consumer;
use super::shared_memory::SharedMemory;
use super::tma_load::is_gated;
use super::traits::KernelTraits;
use crate::dtype::{DType, ElementType as _};
use crate::element::{Bf16, F16};
use crate::epilogue::{BiasAxis, Epilogue, Terms};
use crate::f16x3;
use crate::isa::shared;
use crate::isa::warpgroup::WARPGROUP;
use crate::problem::GemmParams;
use crate::unroll::unroll;

/// The place of a lane's values in 64 rows and a group of 16 columns.
#[derive(Clone, Copy)]
pub struct Fragment {
    /// The upper of its two rows; the other is eight rows further down.
    pub row: u32,
    /// The first of its columns.
    pub col: u32,
    /// The 16-byte chunk of an f32 tile that holds its first pair, and the pair's offset in
    /// the chunk.
    pub chunk: u32,
    /// See `chunk`.
    pub half: u32,
    /// The row whose address the lane gives to `stmatrix`, and which chunk of a 16-bit group
    /// of columns: lanes 0 to 15 of a warp address the first chunk of its 16 rows, lanes 16
    /// to 31 the second.
    pub matrix_row: u32,
    /// See `matrix_row`.
    pub matrix_half: u32,
}

impl Fragment {
    /// The fragment of `lane` of a warpgroup.
    #[inline(always)]
    pub fn new(lane: u32) -> Self {
        let warp_row = lane / 32 * 16;
        Fragment {
            row: warp_row + lane % 32 / 4,
            col: lane % 4 * 2,
            chunk: lane % 4 / 2,
            half: lane % 2 * 8,
            matrix_row: warp_row + lane % 16,
            matrix_half: lane % 32 / 16,
        }
    }
}

/// The terms of the formula that a lane's two rows have.
#[derive(Clone, Copy)]
pub struct RowTerms {
    scale: [f32; 2],
    bias: [f32; 2],
    /// Where elements have parts, the exponents of the rows, as the bits of these.
    exponent: [f32; 2],
}

/// The formula, for the threads of a consumer that store together.
pub struct Fusion<'a, K> {
    params: &'a GemmParams,
    smem: SharedMemory<K>,
    consumer: Consumer,
    kernel: PhantomData<K>,
}

impl<'a, K: KernelTraits> Fusion<'a, K> {
    /// Threads that store together.
    const THREADS: u32 = if K::CLUSTER.k > 1 { 32 } else { WARPGROUP };

    /// The formula for `consumer`.
    #[inline(always)]
    pub fn new(params: &'a GemmParams, smem: SharedMemory<K>, consumer: Consumer) -> Self {
        Fusion {
            params,
            smem,
            consumer,
            kernel: PhantomData,
        }
    }

    #[inline(always)]
    fn epilogue(&self) -> Epilogue<'a> {
        // The source comes through shared memory. Vectors are the same for all products, but for
        // exponents, whose addresses are computed here.
        Epilogue::new(self.params, 0)
    }

    /// Whether columns have a bias or scales.
    #[inline(always)]
    pub fn has_column_vectors(&self) -> bool {
        let form = &self.params.form;
        K::FUSED && (matches!(form.bias, BiasAxis::PerColumn) || form.col_scale != 0)
    }

    /// Shared addresses of the bias and of the column scales.
    #[inline(always)]
    fn vectors(&self, lane: u32) -> (u32, u32) {
        let group = lane / Self::THREADS;
        let consumer = self.consumer.index;
        (
            self.smem.bias(consumer, group),
            self.smem.col_scale(consumer, group),
        )
    }

    /// Copies the bias and the scales of the columns of the tile at `col` to shared memory.
    /// `lane` is this thread's index in its warpgroup.
    ///
    /// # Safety
    /// All threads that store together call this; a barrier follows before they read, and
    /// one was before, since they last read.
    #[inline(always)]
    pub unsafe fn stage_vectors(&self, lane: u32, col: u32) {
        let (form, arguments) = (&self.params.form, &self.params.epilogue);
        let (bias, scale) = self.vectors(lane);
        let mut local = lane % Self::THREADS;
        while local < K::BLOCK_N {
            let col = self.column(col, local);
            // SAFETY: masked to the columns; inside the vectors in shared memory.
            unsafe {
                if let BiasAxis::PerColumn = form.bias {
                    let [value] =
                        (self.epilogue()).column_values(form.bias_type, arguments.bias, col);
                    shared::store_f32(bias + 4 * local, value);
                }
                if form.col_scale != 0 {
                    let [value] =
                        (self.epilogue()).column_values(DType::F32, arguments.col_scale, col);
                    shared::store_f32(scale + 4 * local, value);
                }
            }
            local += Self::THREADS;
        }
    }

    /// The column of B that is column `local` of the tile at `col`.
    #[inline(always)]
    fn column(&self, col: u32, local: u32) -> u32 {
        if !is_gated::<K>(self.params) {
            return col + local;
        }
        let arguments = &self.params.epilogue;
        let half = K::BLOCK_N / 2;
        let gate = (col / 2 + local % half) * arguments.gate_stride;
        gate + local / half * arguments.up_offset
    }

    /// The terms of rows `row` and `row + 8` of product `batch`.
    ///
    /// # Safety
    /// The vectors of the epilogue are live.
    #[inline(always)]
    pub unsafe fn row_terms(&self, row: u32, batch: u32) -> RowTerms {
        let (form, arguments) = (&self.params.form, &self.params.epilogue);
        let mut terms = RowTerms {
            scale: [0.0; 2],
            bias: [0.0; 2],
            exponent: [0.0; 2],
        };
        if !K::FUSED {
            return terms;
        }
        // SAFETY: masked to the rows.
        unsafe {
            let value = |dtype, address, row| self.epilogue().row_value(dtype, address, row);
            if form.row_scale != 0 {
                let (dtype, address) = (DType::F32, arguments.row_scale);
                terms.scale = [value(dtype, address, row), value(dtype, address, row + 8)];
            }
            if let BiasAxis::PerRow = form.bias {
                let (dtype, address) = (form.bias_type, arguments.bias);
                terms.bias = [value(dtype, address, row), value(dtype, address, row + 8)];
            }
            if K::PARTS > 1 {
                let (dtype, address) = (
                    DType::F32,
                    Epilogue::new(self.params, batch).exponents(0, self.params.m),
                );
                terms.exponent = [value(dtype, address, row), value(dtype, address, row + 8)];
            }
        }
        terms
    }

    /// The terms of a lane's values in group `group` of 16 columns of the tile.
    ///
    /// # Safety
    /// The vectors are staged.
    #[inline(always)]
    pub unsafe fn terms(
        &self,
        fragment: Fragment,
        rows: &RowTerms,
        group: u32,
        source: [f32; 8],
    ) -> Terms<8> {
        let form = &self.params.form;
        let mut terms = Terms {
            source,
            row_scale: of_rows(rows.scale),
            bias: of_rows(rows.bias),
            ..Terms::ZERO
        };
        let lane = fragment.row / 16 * 32;
        let (bias, scale) = self.vectors(lane);
        let offset = 4 * (16 * group + fragment.col);
        // SAFETY: inside the vectors in shared memory.
        unsafe {
            if let BiasAxis::PerColumn = form.bias {
                terms.bias = of_columns(bias + offset);
            }
            if form.col_scale != 0 {
                terms.col_scale = of_columns(scale + offset);
            }
        }
        terms
    }

    /// The sums of products of elements in columns from `col` on, from `values`, the sums of
    /// products of their parts; the same where elements have no parts.
    ///
    /// # Safety
    /// The exponents are live.
    #[inline(always)]
    pub unsafe fn unscaled(
        &self,
        mut values: [f32; 8],
        rows: &RowTerms,
        batch: u32,
        col: u32,
    ) -> [f32; 8] {
        if K::PARTS == 1 {
            return values;
        }
        let exponents = Epilogue::new(self.params, batch).exponents(1, self.params.n);
        // SAFETY: masked to the columns.
        let ([a, b], [e, f]) = unsafe {
            let values = |col| (self.epilogue()).column_values(DType::F32, exponents, col);
            (values(col), values(col + 8))
        };
        let (of_row, of_column) = (of_rows(rows.exponent), [a, b, a, b, e, f, e, f]);
        unroll!(I < 8, {
            let exponent = of_row[I].to_bits() as i32 + of_column[I].to_bits() as i32;
            values[I] = f16x3::unscaled(values[I], exponent);
        });
        values
    }

    /// α · r · c · sum + β·S + bias.
    #[inline(always)]
    pub fn combine(&self, values: [f32; 8], terms: &Terms<8>) -> [f32; 8] {
        self.epilogue().combine(values, terms)
    }

    /// The activation.
    #[inline(always)]
    pub fn finish(&self, values: [f32; 8], terms: &Terms<8>) -> [f32; 8] {
        self.epilogue().finish(values, terms)
    }

    /// The values of pairs of elements of C's 16-bit type.
    #[inline(always)]
    pub fn unpacked(&self, pairs: [u32; 4]) -> [f32; 8] {
        let [ab, cd, ef, gh] = pairs.map(|pair| match self.params.form.output {
            DType::Bf16 => [Bf16::to_f32(pair & 0xffff), Bf16::to_f32(pair >> 16)],
            _ => [F16::to_f32(pair & 0xffff), F16::to_f32(pair >> 16)],
        });
        [ab[0], ab[1], cd[0], cd[1], ef[0], ef[1], gh[0], gh[1]]
    }
}

/// The values of two rows, for each of a lane's values.
#[inline(always)]
fn of_rows([upper, lower]: [f32; 2]) -> [f32; 8] {
    [upper, upper, lower, lower, upper, upper, lower, lower]
}

/// The values of a lane's columns, for each of its values. The first column's value lies at
/// shared address `first`.
///
/// # Safety
/// The vector is complete.
#[inline(always)]
unsafe fn of_columns(first: u32) -> [f32; 8] {
    // SAFETY: the caller's duty.
    let ([a, b], [e, f]) = unsafe { (shared::load_f32x2(first), shared::load_f32x2(first + 32)) };
    [a, b, a, b, e, f, e, f]
}
