//! How TMA sees the operands of a hopper kernel. This module alone decides which
//! matrices TMA can read, and the shape of every box that it copies.
//!
//! TMA copies boxes of a matrix whose elements are contiguous in one direction
//! and whose lines follow each other at a constant pitch in the other direction (PTX ISA,
//! "Tensors in the `cp.async.bulk.tensor` instructions"; CUDA driver API,
//! `cuTensorMapEncodeTiled`). All operands are stored with the 128-byte swizzle,
//! so a box is W = 128 bytes wide: 64 elements of 2 bytes, or 32 elements of 4 bytes:
//!
//! | operand | contiguous along | dims | box |
//! |---|---|---|---|
//! | A | K | K, M | W, BLOCK_M / cluster.n |
//! | A | M | M, K | W, [`box_depth`] |
//! | B | K | K, N | W, BLOCK_N / cluster.m |
//! | B | N | N, K | W, [`box_depth`] |
//! | C | N | N, M | W, 64 (16 where a cluster splits K) |
//! | C | M | M, N | W, [`store_columns`] |
//!
//! Where BLOCK_N is no multiple of 64, a C along N has a second map, whose box is as wide as the columns
//! past the last multiple of 64 ([`last_c_box`]). In shared memory its rows are 128 bytes apart
//! all the same.
//!
//! `wgmma` reads 4-byte elements from shared memory only if they are contiguous along K (PTX ISA,
//! "`wgmma`", "Matrix major-ness"), so no kernel reads TF32 of B along N, and kernels that read A
//! along M load it to registers. The maps of TF32 operands have the type TFLOAT32, with which the
//! copy engine rounds f32 to nearest even on the way.
//! Operands that TMA cannot read are packed: [`select`](crate::select).
//!
//! The CTAs of a cluster that need the same rows of A, or columns of B, each fetch a
//! part and multicast it, hence the divisions in the table. Short operands take shorter
//! boxes ([`box_rows`]).

use gpu_kernels::kernels::hopper::{
    box_depth, box_rows, last_box_rows, last_cols, store_columns, store_rows,
};
use gpu_kernels::{DType, Family, KernelInfo, Major};

use crate::problem::{Problem, Strides};

/// Addresses and pitches must be multiples of this many bytes.
pub const ALIGNMENT: u64 = 16;

/// Pitches must stay below this many bytes.
const MAX_PITCH: u64 = 1 << 40;

/// Bytes across a box: the span of the 128-byte swizzle.
pub(crate) const BOX_BYTES: u32 = 128;

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
}

