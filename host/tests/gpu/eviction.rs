//! Operands of which L2 evicts lines first: products that are large enough for each share, against
//! the same products in parts that are too small for any.
//!
//! Elements are small integers, so that sums are exact in f32 and all kernels give the same bits.

use std::ops::Range;

use tilewise::{Device, Error, Gemm, Matrix, f16};

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
const SHARES: [(usize, u8); 5] = [(2, 8), (4, 12), (8, 14), (16, 16), (32, 0)];

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
fn compare(device: &Device, large: Large, quarters: usize) -> Result<(u8, bool), Error> {
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
    let (rows, cols) = match large {
        Large::A | Large::At => (lines, FEW),
        Large::Bt => (FEW, lines),
    };
    let [mut whole, mut of_parts] = [device.zeros(rows, cols)?, device.zeros(rows, cols)?];
    let share = multiply(device, large, [&stored, &few], 0..lines, &mut whole)?;
    // A quarter of L2 for each part, of which no line is evicted first.
    let part = lines.div_ceil(quarters);
    for first in (0..lines).step_by(part) {
        let range = first..lines.min(first + part);
        multiply(device, large, [&stored, &few], range, &mut of_parts)?;
    }
    Ok((share, whole.to_vec()? == of_parts.to_vec()?))
}

/// Computes the part of C that the `range` of the lines of the large operand gives, and returns the
/// share of that operand that is evicted first.
fn multiply(
    device: &Device,
    large: Large,
    [stored, few]: [&Matrix<f16>; 2],
    range: Range<usize>,
    c: &mut Matrix<f32>,
) -> Result<u8, Error> {
    let (stored, few, c) = (stored.view(), few.view(), c.view_mut());
    let k = few.rows().max(few.cols());
    let (a, b, mut c) = match large {
        Large::A => (
            stored.slice(range.clone(), 0..k)?,
            few,
            c.slice(range, 0..FEW)?,
        ),
        Large::At => (
            stored.t().slice(range.clone(), 0..k)?,
            few,
            c.slice(range, 0..FEW)?,
        ),
        Large::Bt => (
            few,
            stored.t().slice(0..k, range.clone())?,
            c.slice(0..FEW, range)?,
        ),
    };
    let mut plan = Gemm::new(device).plan(a, b, c.reborrow())?;
    plan.run(a, b, c)?;
    Ok(plan.info().gpu().map_or(0, |gpu| match large {
        Large::A | Large::At => gpu.evict_first.a,
        Large::Bt => gpu.evict_first.b,
    }))
}

/// Integers from -3 to 3.
pub fn integers(device: &Device, rows: usize, cols: usize) -> Result<Matrix<f16>, Error> {
    let value = |index: usize| {
        let mixed = (index as u32).wrapping_mul(2_654_435_761) >> 16;
        f16::from_f32((mixed % 7) as f32 - 3.0)
    };
    let elements: Vec<f16> = (0..rows * cols).map(value).collect();
    device.from_slice(&elements, rows, cols)
}
