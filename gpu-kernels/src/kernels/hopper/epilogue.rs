//! The consumers' last step: from accumulators to C.
//!
//! C leaves in tiles of 64 rows × 128 bytes (64 columns of a 16-bit type, 32 of f32; the
//! last of a row has fewer where the width of C's tile is no multiple of 64), each staged in
//! shared memory in the 128-byte swizzle:
//!
//! ```text
//! prepare   bias and column scales to shared memory; the first loads of the source
//!           (before the main loop where the tile is known then, so that both overlap it)
//! begin     wait until earlier stores have read the buffers, or the source has landed
//! fill      the formula, convert, stmatrix or 8-byte stores     (all lanes)
//! send      one thread starts TMA stores, or all copy           (barrier before)
//! ```
//!
//! A 16-bit C leaves in batches of `TileStore::BATCH` tiles, an f32 C tile by tile. The
//! buffers alternate, also from one tile of C to the next, so that one batch is filled
//! while the TMA stores of the batch before it are still in flight. The tensor cores idle
//! while both consumers of a cooperative kernel are in the epilogue, so its length counts:
//! with buffers for a whole row of tiles no consumer waits for the copy engine.
//!
//! The source lands in the buffers from which C leaves: each lane reads its elements there
//! and writes its elements of C over them.
//!
//! Where a cluster splits K, each warp begins, fills and sends its 16 rows by itself,
//! because some warps of its warpgroup have no rows to store.
//!
//! A C that is contiguous along M leaves in the same way, transposed (`epilogue/along_m.rs`).

mod along_m;
mod transfer;

use core::marker::PhantomData;

use super::fusion::{Fragment, Fusion};
use super::origin::Origin;
use super::pipeline::Consumer;
use super::shared_memory::{Mbarrier, SharedMemory, StagedTile, Staging};
use super::tma_load::is_gated;
use super::traits::{Accumulators, KernelTraits};
use crate::cluster::Cluster;
use crate::dtype::ElementType as _;
use crate::epilogue::{Activation, SourceUse, pack_pair, times};
use crate::isa::hint::{KEEPS_INVARIANTS, compute_here};
use crate::isa::warpgroup::WARPGROUP;
use crate::isa::wgmma::Accumulator as _;
use crate::isa::{shared, thread, tma, warpgroup};
use crate::problem::{GemmParams, MapAddress, MapOf};
use crate::unroll::unroll;

/// Rows of C that one TMA store writes: the 64 rows of a warpgroup, or the 16 rows of a
/// warp where the CTAs of a cluster split K and each CTA stores the rows of some warps.
pub const fn store_rows(cluster: Cluster) -> u32 {
    if cluster.k > 1 { 16 } else { 64 }
}

/// Stores the rows of one consumer warpgroup.
pub struct TileStore<'a, K: KernelTraits> {
    params: &'a GemmParams,
    maps: MapAddress,
    fusion: Fusion<'a, K>,
    /// Index of the thread in its warpgroup.
    lane: u32,
    /// The named barrier of the warpgroup.
    barrier: u32,
    staging: Staging,
    /// Index of the first buffer of the batch to fill.
    first: u32,
    /// The mbarrier on which the source lands, and the parity of its phase.
    landed: Mbarrier,
    parity: u32,
    /// See [`SharedMemory::zero`].
    zero: u32,
    kernel: PhantomData<K>,
}

/// What becomes of a group of 16 columns of A·B. The last group of a tile may have eight; the
/// staged tile has room for 16, of which TMA stores those that exist.
#[derive(Clone, Copy)]
struct Place {
    /// Whether its values leave for C; they do not if they are gates.
    leaves: bool,
    /// Whether a batch of tiles begins, or ends, with them.
    begins: bool,
    ends: bool,
    /// Tile of the batch, and group of 16 columns of the tile.
    tile: u32,
    group: u32,
    /// Tiles of the batch.
    batch: u32,
    /// First column of the batch, counted from the consumer's first column of C's tile.
    col: u32,
}

