//! Products by tilewise's kernels, on the emulator.
//!
//! `gpu-kernels` emulates a launch of any function; this crate makes the launches
//! that the library makes on a GPU, tensor maps and grids included, and compares
//! what comes out with f64. It is a package of its own because whoever uses it
//! compiles every kernel for the host.
//!
//! | module | what |
//! |---|---|
//! | [`case`](mod@case) | a problem, a kernel for it, and how to launch it |
//! | [`operand`] | matrices in emulated memory |
//! | [`pick`] | the case that the library's rule makes of a wish |
//! | [`run`](mod@run) | runs a case and compares |

pub mod case;
pub mod operand;
pub mod pick;
pub mod run;

pub use case::{Case, Values};
pub use operand::Placement;
pub use run::{Error, Outcome, operands, run, run_watched};
