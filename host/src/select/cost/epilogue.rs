//! The arithmetic of the epilogue, in cycles of an SM.
//!
//! The tensor cores idle while both consumers of a cooperative kernel are in the epilogue,
//! so its arithmetic adds to every tile. In a ping-pong kernel the other consumer multiplies
//! meanwhile.
//!
//! The rates are those of a consumer of a 128×256 tile, 128 threads with 128 sums each,
//! while the other consumer does the same: the time that each part of an epilogue adds to
//! 4096×14336×4096 on an H200, bf16, cold (`docs/perf-log.md`, "Epilogues, folded into the
//! PTX"), by tiles of 65,536 cycles.

use gpu_kernels::epilogue::{Activation, SourceUse};
use gpu_kernels::{Family, KernelInfo};

use crate::epilogue_form::{Bias, EpilogueForm};

/// Cycles for 1000 sums of an activation with an exponential and a reciprocal. The special
/// function unit bounds them.
const LOGISTIC: u64 = 200;

/// The same of [`Activation::Gelu`], which evaluates a polynomial too. By the times it would be 290;
/// with as much, the estimate takes ping-pong for 8192×4096×14336, where it is the fastest.
const GELU: u64 = 470;

/// Cycles for 1000 sums of a vector along the columns, which comes through shared memory: a
/// bias or scales.
const COLUMN_VECTOR: u64 = 125;

/// Cycles for 1000 sums of a source.
const SOURCE: u64 = 200;

/// Cycles for 1000 sums of a part that costs an instruction or two for each.
const LIGHT: u64 = 40;

/// Cycles that one consumer of a hopper `kernel` computes `epilogue` for its part of a tile.
/// 0 for the other families, where this decides nothing.
pub(super) fn cycles(kernel: &KernelInfo, epilogue: &EpilogueForm) -> u64 {
    if kernel.family != Family::Hopper {
        return 0;
    }
    let at_a_tile = if kernel.ping_pong {
        1
    } else {
        u64::from(kernel.consumers.max(1))
    };
    let sums = u64::from(kernel.block.m) * u64::from(kernel.block.n)
        / (at_a_tile * u64::from(kernel.cluster.k));
    sums * per_thousand(epilogue) / 1000
}

/// Cycles for 1000 sums.
fn per_thousand(epilogue: &EpilogueForm) -> u64 {
    let activation = match epilogue.activation {
        Activation::Identity => 0,
        Activation::Relu | Activation::LeakyRelu => LIGHT,
        Activation::GeluTanh | Activation::Silu => LOGISTIC,
        Activation::Gelu => GELU,
    };
    let bias = match epilogue.bias {
        None => 0,
        Some(Bias::PerRow) => LIGHT,
        Some(Bias::PerColumn) => COLUMN_VECTOR,
    };
    let source = match epilogue.source {
        SourceUse::None => 0,
        SourceUse::Add | SourceUse::Gate => SOURCE,
    };
    // Of gated pairs, one column has the activation, and half as many columns are stored,
    // which pays for the product of the two.
    let pairs = 1 + u64::from(epilogue.gated.is_some());
    activation / pairs
        + bias
        + source
        + u64::from(epilogue.col_scale) * COLUMN_VECTOR
        + u64::from(epilogue.row_scale || epilogue.scaled) * LIGHT
}