impl Place {
    /// The place of `group` of `all` if the first `gates` groups are gates, a staged tile has
    /// `groups` groups and a batch has `batch` tiles. The last tile may have fewer groups.
    #[inline(always)]
    const fn of(group: u32, all: u32, gates: u32, groups: u32, batch: u32) -> Self {
        let index = group.saturating_sub(gates);
        let (in_batch, number) = (index % (groups * batch), index / (groups * batch));
        let leaves = group >= gates;
        Place {
            leaves,
            begins: leaves && in_batch == 0,
            ends: leaves && (in_batch + 1 == groups * batch || group + 1 == all),
            tile: in_batch / groups,
            group: in_batch % groups,
            batch,
            col: number * (groups * batch) * 16,
        }
    }
}

impl<'a, K: KernelTraits> TileStore<'a, K> {
    /// Whether warps store by themselves.
    const BY_WARP: bool = store_rows(K::CLUSTER) == 16;

    /// Buffers that a consumer has.
    const BUFFERS: u32 = SharedMemory::<K>::BUFFERS;

    /// Groups of 16 columns that are gates, in a launch with pairs of columns.
    const GATES: u32 = K::BLOCK_N / 32;

    /// Tiles of a 16-bit C that are filled and sent together, so that they share one
    /// barrier and one fence: a row of tiles where there is room, else half a row.
    const BATCH: u32 = {
        let row = K::CONSUMER_N.div_ceil(64);
        if Self::BUFFERS.is_multiple_of(row) {
            row
        } else if 2 * Self::BUFFERS == row {
            Self::BUFFERS
        } else {
            1
        }
    };

    /// The store of `consumer`. It begins to fetch the tensor maps of C, and the line of constant
    /// memory with the parameters of a store, which else the first store would wait for.
    #[inline(always)]
    pub fn new(
        params: &'a GemmParams,
        maps: MapAddress,
        smem: SharedMemory<K>,
        consumer: Consumer,
    ) -> Self {
        let store = TileStore {
            params,
            maps,
            fusion: Fusion::new(params, smem, consumer),
            lane: consumer.lane,
            barrier: consumer.barrier(),
            staging: smem.staging(consumer.index),
            first: 0,
            landed: smem.source(consumer.index),
            parity: 0,
            zero: smem.zero(),
            kernel: PhantomData,
        };
        let sends = store.sends() & (K::STORES_BY_TMA_ONLY | (params.store_by_tma != 0));
        // SAFETY: where C is stored through TMA, these maps are encoded.
        unsafe {
            tma::prefetch_map_if(sends, maps.of(MapOf::C));
            if !K::CONSUMER_N.is_multiple_of(64) {
                tma::prefetch_map_if(sends, maps.of(MapOf::LAST_COLUMNS));
            }
        }
        store
    }

    /// Index of the thread in its warpgroup, computed here: what follows from it would else be
    /// computed before the first tile.
    #[inline(always)]
    fn lane_here(&self) -> u32 {
        if KEEPS_INVARIANTS {
            thread::thread_index_here() % WARPGROUP
        } else {
            compute_here(self.lane)
        }
    }

    /// Whether C has 32-bit elements.
    #[inline(always)]
    fn is_wide(&self) -> bool {
        if K::STORES_BY_TMA_ONLY {
            K::Element::DTYPE.bytes() == 4
        } else {
            self.params.form.output.bytes() == 4
        }
    }

    /// Whether there is a source, and it comes by TMA.
    #[inline(always)]
    fn source_by_tma(&self) -> bool {
        self.has_source() && !Self::BY_WARP && self.params.source_by_tma != 0
    }

    #[inline(always)]
    fn has_source(&self) -> bool {
        K::FUSED && !matches!(self.params.form.source, SourceUse::None)
    }

    /// Whether the arithmetic must not begin before the last stage is released.
    #[inline(always)]
    fn begins_late(&self) -> bool {
        SharedMemory::<K>::HAS_ZERO && !matches!(self.params.form.activation, Activation::Identity)
    }

    /// Tiles of a batch.
    #[inline(always)]
    fn batch(&self) -> u32 {
        if self.is_wide() || is_gated::<K>(self.params) {
            1
        } else {
            Self::BATCH
        }
    }

