//! TMA: which bytes of shared memory a box of a tensor fills, and which bytes of
//! the tensor those are (PTX ISA, "Tensors", "Tiled mode", "Swizzling Modes",
//! "`cp.async.bulk.tensor`"; CUDA driver API, `cuTensorMapEncodeTiled`).
//!
//! A tensor has two dimensions here, lines of contiguous elements at a pitch, or three:
//! planes of such lines, of which a box takes one. The driver's 128-byte map is opaque, so the emulator has its own format, with the same
//! parameters under the same rules; it recognises junk.
//!
//! Box rows are packed one after the other, in 16-byte chunks that the swizzle permutes
//! by their address. A load fills elements outside the tensor with zeros, and a store
//! does not write them. But a store does not cut a line at its last element: it writes
//! up to the end of the 16-byte chunk of *global* memory, as seen on an H200
//! (`docs/perf-log.md`, "TMA stores clip to 16 bytes").

use super::swizzle::{CHUNK_BYTES, Swizzle};
use crate::semantics::format::Format;

/// Bytes of an encoded map.
pub const BYTES: usize = 128;

/// The first bytes of an encoded map.
const MAGIC: [u8; 8] = *b"emu-tma1";

/// Alignment of a map.
pub const ALIGNMENT: u64 = 64;

/// Alignment of a box in shared memory ("`cp.async.bulk.tensor`", alignments).
pub const SHARED_ALIGNMENT: u32 = 128;

/// The parameters of a map. Index 0 is the direction in which elements are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Global address of the first element, a multiple of 16.
    pub address: u64,
    /// Element type. A load rounds f32 to [`Format::Tf32`]; all other types move unchanged.
    pub dtype: Format,
    /// Elements in each direction, 1 to 2³².
    pub dims: [u64; 2],
    /// Bytes from one line to the next, a multiple of 16 below 2⁴⁰.
    pub pitch_bytes: u64,
    /// The planes of a tensor of three dimensions.
    pub planes: Option<Planes>,
    /// Elements of a box in each direction, 1 to 256; its rows are a multiple of
    /// 16 bytes, and as wide as the swizzle where there is one.
    pub box_dims: [u32; 2],
    /// How a box lies in shared memory.
    pub swizzle: Swizzle,
}

/// The third dimension of a tensor. A box has one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Number of planes, 1 to 2³².
    pub count: u64,
    /// Bytes from one plane to the next, a multiple of 16 below 2⁴⁰.
    pub pitch_bytes: u64,
}

/// A coordinate that does not fit the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaneError {
    /// The instruction and the map have different numbers of dimensions.
    #[error("an instruction for {instruction} dimensions and a map of {map}")]
    Rank {
        /// Dimensions of the instruction.
        instruction: u64,
        /// Dimensions of the map.
        map: u64,
    },
    /// A plane outside the tensor. (The hardware fills such a box with zeros, but no kernel
    /// here means to ask for one.)
    #[error("plane {plane}, accepted: below {count}")]
    Outside {
        /// The plane given.
        plane: i32,
        /// Planes of the tensor.
        count: u64,
    },
}

/// Parameters that the driver, or the emulator in its place, refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The tensor's address is no multiple of 16.
    #[error("tensor at {address:#x}, accepted: multiples of 16")]
    Address {
        /// The address given.
        address: u64,
    },
    /// A dimension of the tensor is 0 or above 2³².
    #[error("tensor dimension {dimension} is {elements}, accepted: 1 to 2^32")]
    Dim {
        /// Which dimension.
        dimension: usize,
        /// Elements given.
        elements: u64,
    },
    /// The pitch is no multiple of 16, or 2⁴⁰ or more.
    #[error("tensor pitch is {pitch_bytes} bytes, accepted: multiples of 16 below 2^40")]
    Pitch {
        /// Bytes given.
        pitch_bytes: u64,
    },
    /// A dimension of the box is 0 or above 256.
    #[error("box dimension {dimension} is {elements}, accepted: 1 to 256")]
    Box {
        /// Which dimension.
        dimension: usize,
        /// Elements given.
        elements: u32,
    },
    /// A row of the box is no multiple of 16 bytes, or wider than the swizzle.
    #[error("box row is {bytes} bytes, accepted{}", accepted_row(*swizzle))]
    BoxRow {
        /// Bytes of the row given.
        bytes: u32,
        /// The swizzle given.
        swizzle: Swizzle,
    },
    /// 128 bytes that are no map.
    #[error("no tensor map there: it starts with {found:02x?}")]
    Junk {
        /// The first eight of them, which say so.
        found: [u8; 8],
    },
}

