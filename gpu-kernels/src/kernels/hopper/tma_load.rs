//! How the producer fills a stage: by one TMA box, or a few, of A and of B.

use super::line_classes;
use super::origin::Origin;
use super::pipeline::{Peers, Share};
use super::shared_memory::{M64_TILE_BYTES, Mbarrier, OperandTile, SharedMemory};
use super::traits::{KernelTraits, ROW_BYTES};
use crate::dtype::{Contiguous, Major};
use crate::form::Planes;
use crate::isa::tma::{self, CachePolicy};
use crate::order::ceil_div;
use crate::problem::{GemmParams, MapAddress, MapOf};
use crate::tensor_ref::TensorRef;

/// Rows (of A; columns of B) of one box, for an operand contiguous along K. The tile has
/// `tile` rows, `sharing` CTAs load it together, and the operand has `extent` rows.
///
/// Each CTA loads its part of a shared tile. A tile that is not shared is cut to the rows
/// of the operand, in whole swizzle atoms of 8 rows, because the copy engine spends time
/// on rows outside the tensor too. The rest of the tile keeps its old contents, which
/// only affect rows or columns past the edge of C, and those are not stored. Shared tiles are cut by
/// [`last_box_rows`] alone.
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

/// Rows (of A; columns of B) of the box of the last tile, for an operand contiguous along K:
/// `None` where that tile has the boxes of the others. See [`box_rows`] for the arguments. CTAs that
/// share a ragged tile load equal parts of the rows that exist.
///
/// The copy engine takes longer for rows outside the tensor than for rows inside, and one CTA
/// may have all ragged tiles of a launch: at 400×11008×4096, in 128×128 tiles, whole boxes took
/// 99 µs on an H200, and boxes for the last 16 rows 70 (`docs/perf-log.md`).
pub const fn last_box_rows(tile: u32, sharing: u32, extent: u32) -> Option<u32> {
    match (extent % tile, sharing) {
        (0, _) => None,
        // All boxes are cut.
        (_, 1) if extent < tile => None,
        (rows, 1) => Some(rows.next_multiple_of(8)),
        (rows, sharing) => Some(rows.div_ceil(sharing)),
    }
}

/// Depth along K of a box, for an operand contiguous along M or N, whose boxes are `edge` rows (of
/// B; columns) wide. The tile has `tile` rows, and `sharing` CTAs load it together.
///
/// The CTAs divide the boxes among them, and where that does not come out even, each loads its part
/// of the depth of every box: each CTA then asks for as many lines as the others.
pub const fn box_depth(tile: u32, sharing: u32, edge: u32) -> u32 {
    if tile.div_ceil(edge).is_multiple_of(sharing) {
        edge
    } else {
        edge / sharing
    }
}

/// Whether the launch has pairs of columns: the first half of B's tile comes from the first
/// plane of its tensor map, the other from the second plane.
#[inline(always)]
pub fn is_gated<K: KernelTraits>(params: &GemmParams) -> bool {
    K::FUSED && K::PARTS == 1 && K::BLOCK_N.is_multiple_of(128) && params.form.gated != 0
}

/// The plane of an operand's tensor map that holds matrix `batch`; `None` for a launch
/// without a batch, whose maps have two dimensions.
#[inline(always)]
pub fn plane<K: KernelTraits>(params: &GemmParams, operand: &TensorRef, batch: u32) -> Option<u32> {
    let has_planes = match params.form.planes {
        Planes::None => false,
        Planes::Batch => K::FUSED,
        Planes::LineClasses => line_classes::are_used::<K>(params),
    };
    if !has_planes {
        None
    } else if operand.batch_stride == 0 {
        Some(0)
    } else {
        Some(batch)
    }
}

/// The plane that holds the first part of matrix `batch`: the planes of a matrix follow each
/// other.
#[inline(always)]
fn plane_of_parts<K: KernelTraits>(
    params: &GemmParams,
    operand: &TensorRef,
    batch: u32,
) -> Option<u32> {
    let plane = plane::<K>(params, operand, batch);
    if K::PARTS == 1 {
        plane
    } else {
        Some(plane.unwrap_or(0) * K::PARTS)
    }
}

/// What the producer loads for one tile of C: its rows of A and its columns of B.
#[derive(Clone, Copy)]
pub struct TileLoads {
    a: Tile,
    b: Tile,
    gated: bool,
    /// How far before the first k-block the loads begin.
    before: u32,
}