    /// Starts to fetch what the epilogue of the tile at `origin` reads. It is called once
    /// before each [`TileStore::tile`], with the same origin, if possible before the tile's
    /// main loop.
    ///
    /// # Safety
    /// All threads that store together call this: a warpgroup, or a warp where a cluster splits
    /// K.
    #[inline(always)]
    pub unsafe fn prepare(&mut self, origin: Origin) {
        if !K::FUSED {
            return;
        }
        // SAFETY: the caller's duty; all readers of the last tile's vectors have passed the
        // barrier of its last `send`.
        unsafe {
            if self.fusion.has_column_vectors() {
                self.fusion.stage_vectors(self.lane_here(), origin.col);
                self.sync();
            }
            if self.source_by_tma() {
                self.load_source(origin);
            }
        }
    }

    /// Stores a consumer's rows of a tile of C, from `origin` on; where a cluster splits K,
    /// each warp stores its 16 of the 64 rows.
    ///
    /// # Safety
    /// The accumulators are finished; the whole warpgroup calls this together, or the
    /// whole warp where a cluster splits K.
    #[inline(always)]
    pub unsafe fn tile(&mut self, accumulators: &mut Accumulators<K>, origin: Origin) {
        // SAFETY: the caller's duty.
        unsafe {
            unroll!(TILE < 3, {
                if TILE < K::M64_TILES as usize {
                    let origin = origin.down(64 * TILE as u32);
                    self.m64_tile(&mut accumulators[TILE], origin, TILE == 0);
                }
            });
        }
    }

    /// Stages the next tile in `staging`, which no copy reads.
    #[inline(always)]
    pub fn stage_in(&mut self, staging: Staging) {
        self.staging = staging;
    }

    /// Waits until the copy engine has read the staging of all tiles so far.
    ///
    /// # Safety
    /// All threads that store together call this.
    #[inline(always)]
    pub unsafe fn wait_all_read(&self) {
        tma::wait_stores_read_if::<0>(self.sends());
        // SAFETY: the caller's duty.
        unsafe { self.sync() };
    }

    /// Waits until no copy reads shared memory any more.
    #[inline(always)]
    pub fn finish(&self) {
        tma::wait_stores_if(self.sends());
    }

    /// Stores 64 rows. `prepared`: the first batch of the source is on its way.
    ///
    /// # Safety
    /// See [`TileStore::tile`].
    #[inline(always)]
    unsafe fn m64_tile(
        &mut self,
        accumulator: &mut K::Accumulator,
        origin: Origin,
        prepared: bool,
    ) {
        // The addresses of a lane's part of a tile are computed anew for each tile: kept
        // from tile to tile, they would take up to 34 registers from the main loop.
        let lane = self.lane_here();
        let gated = is_gated::<K>(self.params);
        let fragment = Fragment::new(lane);
        // SAFETY: each batch begins before it is filled, and is sent when it is full.
        unsafe {
            let rows = (self.fusion).row_terms(origin.row + fragment.row, origin.batch);
            let zero = if self.begins_late() {
                shared::load_in_place_u32(compute_here(self.zero))
            } else {
                0
            };
            unroll!(GROUP < 16, {
                let (group, all) = (GROUP as u32, K::CONSUMER_N.div_ceil(16));
                if group < all {
                    let place = match (gated, self.is_wide()) {
                        (false, false) => Place::of(group, all, 0, 4, Self::BATCH),
                        (false, true) => Place::of(group, all, 0, 2, 1),
                        (true, false) => Place::of(group, all, Self::GATES, 4, 1),
                        (true, true) => Place::of(group, all, Self::GATES, 2, 1),
                    };
                    let target = Origin {
                        col: if gated { origin.col / 2 } else { origin.col } + place.col,
                        ..origin
                    };
                    if place.begins {
                        self.begin(place.batch, target, prepared && place.col == 0);
                    }
                    let mut values = accumulator.columns(GROUP);
                    if self.begins_late() {
                        values = values.map(|value| f32::from_bits(value.to_bits() ^ zero));
                    }
                    let col = origin.col + 16 * group + fragment.col;
                    values = self.fusion.unscaled(values, &rows, origin.batch, col);
                    if K::FUSED {
                        let source = if self.has_source() {
                            self.read_source(fragment, place)
                        } else {
                            [0.0; 8]
                        };
                        let terms = self.fusion.terms(fragment, &rows, group, source);
                        values = self.fusion.combine(values, &terms);
                        if !gated || group < Self::GATES {
                            values = self.fusion.finish(values, &terms);
                        }
                        if gated && group < Self::GATES {
                            accumulator.set(GROUP, values);
                        }
                        if gated && group >= Self::GATES {
                            let gates = accumulator.columns(GROUP % (K::BLOCK_N as usize / 32));
                            values = times(values, gates);
                        }
                    }
                    if place.leaves {
                        self.fill(fragment, place, values);
                    }
                    if place.ends {
                        self.send(place.batch, target, place.col);
                    }
                }
            });
        }
    }

