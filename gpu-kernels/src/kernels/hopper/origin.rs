//! [`Origin`]: where the tile of a CTA begins.

use super::line_classes;
use super::traits::{KernelSchedule, KernelTraits};
use crate::problem::GemmParams;
use crate::schedule::WorkTile;

/// Where a tile begins.
#[derive(Clone, Copy)]
pub struct Origin {
    /// First row of C.
    pub row: u32,
    /// First column of A·B.
    pub col: u32,
    /// Index of the product.
    pub batch: u32,
}

impl Origin {
    /// The origin of `tile`, for a CTA without peers.
    #[inline(always)]
    pub fn of<K: KernelTraits>(params: &GemmParams, tile: WorkTile) -> Self {
        Origin::in_cluster::<K>(params, tile, (0, 0))
    }

    /// The origin of the part of the cluster's `tile` that the CTA at (`down`, `across`) computes.
    #[inline(always)]
    pub fn in_cluster<K: KernelTraits>(
        params: &GemmParams,
        tile: WorkTile,
        (down, across): (u32, u32),
    ) -> Self {
        let WorkTile { m, n, batch } = line_classes::tile_of_class::<K>(params, tile);
        let cluster = K::Schedule::cluster(params);
        Origin {
            row: (m * cluster.m + down) * K::BLOCK_M,
            col: (n * cluster.n + across) * K::BLOCK_N,
            batch,
        }
    }

    /// The same tile from `rows` further down.
    #[inline(always)]
    pub fn down(self, rows: u32) -> Self {
        Origin {
            row: self.row + rows,
            ..self
        }
    }
}
