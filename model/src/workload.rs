//! The input and the output of the model: a product, the properties of a GPU, and the
//! predicted traffic.

use gpu_kernels::{Block, TileGrid};

/// One product, as the cache sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// CTA tile.
    pub block: Block,
    /// Bytes of one element of A and B.
    pub input_bytes: u32,
    /// Bytes of one element of C.
    pub output_bytes: u32,
}

impl Workload {
    /// The tile grid of C.
    pub fn grid(&self) -> TileGrid {
        TileGrid::cover(self.m, self.n, self.block.m, self.block.n)
    }

    /// Number of steps along K.
    pub fn tiles_k(&self) -> u32 {
        self.k.div_ceil(self.block.k.max(1))
    }
}

/// The properties of a GPU that the model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of CTAs that run at once: SMs × CTAs per SM. 0 means 1.
    pub ctas: u32,
    /// Capacity of L2, bytes, of all partitions together.
    pub l2_bytes: u64,
    /// Number of partitions of L2, each of which is nearer to some of the SMs. 0 means 1.
    pub l2_partitions: u32,
}

/// The counts of [`traffic`](crate::traffic).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of blocks that CTAs request from L2: two for each tile and step along K.
    pub requests: u64,
    /// Bytes of all requests, which travel from L2 to the SMs.
    pub l2_to_sm_bytes: u64,
    /// Bytes that partitions of L2 request from each other.
    pub between_partitions_bytes: u64,
    /// Bytes that are not in L2 when they are requested.
    pub dram_read_bytes: u64,
    /// Bytes of C; each is written once.
    pub c_write_bytes: u64,
}

impl Traffic {
    /// The share of the requested bytes that hit in L2, 0 to 1; 1 when nothing was
    /// requested.
    pub fn hit_rate(&self) -> f64 {
        if self.l2_to_sm_bytes == 0 {
            1.0
        } else {
            1.0 - self.dram_read_bytes as f64 / self.l2_to_sm_bytes as f64
        }
    }
}
