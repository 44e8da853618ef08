//! `wgmma`'s matrix descriptor: where the elements of A and B lie in shared memory
//! (PTX ISA, "Asynchronous warpgroup-level matrix shared memory layout", "Matrix
//! Descriptor Format", "Strides").
//!
//! An operand is made of 16-byte chunks, contiguous along K or along M (of A)
//! or N (of B). Where they lie, before the swizzle permutes addresses, with
//! S the swizzle's span in chunks (1, 2, 4 or 8):
//!
//! | contiguous along | swizzle | next chunk along it | next chunk across it |
//! |---|---|---|---|
//! | K | none | leading offset | 16 bytes; after 8, stride offset |
//! | K | any | 16 bytes | S · 16 bytes; after 8, stride offset |
//! | M, N | none | stride offset | 16 bytes; after 8, leading offset |
//! | M, N | any | 16 bytes; after S, leading offset | S · 16 bytes; after 8, stride offset |
//!
//! These are the canonical layouts that CUTLASS documents
//! (`cute/arch/mma_sm90_desc.hpp`); the figures of the PTX ISA show the same.

use super::factor::Factor;
use super::swizzle::{CHUNK_BYTES, Swizzle};
use crate::semantics::format::Format;
use crate::semantics::format::Major;

/// Bytes of shared memory that a descriptor's 14-bit fields can name.
const WINDOW_BYTES: u32 = 1 << 18;

/// Bits of the descriptor that must be 0.
const RESERVED: u64 = 0x3 << 14 | 0x3 << 30 | 0x7 << 46 | 0x3ff << 52;

/// A decoded descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Shared address of the first chunk, a multiple of 16 below 2¹⁸.
    pub start: u32,
    /// "Leading dimension byte offset", a multiple of 16 below 2¹⁸.
    pub leading: u32,
    /// "Stride dimension byte offset", a multiple of 16 below 2¹⁸.
    pub stride: u32,
    /// How chunks are permuted.
    pub swizzle: Swizzle,
}

/// 16 bytes of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Shared address, a multiple of 16.
    pub address: u32,
    /// Row of A, or column of B, of its first element.
    pub line: usize,
    /// Index along K of its first element, from 0 in each instruction.
    pub k: usize,
}

/// A descriptor, or a use of one, that the instruction does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// Bits that must be 0 are not.
    #[error(
        "matrix descriptor {bits:#018x} has bits {:#x} set, accepted: zeros there",
        bits & RESERVED
    )]
    Reserved {
        /// The descriptor.
        bits: u64,
    },
    /// A base offset; a pattern that starts off its boundary is not modelled.
    #[error("matrix descriptor with base offset {value}, accepted by the emulator: 0")]
    BaseOffset {
        /// The field's value.
        value: u32,
    },
    /// 4-byte elements contiguous along M or N ("wgmma", "Matrix major-ness").
    #[error("{} operand contiguous along M or N, accepted: along K", dtype.name())]
    Major {
        /// The elements' type.
        dtype: Format,
    },
}

impl Descriptor {
    /// Reads the fields of a 64-bit descriptor.
    ///
    /// # Errors
    /// [`DescriptorError::Reserved`], [`DescriptorError::BaseOffset`].
    pub fn decode(bits: u64) -> Result<Self, DescriptorError> {
        if bits & RESERVED != 0 {
            return Err(DescriptorError::Reserved { bits });
        }
        let base_offset = (bits >> 49 & 0x7) as u32;
        if base_offset != 0 {
            return Err(DescriptorError::BaseOffset { value: base_offset });
        }
        let bytes = |low: u32| (bits >> low & 0x3fff) as u32 * CHUNK_BYTES;
        Ok(Descriptor {
            start: bytes(0),
            leading: bytes(16),
            stride: bytes(32),
            swizzle: match bits >> 62 {
                0 => Swizzle::None,
                1 => Swizzle::Bytes128,
                2 => Swizzle::Bytes64,
                _ => Swizzle::Bytes32,
            },
        })
    }

    /// The 64-bit descriptor. Of each field, the multiple of 16 modulo 2¹⁸.
    pub fn encode(&self) -> u64 {
        let field = |bytes: u32| u64::from(bytes % WINDOW_BYTES / CHUNK_BYTES);
        let swizzle = match self.swizzle {
            Swizzle::None => 0,
            Swizzle::Bytes128 => 1,
            Swizzle::Bytes64 => 2,
            Swizzle::Bytes32 => 3,
        };
        field(self.start) | field(self.leading) << 16 | field(self.stride) << 32 | swizzle << 62
    }

    /// The address of chunk `along`, counted in the contiguous direction `major`,
    /// of line `across` in the other.
    fn chunk_address(&self, major: Major, along: u32, across: u32) -> u32 {
        let span = self.swizzle.span_bytes() / CHUNK_BYTES;
        let offset = match (major, self.swizzle) {
            (Major::K, Swizzle::None) => {
                along * self.leading + across % 8 * CHUNK_BYTES + across / 8 * self.stride
            }
            (Major::Mn, Swizzle::None) => {
                along * self.stride + across % 8 * CHUNK_BYTES + across / 8 * self.leading
            }
            (Major::K, _) => (along + across % 8 * span) * CHUNK_BYTES + across / 8 * self.stride,
            (Major::Mn, _) => {
                (along % span + across % 8 * span) * CHUNK_BYTES
                    + along / span * self.leading
                    + across / 8 * self.stride
            }
        };
        self.swizzle.apply((self.start + offset) % WINDOW_BYTES)
    }

