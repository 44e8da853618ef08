//! Activations.
//!
//! SiLU and both forms of GELU are x·σ(t), with σ the logistic function and
//!
//! | activation | t |
//! |---|---|
//! | SiLU | x |
//! | GELU, tanh | 2·√(2/π)·(x + 0.044715·x³), because (1 + tanh z) / 2 = σ(2z) |
//! | GELU, erf | x·Q(x²), a polynomial for the logit of the normal distribution function |
//!
//! so they share one exponential and one reciprocal, both of the special function unit.
//! Unlike 1 + tanh or 1 + erf, σ(t) keeps its relative precision for large negative x.

use crate::form::Activation;
use crate::isa::arithmetic::{exp2, fma, reciprocal};
use crate::unroll::unroll;

/// −log₂ e: σ(t) = 1 / (1 + 2^(−t·log₂ e)).
const MINUS_LOG2_E: f32 = -core::f32::consts::LOG2_E;

/// 2·√(2/π).
const TWICE_ROOT_2_OVER_PI: f32 = core::f32::consts::FRAC_2_SQRT_PI * core::f32::consts::SQRT_2;

/// Coefficients of Q, lowest first. Q(u)·√u is the logit of Φ(√u): x·σ(x·Q(x²)) differs
/// from x·Φ(x) by at most 6.8·10⁻⁸ for |x| ≤ 5.5, and by less than 2·10⁻⁷ elsewhere
/// (weighted minimax fit).
const Q: [f32; 7] = [
    1.595_768_4,
    0.072_668_57,
    -6.625_997e-5,
    -1.104_803_2e-4,
    7.938_22e-6,
    -2.668_929e-7,
    3.611_234e-9,
];

/// 5.5²: the end of the interval in which Q fits. Q keeps its last value beyond.
const Q_END: f32 = 30.25;

/// The activation of each value.
#[inline(always)]
pub fn activate<const N: usize>(activation: Activation, slope: f32, x: [f32; N]) -> [f32; N] {
    match activation {
        Activation::Identity => x,
        // NaN stays NaN, and −∞ becomes 0.
        Activation::Relu => each(x, |x| if x < 0.0 { 0.0 } else { x }),
        Activation::LeakyRelu => each(x, |x| if x > 0.0 { x } else { x * slope }),
        // The three share the code for the logistic function, which is most of it.
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => {
            let exponents = match activation {
                Activation::Gelu => each(x, normal_exponent),
                Activation::GeluTanh => each(x, |x| {
                    const LINEAR: f32 = TWICE_ROOT_2_OVER_PI * MINUS_LOG2_E;
                    const CUBIC: f32 = LINEAR * 0.044_715;
                    x * fma(x * x, CUBIC, LINEAR)
                }),
                _ => each(x, |x| x * MINUS_LOG2_E),
            };
            let mut y = x;
            unroll!(I < 8, {
                if I < N {
                    y[I] = x[I] * reciprocal(1.0 + exp2(exponents[I]));
                }
            });
            y
        }
    }
}

/// −t·log₂ e for GELU.
#[inline(always)]
fn normal_exponent(x: f32) -> f32 {
    let square = x * x;
    let u = if square < Q_END { square } else { Q_END };
    let mut q = Q[6] * MINUS_LOG2_E;
    unroll!(TERM < 6, {
        q = fma(q, u, Q[5 - TERM] * MINUS_LOG2_E);
    });
    x * q
}

/// `function` of each value.
#[inline(always)]
fn each<const N: usize>(mut values: [f32; N], function: impl Fn(f32) -> f32) -> [f32; N] {
    unroll!(I < 8, {
        if I < N {
            values[I] = function(values[I]);
        }
    });
    values
}
