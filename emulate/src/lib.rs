//! Products by tilewise's kernels, on an emulated GPU.
//!
//! The library plans and launches, as on a GPU; this crate makes operands, checks the bytes
//! between their elements, compares the result with f64, and prints. It is a separate
//! package because it compiles every kernel for the host.
//!
//! | module | contents |
//! |---|---|
//! | [`case`](mod@case) | a problem, a kernel for it, and how to launch it |
//! | [`operand`] | matrices with any strides |
//! | [`pick`] | the case that the library's rule picks for the user's options |
//! | [`limits`] | the limits of time and memory |
//! | [`run`](mod@run) | runs a case and compares |

pub mod case;
pub mod limits;
pub mod operand;
pub mod pick;
pub mod run;

pub use case::{Case, Values, kernel};
pub use operand::Placement;
pub use run::{Error, Outcome, operands, run};
