//! From f32 accumulators to elements of C:
//! C = act(α · rᵢ · cⱼ · (A·B)ᵢⱼ + β·Sᵢⱼ + bias), in f32, then rounded to C's type.
//!
//! | module | contents |
//! |---|---|
//! | [`apply`] | the formula |
//! | [`activation`] | act |
//! | [`mod@store`] | conversion and stores for the kernels that do not use TMA |
//!
//! Which parts of the formula a launch has, and what they read, is its [`form`](crate::form).
//!
//! # No kernel of its own for each epilogue
//!
//! Every kernel has every epilogue, behind branches on [`Form`]. The host knows the form
//! before the driver compiles the kernel, and folds it into the PTX: each load of a field
//! of the form becomes a constant, and `ptxas` removes the branches that are not taken
//! (`fold.rs`). A plain product therefore costs what it would cost in a
//! kernel without an epilogue, and PTX that is not folded computes the same.

pub mod activation;
pub mod apply;
pub mod store;

pub use crate::form::{Activation, BiasAxis, EpilogueArguments, Form, SourceUse};
pub use apply::{Epilogue, Terms, plus, times};
pub use store::{c_of, pack_pair, pack_pair_sm75, store, store_4x4};
