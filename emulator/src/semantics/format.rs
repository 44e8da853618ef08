//! How the tensor cores read an operand: the format of its elements, and the
//! direction in which they are contiguous.

/// The format of one element of a matrix (PTX ISA, "Matrix Data-types").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// IEEE binary32. The tensor cores read its upper 19 bits, as TF32.
    F32,
    /// TF32 in the upper 19 bits of 32.
    Tf32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
}

impl Format {
    /// Bytes of one stored element.
    pub const fn bytes(self) -> u32 {
        match self {
            Format::F32 | Format::Tf32 => 4,
            Format::F16 | Format::Bf16 => 2,
        }
    }

    /// The type's name in PTX.
    pub const fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::Tf32 => "tf32",
            Format::F16 => "f16",
            Format::Bf16 => "bf16",
        }
    }
}

/// The direction in which an operand's elements are contiguous (PTX ISA, "Strides":
/// K-major and MN-major).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// Along K.
    K,
    /// Along M for A, along N for B.
    Mn,
}
