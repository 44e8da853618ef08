//! PTX instructions as Rust functions, one family a file.
//!
//! Each wrapper is a line or two of `asm!` and names its section of the PTX
//! ISA. Wrappers carry no policy; the kernels decide how to use them.
//!
//! Every instruction is written twice, side by side, by the macro `instruction!`:
//! as PTX, and as a call of the emulator, which runs the same kernels on a CPU.
//! An `asm!` outside the macro does not compile for the host, and the macro takes
//! no instruction without its emulated form, so neither can be added alone.

#![cfg_attr(
    not(any(target_arch = "nvptx64", feature = "emulator")),
    allow(
        unused_imports,
        unused_variables,
        unreachable_code,
        reason = "nothing executes instructions in such a build"
    )
)]

/// One instruction: a GPU executes the expression `ptx`, and the emulator the expression
/// `emulated`. In `ptx` the name `asm!` is in scope; in `emulated` the modules `machine`
/// and `semantics` of the crate `tilewise-emulator` are.
#[cfg(target_arch = "nvptx64")]
macro_rules! instruction {
    (ptx = $ptx:expr, emulated = $emulated:expr) => {{
        #[allow(unused_imports, reason = "hints need no instruction")]
        use core::arch::asm;
        $ptx
    }};
}

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
macro_rules! instruction {
    (ptx = $ptx:expr, emulated = $emulated:expr) => {{
        #[allow(unused_imports, reason = "most forms need one of the two")]
        use tilewise_emulator::{machine, semantics};
        $emulated
    }};
}

#[cfg(not(any(target_arch = "nvptx64", feature = "emulator")))]
macro_rules! instruction {
    (ptx = $ptx:expr, emulated = $emulated:expr) => {
        unreachable!("built without the feature `emulator`, the host executes no kernel")
    };
}

/// `asm!` under a predicate: the instructions execute where `active` is true, without a
/// branch around them (`isa/convergent.rs` says why). They can use `{active}`, which
/// is 1 where they execute. Each operand is followed by a comma, all in parentheses;
/// declarations of extra registers may precede the instructions.
#[cfg(target_arch = "nvptx64")]
macro_rules! asm_if {
    (
        $active:expr, $($registers:literal,)? [$($instruction:literal),+],
        ($($operands:tt)*), $options:ident($($option:ident),*)
    ) => {
        core::arch::asm!(
            concat!("{{ .reg .pred active; ", $($registers,)? "setp.ne.u32 active, {active}, 0;"),
            $(concat!("@active ", $instruction),)+
            "}}",
            $($operands)*
            active = in(reg32) $active as u32,
            $options($($option),*)
        )
    };
}

pub mod arithmetic;
pub mod cluster;
#[cfg(target_arch = "nvptx64")]
mod convergent;
pub mod convert;
pub mod cp_async;
pub mod dependency;
pub mod flag;
pub mod global;
pub mod hint;
pub mod mbarrier;
pub mod mma;
pub mod parameter;
pub mod shared;
pub mod thread;
pub mod tma;
pub mod warpgroup;
pub mod wgmma;
