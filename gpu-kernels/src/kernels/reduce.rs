//! Not a step of the ladder: `reduce` finishes a launch under
//! [`Schedule::SplitK`](crate::Schedule::SplitK). It adds the sums that the CTAs of a tile have left
//! in the workspace, applies the epilogue, and stores C.
//!
//! A CTA has 64 rows and 16 columns of a tile, and so as many threads work on a tile as the tile
//! has elements, divided by eight: products that are split have few tiles, and all SMs add. The
//! thread that has a lane's place in a consumer warpgroup finds the lane's accumulators in the
//! workspace ([`stream_k`](super::hopper::stream_k) has its layout):
//!
//! ```text
//! sums = part 0 + part 1 + …      in the order of K, eight values a thread
//! C    = the epilogue of the sums
//! ```
//!
//! It takes the parameters of the product, but for K, which it counts in k-blocks of the product. Its
//! additions depend on no time, and on no other tile.

use super::hopper::fusion::Fragment;
use super::hopper::stream_k::{GROUP_BYTES, part_bytes};
use crate::dtype::DType;
use crate::epilogue::{self, Epilogue, pack_pair, plus};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::{dependency, global, thread};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::order::div_rem;
use crate::problem::{GemmParams, MapAddress};
use crate::schedule::TileScheduler;
use crate::split_k::parts_of_tile;
use crate::tensor_ref::TensorRef;
use crate::unroll::unroll;

/// Parts whose loads are in flight together, and of the last parts: one part after the other, the
/// latency of L2 would be most of the launch (94 parts of 96×88×11736: 9.9 µs by fours, and the
/// rest one by one).
const IN_FLIGHT: (u32, u32) = (8, 4);

/// Number of CTAs of the launch that finishes `tiles` tiles of a kernel with this block.
pub const fn ctas(block: Block, tiles: u32) -> u32 {
    tiles * groups(block.m, block.n)
}

/// Pieces of 64 rows and 16 columns of a tile.
const fn groups(m: u32, n: u32) -> u32 {
    m / 64 * (n / 16)
}

/// Finishes products of `M`×`N` tiles.
pub struct Reduce<const M: u32, const N: u32>;

impl<const M: u32, const N: u32> Kernel for Reduce<M, N> {
    const INFO: KernelInfo = {
        assert!(M.is_multiple_of(64) && N.is_multiple_of(16));
        KernelInfo {
            // Registers for the loads in flight.
            ctas_per_sm: 4,
            ..KernelInfo::new(
                Family::Reduce,
                Arch::Sm90a,
                DType::F32,
                Block { m: M, n: N, k: 1 },
                WARPGROUP,
            )
        }
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        dependency::launch_dependents();
        let position = thread::cta_position();
        let (id, group) = div_rem(position.x, groups(M, N));
        let batches = params.batches();
        let tiles = TileScheduler::new(params.raster, batches, position);
        let of_tile = (tiles.tiles.max(1), params.k);
        let (first, parts) = parts_of_tile(id, of_tile, params.stream_k_ctas);
        let tile = tiles.tile(id);
        let (m64, group_of_columns) = div_rem(group, N / 16);
        let lane = thread::thread_index();
        let fragment = Fragment::new(lane);
        let row = tile.m * M + 64 * m64 + fragment.row;
        let col = tile.n * N + 16 * group_of_columns + fragment.col;
        let sums = Sums {
            address: params.workspace
                + first as u64 * part_bytes(M, N) as u64
                + (group * GROUP_BYTES + 16 * lane) as u64,
            stride: part_bytes(M, N) as u64,
        };
        dependency::wait();
        // SAFETY: the launch before has written the parts; stores are masked to C.
        unsafe {
            let [a, b, c, d, e, f, g, h] = sums.all(parts);
            let store = Store::new(params, tile.batch);
            store.pair([a, b], row, col);
            store.pair([c, d], row + 8, col);
            store.pair([e, f], row, col + 8);
            store.pair([g, h], row + 8, col + 8);
        }
    }
}

/// One thread's eight sums in the parts of a tile.
struct Sums {
    /// Address of the first vector of the first part.
    address: u64,
    /// Bytes between one part and the next.
    stride: u64,
}

impl Sums {
    /// The sums of `parts` parts, at least one, in their order.
    ///
    /// # Safety
    /// The parts are written.
    #[inline(always)]
    unsafe fn all(&self, parts: u32) -> [f32; 8] {
        // SAFETY: the caller's duty.
        unsafe {
            // What changes no sum, not even a negative zero.
            let mut sums = [-0.0; 8];
            let mut part = 0;
            while part + IN_FLIGHT.0 <= parts {
                let eight = [0, 1, 2, 3, 4, 5, 6, 7].map(|next| self.part(part + next));
                unroll!(I < 8, {
                    sums = plus(sums, eight[I]);
                });
                part += IN_FLIGHT.0;
            }
            while part < parts {
                let four = [0, 1, 2, 3].map(|next| self.part((part + next).min(parts - 1)));
                unroll!(I < 4, {
                    let is_part = part + (I as u32) < parts;
                    sums = plus(sums, if is_part { four[I] } else { [-0.0; 8] });
                });
                part += IN_FLIGHT.1;
            }
            sums
        }
    }

    /// # Safety
    /// The part is written.
    #[inline(always)]
    unsafe fn part(&self, index: u32) -> [f32; 8] {
        let address = self.address + index as u64 * self.stride;
        // SAFETY: the caller's duty.
        unsafe {
            let [a, b, c, d] = global::load_f32x4(address);
            let [e, f, g, h] = global::load_f32x4(address + GROUP_BYTES as u64 / 2);
            [a, b, c, d, e, f, g, h]
        }
    }
}

/// The epilogue, and C of one product.
struct Store<'a> {
    params: &'a GemmParams,
    epilogue: Epilogue<'a>,
    c: TensorRef,
    /// Whether two neighbouring elements of a row, from an even column on, are one aligned word.
    in_pairs: bool,
}

impl<'a> Store<'a> {
    #[inline(always)]
    fn new(params: &'a GemmParams, batch: u32) -> Self {
        let c = epilogue::c_of(params, batch);
        let pair_bytes = 2 * params.form.output.bytes() as u64;
        Store {
            params,
            epilogue: Epilogue::new(params, batch),
            c,
            in_pairs: c.col_stride == 1
                && (c.address | (c.row_stride * (pair_bytes / 2))) & (pair_bytes - 1) == 0,
        }
    }

    /// Stores C(`row`, `col`) and C(`row`, `col` + 1) for these sums, as far as they exist. `col`
    /// is even.
    ///
    /// # Safety
    /// The parameters describe live allocations.
    #[inline(always)]
    unsafe fn pair(&self, sums: [f32; 2], row: u32, col: u32) {
        let (params, c) = (self.params, &self.c);
        if row >= params.m || col >= params.n {
            return;
        }
        // SAFETY: inside C; the rest is the caller's duty.
        unsafe {
            let [x, y] = self.epilogue.apply(sums, row, col);
            let both = col + 1 < params.n;
            if both && self.in_pairs {
                let bytes = params.form.output.bytes() as u64;
                let address = c.address + (row as u64 * c.row_stride + col as u64) * bytes;
                if bytes == 4 {
                    global::store_u32x2(address, [x.to_bits(), y.to_bits()]);
                } else {
                    global::store_u32(address, pack_pair(params.form.output, x, y));
                }
            } else {
                epilogue::store(params, c, row, col, x);
                if both {
                    epilogue::store(params, c, row, col + 1, y);
                }
            }
        }
    }
}
