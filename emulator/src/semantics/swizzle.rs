//! The swizzles, by which the copy engine and the tensor cores place the 16-byte chunks
//! of a row (PTX ISA, "Swizzling Modes", "Tensor Swizzling Modes").
//!
//! A swizzle permutes the chunks within a row of 32, 64 or 128 bytes, by XOR of
//! the chunk's index with the number of the 128-byte line it lies in. It is a
//! function of address bits alone, and its own inverse. The lines count from a
//! multiple of [`Swizzle::pattern_bytes`], so an operand that starts at such an
//! address is permuted as if it began at 0.

/// Bytes that a swizzle leaves together.
pub const CHUNK_BYTES: u32 = 16;

/// A permutation of the 16-byte chunks of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Chunks stay where they are.
    None,
    /// Rows of 32 bytes: two chunks.
    Bytes32,
    /// Rows of 64 bytes: four chunks.
    Bytes64,
    /// Rows of 128 bytes: eight chunks.
    Bytes128,
}

impl Swizzle {
    /// All swizzles.
    pub const ALL: [Swizzle; 4] = [
        Swizzle::None,
        Swizzle::Bytes32,
        Swizzle::Bytes64,
        Swizzle::Bytes128,
    ];

    /// Bytes of a row, within which chunks are permuted.
    pub const fn span_bytes(self) -> u32 {
        match self {
            Swizzle::None => CHUNK_BYTES,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }

    /// Bytes after which the permutation repeats, and the alignment that an
    /// operand needs to start with its first line.
    pub const fn pattern_bytes(self) -> u32 {
        // A pattern has one 128-byte line for each index of a chunk; without a swizzle
        // the instructions' own alignment remains.
        match self {
            Swizzle::None => 128,
            _ => self.span_bytes() / CHUNK_BYTES * 128,
        }
    }

    /// The shared address of the byte that without swizzling is at `address`.
    pub const fn apply(self, address: u32) -> u32 {
        let chunk_index_bits = self.span_bytes() / CHUNK_BYTES - 1;
        address ^ (address >> 7 & chunk_index_bits) << 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_128_byte_swizzle_is_the_table_of_the_isa() {
        // "128B Swizzling mode": line l holds chunk i at i XOR l.
        for line in 0..8 {
            for chunk in 0..8 {
                let at = Swizzle::Bytes128.apply(line * 128 + chunk * 16 + 5);
                assert_eq!(at, line * 128 + (chunk ^ line) * 16 + 5);
            }
        }
    }

    #[test]
    fn narrower_swizzles_change_rows_every_128_bytes() {
        // Rows of 64 bytes: 0 and 1 share a line and stay, 2 and 3 are in the next.
        let rows = |swizzle: Swizzle, bytes: u32| [0, 1, 2, 3, 4].map(|r| swizzle.apply(r * bytes));
        assert_eq!(
            rows(Swizzle::Bytes64, 64),
            [0, 64, 128 + 16, 192 + 16, 256 + 32]
        );
        // Rows of 32 bytes: four share a line.
        assert_eq!(rows(Swizzle::Bytes32, 32), [0, 32, 64, 96, 128 + 16]);
        assert_eq!(rows(Swizzle::None, 16), [0, 16, 32, 48, 64]);
    }

    #[test]
    fn swizzles_permute_the_chunks_of_each_row() {
        for swizzle in Swizzle::ALL {
            let span = swizzle.span_bytes();
            for row in (0..4096).step_by(span as usize) {
                let chunks: BTreeSet<u32> = (row..row + span)
                    .step_by(16)
                    .map(|address| swizzle.apply(address))
                    .collect();
                let unswizzled: BTreeSet<u32> = (row..row + span).step_by(16).collect();
                assert_eq!(chunks, unswizzled, "{swizzle:?}");
            }
            for address in 0..4096 {
                assert_eq!(swizzle.apply(swizzle.apply(address)), address);
            }
        }
    }

    #[test]
    fn patterns_repeat_where_they_say() {
        for swizzle in Swizzle::ALL {
            let pattern = swizzle.pattern_bytes();
            for address in (0..2048).step_by(16) {
                assert_eq!(
                    swizzle.apply(address + pattern),
                    swizzle.apply(address) + pattern,
                    "{swizzle:?}"
                );
            }
        }
    }
}