impl Planes {
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
        let bytes = output_dtype(problem).bytes();
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

/// The box of A, of `m` rows, that `kernel` copies at once, contiguous direction
/// first.
pub fn a_box(kernel: &KernelInfo, major: Major, m: u32) -> [u32; 2] {
    match major {
        Major::K => [
            box_width(kernel.input),
            box_rows(kernel.block.m, kernel.cluster.n, m),
        ],
        Major::Mn => box_along_mn(kernel.input, kernel.block.m, kernel.cluster.n),
    }
}

/// The box of A, of `m` rows, in the last of `kernel`'s tiles along M; `None` where it is
/// that of the others.
pub fn last_a_box(kernel: &KernelInfo, major: Major, m: u32) -> Option<[u32; 2]> {
    let rows = last_box_rows(kernel.block.m, kernel.cluster.n, m)?;
    (major == Major::K).then(|| [box_width(kernel.input), rows])
}

/// The box of B of `problem` in the last of `kernel`'s tiles along N; `None` where it is that of
/// the others.
pub fn last_b_box(kernel: &KernelInfo, major: Major, problem: &Problem) -> Option<[u32; 2]> {
    let rows = last_box_rows(kernel.block.n, kernel.cluster.m, problem.n)?;
    let is_cut = major == Major::K && problem.epilogue.gated.is_none();
    is_cut.then(|| [box_width(kernel.input), rows])
}

/// The box of B of `problem` that `kernel` copies at once, contiguous
/// direction first.
pub fn b_box(kernel: &KernelInfo, major: Major, problem: &Problem) -> [u32; 2] {
    match major {
        // Each plane of a gated B fills half of a tile.
        Major::K if problem.epilogue.gated.is_some() => {
            [box_width(kernel.input), kernel.block.n / 2]
        }
        Major::K => [
            box_width(kernel.input),
            box_rows(kernel.block.n, kernel.cluster.m, problem.n),
        ],
        Major::Mn => box_along_mn(kernel.input, kernel.block.n, kernel.cluster.m),
    }
}

/// The box of an operand contiguous along M or N, whose `tile` rows or columns `sharing` CTAs load
/// together.
fn box_along_mn(input: DType, tile: u32, sharing: u32) -> [u32; 2] {
    let width = box_width(input);
    [width, box_depth(tile, sharing, width)]
}

/// Number of elements of type `dtype` across a box.
fn box_width(dtype: DType) -> u32 {
    BOX_BYTES / dtype.factor().bytes()
}

/// The element type of C. Operands are rounded to TF32; their product is stored as f32.
pub fn output_dtype(problem: &Problem) -> DType {
    problem.output_dtype()
}

/// The box of C, of elements `dtype`, that `kernel` writes at once, contiguous
/// direction first.
pub fn c_box(kernel: &KernelInfo, dtype: DType) -> [u32; 2] {
    let lines = match kernel.c_along_m {
        true => store_columns(kernel.block.n, dtype.bytes()),
        false => store_rows(kernel.cluster),
    };
    [box_width(dtype), lines]
}

/// The box of C that `kernel` writes at the end of a row of a tile whose width is no multiple
/// of 64; `None` for other tiles.
pub fn last_c_box(kernel: &KernelInfo) -> Option<[u32; 2]> {
    let is_narrower =
        kernel.family == Family::Hopper && !kernel.c_along_m && !kernel.block.n.is_multiple_of(64);
    is_narrower.then(|| [last_cols(kernel.block.n), store_rows(kernel.cluster)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epilogue_form::EpilogueForm;
    use gpu_kernels::entry::KERNELS;
    use gpu_kernels::{Family, OutputType};

    /// f16, A 300×200, B 200×104 and C 300×104.
    fn problem(a: (u64, u64), b: (u64, u64), c: (u64, u64)) -> Problem {
        let operand = |(row_stride, col_stride)| Strides::new(row_stride, col_stride);
        Problem {
            m: 300,
            n: 104,
            k: 200,
            batches: 1,
            input: DType::F16,
            output: OutputType::Input,
            a: operand(a),
            b: operand(b),
            c: operand(c),
            epilogue: EpilogueForm::PLAIN,
        }
    }

    /// Kernels that write C along N and along M.
    fn c_kernels() -> [&'static KernelInfo; 2] {
        [false, true].map(|along_m| {
            let is = |kernel: &&KernelInfo| {
                kernel.family == Family::Hopper && kernel.c_along_m == along_m
            };
            KERNELS.iter().find(is).unwrap()
        })
    }

    #[test]
    fn lines_follow_the_contiguous_direction() {
        let rows = problem((200, 1), (104, 1), (104, 1));
        let a = GlobalTensor::of_a(&rows, Major::K).unwrap();
        assert_eq!((a.dims, a.pitch_bytes), ([200, 300], 400));
        let b = GlobalTensor::of_b(&rows, Major::Mn).unwrap();
        assert_eq!((b.dims, b.pitch_bytes), ([104, 200], 208));
        let [along_n, along_m] = c_kernels();
        let c = GlobalTensor::of_c(&rows, along_n).unwrap();
        assert_eq!((c.dims, c.pitch_bytes), ([104, 300], 208));
        assert_eq!(GlobalTensor::of_c(&rows, along_m), None);

        let columns = problem((1, 304), (1, 200), (1, 300));
        let a = GlobalTensor::of_a(&columns, Major::Mn).unwrap();
        assert_eq!((a.dims, a.pitch_bytes), ([300, 200], 608));
        let b = GlobalTensor::of_b(&columns, Major::K).unwrap();
        assert_eq!((b.dims, b.pitch_bytes), ([200, 104], 400));
        assert_eq!(GlobalTensor::of_c(&columns, along_n), None);
        let padded = Problem {
            c: Strides::new(1, 304),
            output: OutputType::F32,
            ..columns
        };
        let c = GlobalTensor::of_c(&padded, along_m).unwrap();
        assert_eq!((c.dims, c.pitch_bytes), ([300, 104], 1216));
        let ragged = Problem { m: 299, ..padded };
        assert_eq!(GlobalTensor::of_c(&ragged, along_m), None, "1196 bytes");
    }

    #[test]
    fn what_tma_cannot_read_is_named() {
        let lines = |a| GlobalTensor::of_a(&problem(a, (104, 1), (104, 1)), Major::K);
        assert_eq!(
            lines((1, 300)).unwrap_err(),
            Unreadable::Stride {
                direction: "K",
                stride: 300
            }
        );
        for stride in [201, 192, 0, u64::MAX] {
            let pitch = stride.saturating_mul(2);
            assert_eq!(
                lines((stride, 1)).unwrap_err(),
                Unreadable::Pitch { pitch, line: 400 }
            );
        }
        let mut moved = problem((200, 1), (104, 1), (104, 1));
        moved.a.alignment = 8;
        assert_eq!(
            GlobalTensor::of_a(&moved, Major::K).unwrap_err(),
            Unreadable::Alignment { alignment: 8 }
        );
    }

    #[test]
    fn strides_over_one_element_do_not_matter() {
        let mut row = problem((3, 1), (104, 1), (104, 1));
        row.m = 1;
        let a = GlobalTensor::of_a(&row, Major::K).unwrap();
        assert_eq!((a.dims, a.pitch_bytes), ([200, 1], 400));
        row.a.col_stride = 7;
        row.k = 1;
        let a = GlobalTensor::of_a(&row, Major::K).unwrap();
        assert_eq!((a.dims, a.pitch_bytes), ([1, 1], 16));
    }

    #[test]
    fn c_is_written_through_tma_in_lines_of_multiples_of_16_bytes() {
        let mut problem = problem((200, 1), (104, 1), (104, 1));
        problem.n = 100;
        let [kernel, _] = c_kernels();
        assert_eq!(GlobalTensor::of_c(&problem, kernel), None, "200 bytes");
        problem.output = OutputType::F32;
        let c = GlobalTensor::of_c(&problem, kernel).unwrap();
        assert_eq!((c.dims, c.pitch_bytes), ([100, 300], 416));
    }

    #[test]
    fn tf32_operands_give_an_f32_c() {
        let mut problem = problem((200, 1), (1, 200), (104, 1));
        problem.input = DType::Tf32;
        let a = GlobalTensor::of_a(&problem, Major::K).unwrap();
        assert_eq!((a.dims, a.pitch_bytes), ([200, 300], 800));
        for output in [OutputType::Input, OutputType::F32] {
            problem.output = output;
            assert_eq!(output_dtype(&problem), DType::F32);
        }
    }

    /// A problem whose B has 4096 columns.
    fn wide() -> Problem {
        Problem {
            n: 4096,
            ..problem((200, 1), (4096, 1), (4096, 1))
        }
    }

    #[test]
    fn boxes_are_128_bytes_wide() {
        let of = |input| {
            let hopper =
                |kernel: &&KernelInfo| kernel.family == Family::Hopper && kernel.input == input;
            let kernel = KERNELS.iter().find(hopper).unwrap();
            let wide = wide();
            let boxes = [
                a_box(kernel, Major::K, 4096),
                b_box(kernel, Major::K, &wide),
            ];
            (kernel.block, boxes)
        };
        let (block, boxes) = of(DType::F16);
        assert_eq!(boxes, [[64, block.m], [64, block.n]]);
        let (block, boxes) = of(DType::Tf32);
        assert_eq!(boxes, [[32, block.m], [32, block.n]]);
    }

    #[test]
    fn boxes_are_one_swizzle_atom_wide_and_deep() {
        let named = |name| KERNELS.iter().find(|kernel| kernel.name == name).unwrap();
        for name in ["hopper_f16_am_bn_64x64x128", "hopper_f16_am_bn_64x128x64"] {
            let kernel = named(name);
            assert_eq!(a_box(kernel, Major::Mn, 4096), [64, 64], "{name}");
            assert_eq!(b_box(kernel, Major::Mn, &wide()), [64, 64], "{name}");
        }
        let tf32 = named("hopper_tf32_am_bk_cm_128x256x32");
        assert_eq!(a_box(tf32, Major::Mn, 4096), [32, 32]);
        assert_eq!(last_a_box(tf32, Major::Mn, 4095), None);
        assert_eq!(c_box(tf32, DType::F32), [32, 32]);
    }

    #[test]
    fn ctas_that_split_k_store_the_rows_of_a_warp() {
        for (name, lines) in [
            ("hopper_f16_ak_bk_64x64x128", 64),
            ("hopper_f16_ak_bk_64x64x64_split2", 16),
        ] {
            let kernel = KERNELS.iter().find(|k| k.name == name).unwrap();
            assert_eq!(c_box(kernel, DType::F16), [64, lines], "{name}");
            assert_eq!(c_box(kernel, DType::F32), [32, lines], "{name}");
            assert_eq!(last_c_box(kernel), None, "{name}");
        }
    }

    #[test]
    fn short_operands_take_short_boxes_of_whole_atoms() {
        // One CTA copies 64 lines; the matrix has 1, 8, 9, 63 or 65 lines.
        let cut = [1, 8, 9, 63, 65].map(|extent| box_rows(64, 1, extent));
        assert_eq!(cut, [8, 8, 16, 64, 64]);
        // Two CTAs share the lines: each copies half of them, however many there are.
        assert_eq!(box_rows(256, 2, 1), 128);
        // The last of several tiles.
        let last = [64, 65, 72, 73, 127, 128, 129].map(|extent| last_box_rows(64, 1, extent));
        assert_eq!(
            last,
            [None, Some(8), Some(8), Some(16), Some(64), None, Some(8)]
        );
        assert_eq!(last_box_rows(64, 2, 65), None);
    }
}