/// The rows of a box that lies as `swizzle` says.
fn accepted_row(swizzle: Swizzle) -> String {
    match swizzle {
        Swizzle::None => ": multiples of 16".into(),
        _ => format!(
            " with this swizzle: multiples of 16 up to {}",
            swizzle.span_bytes()
        ),
    }
}

/// A box in shared memory that does not start where the instruction needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("box at shared address {address:#x}, accepted: multiples of {SHARED_ALIGNMENT}")]
pub struct MisalignedBox {
    /// The shared address given.
    pub address: u32,
}

/// 16 bytes of a box in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its shared address.
    pub shared: u32,
    /// Which of its bytes are inside the tensor: `first <= i < end`, none if they
    /// are equal. A load fills the others with zeros; a store drops them.
    pub first: u32,
    /// See `first`.
    pub end: u32,
    /// The global address of byte `first`; without meaning for an empty chunk.
    pub global: u64,
}

/// The direction of a copy, which decides where a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Global to shared memory: up to the last element.
    Load,
    /// Shared to global memory: up to the end of the last element's 16 bytes.
    Store,
}

impl TensorMap {
    /// The map as 128 bytes.
    ///
    /// # Errors
    /// All of [`MapError`] but [`MapError::Junk`].
    pub fn encode(&self) -> Result<[u8; BYTES], MapError> {
        self.check()?;
        let dtype = match self.dtype {
            Format::F32 => 0,
            Format::Tf32 => 1,
            Format::F16 => 2,
            Format::Bf16 => 3,
        };
        let swizzle = self.swizzle.span_bytes();
        let words = [
            u64::from_le_bytes(MAGIC),
            self.address,
            self.dims[0],
            self.dims[1],
            self.pitch_bytes,
            u64::from(self.box_dims[0]) | u64::from(self.box_dims[1]) << 32,
            dtype | self.rank() << 8 | u64::from(swizzle) << 32,
            self.planes.map_or(0, |planes| planes.count),
            self.planes.map_or(0, |planes| planes.pitch_bytes),
        ];
        let mut bytes = [0; BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }

    /// Reads what [`TensorMap::encode`] wrote.
    ///
    /// # Errors
    /// [`MapError::Junk`]; the others where such bytes were tampered with.
    pub fn decode(bytes: &[u8; BYTES]) -> Result<Self, MapError> {
        let words = bytes.as_chunks::<8>().0;
        let word = |index: usize| u64::from_le_bytes(words[index]);
        let junk = MapError::Junk { found: words[0] };
        if words[0] != MAGIC || bytes[9 * 8..].iter().any(|&byte| byte != 0) {
            return Err(junk);
        }
        let planes = match (word(6) as u32 >> 8, word(7), word(8)) {
            (2, 0, 0) => None,
            (3, count, pitch_bytes) => Some(Planes { count, pitch_bytes }),
            _ => return Err(junk),
        };
        let map = TensorMap {
            address: word(1),
            dims: [word(2), word(3)],
            pitch_bytes: word(4),
            planes,
            box_dims: [word(5) as u32, (word(5) >> 32) as u32],
            dtype: match word(6) as u8 {
                0 => Format::F32,
                1 => Format::Tf32,
                2 => Format::F16,
                3 => Format::Bf16,
                _ => return Err(junk),
            },
            swizzle: Swizzle::ALL
                .into_iter()
                .find(|swizzle| u64::from(swizzle.span_bytes()) == word(6) >> 32)
                .ok_or(junk)?,
        };
        map.check().map(|()| map)
    }

    fn check(&self) -> Result<(), MapError> {
        let chunk = u64::from(CHUNK_BYTES);
        if !self.address.is_multiple_of(chunk) {
            return Err(MapError::Address {
                address: self.address,
            });
        }
        let planes = self.planes.map(|planes| planes.count);
        for (dimension, elements) in self.dims.into_iter().chain(planes).enumerate() {
            if !(1..=1 << 32).contains(&elements) {
                return Err(MapError::Dim {
                    dimension,
                    elements,
                });
            }
        }
        let planes = self.planes.map(|planes| planes.pitch_bytes);
        for pitch_bytes in [self.pitch_bytes].into_iter().chain(planes) {
            if !pitch_bytes.is_multiple_of(chunk) || pitch_bytes >= 1 << 40 {
                return Err(MapError::Pitch { pitch_bytes });
            }
        }
        for (dimension, elements) in self.box_dims.into_iter().enumerate() {
            if !(1..=256).contains(&elements) {
                return Err(MapError::Box {
                    dimension,
                    elements,
                });
            }
        }
        let bytes = self.row_bytes();
        let fits = bytes.is_multiple_of(CHUNK_BYTES)
            && match self.swizzle {
                Swizzle::None => true,
                swizzle => bytes <= swizzle.span_bytes(),
            };
        if fits {
            Ok(())
        } else {
            Err(MapError::BoxRow {
                bytes,
                swizzle: self.swizzle,
            })
        }
    }

    /// Number of dimensions.
    fn rank(&self) -> u64 {
        2 + u64::from(self.planes.is_some())
    }

    /// The tensor as an instruction sees it: itself, for an instruction of two dimensions, or
    /// a plane of it.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn plane(self, plane: Option<i32>) -> Result<TensorMap, PlaneError> {
        match (self.planes, plane) {
            (None, None) => Ok(self),
            (Some(Planes { count, pitch_bytes }), Some(plane)) => match u64::try_from(plane) {
                Ok(index) if index < count => Ok(TensorMap {
                    address: self.address + index * pitch_bytes,
                    planes: None,
                    ..self
                }),
                _ => Err(PlaneError::Outside { plane, count }),
            },
            (_, plane) => Err(PlaneError::Rank {
                instruction: 2 + u64::from(plane.is_some()),
                map: self.rank(),
            }),
        }
    }

