//! `mma.sync`: each shape and element type, each kind of operands.

use gpu_kernels::probe::FRAGMENT_WORDS;
use rand::rngs::StdRng;
use tilewise::DType;
use tilewise::probe::Launch;
use tilewise_emulator::semantics::{dot, mma};

use crate::tally::{Difference, Tally};
use crate::values::{Values, words};
use crate::worlds::Worlds;

/// Warps of a launch.
const WARPS: usize = 256;

/// Lanes of a warp.
const LANES: usize = 32;

/// The probe of `mma.m16n8k8` of f16, which has half as many registers of A and B.
const K8_PROBE: &str = "probe_mma_f16_k8";

/// Words of a record of operand A before the words of C.
const C_WORD: usize = 8;

/// Runs the probes, a row for each type and kind of operands.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let mut tallies = Vec::new();
    for (dtype, shape, probe) in [
        (DType::F16, "m16n8k16", "probe_mma_f16"),
        (DType::F16, "m16n8k8", K8_PROBE),
        (DType::Bf16, "m16n8k16", "probe_mma_bf16"),
        (DType::Tf32, "m16n8k8", "probe_mma_tf32"),
    ] {
        for values in Values::ALL {
            let subject = format!("`mma.{shape}` {}", dtype.name());
            let mut tally = Tally::new(subject, values.name());
            let launch = launch(probe, dtype, values, random);
            match worlds.run(&tally.name(), &launch) {
                Err(reason) => tally.fail(reason),
                Ok((gpu, emulated)) => {
                    let inputs = words(&launch.a);
                    let (gpu, emulated) = (words(&gpu), words(&emulated));
                    tally.compare(&gpu, &emulated, |at| {
                        let (warp, element) = (at / (4 * LANES), at % (4 * LANES));
                        let bound = match probe {
                            K8_PROBE => bound::<2, 1>(dtype, &inputs, warp, element),
                            _ => bound::<4, 2>(dtype, &inputs, warp, element),
                        };
                        judge(gpu[at], emulated[at], bound)
                    });
                }
            }
            tallies.push(tally);
        }
    }
    tallies
}

/// Judges two results that differ: each may be `bound` away from the exact result.
pub fn judge(gpu: u32, emulated: u32, bound: f64) -> Difference {
    let (gpu, emulated) = (f32::from_bits(gpu), f32::from_bits(emulated));
    if (f64::from(gpu) - f64::from(emulated)).abs() <= 2.0 * bound {
        Difference::Allowed
    } else {
        Difference::Wrong
    }
}

fn launch(probe: &str, dtype: DType, values: Values, random: &mut StdRng) -> Launch {
    let mut launch = Launch::new(probe, WARPS as u32);
    for _ in 0..WARPS * LANES {
        launch.a.extend(values.fill(dtype, 4 * C_WORD, random));
        launch.a.extend(values.accumulators(4, random));
    }
    assert_eq!(launch.a.len(), WARPS * LANES * 4 * FRAGMENT_WORDS as usize);
    launch.c = vec![0; WARPS * LANES * 16];
    launch
}

/// [`dot::error_bound`] of result `element` (4 · lane + register) of a warp, whose `mma` has
/// `A` and `B` registers of A and B.
fn bound<const A: usize, const B: usize>(
    dtype: DType,
    inputs: &[u32],
    warp: usize,
    element: usize,
) -> f64 {
    let record = |lane: usize| &inputs[(warp * LANES + lane) * FRAGMENT_WORDS as usize..];
    let a: [[u32; A]; LANES] = std::array::from_fn(|lane| std::array::from_fn(|r| record(lane)[r]));
    let b: [[u32; B]; LANES] =
        std::array::from_fn(|lane| std::array::from_fn(|r| record(lane)[4 + r]));
    let (a, b) = mma::factors(dtype.into(), &a, &b);
    let (lane, register) = (element / 4, element % 4);
    let (row, column) = mma::d_element(lane, register);
    let c = f32::from_bits(record(lane)[C_WORD + register]);
    dot::error_bound(&a, row, &b, column, c)
}
