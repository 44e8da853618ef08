//! How the producer fills a stage: by one TMA box, or a few, of A and of B.

use super::pipeline::{Peers, Share};
use super::shared_memory::{M64_TILE_BYTES, Mbarrier, OperandTile, SharedMemory};
use super::traits::{KernelTraits, Origin, ROW_BYTES};
use crate::dtype::{Contiguous, Major};
use crate::isa::tma;
use crate::problem::{GemmParams, MapAddress, MapOf};

/// Rows (of A; columns of B) of one box, for an operand contiguous along K. The tile has
/// `tile` rows, `sharing` CTAs load it together, and the operand has `extent` rows.
///
/// Each CTA loads its part of a shared tile. A tile that is not shared is cut to the rows
/// of the operand, in whole swizzle atoms of 8 rows, because the copy engine spends time
/// on rows outside the tensor too. The rest of the tile keeps its old contents, which
/// only affect rows or columns past the edge of C, and those are not stored.
pub const fn box_rows(tile: u32, sharing: u32, extent: u32) -> u32 {
    if sharing > 1 {
        return tile / sharing;
    }
    let whole_atoms = extent.next_multiple_of(8);
    if whole_atoms < tile {
        whole_atoms
    } else {
        tile
    }
}

/// Bytes that land in a stage: whole tiles, but [`box_rows`] may cut a tile that is
/// contiguous along K and not shared.
#[inline(always)]
pub fn stage_bytes<K: KernelTraits>(params: &GemmParams) -> u32 {
    let rows = |major, tile, sharing, extent| match major {
        Major::K if sharing == 1 => box_rows(tile, sharing, extent),
        _ => tile,
    };
    let a = rows(K::A::MAJOR, K::BLOCK_M, K::CLUSTER.n, params.m);
    let b = rows(K::B::MAJOR, K::BLOCK_N, K::CLUSTER.m, params.n);
    (a + b) * ROW_BYTES * K::ATOMS
}

/// Starts loading a k-block into `stage`: A's rows and B's columns from
/// `origin` on, from `k` on.
///
/// # Safety
/// The stage is empty in every CTA that the loads write to, and its `full` expects the
/// bytes there.
#[inline(always)]
pub unsafe fn load_stage<K: KernelTraits>(
    params: &GemmParams,
    maps: MapAddress,
    smem: SharedMemory<K>,
    peers: impl Peers,
    stage: u32,
    origin: Origin,
    k: u32,
) {
    let mut atom = 0;
    while atom < K::ATOMS {
        let k = k + atom * K::ATOM_K;
        let (a, b) = (smem.a(stage, atom), smem.b(stage, atom));
        let (a_map, b_map) = (maps.of(MapOf::A), maps.of(MapOf::B));
        let full = smem.full(stage);
        // SAFETY: the caller's duty.
        unsafe {
            load_tile(
                K::A::MAJOR,
                K::BLOCK_M,
                a,
                a_map,
                (origin.row, k),
                peers.share_of_a(),
                full,
            );
            load_tile(
                K::B::MAJOR,
                K::BLOCK_N,
                b,
                b_map,
                (origin.col, k),
                peers.share_of_b(),
                full,
            );
        }
        atom += 1;
    }
}

/// Loads `share` of the `extent` rows of A (columns of B) from `first` on into one
/// swizzle atom's tile. `full` counts the bytes.
///
/// # Safety
/// See [`load_stage`].
#[inline(always)]
unsafe fn load_tile(
    major: Major,
    extent: u32,
    tile: OperandTile,
    map: u64,
    (first, k): (u32, u32),
    share: Share,
    full: Mbarrier,
) {
    // SAFETY: the caller's duty.
    unsafe {
        match major {
            // One box: 128 bytes of K wide, with all rows of the share.
            Major::K => {
                let skip = share.index * (extent / share.of);
                load_box(
                    tile.address() + skip * ROW_BYTES,
                    map,
                    (k, first + skip),
                    share,
                    full,
                );
            }
            // Boxes 64 elements of M or N wide, with one row for each k of the atom.
            Major::Mn => {
                let mut m64 = share.index;
                while m64 < extent / 64 {
                    let destination = tile.address() + m64 * M64_TILE_BYTES;
                    load_box(destination, map, (first + m64 * 64, k), share, full);
                    m64 += share.of;
                }
            }
        }
    }
}

/// # Safety
/// See [`load_stage`].
#[inline(always)]
unsafe fn load_box(destination: u32, map: u64, (x, y): (u32, u32), share: Share, full: Mbarrier) {
    // SAFETY: the caller's duty.
    unsafe {
        if share.of > 1 {
            tma::load_multicast(destination, map, x, y, full.address(), share.peers as u16);
        } else {
            tma::load(destination, map, x, y, full.address());
        }
    }
}
