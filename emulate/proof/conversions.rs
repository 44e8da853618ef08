//! `cvt` and `fma`: all f16 and bf16, and f32 around every rounding boundary.

use gpu_kernels::probe::CONVERSION_WORDS;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tilewise::probe::Launch;

use crate::tally::{Difference, Tally};
use crate::values::words;
use crate::worlds::Worlds;

/// The words that the probe writes for each word it reads, in order.
const NAMES: [&str; CONVERSION_WORDS as usize] = [
    "`cvt.rn.f16.f32`",
    "bf16 from f32 (integer arithmetic)",
    "`cvt.rna.tf32.f32`",
    "`cvt.f32.f16`",
    "f32 from bf16 (a shift)",
    "`cvt.rn.f16x2.f32`",
    "`cvt.rn.bf16x2.f32`",
    "`fma.rn.f32`",
];

/// Index of `fma` among them.
const FMA: usize = 7;

/// Random words of each kind.
const COUNT: usize = 1 << 16;

/// Words whose low half is every 16-bit pattern, words that are f32 numbers at and
/// beside the ties of each rounding, and the NaNs nearest to infinity.
fn inputs(random: &mut StdRng) -> Vec<u32> {
    let mut words: Vec<u32> = (0..=u16::MAX)
        .map(|low| u32::from(random.random::<u16>()) << 16 | u32::from(low))
        .collect();
    for dropped_bits in [13, 16] {
        let half = 1_u32 << (dropped_bits - 1);
        for rest in [half - 1, half, half + 1] {
            words.extend(
                (0..COUNT).map(|_| random.random::<u32>() >> dropped_bits << dropped_bits | rest),
            );
        }
    }
    // The range of f16, subnormals and overflow included, with their ties.
    words.extend((0..COUNT).map(|_| {
        let exponent = random.random_range(127 - 27..=127 + 17);
        let fraction = random.random::<u32>() >> 9 >> 8 << 8;
        u32::from(random.random::<bool>()) << 31 | exponent << 23 | fraction
    }));
    for infinity in [f32::INFINITY, f32::NEG_INFINITY] {
        words.extend((1..=1 << 14).map(|payload| infinity.to_bits() | payload));
    }
    words
}

/// Runs the probe, one row for each conversion.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let inputs = inputs(random);
    let mut launch = Launch::new("probe_convert", (inputs.len() as u32).div_ceil(256));
    launch.params.k = inputs.len() as u32;
    launch.a = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
    launch.c = vec![0; launch.a.len() * CONVERSION_WORDS as usize];

    let mut tallies = NAMES.map(|name| Tally::new(name, "every 16-bit pattern; ties"));
    match worlds.run("conversions", &launch) {
        Err(reason) => tallies.iter_mut().for_each(|tally| tally.fail(&reason)),
        Ok((gpu, emulated)) => {
            let column = |bytes: &[u8], index: usize| -> Vec<u32> {
                let results = words(bytes);
                results
                    .chunks_exact(NAMES.len())
                    .map(|row| row[index])
                    .collect()
            };
            for (index, tally) in tallies.iter_mut().enumerate() {
                let (gpu, emulated) = (column(&gpu, index), column(&emulated, index));
                let input = |at: usize| format!("{:#010x}", inputs[at]);
                tally.compare_named(&gpu, &emulated, input, |at| {
                    let nan = |bits: u32| f32::from_bits(bits).is_nan();
                    // The host's FPU has its own NaNs.
                    if index == FMA && nan(gpu[at]) && nan(emulated[at]) {
                        Difference::Allowed
                    } else {
                        Difference::Wrong
                    }
                });
            }
        }
    }
    tallies.into()
}
