//! The tensor maps of a hopper launch.
//!
//! The plan fixes the shapes, but a map also holds an address, so new operands need new
//! maps. The maps are a parameter of the launch, so nothing is copied to the device.

use gpu_kernels::{KernelInfo, TensorMaps};

use super::opened::Gpu;
use super::tensor_map::TensorMapSpec;
use crate::error::Error;
use crate::operand::Operand;
use crate::problem::{Problem, Strides};
use crate::rejection::Rejection;
use crate::select::check::{a_major, b_major};
use crate::tma::{self, GlobalTensor};

/// The maps of one plan, in the order A, B, C.
#[derive(Debug)]
pub(crate) struct HopperMaps {
    kernel: &'static str,
    /// Whether the kernel can write C through TMA only.
    c_by_tma_only: bool,
    a: TensorMapSpec,
    b: TensorMapSpec,
    /// `None` when C cannot be written through TMA.
    c: Option<TensorMapSpec>,
    maps: TensorMaps,
    /// The addresses in `maps`.
    encoded: [Option<u64>; 3],
}

/// The launch parameters for the maps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapsInUse {
    /// The maps.
    pub(crate) maps: TensorMaps,
    /// Whether there is a map of C.
    pub(crate) store_by_tma: bool,
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
        // The alignment of C is left out here, because `update` checks each new address.
        let c = GlobalTensor::of_c(&Problem {
            c: Strides::new(problem.c.row_stride, problem.c.col_stride),
            ..*problem
        });
        let c_dtype = tma::output_dtype(problem);
        let spec = |dtype, tensor: GlobalTensor, box_dims| TensorMapSpec {
            dtype,
            dims: tensor.dims,
            pitch_bytes: tensor.pitch_bytes,
            box_dims,
            swizzle_bytes: tma::BOX_BYTES,
        };
        Ok(HopperMaps {
            kernel: kernel.name,
            c_by_tma_only: kernel.c_by_tma_only,
            a: spec(kernel.input, a, tma::a_box(kernel, a_major, problem.m)),
            b: spec(kernel.input, b, tma::b_box(kernel, b_major, problem.n)),
            c: c.map(|tensor| spec(c_dtype, tensor, tma::c_box(kernel, c_dtype))),
            maps: TensorMaps::NONE,
            encoded: [None; 3],
        })
    }

    /// The maps of operands at these addresses.
    pub(crate) fn encode(&mut self, gpu: &Gpu, addresses: [u64; 3]) -> Result<MapsInUse, Error> {
        let [a, b, c] = addresses;
        let through_tma = [
            (Operand::A, a, true),
            (Operand::B, b, true),
            (Operand::C, c, self.c_by_tma_only),
        ];
        for (operand, address, always) in through_tma {
            if always && !address.is_multiple_of(tma::ALIGNMENT) {
                return Err(Error::Misaligned {
                    operand,
                    address,
                    kernel: self.kernel,
                });
            }
        }
        let c_map = self.c.filter(|_| c.is_multiple_of(tma::ALIGNMENT));
        let maps = [
            (Operand::A, Some(self.a)),
            (Operand::B, Some(self.b)),
            (Operand::C, c_map),
        ];
        for (index, (operand, spec)) in maps.into_iter().enumerate() {
            let address = addresses[index];
            if let Some(spec) = spec
                && self.encoded[index] != Some(address)
            {
                let map = gpu.backend().encode(operand, &spec, address)?;
                self.maps.0[index] = map.words();
                self.encoded[index] = Some(address);
            }
        }
        Ok(MapsInUse {
            maps: self.maps,
            store_by_tma: c_map.is_some(),
        })
    }
}
