//! The division of C into tiles, and the number of CTAs of a launch.

use gpu_kernels::{KernelInfo, Schedule, TileGrid, split_k};

use super::choice::Choice;

/// Divides an M×N matrix into tiles of `kernel`: into CTA tiles, or into cluster tiles
/// for kernels with clusters.
pub fn tile_grid(kernel: &KernelInfo, m: u32, n: u32) -> TileGrid {
    let (height, width) = kernel.cluster_tile();
    TileGrid::cover(m, n, height, width)
}

/// Number of CTAs to launch along x and y, where `resident` CTAs run at once.
pub fn ctas(choice: &Choice, resident: u32) -> (u32, u32) {
    let TileGrid { tiles_m, tiles_n } = choice.grid;
    let cluster = choice.kernel.cluster.ctas();
    match choice.schedule {
        Schedule::Grid2d => (tiles_n, tiles_m),
        Schedule::Grid1d => (cluster * choice.tiles(), 1),
        Schedule::Persistent => {
            let clusters = (resident / cluster).max(1).min(choice.tiles());
            (cluster * clusters, 1)
        }
        Schedule::SplitK => (cluster * choice.stream_k_ctas, 1),
        Schedule::StreamK => match choice.tiles() {
            0 => (0, 1),
            tiles => (tiles.min(resident).max(choice.stream_k_ctas), 1),
        },
    }
}

/// Whether CTAs leave the sums of all tiles in the workspace, for a second launch to add: of a kernel
/// that stores no C always, of a stream-K kernel under split-K where its tiles are cut.
pub(super) fn leaves_sums(
    kernel: &KernelInfo,
    schedule: Schedule,
    tiles: u32,
    stream_k_ctas: u32,
) -> bool {
    schedule == Schedule::SplitK && (kernel.leaves_sums || stream_k_ctas > tiles)
}

/// Number of tiles whose sums are in the workspace: under stream-K the tiles that do not fill a wave of
/// `ctas` CTAs, under split-K all or none.
pub(crate) fn stream_k_tiles(choice: &Choice, ctas: (u32, u32)) -> u32 {
    let tiles = choice.tiles();
    match choice.schedule {
        Schedule::StreamK => tiles.checked_rem(ctas.0).unwrap_or(0),
        schedule if leaves_sums(&choice.kernel, schedule, tiles, choice.stream_k_ctas) => tiles,
        _ => 0,
    }
}

/// Number of parts of the workspace, of [`stream_k_bytes`](KernelInfo::stream_k_bytes) each, where sums
/// are in it.
pub(crate) fn parts(choice: &Choice) -> u32 {
    match choice.schedule {
        Schedule::SplitK => split_k::parts(choice.tiles(), choice.stream_k_ctas),
        _ => choice.stream_k_ctas,
    }
}
