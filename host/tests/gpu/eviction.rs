//! Operands of which L2 evicts lines first: products that are large enough for each share, against
//! the same products in parts that are too small for any.
//!
//! Elements are small integers, so that sums are exact in f32 and all kernels give the same bits.

use std::ops::Range;

use tilewise::{Device, Error, Gemm, Matrix, MatrixView, f16};

use crate::errors::ErrorCase;

/// All tests of eviction.
pub const CASES: [ErrorCase; 3] = [
    (
        "eviction/a-along-k",
        |device| check(device, Large::A),
        false,
    ),
    (
        "eviction/a-along-m",
        |device| check(device, Large::At),
        false,
    ),
    (
        "eviction/b-along-k",
        |device| check(device, Large::Bt),
        false,
    ),
];

/// The large operand, and what is stored row-major: it, or its transpose.
#[derive(Clone, Copy, PartialEq)]
enum Large {
    A,
    At,
    Bt,
}

/// Sizes of the operand, in quarters of L2, and the sixteenths of its lines that are evicted first.
const SHARES: [(usize, u16); 5] = [(2, 8), (4, 12), (8, 14), (16, 16), (32, 0)];

/// Rows or columns of the other operand.
const FEW: usize = 24;

fn check(device: &Device, large: Large) -> Result<(), String> {
    let mut found = Vec::new();
    for (quarters, _) in SHARES {
        match compare(device, large, quarters) {
            Ok((_, false)) => return Err(format!("{quarters} quarters of L2: not as in parts")),
            Ok((share, true)) => found.push((quarters, share)),
            Err(Error::OutOfMemory { .. }) => {}
            Err(error) => return Err(format!("{quarters} quarters of L2: {error}")),
        }
    }
    let has_policies = device
        .gpu_info()
        .is_some_and(|gpu| gpu.compute_capability == (9, 0));
    // Where lines straddle, it depends on the waves.
    let is_exact = has_policies && large != Large::At;
    match is_exact && !SHARES.starts_with(&found) {
        true => Err(format!("the shares are {found:?}, not {SHARES:?}")),
        false => Ok(()),
    }
}

/// A product whose large operand fills so many quarters of L2: the share of that operand that is
/// evicted first, and whether C is the same as in parts.
fn compare(device: &Device, large: Large, quarters: usize) -> Result<(u16, bool), Error> {
    let l2 = device.gpu_info().map_or(0, |gpu| gpu.l2_bytes) as usize;
    let elements = quarters * l2 / 4 / size_of::<f16>();
    let k = (elements.isqrt() / 64 * 64).max(64);
    let lines = elements / k;
    let stored = match large {
        Large::A | Large::Bt => integers(device, lines, k)?,
        Large::At => integers(device, k, lines)?,
    };
    let few = match large {
        Large::A | Large::At => integers(device, k, FEW)?,
        Large::Bt => integers(device, FEW, k)?,
    };
    let (share, whole) = product(device, large, &stored, &few, 0..lines)?;
    let mut of_parts = vec![0.0; whole.len()];
    // A quarter of L2 for each part, of which no line is evicted first.
    let part = lines.div_ceil(quarters);
    for first in (0..lines).step_by(part) {
        let range = first..lines.min(first + part);
        let (_, c) = product(device, large, &stored, &few, range.clone())?;
        match large {
            Large::A | Large::At => {
                of_parts[range.start * FEW..range.end * FEW].copy_from_slice(&c);
            }
            Large::Bt => {
                for (row, line) in c.chunks_exact(range.len()).enumerate() {
                    let from = row * lines;
                    of_parts[from + range.start..from + range.end].copy_from_slice(line);
                }
            }
        }
    }
    Ok((share, whole == of_parts))
}

/// C, row-major, of the `range` of the lines of the large operand, and the share of that operand that
/// is evicted first.
fn product(
    device: &Device,
    large: Large,
    stored: &Matrix<f16>,
    few: &Matrix<f16>,
    range: Range<usize>,
) -> Result<(u16, Vec<f32>), Error> {
    let (stored, few) = (stored.view(), few.view());
    let (k, count) = (few.rows().max(few.cols()), range.len());
    let (a, b): (MatrixView<f16>, MatrixView<f16>) = match large {
        Large::A => (stored.slice(range, 0..k)?, few),
        Large::At => (stored.t().slice(range, 0..k)?, few),
        Large::Bt => (few, stored.t().slice(0..k, range)?),
    };
    let mut c: Matrix<f32> = match large {
        Large::A | Large::At => device.zeros(count, FEW)?,
        Large::Bt => device.zeros(FEW, count)?,
    };
    let mut plan = Gemm::new(device).plan(a, b, c.view_mut())?;
    plan.run(a, b, c.view_mut())?;
    let share = plan.info().gpu().map_or(0, |gpu| match large {
        Large::A | Large::At => gpu.evict_first.a,
        Large::Bt => gpu.evict_first.b,
    });
    Ok((share, c.to_vec()?))
}

/// Integers from -3 to 3.
fn integers(device: &Device, rows: usize, cols: usize) -> Result<Matrix<f16>, Error> {
    let value = |index: usize| {
        let mixed = (index as u32).wrapping_mul(2_654_435_761) >> 16;
        f16::from_f32((mixed % 7) as f32 - 3.0)
    };
    let elements: Vec<f16> = (0..rows * cols).map(value).collect();
    device.from_slice(&elements, rows, cols)
}
