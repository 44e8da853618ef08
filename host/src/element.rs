//! Element types of matrices on the host.

use gpu_kernels::{DType, OutputType};
use half::slice::HalfFloatSliceExt;
pub use half::{bf16, f16};

mod sealed {
    /// The operations that the CPU device needs. Being private, this trait also seals
    /// [`super::Element`].
    pub trait Sealed: Sized {
        /// Converts `from` into `to`, of the same length. The conversion is exact.
        fn widen(from: &[Self], to: &mut [f32]);
        /// Rounds `from` into `to`, of the same length, to nearest even.
        fn narrow(from: &[f32], to: &mut [Self]);
    }
}

/// An element type of a matrix: [`f32`], [`struct@f16`] or [`bf16`].
pub trait Element:
    sealed::Sealed + bytemuck::Pod + PartialEq + std::fmt::Debug + Send + Sync
{
    /// The element type as a value.
    const DTYPE: DType;

    /// The value, exactly.
    fn to_f64(self) -> f64;

    /// `value` rounded to nearest, ties to even.
    fn from_f64(value: f64) -> Self;
}

/// An element type of C for inputs of type `T`. C has any of the three types, whatever
/// type A and B have.
pub trait Output<T: Element>: Element {
    /// The output type as the kernels' parameter.
    const OUTPUT: OutputType;
}

impl<T: Element> Output<T> for T {
    const OUTPUT: OutputType = OutputType::Input;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;

    fn to_f64(self) -> f64 {
        self.into()
    }

    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl sealed::Sealed for f32 {
    fn widen(from: &[Self], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn narrow(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }
}

macro_rules! sixteen_bit {
    ($($name:ident = $dtype:ident;)*) => {$(
        impl Element for $name {
            const DTYPE: DType = DType::$dtype;

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn from_f64(value: f64) -> Self {
                $name::from_f64(value)
            }
        }

        impl sealed::Sealed for $name {
            fn widen(from: &[Self], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }

            fn narrow(from: &[f32], to: &mut [Self]) {
                to.convert_from_f32_slice(from);
            }
        }
    )*};
}

sixteen_bit! {
    f16 = F16;
    bf16 = Bf16;
}

macro_rules! outputs {
    ($($input:ident => $output:ident = $kind:ident;)*) => {$(
        impl Output<$input> for $output {
            const OUTPUT: OutputType = OutputType::$kind;
        }
    )*};
}

outputs! {
    f16 => f32 = F32;
    f16 => bf16 = Bf16;
    bf16 => f32 = F32;
    bf16 => f16 = F16;
    f32 => f16 = F16;
    f32 => bf16 = Bf16;
}
