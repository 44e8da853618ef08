//! The tensor maps of a hopper launch.
//!
//! The plan fixes the shapes, but a map also holds an address, so new operands need new
//! maps. The maps are a parameter of the launch, so nothing is copied to the device.

use gpu_kernels::{DType, KernelInfo, TensorMaps};

use super::opened::Gpu;
use super::tensor_map::TensorMapSpec;
use crate::error::Error;
use crate::operand::Operand;
use crate::problem::{CACHE_LINE, Problem, Strides};
use crate::rejection::Rejection;
use crate::select::check::{a_major, b_major};
use crate::tma::{self, GlobalTensor};

/// The maps of one plan, in the order of [`MapOf`](gpu_kernels::problem::MapOf).
#[derive(Debug)]
pub(crate) struct HopperMaps {
    kernel: KernelInfo,
    a: TensorMapSpec,
    b: TensorMapSpec,
    /// `None` when C cannot be written through TMA, or the kernel stores no C.
    c: Option<TensorMapSpec>,
    /// A and B in the boxes of ragged tiles, where there are such.
    last: [Option<TensorMapSpec>; 2],
    /// C in boxes of a tile's last columns, where these are narrower.
    last_columns: Option<TensorMapSpec>,
    /// The problem as the kernel sees it, and the box of C: the source of a run may have
    /// other strides than that of the run before.
    problem: Problem,
    c_box: [u32; 2],
    maps: TensorMaps,
    /// What `maps` were encoded from.
    encoded: [Option<(TensorMapSpec, u64)>; 6],
}

/// The launch parameters for the maps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapsInUse {
    /// The maps.
    pub(crate) maps: TensorMaps,
    /// Whether there is a map of C.
    pub(crate) store_by_tma: bool,
    /// Whether there is a map of the source.
    pub(crate) source_by_tma: bool,
}

/// The map of a matrix of elements `dtype` that is copied in boxes of `box_dims`.
fn spec(dtype: DType, tensor: GlobalTensor, box_dims: [u32; 2]) -> TensorMapSpec {
    TensorMapSpec {
        dtype,
        dims: tensor.dims,
        pitch_bytes: tensor.pitch_bytes,
        planes: tensor.planes,
        box_dims,
        swizzle_bytes: tma::BOX_BYTES,
    }
}

impl HopperMaps {
    /// Maps for `problem` as `kernel` sees it.
    pub(crate) fn new(kernel: &KernelInfo, problem: &Problem) -> Result<Self, Error> {
        let unreadable = |operand| {
            move |reason| Error::KernelCannotRun {
                kernel: kernel.name,
                reason: Rejection::Tma { operand, reason },
            }
        };
        let a_major = a_major(kernel, problem);
        let b_major = b_major(kernel, problem);
        let a = GlobalTensor::of_a(problem, a_major).map_err(unreadable(Operand::A))?;
        let b = GlobalTensor::of_b(problem, b_major).map_err(unreadable(Operand::B))?;
        // The alignment of C is left out here, because `encode` checks each new address.
        let aligned = Strides {
            alignment: CACHE_LINE,
            ..problem.c
        };
        let c = GlobalTensor::like_c(problem, &aligned, kernel).filter(|_| !kernel.leaves_sums);
        let c_dtype = problem.output_dtype();
        let c_box = tma::c_box(kernel, c_dtype);
        Ok(HopperMaps {
            kernel: *kernel,
            a: spec(
                kernel.input.factor(),
                a,
                tma::a_box(kernel, a_major, problem.m),
            ),
            b: spec(
                kernel.input.factor(),
                b,
                tma::b_box(kernel, b_major, problem),
            ),
            c: c.map(|tensor| spec(c_dtype, tensor, c_box)),
            last: [
                (a, tma::last_a_box(kernel, a_major, problem.m)),
                (b, tma::last_b_box(kernel, b_major, problem)),
            ]
            .map(|(tensor, last)| last.map(|last| spec(kernel.input.factor(), tensor, last))),
            last_columns: c
                .zip(tma::last_c_box(kernel, c_dtype))
                .map(|(tensor, last)| spec(c_dtype, tensor, last)),
            maps: TensorMaps::NONE,
            problem: *problem,
            c_box,
            encoded: [None; 6],
        })
    }

    /// The maps of A, B and C at these addresses, and of `source`, which has the shape of C.
    pub(crate) fn encode(
        &mut self,
        gpu: &Gpu,
        [a, b, c]: [u64; 3],
        source: Option<(Strides, u64)>,
    ) -> Result<MapsInUse, Error> {
        let through_tma = [
            (Operand::A, a, true),
            (Operand::B, b, true),
            (Operand::C, c, self.kernel.c_by_tma_only),
        ];
        for (operand, address, always) in through_tma {
            if always && !address.is_multiple_of(tma::ALIGNMENT) {
                return Err(Error::Misaligned {
                    operand,
                    address,
                    kernel: self.kernel.name,
                });
            }
        }
        let c_map = self.c.filter(|_| c.is_multiple_of(tma::ALIGNMENT));
        // Where C is not stored through TMA, all threads read the staged tiles, and a load
        // through TMA would have to wait for all of them.
        let source_map = source
            .filter(|_| c_map.is_some())
            .and_then(|source| self.source(source));
        let last_columns = self.last_columns.map(|map| (map, c));
        let maps = [
            (Operand::A, Some((self.a, a))),
            (Operand::B, Some((self.b, b))),
            (Operand::C, c_map.map(|map| (map, c))),
            (Operand::C, source_map.or(last_columns)),
            (Operand::A, self.last[0].map(|map| (map, a))),
            (Operand::B, self.last[1].map(|map| (map, b))),
        ];
        for (index, (operand, map)) in maps.into_iter().enumerate() {
            if let Some((spec, address)) = map
                && self.encoded[index] != map
            {
                let encoded = gpu.backend().encode(operand, &spec, address)?;
                self.maps.0[index] = encoded.words();
                self.encoded[index] = map;
            }
        }
        Ok(MapsInUse {
            maps: self.maps,
            store_by_tma: c_map.is_some(),
            source_by_tma: source_map.is_some(),
        })
    }

    /// The map of a source with these strides at this address, if TMA can read it.
    fn source(&self, (strides, address): (Strides, u64)) -> Option<(TensorMapSpec, u64)> {
        let strides = Strides {
            alignment: Strides::alignment_of(address),
            ..strides
        };
        let tensor = GlobalTensor::like_c(&self.problem, &strides, &self.kernel)?;
        let dtype = self.problem.output_dtype();
        Some((spec(dtype, tensor, self.c_box), address))
    }
}