    /// Writes this lane's values of 16 columns to their staged tile.
    ///
    /// # Safety
    /// See [`TileStore::tile`]; the batch has begun.
    #[inline(always)]
    unsafe fn fill(&self, fragment: Fragment, place: Place, values: [f32; 8]) {
        let tile = self.buffer(place.tile);
        let [a, b, c, d, e, f, g, h] = values;
        // SAFETY: the caller's duty.
        unsafe {
            if K::C_ALONG_M && self.is_wide() {
                self.fill_along_m_wide(place, values);
            } else if K::C_ALONG_M {
                self.fill_along_m(fragment, place, values);
            } else if self.is_wide() {
                let chunk = place.group * 4 + fragment.chunk;
                let [upper, lower] = [fragment.row, fragment.row + 8];
                shared::store_f32x2(tile.chunk(upper, chunk) + fragment.half, [a, b]);
                shared::store_f32x2(tile.chunk(lower, chunk) + fragment.half, [c, d]);
                shared::store_f32x2(tile.chunk(upper, chunk + 2) + fragment.half, [e, f]);
                shared::store_f32x2(tile.chunk(lower, chunk + 2) + fragment.half, [g, h]);
            } else {
                let dtype = self.params.form.output;
                let pairs = [(a, b), (c, d), (e, f), (g, h)];
                warpgroup::store_matrices(
                    tile.chunk(fragment.matrix_row, 2 * place.group + fragment.matrix_half),
                    pairs.map(|(low, high)| pack_pair(dtype, low, high)),
                );
            }
        }
    }

    /// This lane's elements of the source, for 16 columns.
    ///
    /// # Safety
    /// See [`TileStore::fill`].
    #[inline(always)]
    unsafe fn read_source(&self, fragment: Fragment, place: Place) -> [f32; 8] {
        let tile = self.buffer(place.tile);
        // SAFETY: the caller's duty; the source is there when the batch has begun.
        unsafe {
            if self.is_wide() {
                let chunk = place.group * 4 + fragment.chunk;
                let [upper, lower] = [fragment.row, fragment.row + 8];
                let [a, b] = shared::load_f32x2(tile.chunk(upper, chunk) + fragment.half);
                let [c, d] = shared::load_f32x2(tile.chunk(lower, chunk) + fragment.half);
                let [e, f] = shared::load_f32x2(tile.chunk(upper, chunk + 2) + fragment.half);
                let [g, h] = shared::load_f32x2(tile.chunk(lower, chunk + 2) + fragment.half);
                [a, b, c, d, e, f, g, h]
            } else {
                let row = tile.chunk(fragment.matrix_row, 2 * place.group + fragment.matrix_half);
                self.fusion.unpacked(warpgroup::load_matrices(row))
            }
        }
    }

    /// Buffer `tile` of the batch.
    #[inline(always)]
    fn buffer(&self, tile: u32) -> StagedTile {
        self.staging.tile(self.first + tile)
    }
}

const _: () = assert!(WARPGROUP == 128, "four warps of 16 rows fill a tile");