impl TileLoads {
    /// The loads of the tile at `origin`, for a CTA that shares them with `peers`.
    #[inline(always)]
    pub fn new<K: KernelTraits>(
        params: &GemmParams,
        maps: MapAddress,
        peers: impl Peers,
        origin: Origin,
    ) -> Self {
        let gated = is_gated::<K>(params);
        let (share_of_a, share_of_b) = (peers.share_of_a(), peers.share_of_b());
        let shares_both = share_of_a.is_shared & share_of_b.is_shared;
        let a = Tile::new::<K>(
            (K::A::MAJOR, K::BLOCK_M),
            share_of_a,
            (params.m, origin.row),
            shares_both,
        );
        let b = Tile::new::<K>(
            (K::B::MAJOR, K::BLOCK_N),
            share_of_b,
            (params.n, origin.col),
            shares_both,
        );
        let map = |cut: bool, last, all| maps.of(if cut { last } else { all });
        let evict_first = params.form.evict_first;
        TileLoads {
            a: Tile {
                map: map(a.is_cut, MapOf::LastRows, MapOf::A),
                plane: plane_of_parts::<K>(params, &params.a, origin.batch),
                policy: CachePolicy::evict_first(evict_first.a),
                ..a
            },
            b: Tile {
                map: map(b.is_cut && !gated, MapOf::LastColumnsOfB, MapOf::B),
                plane: plane_of_parts::<K>(params, &params.b, origin.batch),
                policy: CachePolicy::evict_first(evict_first.b),
                rows: if gated { K::BLOCK_N } else { b.rows },
                ..b
            },
            gated,
            before: line_classes::first_line_offset::<K>(params, origin.batch),
        }
    }

    /// Bytes that land in a stage: whole tiles, but for the boxes that [`box_rows`] and
    /// [`last_box_rows`] cut, and those past the edge that are left out.
    #[inline(always)]
    pub fn stage_bytes<K: KernelTraits>(&self) -> u32 {
        (self.a.rows + self.b.rows) * ROW_BYTES * K::ATOMS
    }

    /// Starts loading a k-block, or one `part` of it, from `k` on into `stage`.
    ///
    /// # Safety
    /// The stage is empty in every CTA that the loads write to, and its `full` expects the
    /// bytes there.
    #[inline(always)]
    pub unsafe fn start<K: KernelTraits>(
        &self,
        smem: SharedMemory<K>,
        stage: u32,
        (k, part): (u32, u32),
    ) {
        let (a, b) = (self.a.of_part::<K>(part), self.b.of_part::<K>(part));
        let mut atom = 0;
        while atom < K::ATOMS {
            // Before the first element of K, TMA delivers zeros.
            let k = (k + atom * K::ATOM_K).wrapping_sub(self.before);
            let full = smem.full(stage);
            // SAFETY: the caller's duty.
            unsafe {
                a.load(smem.a(stage, atom), k, full);
                if self.gated {
                    b.load_gated(smem.b(stage, atom), k, full);
                } else {
                    b.load(smem.b(stage, atom), k, full);
                }
            }
            atom += 1;
        }
    }
}

/// The rows of A, or the columns of B, of one tile.
#[derive(Clone, Copy)]
struct Tile {
    major: Major,
    /// Rows of the tile.
    extent: u32,
    /// Rows that the boxes of all CTAs that share the tile bring.
    rows: u32,
    /// Of them those of this CTA's box, for an operand contiguous along K.
    box_rows: u32,
    /// Whether the boxes are those of a ragged tile.
    is_cut: bool,
    /// Rows of a box, for an operand contiguous along M or N, and its depth: a swizzle atom.
    edge: u32,
    /// Address of the tensor map with these boxes.
    map: u64,
    /// First row.
    first: u32,
    /// The plane of the map; `None` if it has two dimensions.
    plane: Option<u32>,
    /// The part that this CTA loads.
    share: Share,
    /// How long L2 keeps the lines.
    policy: CachePolicy,
}

impl Tile {
    /// The `extent` rows from `first` on of an operand with `rows` rows, still without a map, where
    /// CTAs share loads of both operands or of one.
    #[inline(always)]
    fn new<K: KernelTraits>(
        (major, extent): (Major, u32),
        share: Share,
        (rows, first): (u32, u32),
        shares_both: bool,
    ) -> Self {
        let left = rows.saturating_sub(first);
        let is_ragged = left < extent;
        let (rows, box_rows, is_cut) = match major {
            Major::K if share.is_shared => {
                // Past the edge, whole boxes keep a peer from running ahead.
                let is_cut = is_ragged & !(shares_both & (left == 0));
                let box_rows = ceil_div(if is_cut { left } else { extent }, share.of);
                (box_rows * share.of, box_rows, is_cut)
            }
            Major::K => {
                // The tile is a multiple of 8 rows, too.
                let box_rows = (left.min(extent) + 7) & !7;
                (box_rows, box_rows, rows > extent && is_ragged)
            }
            // Whole boxes, whose columns past the tile no multiply reads; and all of them
            // where a peer must not run ahead.
            Major::Mn if shares_both => (extent.next_multiple_of(K::ATOM_K), 0, false),
            Major::Mn => (left.min(extent).next_multiple_of(K::ATOM_K), 0, false),
        };
        Tile {
            major,
            extent,
            rows,
            box_rows,
            is_cut,
            edge: K::ATOM_K,
            map: 0,
            first,
            plane: None,
            share,
            policy: CachePolicy::EVICT_NORMAL,
        }
    }

