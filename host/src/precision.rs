//! [`Precision`]: how f32 elements are multiplied.

use gpu_kernels::DType;

use crate::error::Error;

/// How f32 elements are multiplied. Products accumulate in f32 either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// IEEE binary32, by fused multiply-add.
    #[default]
    Ieee,
    /// Rounded to the nearest TF32 (10-bit mantissa) first, for the tensor cores. A Hopper GPU
    /// rounds ties to even (its copy engine does), older GPUs away from zero.
    Tf32,
    /// As exact as [`Precision::Ieee`], on the tensor cores where that is faster: each element
    /// is split into two f16 parts, and three products of parts stand for one of elements
    /// ([`gpu_kernels::f16x3`]). It takes a workspace of the size of A and B.
    ///
    /// Errors are bounded by those of an f32 sum on most data, but results differ from
    /// [`Precision::Ieee`] in the last bits, and elements that are 2⁻³⁹ of the largest element
    /// of their row of A, or column of B, are lost. Products that are too small to gain, and
    /// devices that have no such kernels, use [`Precision::Ieee`].
    F16x3,
}

/// The precision that multiplies f32 elements as this type: [`Precision::Ieee`] for types that
/// elements have.
impl From<DType> for Precision {
    fn from(input: DType) -> Self {
        match input {
            DType::Tf32 => Precision::Tf32,
            DType::F16x3 => Precision::F16x3,
            DType::F32 | DType::F16 | DType::Bf16 => Precision::Ieee,
        }
    }
}

fn ignored(input: DType, precision: &'static str) -> Error {
    Error::PrecisionIgnored { input, precision }
}

impl Precision {
    /// The type as which elements of type `input` are multiplied.
    ///
    /// # Errors
    /// [`Error::PrecisionIgnored`].
    pub(crate) fn of(self, input: DType) -> Result<DType, Error> {
        match (input, self) {
            (input, Precision::Ieee) => Ok(input),
            (DType::F32, Precision::Tf32) => Ok(DType::Tf32),
            (DType::F32, Precision::F16x3) => Ok(DType::F16x3),
            (input, Precision::Tf32) => Err(ignored(input, "Tf32")),
            (input, Precision::F16x3) => Err(ignored(input, "F16x3")),
        }
    }
}