    /// The chunks of the operand that one instruction reads: `lines` (a multiple
    /// of 8) rows of A or columns of B, 32 bytes deep.
    ///
    /// # Errors
    /// [`DescriptorError::Major`].
    pub fn chunks(
        self,
        dtype: Format,
        major: Major,
        lines: usize,
    ) -> Result<impl Iterator<Item = Chunk>, DescriptorError> {
        let elements = (CHUNK_BYTES / dtype.bytes()) as usize;
        if major == Major::Mn && dtype.bytes() != 2 {
            return Err(DescriptorError::Major { dtype });
        }
        let (along, across) = match major {
            Major::K => (2, lines),
            Major::Mn => (lines / elements, 2 * elements),
        };
        Ok((0..across).flat_map(move |across| {
            (0..along).map(move |along| {
                let address = self.chunk_address(major, along as u32, across as u32);
                let (line, k) = match major {
                    Major::K => (across, along * elements),
                    Major::Mn => (along * elements, across),
                };
                Chunk { address, line, k }
            })
        }))
    }

    /// The operand that one instruction reads, of the 16 bytes that `read` finds
    /// at each shared address.
    ///
    /// # Errors
    /// [`DescriptorError::Major`], and what `read` returns.
    pub fn read<E: From<DescriptorError>>(
        self,
        dtype: Format,
        major: Major,
        lines: usize,
        mut read: impl FnMut(u32) -> Result<[u8; 16], E>,
    ) -> Result<Factor, E> {
        let mut factor = Factor::zeros(dtype, lines);
        for chunk in self.chunks(dtype, major, lines)? {
            let bytes = read(chunk.address)?;
            match major {
                Major::K => factor.set_along_k(chunk.line, chunk.k, &bytes),
                Major::Mn => factor.set_along_lines(chunk.line, chunk.k, &bytes),
            }
        }
        Ok(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn with(swizzle: Swizzle, leading: u32, stride: u32) -> Descriptor {
        Descriptor {
            start: 0x1000,
            leading,
            stride,
            swizzle,
        }
    }

    /// The address of the chunk that holds (line, k) of 16-bit elements.
    fn places(descriptor: Descriptor, major: Major, lines: usize) -> BTreeMap<(usize, usize), u32> {
        let chunks = descriptor.chunks(Format::F16, major, lines).unwrap();
        chunks
            .map(|chunk| ((chunk.line, chunk.k), chunk.address))
            .collect()
    }

    #[test]
    fn the_kernels_descriptors_are_read_as_they_were_meant() {
        // `isa::wgmma::descriptor` for shared address 0x8400: along K, along M.
        let along_k = (0x8400 >> 4) | 1 << 16 | (1024 >> 4) << 32 | 1 << 62;
        let expected = Descriptor {
            start: 0x8400,
            leading: 16,
            stride: 1024,
            swizzle: Swizzle::Bytes128,
        };
        assert_eq!(Descriptor::decode(along_k), Ok(expected));
        assert_eq!(expected.encode(), along_k);
        let along_m = (0x8400 >> 4) | (8192 >> 4) << 16 | (1024 >> 4) << 32 | 1 << 62;
        let expected = Descriptor {
            leading: 8192,
            ..expected
        };
        assert_eq!(Descriptor::decode(along_m), Ok(expected));
    }

    #[test]
    fn fields_survive_a_round_trip() {
        for swizzle in Swizzle::ALL {
            let descriptor = with(swizzle, 16 * 0x3fff, 16 * 0x2aaa);
            assert_eq!(Descriptor::decode(descriptor.encode()), Ok(descriptor));
        }
    }

    #[test]
    fn what_the_format_does_not_have_is_refused() {
        let bits = with(Swizzle::None, 128, 256).encode();
        for bit in [14, 15, 30, 31, 46, 48, 52, 61] {
            let bits = bits | 1 << bit;
            let refused = Descriptor::decode(bits).unwrap_err();
            assert_eq!(refused, DescriptorError::Reserved { bits });
            assert!(
                refused
                    .to_string()
                    .contains(&format!("{:#x}", 1_u64 << bit))
            );
        }
        assert_eq!(
            Descriptor::decode(bits | 3 << 49),
            Err(DescriptorError::BaseOffset { value: 3 })
        );
        let tf32 = with(Swizzle::Bytes128, 0, 1024).chunks(Format::Tf32, Major::Mn, 64);
        assert_eq!(
            tf32.err(),
            Some(DescriptorError::Major {
                dtype: Format::Tf32
            })
        );
    }

    #[test]
    fn a_128_byte_swizzle_along_k_holds_rows_of_64() {
        let at = places(with(Swizzle::Bytes128, 16, 1024), Major::K, 64);
        assert_eq!(at[&(0, 0)], 0x1000);
        assert_eq!(at[&(0, 8)], 0x1010);
        // Row 3: its chunks 0 and 1 are swapped with 3 and 2.
        assert_eq!(at[&(3, 0)], 0x1000 + 3 * 128 + 3 * 16);
        assert_eq!(at[&(3, 8)], 0x1000 + 3 * 128 + 2 * 16);
        // The next eight rows, at the stride.
        assert_eq!(at[&(17, 0)], 0x1000 + 2 * 1024 + 128 + 16);
    }

    #[test]
    fn a_step_along_k_starts_further_in_the_row() {
        let descriptor = Descriptor {
            start: 0x1020,
            ..with(Swizzle::Bytes128, 16, 1024)
        };
        let at = places(descriptor, Major::K, 64);
        assert_eq!(at[&(0, 0)], 0x1020);
        assert_eq!(at[&(3, 8)], 0x1000 + 3 * 128, "chunk 3 of row 3");
    }

    #[test]
    fn a_128_byte_swizzle_along_m_holds_columns_of_64() {
        let at = places(with(Swizzle::Bytes128, 8192, 1024), Major::Mn, 128);
        // k is the line; chunks of eight rows of A along it.
        assert_eq!(at[&(8, 0)], 0x1010);
        assert_eq!(at[&(8, 5)], 0x1000 + 5 * 128 + 4 * 16);
        assert_eq!(at[&(0, 8)], 0x1000 + 1024);
        assert_eq!(at[&(64, 9)], 0x1000 + 8192 + 1024 + 128 + 16);
    }

    #[test]
    fn narrow_swizzles_along_k_have_short_rows() {
        let at = places(with(Swizzle::Bytes64, 16, 512), Major::K, 16);
        // Rows of 64 bytes; rows 2 and 3 lie in the second line of 128.
        assert_eq!(at[&(2, 0)], 0x1000 + 128 + 16);
        assert_eq!(at[&(3, 8)], 0x1000 + 128 + 64);
        assert_eq!(at[&(8, 0)], 0x1200);
        let at = places(with(Swizzle::Bytes32, 16, 256), Major::K, 16);
        assert_eq!(at[&(4, 0)], 0x1000 + 128 + 16);
        assert_eq!(at[&(9, 8)], 0x1000 + 256 + 32 + 16);
    }

    #[test]
    fn without_swizzle_eight_lines_of_16_bytes_form_a_core_matrix() {
        let at = places(with(Swizzle::None, 2048, 128), Major::K, 16);
        assert_eq!(at[&(3, 0)], 0x1000 + 3 * 16);
        assert_eq!(at[&(3, 8)], 0x1000 + 3 * 16 + 2048);
        assert_eq!(at[&(8, 0)], 0x1000 + 128);
        let at = places(with(Swizzle::None, 2048, 128), Major::Mn, 16);
        assert_eq!(at[&(0, 3)], 0x1000 + 3 * 16);
        assert_eq!(at[&(8, 3)], 0x1000 + 3 * 16 + 128);
        assert_eq!(at[&(0, 8)], 0x1000 + 2048);
    }

    #[test]
    fn a_dense_operand_uses_each_chunk_once() {
        for swizzle in Swizzle::ALL {
            for major in [Major::K, Major::Mn] {
                let span = swizzle.span_bytes();
                let (leading, stride) = match (major, swizzle) {
                    // 64 lines: 8 core matrices of 128 bytes, then the next in K.
                    (_, Swizzle::None) => (1024, 128),
                    (Major::K, _) => (16, span * 8),
                    (Major::Mn, _) => (span * 16, span * 8),
                };
                let at: BTreeSet<u32> = places(with(swizzle, leading, stride), major, 64)
                    .into_values()
                    .collect();
                assert_eq!(at.len(), 64 * 32 / 16, "{swizzle:?} {major:?}");
            }
        }
    }

    #[test]
    fn an_operand_is_read_with_its_lines_and_depth() {
        // A K-contiguous operand of 16 columns, element (n, k) = 16·n + k.
        let descriptor = with(Swizzle::Bytes32, 16, 256);
        let chunk = |n: usize, k: usize| {
            let value = |i: usize| super::super::convert::f16_from_f32((16 * n + k + i) as f32);
            std::array::from_fn(|byte| value(byte / 2).to_le_bytes()[byte % 2])
        };
        let mut memory = BTreeMap::new();
        for ((n, k), address) in places(descriptor, Major::K, 16) {
            memory.insert(address, chunk(n, k));
        }
        let factor = descriptor
            .read::<DescriptorError>(Format::F16, Major::K, 16, |address| Ok(memory[&address]))
            .unwrap();
        for n in 0..16 {
            for k in 0..16 {
                assert_eq!(factor.value(n, k), (16 * n + k) as f32);
            }
        }
        // The same bytes as an operand contiguous along M.
        let factor = descriptor
            .read::<DescriptorError>(Format::F16, Major::Mn, 16, |_| Ok(chunk(0, 0)))
            .unwrap();
        assert_eq!((factor.value(11, 5), factor.value(8, 15)), (3.0, 0.0));
    }
}
