//! Step 1, `naive`: one thread, one element of C.
//!
//! Every product reads its two factors from global memory, so the kernel is
//! bound by the cache hierarchy. It is the reference for the rest of the
//! ladder on the device: it takes any strides and any shape, and its threads
//! share nothing.

use core::marker::PhantomData;

use crate::dtype::ElementType;
use crate::epilogue::{self, Epilogue, Identity};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};

/// Threads along M and along N of one CTA.
const SIDE: u32 = 16;

/// The naive kernel for elements of type `T`, with epilogue `E`.
pub struct Naive<T, E = Identity>(PhantomData<(T, E)>);

impl<T: ElementType, E: Epilogue> Kernel for Naive<T, E> {
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
    unsafe fn run(params: &crate::problem::GemmParams) {
        use crate::isa::thread;
        use crate::order::TileGrid;
        use crate::schedule::TileScheduler;

        let thread = thread::thread_index();
        let grid = TileGrid::cover(params.m, params.n, SIDE, SIDE);
        let position = thread::cta_position();
        let mut tiles = TileScheduler::new(params.schedule, params.order, grid, position);
        while let Some(tile) = tiles.next() {
            // Neighbouring threads take neighbouring columns of C, so that stores coalesce.
            let row = tile.m * SIDE + thread / SIDE;
            let col = tile.n * SIDE + thread % SIDE;
            if row < params.m && col < params.n {
                // SAFETY: (row, col) is inside C, and so are its row of A and column of B.
                unsafe {
                    let sum = dot::<T>(params, row, col);
                    let [value] = E::new(params).apply([sum], row, col);
                    epilogue::store::<T>(params, row, col, value);
                }
            }
        }
    }
}

/// Row `row` of A times column `col` of B.
///
/// # Safety
/// `row < m`, `col < n`, and the operands describe live allocations.
#[inline(always)]
unsafe fn dot<T: ElementType>(params: &crate::problem::GemmParams, row: u32, col: u32) -> f32 {
    use crate::isa::{arithmetic::fma, global};

    let bytes = T::DTYPE.bytes() as u64;
    let (a, b) = (&params.a, &params.b);
    let mut a_address = a.address + row as u64 * a.row_stride * bytes;
    let mut b_address = b.address + col as u64 * b.col_stride * bytes;
    let mut sum = 0.0;
    let mut k = 0;
    while k < params.k {
        // SAFETY: k < params.k, so both elements exist.
        let (x, y) = unsafe { (global::load::<T>(a_address), global::load::<T>(b_address)) };
        sum = fma(x, y, sum);
        a_address += a.col_stride * bytes;
        b_address += b.row_stride * bytes;
        k += 1;
    }
    sum
}
