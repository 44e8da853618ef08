//! Runs a list of requests through an L2.

mod lru;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lru::Lru;

/// The counts of [`replay`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests whose block is in L2.
    pub hits: u64,
    /// Bytes of all requests.
    pub requested_bytes: u64,
    /// Bytes of the requests whose block is not in L2.
    pub dram_read_bytes: u64,
}

/// Runs requests through an L2 of `l2_bytes`, in their order. A request is a pair: any
/// number that identifies the requested block, and the block's bytes. The trace of an
/// emulated kernel contains such requests.
///
/// ```
/// use tilewise_model::replay;
///
/// // There is room for two blocks: the third evicts the first.
/// let replayed = replay([(1, 64), (2, 64), (1, 64), (2, 64), (3, 64), (1, 64)], 128);
/// assert_eq!((replayed.requests, replayed.hits), (6, 2));
/// assert_eq!(replayed.dram_read_bytes, 4 * 64);
/// ```
pub fn replay(requests: impl IntoIterator<Item = (u64, u64)>, l2_bytes: u64) -> Replayed {
    let requests: Vec<_> = requests.into_iter().collect();
    let mut blocks = BTreeMap::new();
    for (block, _) in &requests {
        let next = blocks.len();
        blocks.entry(*block).or_insert(next);
    }
    let mut cache = Lru::new(blocks.len(), l2_bytes);
    let mut total = Replayed::default();
    for (block, bytes) in requests {
        total.requests += 1;
        total.requested_bytes += bytes;
        if cache.touch(blocks[&block], bytes) {
            total.hits += 1;
        } else {
            total.dram_read_bytes += bytes;
        }
    }
    total
}
