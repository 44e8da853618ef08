//! One question of the page.

use gpu_kernels::{Block, TileGrid, TileOrder};
use tilewise_model::Workload;
use tilewise_model::gpu::{GPUS, Gpu};

/// Most tiles of C: the page draws each of them.
pub const MOST_TILES: u64 = 1 << 18;

/// Most blocks of A and B, which the model of L2 keeps a list of.
pub const MOST_BLOCKS: u64 = 1 << 22;

/// A product, its tiles, their order, and the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query {
    /// The product and its CTA tile.
    pub workload: Workload,
    /// Which tile runs when.
    pub order: TileOrder,
    /// The GPU, with the SMs that are asked for.
    pub gpu: Gpu,
}

impl Query {
    /// C of `shape` (M, N, K) in tiles of `block` (M, N, K), elements of `element_bytes`
    /// in A, B and C, on [`GPUS`]`[gpu]` with `sms` SMs, one CTA each. `None` for a name
    /// that is no order's, a GPU that is not in the table, a size of 0, or a product of
    /// more than [`MOST_TILES`] or [`MOST_BLOCKS`].
    pub fn new(
        shape: [u32; 3],
        block: [u32; 3],
        element_bytes: u32,
        order: &str,
        gpu: u32,
        sms: u32,
    ) -> Option<Query> {
        if shape.contains(&0) || block.contains(&0) || element_bytes == 0 || sms == 0 {
            return None;
        }
        let [m, n, k] = shape;
        let workload = Workload {
            m,
            n,
            k,
            block: Block {
                m: block[0],
                n: block[1],
                k: block[2],
            },
            input_bytes: element_bytes,
            output_bytes: element_bytes,
        };
        let TileGrid { tiles_m, tiles_n } = workload.grid();
        let (rows, cols) = (u64::from(tiles_m), u64::from(tiles_n));
        let blocks = (rows + cols) * u64::from(workload.tiles_k());
        if rows * cols > MOST_TILES || blocks > MOST_BLOCKS {
            return None;
        }
        Some(Query {
            workload,
            order: order.parse().ok()?,
            gpu: Gpu {
                sms,
                ..*GPUS.get(gpu as usize)?
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(shape: [u32; 3], order: &str, gpu: u32) -> Option<Query> {
        Query::new(shape, [128, 256, 64], 2, order, gpu, 132)
    }

    #[test]
    fn names_and_sizes_are_checked() {
        assert!(query([8192, 8192, 8192], "grouped:8", 0).is_some());
        assert!(query([8192, 8192, 8192], "zigzag", 0).is_none());
        assert!(query([8192, 8192, 8192], "row", GPUS.len() as u32).is_none());
        assert!(query([8192, 0, 8192], "row", 0).is_none());
        // 2²⁵ tiles, and the largest numbers there are.
        assert!(query([1 << 20, 1 << 20, 64], "row", 0).is_none());
        assert!(query([u32::MAX; 3], "row", 0).is_none());
    }
}
