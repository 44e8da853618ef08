//! The element types a kernel can be instantiated with.

use crate::dtype::{DType, ElementType};

macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident = $dtype:ident, $to:path, $from:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl ElementType for $name {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn to_f32(bits: u32) -> f32 {
                $to(bits)
            }

            #[inline(always)]
            fn from_f32(value: f32) -> u32 {
                $from(value)
            }
        }
    )*};
}

elements! {
    /// [`DType::F32`].
    F32 = F32, f32::from_bits, f32::to_bits;
    /// [`DType::Tf32`]: stored as f32.
    Tf32 = Tf32, f32::from_bits, f32::to_bits;
    /// [`DType::F16`].
    F16 = F16, crate::isa::convert::f32_from_f16, crate::isa::convert::f16_from_f32;
    /// [`DType::F16x3`]: a part of an element.
    F16x3 = F16x3, crate::isa::convert::f32_from_f16, crate::isa::convert::f16_from_f32;
    /// [`DType::Bf16`].
    Bf16 = Bf16, crate::isa::convert::f32_from_bf16, crate::isa::convert::bf16_from_f32;
}
