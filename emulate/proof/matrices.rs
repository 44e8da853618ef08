//! `ldmatrix` and `stmatrix`: rows in a random order.

use gpu_kernels::probe::MATRIX_BYTES;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use tilewise::DType;
use tilewise::probe::Launch;

use crate::tally::{Difference, Tally};
use crate::values::{Values, words};
use crate::worlds::Worlds;

/// Warps of a launch.
const WARPS: u32 = 256;

/// A permutation of 32 rows for each warp, as words.
fn rows(random: &mut StdRng) -> Vec<u8> {
    let mut rows: Vec<u32> = (0..32).collect();
    let mut bytes = Vec::new();
    for _ in 0..WARPS {
        rows.shuffle(random);
        bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
    }
    bytes
}

/// Runs both probes.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let bytes = (WARPS * MATRIX_BYTES) as usize;
    [
        ("probe_ldmatrix", "`ldmatrix.x4`, as stored and `.trans`", 2),
        ("probe_stmatrix", "`stmatrix.x4`, as stored and `.trans`", 2),
    ]
    .map(|(name, subject, results)| {
        let mut launch = Launch::new(name, WARPS);
        launch.a = Values::Bits.fill(DType::F16, bytes, random);
        launch.b = rows(random);
        launch.c = vec![0; results * bytes];
        let mut tally = Tally::new(subject, "random bits, rows in random order");
        match worlds.run(subject, &launch) {
            Err(reason) => tally.fail(reason),
            Ok((gpu, emulated)) => {
                tally.compare(&words(&gpu), &words(&emulated), |_| Difference::Wrong);
            }
        }
        tally
    })
    .into()
}
