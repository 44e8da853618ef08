//! Which matrices TMA can read, and how a tensor map describes them.

use gpu_kernels::{KernelInfo, Major};

use super::ALIGNMENT;
use crate::problem::{Problem, Strides};

/// Pitches must stay below this many bytes.
const MAX_PITCH: u64 = 1 << 40;

/// Why TMA cannot read or write an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The elements are not contiguous in the direction that the kernel reads.
    #[error("its stride along {direction} is {stride}, accepted: 1")]
    Stride {
        /// `M`, `N` or `K`.
        direction: &'static str,
        /// Elements.
        stride: u64,
    },
    /// The lines are not a multiple of 16 bytes apart, overlap, or are too far
    /// apart.
    #[error(
        "its lines are {pitch} bytes apart, accepted: multiples of 16 from {line} up to 2^40 - 16"
    )]
    Pitch {
        /// Bytes from one line to the next.
        pitch: u64,
        /// Bytes of a line.
        line: u64,
    },
    /// The matrices of a batch, or the halves of B, are not a multiple of 16 bytes apart, or
    /// too far apart.
    #[error("its matrices are {pitch} bytes apart, accepted: multiples of 16 up to 2^40 - 16")]
    Planes {
        /// Bytes from one matrix to the next.
        pitch: u64,
    },
    /// The address is not known to be a multiple of 16 bytes.
    #[error("its address is aligned to {alignment} bytes, accepted: 16 or more")]
    Alignment {
        /// The known alignment in bytes, a power of two.
        alignment: u64,
    },
}

/// An operand as a tensor map describes it: the `globalDim` and `globalStrides` of
/// `cuTensorMapEncodeTiled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalTensor {
    /// Elements along the contiguous direction, then along the other.
    pub dims: [u64; 2],
    /// Bytes from one line of contiguous elements to the next.
    pub pitch_bytes: u64,
    /// The third dimension: the matrices of a batch, the parts of each, or the two halves of B
    /// in a gated product. `None` for a single matrix.
    pub planes: Option<Planes>,
}

/// The third dimension of a tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Number of planes.
    pub count: u64,
    /// Bytes from one plane to the next.
    pub pitch_bytes: u64,
}

impl Planes {
    /// `count` planes of `line` bytes a line, `stride` elements apart. A stride of 0 repeats
    /// one plane.
    fn new(count: u64, stride: u64, element_bytes: u32, line: u64) -> Result<Self, Unreadable> {
        let pitch = stride.saturating_mul(element_bytes.into());
        if stride == 0 {
            // The kernel asks for plane 0 alone.
            return Ok(Planes {
                count: 1,
                pitch_bytes: line.next_multiple_of(ALIGNMENT),
            });
        }
        if !pitch.is_multiple_of(ALIGNMENT) || pitch >= MAX_PITCH {
            return Err(Unreadable::Planes { pitch });
        }
        Ok(Planes {
            count,
            pitch_bytes: pitch,
        })
    }

    /// The planes of an operand of `problem` with a batch; `None` for a single product.
    fn of_batch(
        problem: &Problem,
        operand: &Strides,
        element_bytes: u32,
        dims: [u64; 2],
    ) -> Result<Option<Self>, Unreadable> {
        if problem.batches <= 1 {
            return Ok(None);
        }
        let line = dims[0] * u64::from(element_bytes);
        let count = problem.batches.into();
        Planes::new(count, operand.batch_stride, element_bytes, line).map(Some)
    }

    /// The planes of a packed operand whose elements have parts: the matrices of the parts
    /// follow each other, and those of the next matrix of a batch follow them.
    fn of_parts(problem: &Problem, operand: &Strides, lines: (u32, u64, &'static str)) -> Self {
        let (lines, line_stride, _) = lines;
        let matrices = match operand.batch_stride {
            0 => 1,
            _ => u64::from(problem.batches),
        };
        let bytes = u64::from(problem.input.factor().bytes());
        Planes {
            count: matrices * u64::from(problem.input.parts()),
            pitch_bytes: u64::from(lines).saturating_mul(line_stride.saturating_mul(bytes)),
        }
    }
}

impl GlobalTensor {
    /// A of `problem`, contiguous along `major`.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn of_a(problem: &Problem, major: Major) -> Result<GlobalTensor, Unreadable> {
        let along_m = (problem.m, problem.a.row_stride, "M");
        let along_k = (problem.k, problem.a.col_stride, "K");
        let bytes = problem.input.factor().bytes();
        let matrix = match major {
            Major::K => GlobalTensor::new(problem.a.alignment, bytes, along_k, along_m),
            Major::Mn => GlobalTensor::new(problem.a.alignment, bytes, along_m, along_k),
        }?;
        let planes = match problem.input.parts() {
            1 => Planes::of_batch(problem, &problem.a, bytes, matrix.dims)?,
            _ => Some(Planes::of_parts(problem, &problem.a, along_m)),
        };
        Ok(GlobalTensor { planes, ..matrix })
    }

