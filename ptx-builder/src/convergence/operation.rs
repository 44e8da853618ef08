//! The effect of each instruction on values that are the same in all lanes, or differ in
//! known bits only.
//!
//! A value is described by [`Differing`]: which of its bits may differ between the lanes
//! of a warp. That is enough for what kernels do with a thread's index. Its five low bits
//! differ, so `%tid.x / 32` is uniform, and so is a comparison with a multiple of 32, or
//! another value that is packed into the same word as the index.

use super::operand::Operand;

/// The bits of a value that may differ between the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differing(u64);

impl Differing {
    /// One value in all lanes.
    pub const NONE: Differing = Differing(0);
    /// Those of the lane's index: 0 to 31.
    pub const LANE: Differing = Differing(31);
    /// Any bit.
    pub const ALL: Differing = Differing(u64::MAX);

    pub fn is_none(self) -> bool {
        self == Differing::NONE
    }

    /// The bits of either.
    pub fn or(self, other: Differing) -> Differing {
        Differing(self.0 | other.0)
    }

    /// [`Differing::ALL`] unless the value is uniform: for instructions whose result
    /// depends on all bits of what they read.
    fn all_or_none(self) -> Differing {
        match self {
            Differing::NONE => Differing::NONE,
            _ => Differing::ALL,
        }
    }

    /// Whether all these bits are below the lowest bit of `number`. Then adding `number`
    /// leaves them alone, and a comparison with `number` does not depend on them.
    fn below(self, number: i64) -> bool {
        let bits = 64 - self.0.leading_zeros();
        self.is_none() || bits < 32 && number.trailing_zeros() >= bits
    }
}

/// How the result of an instruction depends on its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The same in all lanes, whatever is read.
    Uniform,
    /// The same in all lanes if all that is read is.
    Function,
    /// Anything, such as what memory holds.
    Varying,
    /// Bit by bit: a copy, too, also of the low bits alone.
    Bitwise,
    /// The bits that are set in the number.
    Mask(i64),
    /// Shifted to the left by a number.
    ShiftLeft(u32),
    /// Shifted to the right by a number; the sign may come in.
    ShiftRight(u32),
    /// As many bits as the second says, from the first on.
    Extract(u32, u32),
    /// A number added or subtracted.
    Offset(i64),
    /// Less than a number, or not.
    Below(i64),
    /// The first operand or the second, as the third says.
    Select,
}

/// Leading operands of an instruction that it writes.
pub(super) fn written(opcode: &str, operands: &[Operand]) -> usize {
    let name = opcode.split('.').next().unwrap_or_default();
    let reduces = opcode.split('.').any(|part| part == "red");
    let writes = match operands.first() {
        // `call (result), function, (arguments)`.
        Some(Operand::Several(_)) => true,
        Some(Operand::Register(_)) => !is_without_result(name) || reduces,
        _ => false,
    };
    usize::from(writes)
}

impl Operation {
    /// That of an instruction which writes `results` and reads `sources`.
    pub fn of(opcode: &str, results: &[Operand], sources: &[Operand]) -> Operation {
        let mut parts = opcode.split('.');
        let name = parts.next().unwrap_or_default();
        let has = |modifier| opcode.split('.').any(|part| part == modifier);
        match (name, sources) {
            // The parameters of the launch.
            ("ld", _) if has("param") => Operation::Function,
            // Votes, and one lane's value for all of them: the segment is the whole
            // warp where the mask in the upper bits of the clamp is 0 (PTX ISA, "shfl").
            ("vote" | "redux", _) => Operation::Uniform,
            (
                "shfl",
                [
                    _,
                    Operand::Immediate(_),
                    Operand::Immediate(31),
                    Operand::Immediate(-1),
                ],
            ) if has("idx") => Operation::Uniform,
            // A `mov` into several registers gives each a part of the source, shifted.
            ("mov", [Operand::Register(_) | Operand::Special(_)])
                if matches!(results, [Operand::Register(_)]) =>
            {
                Operation::Bitwise
            }
            ("cvt", [Operand::Register(_)]) if is_unsigned_conversion(opcode) => Operation::Bitwise,
            ("and", [_, Operand::Immediate(mask)]) => Operation::Mask(*mask),
            ("and" | "or" | "xor" | "not", _) => Operation::Bitwise,
            ("shl", [_, Operand::Immediate(bits @ 0..64)]) => Operation::ShiftLeft(*bits as u32),
            ("shr", [_, Operand::Immediate(bits @ 0..64)]) => Operation::ShiftRight(*bits as u32),
            (
                "bfe",
                [
                    _,
                    Operand::Immediate(first @ 0..64),
                    Operand::Immediate(count @ 0..64),
                ],
            ) if has("u32") || has("u64") => Operation::Extract(*first as u32, *count as u32),
            ("add", [_, Operand::Immediate(number)]) | ("sub", [_, Operand::Immediate(number)])
                if is_integer(opcode) =>
            {
                Operation::Offset(*number)
            }
            ("setp", [_, Operand::Immediate(number)]) if is_integer(opcode) => {
                // x ≤ n is x < n + 1, which at the largest n cannot be written so.
                match parts.next() {
                    Some("lt" | "lo" | "ge" | "hs") => Operation::Below(*number),
                    Some("le" | "ls" | "gt" | "hi") => {
                        (number.checked_add(1)).map_or(Operation::Function, Operation::Below)
                    }
                    _ => Operation::Function,
                }
            }
            ("selp", [_, _, _]) => Operation::Select,
            _ if is_function(name) => Operation::Function,
            _ => Operation::Varying,
        }
    }

