//! What each instruction computes, as plain functions of values: no threads, no
//! memory, no order of events.
//!
//! The machine around it decides when an instruction runs and which bytes it may
//! touch; these modules say which bytes and registers those are and what is put
//! into them. Each function names the section of the PTX ISA that it follows,
//! and what is not in the PTX ISA names its source. Illegal arguments come back
//! as typed errors, for the machine to report with the thread that gave them.
//!
//! | module | instructions |
//! |---|---|
//! | [`convert`] | `cvt` between f32 and narrower types |
//! | [`swizzle`] | where TMA and wgmma put the 16-byte chunks of a row |
//! | [`matrix`] | `ldmatrix`, `stmatrix`: lanes and registers of 8×8 matrices |
//! | [`dot`] | the arithmetic of the tensor cores: D = A·B + C |
//! | [`factor`] | their operands, decoded |
//! | [`format`](mod@format) | the format of their elements, and which way they lie |
//! | [`mma`] | `mma.sync`: fragments of A, B and D |
//! | [`wgmma`] | `wgmma.mma_async`: the fragment of D |
//! | [`descriptor`] | `wgmma`'s description of a matrix in shared memory |
//! | [`tensor_map`] | TMA: boxes of a tensor, and what its edges cut off |

pub mod convert;
pub mod descriptor;
pub mod dot;
pub mod factor;
pub mod format;
pub mod matrix;
pub mod mma;
pub mod swizzle;
pub mod tensor_map;
pub mod wgmma;
