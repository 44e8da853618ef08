//! The results of each instruction, as plain functions of values, without threads,
//! memory or an order of events.
//!
//! The machine decides when an instruction runs and whether it may touch its bytes;
//! these modules say which bytes and registers an instruction accesses and which values
//! it writes. Each function names the section of the PTX ISA that it follows; where the
//! PTX ISA says nothing, it names another source. A function returns illegal arguments
//! as typed errors, and the machine reports them with the thread that gave them.
//!
//! | module | instructions |
//! |---|---|
//! | [`convert`] | `cvt` between f32 and narrower types |
//! | [`swizzle`] | where TMA and wgmma put the 16-byte chunks of a row |
//! | [`matrix`] | `ldmatrix`, `stmatrix`: lanes and registers of 8×8 matrices |
//! | [`dot`] | the arithmetic of the tensor cores: D = A·B + C |
//! | [`factor`] | the decoded operands of the tensor cores |
//! | [`format`](mod@format) | the format and the contiguous direction of operands' elements |
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
