//! The operands of an instruction.

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A register.
    Register(usize),
    /// A special register, such as `%tid.x`.
    Special(String),
    /// An integer; floating-point numbers are by their bits.
    Immediate(i64),
    /// `{a, b}`, `p|q`, or the parts of an address.
    Several(Vec<Operand>),
    /// `[…]`.
    Address(Vec<Operand>),
    /// A label or a variable; `_`.
    Symbol(String),
}

impl Operand {
    /// The registers in it.
    pub fn registers(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Operand::Register(register) => Box::new(std::iter::once(*register)),
            Operand::Several(parts) | Operand::Address(parts) => {
                Box::new(parts.iter().flat_map(Operand::registers))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}
