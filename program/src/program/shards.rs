//! Which rank has which rows.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Rows of one product, in consecutive parts: rank 0 has the first, and so on. Parts may
/// differ in size, and may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// The first row of each rank, and the end of the last.
    bounds: Vec<usize>,
}

impl Shards {
    /// Parts of `rows` rows, one for each rank. `None` where their sum overflows.
    pub fn new(rows: impl IntoIterator<Item = usize>) -> Option<Self> {
        let mut bounds = vec![0_usize];
        for rows in rows {
            let last = bounds.last().copied().unwrap_or(0);
            bounds.push(last.checked_add(rows)?);
        }
        Some(Shards { bounds })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.bounds.len() - 1
    }

    /// All rows.
    pub fn rows(&self) -> usize {
        self.bounds[self.ranks()]
    }

    /// The rows of `rank`.
    pub fn range(&self, rank: usize) -> Range<usize> {
        self.bounds[rank]..self.bounds[rank + 1]
    }

    /// Number of rows of `rank`.
    pub fn len(&self, rank: usize) -> usize {
        self.range(rank).len()
    }

    /// The rows of `rank`, counted from its first, in at most `chunks` parts, none of them
    /// empty. All but the last are a multiple of [`Shards::ALIGNMENT`], so that tiles fit them.
    pub fn chunks(&self, rank: usize, chunks: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.len(rank);
        let size = rows
            .div_ceil(chunks.max(1))
            .next_multiple_of(Shards::ALIGNMENT);
        (0..rows)
            .step_by(size.max(1))
            .map(move |first| first..(first + size).min(rows))
    }

    /// Rows of the largest tiles.
    pub const ALIGNMENT: usize = 256;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_rows_once() {
        for rows in [0, 1, 255, 256, 257, 1000, 4096] {
            let shards = Shards::new([3, rows]).expect("small");
            for chunks in [1, 2, 3, 4, 100] {
                let parts: Vec<_> = shards.chunks(1, chunks).collect();
                assert!(parts.len() <= chunks && parts.iter().all(|part| !part.is_empty()));
                assert!(parts.iter().cloned().flatten().eq(0..rows));
            }
        }
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        assert_eq!(Shards::new([usize::MAX, 1]), None);
    }
}