    /// The bits of the result that may differ, given those of each source.
    pub fn result(self, sources: &[Differing]) -> Differing {
        let any = (sources.iter()).fold(Differing::NONE, |all, &source| all.or(source));
        let first = sources.first().copied().unwrap_or(Differing::NONE);
        match self {
            Operation::Uniform => Differing::NONE,
            Operation::Varying => Differing::ALL,
            Operation::Function => any.all_or_none(),
            Operation::Bitwise => any,
            Operation::Mask(mask) => Differing(first.0 & mask.cast_unsigned()),
            Operation::ShiftLeft(bits) if first != Differing::ALL => Differing(first.0 << bits),
            // A sign that differs would come in at every bit.
            Operation::ShiftRight(bits) if first.0 < 1 << 31 => Differing(first.0 >> bits),
            Operation::Extract(low, count) => Differing(first.0 >> low & ((1 << count) - 1)),
            Operation::Offset(number) if first.below(number) => first,
            Operation::Below(number) if first.below(number) => Differing::NONE,
            Operation::Select if sources.last().is_some_and(|chosen| chosen.is_none()) => any,
            Operation::ShiftLeft(_)
            | Operation::ShiftRight(_)
            | Operation::Offset(_)
            | Operation::Below(_)
            | Operation::Select => any.all_or_none(),
        }
    }
}

/// Whether an instruction's result depends on its operands alone.
#[rustfmt::skip]
fn is_function(name: &str) -> bool {
    matches!(
        name,
        "abs" | "add" | "addc" | "and" | "bfe" | "bfi" | "bfind" | "bmsk" | "brev" | "clz"
            | "cnot" | "copysign" | "cos" | "cvt" | "cvta" | "div" | "dp2a" | "dp4a" | "ex2"
            | "fma" | "fns" | "getctarank" | "isspacep" | "lg2" | "lop3" | "mad" | "mad24"
            | "madc" | "mapa" | "max" | "min" | "mov" | "mul" | "mul24" | "neg" | "not" | "or"
            | "popc" | "prmt" | "rcp" | "rem" | "rsqrt" | "sad" | "selp" | "set" | "setp"
            | "shf" | "shl" | "shr" | "sin" | "slct" | "sqrt" | "sub" | "subc" | "szext"
            | "tanh" | "testp" | "vadd" | "vsub" | "vmax" | "vmin" | "xor"
    )
}

/// Whether an instruction writes no register, though its first operand may be one.
#[rustfmt::skip]
fn is_without_result(name: &str) -> bool {
    matches!(
        name,
        "bra" | "brx" | "barrier" | "bar" | "cp" | "discard" | "exit" | "fence"
            | "griddepcontrol" | "membar" | "nanosleep" | "ret" | "setmaxnreg" | "trap"
    )
}

/// Whether an instruction's type is an integer's.
fn is_integer(opcode: &str) -> bool {
    let last = opcode.rsplit('.').next().unwrap_or_default();
    matches!(last.as_bytes().first(), Some(b'u' | b's' | b'b'))
}

/// `cvt.u64.u32` and the like: cuts, or extends with zeros.
fn is_unsigned_conversion(opcode: &str) -> bool {
    let types = opcode.split('.').skip(1);
    types.clone().count() == 2 && types.into_iter().all(|name| name.starts_with('u'))
}
