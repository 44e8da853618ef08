//! The parameters of a launch: `C = act(α·A·B + β·S + bias)` with A M×K, B K×N and C M×N,
//! for each matrix of a batch.
//!
//! [`GemmParams`] crosses from host to device by value, as the first parameter
//! of every entry point, so its layout is `repr(C)` and holds plain integers and floats
//! only. The host builds it from checked views; a kernel trusts it. The second parameter
//! is [`TensorMaps`].

use core::mem::offset_of;

use crate::cluster::ClusterIds;
use crate::dtype::DType;
use crate::form::{EpilogueArguments, Form, Planes};
use crate::order::{Divisor, Raster};
use crate::schedule::Schedule;
use crate::tensor_ref::TensorRef;

/// Element type of C, as the selection and the records name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputType {
    /// The stored type of A and B (f32 for TF32 and f16x3).
    Input,
    /// f32, whatever the inputs are.
    F32,
    /// f16, for inputs of another type.
    F16,
    /// bfloat16, for inputs of another type.
    Bf16,
}

impl OutputType {
    /// The element type of C for elements `input` of A and B. Operands are rounded to TF32, or
    /// split; their product is stored as f32.
    pub const fn dtype(self, input: DType) -> DType {
        match (self, input) {
            (OutputType::F32, _) | (OutputType::Input, DType::Tf32 | DType::F16x3) => DType::F32,
            (OutputType::Input, input) => input,
            (OutputType::F16, _) => DType::F16,
            (OutputType::Bf16, _) => DType::Bf16,
        }
    }
}

/// The first parameter of every entry point.
///
/// A thread that reads a line of 64 bytes of constant memory first waits about 150 cycles for it.
/// What a CTA needs before its first load is therefore one such line, the one behind the form, and
/// what its store needs is the next.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct GemmParams {
    /// The structure of the launch. The host folds these values into the PTX before the
    /// driver compiles it.
    pub form: Form,
    /// Rows of A and C; at most [`GemmParams::MAX_DIM`].
    pub m: u32,
    /// Columns of B and, unless the form is gated, of C; at most [`GemmParams::MAX_DIM`].
    pub n: u32,
    /// Columns of A and rows of B; at most [`GemmParams::MAX_DIM`].
    pub k: u32,
    /// The tiles of C and their order: which tile a linear id means.
    pub raster: Raster,
    /// Nonzero when C can be written through its tensor map: unit column
    /// stride; base, row pitch and row length multiples of 16 bytes. (A TMA store
    /// clips a row to 16 bytes, not to an element, so it would overwrite bytes after
    /// the row: seen on an H200.)
    pub store_by_tma: u32,
    /// Nonzero when the source can be read through its tensor map.
    pub source_by_tma: u32,
    /// Number of products.
    pub batches: u32,
    /// C, M×N. No two elements share an address.
    pub c: TensorRef,
    /// A, M×K.
    pub a: TensorRef,
    /// B, K×N.
    pub b: TensorRef,
    /// What the epilogue reads.
    pub epilogue: EpilogueArguments,
    /// The assignment of tiles to CTAs: which ids one CTA runs.
    pub schedule: Schedule,
    /// Number of CTAs that share the tiles of the last wave under
    /// [`Schedule::StreamK`]: at least one, at most all.
    pub stream_k_ctas: u32,
    /// Tiles along the lines of a class, where there are
    /// [classes of lines](crate::kernels::hopper::line_classes).
    pub class_tiles: Divisor,
    /// Device address of [`stream_k_bytes`](crate::KernelInfo::stream_k_bytes)
    /// for each of `stream_k_ctas` CTAs, aligned to 128 bytes and all zero before the
    /// first launch; 0 where no tile is shared.
    pub workspace: u64,
    /// Device addresses of the exponents of the rows of A and of the columns of B: an i32 for
    /// each line of each matrix, for operands that are split ([`f16x3`](crate::f16x3)).
    pub exponents: [u64; 2],
    /// The ids of the clusters, if the form is [renumbered](Form::renumbered).
    pub cluster_ids: ClusterIds,
}

/// Offset of the parameters in the constant memory of a launch, and bytes of a line of it, on
/// sm_90.
const PLACE_IN_CONSTANT_MEMORY: (usize, usize) = (0x210, 64);

