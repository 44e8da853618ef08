//! Step 1, `naive`: one thread, one element of C.
//!
//! Every product reads its two factors from global memory, so the kernel is
//! bound by the cache hierarchy. It is the reference for the rest of the
//! ladder on the device: it takes any strides and any shape, and its threads
//! share nothing.

use core::marker::PhantomData;

use crate::dtype::ElementType;
use crate::epilogue::{self, Epilogue};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};
use crate::tensor_ref::TensorRef;

/// Threads along M and along N of one CTA.
const SIDE: u32 = 16;

/// The naive kernel for elements of type `T`.
pub struct Naive<T>(PhantomData<T>);

impl<T: ElementType> Kernel for Naive<T> {
    const INFO: KernelInfo = KernelInfo::new(
        Family::Naive,
        Arch::Sm75,
        T::DTYPE,
        Block {
            m: SIDE,
            n: SIDE,
            k: 1,
        },
        SIDE * SIDE,
    );

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        use crate::isa::thread;
        use crate::schedule::TileScheduler;

        let thread = thread::thread_index();
        let position = thread::cta_position();
        let mut tiles = TileScheduler::new(params.raster, params.batches(), position);
        while let Some(tile) = tiles.next() {
            // Neighbouring threads take neighbouring columns of C, so that stores coalesce.
            let row = tile.m * SIDE + thread / SIDE;
            let col = tile.n * SIDE + thread % SIDE;
            if row < params.m && col < params.n {
                let a = params.a.of_batch(tile.batch, T::DTYPE);
                let b = params.b.of_batch(tile.batch, T::DTYPE);
                let c = epilogue::c_of(params, tile.batch);
                // SAFETY: (row, col) is inside C, and so are its row of A and column of B.
                unsafe {
                    let sum = dot::<T>(&a, &b, params.k, row, col);
                    let [value] = Epilogue::new(params, tile.batch).apply([sum], row, col);
                    epilogue::store(params, &c, row, col, value);
                }
            }
        }
    }
}

/// Row `row` of A times column `col` of B, over `depth` elements.
///
/// # Safety
/// The row, the column and `depth` are inside A and B, which describe live allocations.
#[inline(always)]
unsafe fn dot<T: ElementType>(a: &TensorRef, b: &TensorRef, depth: u32, row: u32, col: u32) -> f32 {
    use crate::isa::{arithmetic::fma, global};

    let bytes = T::DTYPE.bytes() as u64;
    let mut a_address = a.address + row as u64 * a.row_stride * bytes;
    let mut b_address = b.address + col as u64 * b.col_stride * bytes;
    let mut sum = 0.0;
    let mut k = 0;
    while k < depth {
        // SAFETY: k < depth, so both elements exist.
        let (x, y) = unsafe { (global::load::<T>(a_address), global::load::<T>(b_address)) };
        sum = fma(x, y, sum);
        a_address += a.col_stride * bytes;
        b_address += b.row_stride * bytes;
        k += 1;
    }
    sum
}
