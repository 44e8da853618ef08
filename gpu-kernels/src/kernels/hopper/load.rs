//! How the producer fills a stage: one box, or a few, of A and of B, alone or in
//! shares with the CTAs of the cluster that need the same.

use super::device::Cta;
use super::{ROW_BYTES, SLAB_BYTES, Shape, box_lines};
use crate::isa::tma;
use crate::kernel::{Cluster, Contiguous, Major};

/// The first CTA of every column of a cluster, as a mask.
const fn column_starts(cluster: Cluster) -> u32 {
    let mut mask = 0;
    let mut column = 0;
    while column < cluster.n {
        mask |= 1 << (column * cluster.m);
        column += 1;
    }
    mask
}

/// One of `of` equal parts.
#[derive(Clone, Copy)]
struct Share {
    index: u32,
    of: u32,
}

impl<S: Shape> Cta<'_, S> {
    /// Bytes that land in a stage: whole tiles, of which [`box_lines`] may cut
    /// those that lie along K and are not shared.
    #[inline(always)]
    pub(super) fn stage_bytes(&self) -> u32 {
        let lines = |major, tile, sharing, extent| match major {
            Major::K if sharing == 1 => box_lines(tile, sharing, extent),
            _ => tile,
        };
        let rows = lines(S::A::MAJOR, S::M, S::CLUSTER.n, self.params.m);
        let columns = lines(S::B::MAJOR, S::N, S::CLUSTER.m, self.params.n);
        (rows + columns) * ROW_BYTES * S::LAYERS
    }

    /// Loads A's rows from `row` into one layer of the stage that begins at `k`: the
    /// CTAs of our row of the cluster need the same, and each loads a share for all
    /// of them.
    ///
    /// # Safety
    /// The stage is free in every CTA that the load writes to, and `full` of each
    /// expects the bytes.
    #[inline(always)]
    pub(super) unsafe fn load_a(&self, stage: u32, layer: u32, row: u32, k: u32) {
        let (down, across) = self.place();
        let share = Share {
            index: across,
            of: S::CLUSTER.n,
        };
        // Bits down, down + m, down + 2m, …: one in each column of the cluster.
        let peers = column_starts(S::CLUSTER) << down;
        // SAFETY: the caller waited for the stage.
        unsafe {
            self.load(
                0,
                S::A::MAJOR,
                self.a_tile(stage) + layer * S::LAYER_BYTES,
                S::M,
                stage,
                (row, k + layer * S::LAYER),
                share,
                peers,
            )
        }
    }

    /// Loads B's columns from `col` likewise, shared with our column of the cluster.
    ///
    /// # Safety
    /// The stage is free in every CTA that the load writes to, and `full` of each
    /// expects the bytes.
    #[inline(always)]
    pub(super) unsafe fn load_b(&self, stage: u32, layer: u32, col: u32, k: u32) {
        let (down, across) = self.place();
        let share = Share {
            index: down,
            of: S::CLUSTER.m,
        };
        // A run of m bits: one column of the cluster.
        let peers = ((1 << S::CLUSTER.m) - 1) << (across * S::CLUSTER.m);
        let tile = self.a_tile(stage) + layer * S::LAYER_BYTES + S::A_BYTES;
        // SAFETY: the caller waited for the stage.
        unsafe {
            self.load(
                1,
                S::B::MAJOR,
                tile,
                S::N,
                stage,
                (col, k + layer * S::LAYER),
                share,
                peers,
            )
        }
    }

    /// Loads `share` of an operand's tile, `extent` rows of A or columns of B,
    /// into every CTA of the cluster whose bit is in `peers`.
    ///
    /// # Safety
    /// The stage is free in every CTA that the load writes to, and `full` of each
    /// expects the bytes.
    #[inline(always)]
    #[allow(
        clippy::too_many_arguments,
        reason = "the two callers name each of them"
    )]
    unsafe fn load(
        &self,
        operand: u64,
        major: Major,
        tile: u32,
        extent: u32,
        stage: u32,
        (first, k): (u32, u32),
        share: Share,
        peers: u32,
    ) {
        let (map, full) = (self.params.tensor_map(operand), self.full(stage));
        // SAFETY: the caller waited for the stage.
        unsafe {
            let copy = |offset, x, y| {
                if share.of > 1 {
                    tma::load_multicast(tile + offset, map, x, y, full, peers as u16);
                } else {
                    tma::load(tile + offset, map, x, y, full);
                }
            };
            match major {
                Major::K => {
                    let skip = share.index * (extent / share.of);
                    copy(skip * ROW_BYTES, k, first + skip);
                }
                Major::Mn => {
                    let mut slab = share.index;
                    while slab < extent / 64 {
                        copy(slab * SLAB_BYTES, first + slab * 64, k);
                        slab += share.of;
                    }
                }
            }
        }
    }
}