const _: () = {
    const fn line(offset: usize) -> usize {
        (PLACE_IN_CONSTANT_MEMORY.0 + offset) / PLACE_IN_CONSTANT_MEMORY.1
    }
    let first = line(offset_of!(GemmParams, m));
    assert!(line(offset_of!(GemmParams, raster) + Raster::BYTES_FOR_GROUPS - 1) == first);
    assert!(line(offset_of!(GemmParams, store_by_tma)) == first + 1);
    assert!(line(offset_of!(GemmParams, a) - 1) == first + 1);
};

impl GemmParams {
    /// Largest M, N or K. It leaves room for a tile index to round up past the
    /// edge without wrapping, in signed 32-bit TMA coordinates too.
    pub const MAX_DIM: u64 = (1 << 31) - 1 - 4096;

    /// A launch without operands and without tiles of C. Those that are no product say what they
    /// use, and have the rest from here.
    pub const NONE: GemmParams = GemmParams {
        form: Form::plain(DType::F32),
        m: 0,
        n: 0,
        k: 0,
        raster: Raster::NONE,
        store_by_tma: 0,
        source_by_tma: 0,
        batches: 1,
        c: TensorRef::NONE,
        a: TensorRef::NONE,
        b: TensorRef::NONE,
        epilogue: EpilogueArguments::NONE,
        schedule: Schedule::Grid1d,
        stream_k_ctas: 0,
        class_tiles: Divisor::ONE,
        workspace: 0,
        exponents: [0; 2],
        cluster_ids: ClusterIds::INDICES,
    };

    /// Number of products; `None` if the launch has no batch.
    #[inline(always)]
    pub fn batches(&self) -> Option<u32> {
        match self.form.planes {
            Planes::None | Planes::LineClasses => None,
            Planes::Batch => Some(self.batches),
        }
    }

    /// The id of the cluster with this index in the launch grid.
    #[inline(always)]
    pub fn cluster_id(&self, index: u32) -> u32 {
        if self.form.renumbered == 0 {
            return index;
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let offset = offset_of!(GemmParams, cluster_ids) as u32 + index;
            // SAFETY: such a launch has no more clusters than ids.
            unsafe { crate::isa::parameter::byte_of_gemm_params(offset) }
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.cluster_ids.0[index as usize].into()
    }
}

/// The matrix that a tensor map describes; its value is the map's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum MapOf {
    /// A.
    A = 0,
    /// B.
    B = 1,
    /// C, to store.
    C = 2,
    /// The source of the epilogue.
    Source = 3,
    /// A, in boxes with the rows of the last tile, where that one is ragged.
    LastRows = 4,
    /// The same for the columns of B.
    LastColumnsOfB = 5,
}

impl MapOf {
    /// C in boxes of the last columns of a tile, for kernels whose tile is no multiple of 64
    /// columns wide. They take no source.
    pub const LAST_COLUMNS: MapOf = MapOf::Source;
}

/// The second parameter of every entry point: the tensor maps of [`MapOf`], as the driver encodes
/// them. It is what CUDA C++ calls a `__grid_constant__ const
/// CUtensorMap` parameter; kernels that use no TMA ignore it.
///
/// TMA requires maps at multiples of 64 bytes. rustc 1.95 does not compile kernel parameters
/// with an alignment above 16, so `ptx-builder` raises the alignment in the PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TensorMaps(pub [[u64; 16]; 6]);

impl TensorMaps {
    /// No maps.
    pub const NONE: TensorMaps = TensorMaps([[0; 16]; 6]);
}

/// Where a kernel finds its [`TensorMaps`].
///
/// On a GPU, they are the kernel's second parameter. In the emulator, they lie in global
/// memory, at an address that the launcher passes.
#[derive(Clone, Copy, Debug)]
pub struct MapAddress {
    #[cfg(not(target_arch = "nvptx64"))]
    address: u64,
}

impl MapAddress {
    /// The parameter of the running kernel.
    #[cfg(target_arch = "nvptx64")]
    pub const PARAMETER: MapAddress = MapAddress {};

    /// Maps at `address` in emulated global memory.
    #[cfg(not(target_arch = "nvptx64"))]
    pub const fn new(address: u64) -> Self {
        MapAddress { address }
    }

    /// The generic address of one tensor map.
    #[inline(always)]
    pub fn of(self, matrix: MapOf) -> u64 {
        let offset = 128 * matrix as u64;
        #[cfg(target_arch = "nvptx64")]
        return crate::isa::parameter::tensor_maps() + offset;
        #[cfg(not(target_arch = "nvptx64"))]
        return self.address + offset;
    }
}
