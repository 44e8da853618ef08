//! The type of an operand's elements, and the direction in which they are contiguous:
//! as values, and as type parameters of kernels and instructions.

/// Element type of A and B, and the arithmetic that multiplies them.
///
/// Every type accumulates in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum DType {
    /// IEEE binary32, multiplied by fused multiply-add on the CUDA cores.
    F32,
    /// Stored as f32; rounded to TF32 (8-bit exponent, 10-bit mantissa) on the
    /// way into the tensor cores.
    Tf32,
    /// IEEE binary16.
    F16,
    /// bfloat16: f32 with the low 16 bits of the mantissa dropped.
    Bf16,
    /// Stored as f32; multiplied as three products of f16 parts, as exactly as [`DType::F32`]
    /// ([`f16x3`](crate::f16x3)).
    F16x3,
}

impl DType {
    /// Bytes of one stored element.
    pub const fn bytes(self) -> u32 {
        match self {
            DType::F32 | DType::Tf32 | DType::F16x3 => 4,
            DType::F16 | DType::Bf16 => 2,
        }
    }

    /// The lower-case name used in entry points, tables and flags.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::Tf32 => "tf32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F16x3 => "f16x3",
        }
    }

    /// The type of the elements that a multiply instruction reads from shared memory.
    pub const fn factor(self) -> DType {
        match self {
            DType::F16x3 => DType::F16,
            other => other,
        }
    }

    /// Elements of [`DType::factor`] that one element of a packed operand consists of.
    pub const fn parts(self) -> u32 {
        match self {
            DType::F16x3 => 2,
            _ => 1,
        }
    }
}

/// The emulator's type of the [factors](DType::factor).
#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
impl From<DType> for tilewise_emulator::semantics::format::Format {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::F32,
            DType::Tf32 => Self::Tf32,
            DType::F16 | DType::F16x3 => Self::F16,
            DType::Bf16 => Self::Bf16,
        }
    }
}

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
impl From<tilewise_emulator::semantics::format::Format> for DType {
    fn from(format: tilewise_emulator::semantics::format::Format) -> Self {
        use tilewise_emulator::semantics::format::Format;
        match format {
            Format::F32 => Self::F32,
            Format::Tf32 => Self::Tf32,
            Format::F16 => Self::F16,
            Format::Bf16 => Self::Bf16,
        }
    }
}

/// A type of A and B, as a type parameter of a kernel.
pub trait ElementType: Copy {
    /// This type as a value.
    const DTYPE: DType;

    /// The f32 that the stored `bits` (the low 16 for 16-bit types) encode.
    fn to_f32(bits: u32) -> f32;

    /// `value` rounded to nearest even, as stored bits.
    fn from_f32(value: f32) -> u32;
}

/// The direction in which an operand's elements are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Major {
    /// Contiguous along K: A row-major, B column-major.
    K = 0,
    /// Contiguous along M (for A) or N (for B): A column-major, B row-major.
    Mn = 1,
}

/// The emulator's type for the same.
#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
impl From<Major> for tilewise_emulator::semantics::format::Major {
    fn from(major: Major) -> Self {
        match major {
            Major::K => Self::K,
            Major::Mn => Self::Mn,
        }
    }
}

/// A [`Major`] as a type parameter.
pub trait Contiguous {
    /// This direction as a value.
    const MAJOR: Major;
}

/// [`Major::K`].
pub struct AlongK;

/// [`Major::Mn`].
pub struct AlongMn;

impl Contiguous for AlongK {
    const MAJOR: Major = Major::K;
}

impl Contiguous for AlongMn {
    const MAJOR: Major = Major::Mn;
}