    /// Bytes of one row of a box.
    fn row_bytes(&self) -> u32 {
        self.box_dims[0] * self.dtype.bytes()
    }

    /// Bytes from one row of a box to the next in shared memory: the span of the swizzle,
    /// however narrow the row is (CUDA C++ Programming Guide, "Swizzle Modes"; seen on an
    /// H100).
    fn row_pitch(&self) -> u32 {
        match self.swizzle {
            Swizzle::None => self.row_bytes(),
            swizzle => swizzle.span_bytes(),
        }
    }

    /// Bytes of a box: those that a load counts towards its mbarrier (`complete_tx`), also
    /// where parts of the box are outside the tensor.
    pub fn box_bytes(&self) -> u32 {
        self.row_bytes() * self.box_dims[1]
    }

    /// Bytes of shared memory from the first of a box to its last.
    pub fn shared_bytes(&self) -> u32 {
        self.row_pitch() * (self.box_dims[1] - 1) + self.row_bytes()
    }

    /// The chunks of the box at element `x` of line `y`, which may be outside the tensor,
    /// and at `shared` in shared memory.
    ///
    /// # Errors
    /// `shared` is no multiple of 128.
    pub fn chunks(
        self,
        shared: u32,
        x: i32,
        y: i32,
        direction: Direction,
    ) -> Result<impl Iterator<Item = Chunk>, MisalignedBox> {
        if !shared.is_multiple_of(SHARED_ALIGNMENT) {
            return Err(MisalignedBox { address: shared });
        }
        let element = i64::from(self.dtype.bytes());
        // Below 2^34: no more than 2^32 elements of 4 bytes.
        let line_end = self.dims[0] as i64 * element;
        let line_end = match direction {
            Direction::Load => line_end,
            Direction::Store => (line_end as u64).next_multiple_of(CHUNK_BYTES.into()) as i64,
        };
        let (row_bytes, row_pitch) = (self.row_bytes(), self.row_pitch());
        Ok((0..self.box_dims[1]).flat_map(move |row| {
            let line = i64::from(y) + i64::from(row);
            let inside = (0..self.dims[1] as i64).contains(&line);
            (0..row_bytes)
                .step_by(CHUNK_BYTES as usize)
                .map(move |column| {
                    // Bytes of the line, from its start.
                    let start = i64::from(x) * element + i64::from(column);
                    let clip = |at: i64| (at - start).clamp(0, CHUNK_BYTES.into()) as u32;
                    let (first, end) = if inside {
                        (clip(0), clip(line_end))
                    } else {
                        (0, 0)
                    };
                    let line_address = line.wrapping_mul(self.pitch_bytes as i64);
                    Chunk {
                        shared: self.swizzle.apply(shared + row * row_pitch + column),
                        first: first.min(end),
                        end,
                        global: self
                            .address
                            .wrapping_add_signed(line_address + start + i64::from(first)),
                    }
                })
        }))
    }
}

#[cfg(test)]
mod tests;
