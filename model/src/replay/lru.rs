//! The cache of the L2 model: one list of blocks, in the order of their last use.

use alloc::vec;
use alloc::vec::Vec;

/// A least-recently-used set of blocks, bounded in bytes.
///
/// Every block has a fixed slot in a doubly linked list, so a touch is a few
/// array writes. Memory grows with the number of blocks, as the work does.
pub(super) struct Lru {
    links: Vec<Link>,
    capacity: u64,
    used: u64,
}

#[derive(Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
    /// Bytes held; 0 when the block is not in the cache.
    bytes: u64,
}

impl Lru {
    pub(super) fn new(blocks: usize, capacity: u64) -> Self {
        // The slot past the last block is the list's head: its `older` is the
        // most recently used block, its `newer` the least.
        let head = u32::try_from(blocks).expect("fewer than 2^32 blocks");
        let empty = Link {
            newer: head,
            older: head,
            bytes: 0,
        };
        Lru {
            links: vec![empty; blocks + 1],
            capacity,
            used: 0,
        }
    }

    fn head(&self) -> usize {
        self.links.len() - 1
    }

    /// Makes `block` the most recently used. Returns whether it was in the cache.
    /// A block larger than the whole cache is never kept.
    pub(super) fn touch(&mut self, block: usize, bytes: u64) -> bool {
        let hit = self.links[block].bytes != 0;
        if hit {
            self.unlink(block);
        }
        if bytes <= self.capacity {
            self.push(block, bytes);
        }
        while self.used > self.capacity {
            let oldest = self.links[self.head()].newer as usize;
            self.unlink(oldest);
        }
        hit
    }

    fn push(&mut self, block: usize, bytes: u64) {
        let head = self.head();
        let next = self.links[head].older;
        self.links[block] = Link {
            newer: head as u32,
            older: next,
            bytes,
        };
        self.links[next as usize].newer = block as u32;
        self.links[head].older = block as u32;
        self.used += bytes;
    }

    fn unlink(&mut self, block: usize) {
        let Link {
            newer,
            older,
            bytes,
        } = self.links[block];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
        self.links[block].bytes = 0;
        self.used -= bytes;
    }
}