    /// The same rows of part `part` of the elements.
    #[inline(always)]
    fn of_part<K: KernelTraits>(self, part: u32) -> Self {
        Tile {
            plane: self.plane.map(|plane| match K::PARTS {
                1 => plane,
                _ => plane + part,
            }),
            ..self
        }
    }

    /// Loads this CTA's share into one swizzle atom's tile, from `k` on. `full` counts the
    /// bytes.
    ///
    /// # Safety
    /// See [`TileLoads::start`].
    #[inline(always)]
    unsafe fn load(self, tile: OperandTile, k: u32, full: Mbarrier) {
        let Tile { first, share, .. } = self;
        // SAFETY: the caller's duty.
        unsafe {
            match self.major {
                // One box: 128 bytes of K wide, with all rows of the share.
                Major::K => {
                    let skip = share.index * self.box_rows;
                    let destination = tile.address() + skip * ROW_BYTES;
                    if self.rows > 0 {
                        self.load_box(destination, (k, first + skip), self.plane, full);
                    }
                }
                // Boxes 128 bytes of M or N wide, with one row for each k of the atom or of
                // this CTA's part of it.
                Major::Mn => {
                    let depth = box_depth(self.extent, share.of, self.edge);
                    let (is_divided, down) = (depth != self.edge, share.index * depth);
                    let down = if is_divided { down } else { 0 };
                    // Over all boxes, so that the number of turns is a constant of the kernel's
                    // type, where that of the CTAs that share them is only one of the launch.
                    let mut index = 0;
                    while index < self.extent.div_ceil(self.edge) {
                        let skip = index * self.edge;
                        let destination = tile.address() + (skip + down) * ROW_BYTES;
                        let at = (first + skip, k + down);
                        let is_ours = is_divided | (index % share.of == share.index);
                        if is_ours & (skip < self.rows) {
                            self.load_box(destination, at, self.plane, full);
                        }
                        index += 1;
                    }
                }
            }
        }
    }

    /// [`Tile::load`] for pairs of columns: half of the tile comes from plane 0, and half
    /// from plane 1, both from column `first / 2` of their plane on.
    ///
    /// # Safety
    /// See [`TileLoads::start`].
    #[inline(always)]
    unsafe fn load_gated(self, tile: OperandTile, k: u32, full: Mbarrier) {
        let (first, share) = (self.first / 2, self.share);
        let half = self.extent / 2;
        // SAFETY: the caller's duty.
        unsafe {
            match self.major {
                // A box for each plane; two CTAs that share the tile load one each.
                Major::K => {
                    let mut plane = share.index;
                    while plane < 2 {
                        let destination = tile.address() + plane * half * ROW_BYTES;
                        self.load_box(destination, (k, first), Some(plane), full);
                        plane += share.of;
                    }
                }
                Major::Mn => {
                    let mut m64 = share.index;
                    while m64 < self.extent / 64 {
                        let (plane, column) = (m64 / (half / 64), m64 % (half / 64) * 64);
                        let destination = tile.address() + m64 * M64_TILE_BYTES;
                        self.load_box(destination, (first + column, k), Some(plane), full);
                        m64 += share.of;
                    }
                }
            }
        }
    }

    /// # Safety
    /// See [`TileLoads::start`].
    #[inline(always)]
    unsafe fn load_box(
        self,
        destination: u32,
        (x, y): (u32, u32),
        plane: Option<u32>,
        full: Mbarrier,
    ) {
        let (map, barrier, policy) = (self.map, full.address(), self.policy);
        let peers = self.share.peers as u16;
        // SAFETY: the caller's duty.
        unsafe {
            match (self.share.is_shared, plane) {
                (false, None) => tma::load(destination, map, (x, y), barrier, policy),
                (true, None) => {
                    tma::load_multicast(destination, map, (x, y), barrier, peers, policy);
                }
                (false, Some(z)) => tma::load_3d(destination, map, (x, y, z), barrier, policy),
                (true, Some(z)) => {
                    tma::load_multicast_3d(destination, map, (x, y, z), barrier, peers, policy);
                }
            }
        }
    }
}