    /// B of `problem`, contiguous along `major`. If the product is gated, the gates are the
    /// first plane and the other columns the second.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn of_b(problem: &Problem, major: Major) -> Result<GlobalTensor, Unreadable> {
        if let (Some(gated), Some(half)) = (problem.epilogue.gated, problem.half()) {
            let bytes = problem.input.bytes();
            let matrix = GlobalTensor::of_b(&half, major)?;
            let line = matrix.dims[0] * u64::from(bytes);
            let planes = Planes::new(2, problem.up_offset(gated), bytes, line)?;
            return Ok(GlobalTensor {
                planes: Some(planes),
                ..matrix
            });
        }
        let along_n = (problem.n, problem.b.col_stride, "N");
        let along_k = (problem.k, problem.b.row_stride, "K");
        let bytes = problem.input.factor().bytes();
        let matrix = match major {
            Major::K => GlobalTensor::new(problem.b.alignment, bytes, along_k, along_n),
            Major::Mn => GlobalTensor::new(problem.b.alignment, bytes, along_n, along_k),
        }?;
        let planes = match problem.input.parts() {
            1 => Planes::of_batch(problem, &problem.b, bytes, matrix.dims)?,
            _ => Some(Planes::of_parts(problem, &problem.b, along_n)),
        };
        Ok(GlobalTensor { planes, ..matrix })
    }

    /// C of `problem`, contiguous along N, or M where `kernel` writes it so, if a hopper kernel can
    /// write it through TMA. TMA clips a store to multiples of 16 bytes, not to elements, so it
    /// would write past the end of a line that is not a multiple of 16 bytes long.
    pub fn of_c(problem: &Problem, kernel: &KernelInfo) -> Option<GlobalTensor> {
        GlobalTensor::like_c(problem, &problem.c, kernel)
    }

    /// A matrix of the shape and the type of C with these strides: C itself, or a source.
    pub(crate) fn like_c(
        problem: &Problem,
        strides: &Strides,
        kernel: &KernelInfo,
    ) -> Option<GlobalTensor> {
        let along_m = (problem.m, strides.row_stride, "M");
        let along_n = (problem.c_cols(), strides.col_stride, "N");
        let (along, across) = match kernel.c_along_m {
            true => (along_m, along_n),
            false => (along_n, along_m),
        };
        let bytes = problem.output_dtype().bytes();
        let matrix = GlobalTensor::new(strides.alignment, bytes, along, across).ok()?;
        let line = u64::from(along.0) * u64::from(bytes);
        let planes = Planes::of_batch(problem, strides, bytes, matrix.dims).ok()?;
        let tensor = GlobalTensor { planes, ..matrix };
        line.is_multiple_of(ALIGNMENT).then_some(tensor)
    }

    /// Lines of contiguous elements along one direction that follow each other in another.
    /// Each direction is (extent, stride, name). The stride of an extent of 1 is never used,
    /// so it may have any value.
    fn new(
        alignment: u64,
        element_bytes: u32,
        (length, stride, direction): (u32, u64, &'static str),
        (lines, line_stride, _): (u32, u64, &'static str),
    ) -> Result<GlobalTensor, Unreadable> {
        if length > 1 && stride != 1 {
            return Err(Unreadable::Stride { direction, stride });
        }
        let line = u64::from(length) * u64::from(element_bytes);
        let pitch = if lines > 1 {
            line_stride.saturating_mul(element_bytes.into())
        } else {
            line.next_multiple_of(ALIGNMENT)
        };
        if !pitch.is_multiple_of(ALIGNMENT) || pitch < line || pitch >= MAX_PITCH {
            return Err(Unreadable::Pitch { pitch, line });
        }
        if !alignment.is_multiple_of(ALIGNMENT) {
            return Err(Unreadable::Alignment { alignment });
        }
        Ok(GlobalTensor {
            dims: [length.into(), lines.into()],
            pitch_bytes: pitch,
            planes: None,
        })
    }
}
