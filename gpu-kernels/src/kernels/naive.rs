//! Step 1, `naive`: one thread, one element of C.
//!
//! Every product reads its two factors from global memory, so the kernel is
//! bound by the cache hierarchy. It is the reference for the rest of the
//! ladder on the device: any strides, any shape, nothing shared.

use core::marker::PhantomData;

use crate::element::Element;
use crate::kernel::{Arch, Block, Cluster, Family, Kernel, KernelInfo};

/// Threads along M and along N of one CTA.
const SIDE: u32 = 16;

/// The naive kernel for elements of type `T`.
pub struct Naive<T>(PhantomData<T>);

impl<T: Element> Kernel for Naive<T> {
    const INFO: KernelInfo = KernelInfo {
        name: "",
        family: Family::Naive,
        arch: Arch::Sm75,
        input: T::DTYPE,
        c_by_tma_only: false,
        block: Block {
            m: SIDE,
            n: SIDE,
            k: 1,
        },
        a_major: None,
        b_major: None,
        cluster: Cluster::NONE,
        ping_pong: false,
        threads: SIDE * SIDE,
        ctas_per_sm: 1,
        stages: 1,
        shared_bytes: 0,
        stream_k_bytes: 0,
    };

    #[inline(always)]
    unsafe fn run(params: &crate::problem::GemmParams) {
        use crate::isa::thread;
        use crate::order::TileGrid;
        use crate::schedule::TileWalk;

        let thread = thread::thread_index();
        let grid = TileGrid::cover(params.m, params.n, SIDE, SIDE);
        let mut walk = TileWalk::new(params.schedule, params.order, grid, thread::cta_position());
        while let Some(tile) = walk.next() {
            // Neighbouring threads take neighbouring columns of C.
            let row = tile.m * SIDE + thread / SIDE;
            let col = tile.n * SIDE + thread % SIDE;
            if row < params.m && col < params.n {
                // SAFETY: (row, col) is inside C, and so are its row of A and column of B.
                unsafe {
                    let sum = dot::<T>(params, row, col);
                    crate::epilogue::store::<T>(params, row, col, sum);
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
unsafe fn dot<T: Element>(params: &crate::problem::GemmParams, row: u32, col: u32) -> f32 {
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
