//! The names of the three matrices.

use std::fmt;

/// One of the matrices of C = A·B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The left factor, M×K.
    A,
    /// The right factor, K×N.
    B,
    /// The product, M×N.
    C,
}

impl Operand {
    /// All three, in the order of every function's arguments.
    pub const ALL: [Operand; 3] = [Operand::A, Operand::B, Operand::C];

    /// The operand of Cᵀ = Bᵀ·Aᵀ that has the elements of this one.
    pub(crate) fn transposed(self) -> Operand {
        match self {
            Operand::A => Operand::B,
            Operand::B => Operand::A,
            Operand::C => Operand::C,
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operand::A => "A",
            Operand::B => "B",
            Operand::C => "C",
        })
    }
}
