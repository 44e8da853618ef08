//! Operands with more than 2³¹ elements between their first and their last element.
//!
//! Only the lines of the matrix are copied to and from the device, so the host needs
//! little memory; the device needs about 5 GB per case.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::{Device, Error, Gemm, KernelInfo, Matrix, f16};

use crate::case::Failure;
use crate::reference;
use crate::shared::Shared;

/// Elements between neighbouring lines: a multiple of 8, for TMA, and 300
/// lines span 2.5 · 10⁹ elements.
const PITCH: usize = (1 << 23) + 8;

/// The operand that is large.
#[derive(Clone, Copy, Debug)]
pub enum Large {
    /// A, its rows far apart.
    A,
    /// B, its columns far apart.
    B,
    /// A, its rows far apart by an odd number of elements: hopper packs it.
    OddA,
    /// C, its rows far apart.
    C,
    /// C, dense, with more tiles than other tests have elements.
    DenseC,
}

impl Large {
    /// All of them.
    pub const ALL: [Large; 5] = [Large::A, Large::B, Large::OddA, Large::C, Large::DenseC];

    /// For the name of the case.
    pub fn name(self) -> &'static str {
        match self {
            Large::A => "a",
            Large::B => "b",
            Large::OddA => "odd-a",
            Large::C => "c",
            Large::DenseC => "dense-c",
        }
    }
}

/// Multiplies f16 matrices of small integers with `kernel` and compares rows
/// of C, bit by bit. `Ok(false)`: the device has too little memory.
pub fn run(device: &Shared, seed: u64, kernel: &KernelInfo, large: Large) -> Result<bool, Failure> {
    match device.turn(|device| multiply(device, seed, kernel, large)) {
        Err(Failure::Error(Error::OutOfMemory { .. })) => Ok(false),
        other => other.map(|()| true),
    }
}

fn multiply(device: &Device, seed: u64, kernel: &KernelInfo, large: Large) -> Result<(), Failure> {
    let (m, n, k) = match large {
        Large::A | Large::OddA | Large::C => (300, 136, 72),
        Large::B => (136, 300, 72),
        Large::DenseC => (50_001, 45_000, 24),
    };
    let mut random = StdRng::seed_from_u64(seed);
    let mut draw = |count: usize| -> Vec<f16> {
        (0..count)
            .map(|_| {
                let integer = random.random_range(1..=4);
                f16::from_f32(if random.random() { integer } else { -integer } as f32)
            })
            .collect()
    };
    let (a_elements, b_elements) = (draw(m * k), draw(k * n));

    let pitch = |is_large: bool, line: usize| if is_large { PITCH } else { line };
    let a_pitch = match large {
        Large::A => PITCH,
        Large::OddA => PITCH + 1,
        _ => k,
    };
    let mut a = device.zeros_strided(m, k, a_pitch, 1)?;
    write_rows(&mut a, &a_elements)?;
    // B as its transpose, so that its columns are lines.
    let b_pitch = pitch(matches!(large, Large::B), k);
    let mut bt = device.zeros_strided(n, k, b_pitch, 1)?;
    let bt_elements: Vec<f16> = (0..n * k)
        .map(|index| b_elements[index % k * n + index / k])
        .collect();
    write_rows(&mut bt, &bt_elements)?;
    let c_pitch = pitch(matches!(large, Large::C), n);
    let mut c: Matrix<f16> = device.zeros_strided(m, n, c_pitch, 1)?;

    let mut plan = Gemm::new(device).kernel(kernel.name).plan::<f16, f16>(
        a.view(),
        bt.view().t(),
        c.view_mut(),
    )?;
    plan.run(a.view(), bt.view().t(), c.view_mut())?;

    // The row with element 2³¹, its neighbours, the first and the last row, and some others.
    let crossing = (1_usize << 31) / c_pitch.max(a_pitch);
    let mut rows = vec![0, m / 3, m / 2, m - 1];
    rows.extend((crossing.saturating_sub(1)..=crossing + 1).filter(|row| *row < m));
    let mut found = Vec::new();
    for row in &rows {
        found.extend(c.view().slice(*row..row + 1, 0..n)?.to_vec()?);
    }
    let product = reference::product(&a_elements, &b_elements, (n, k), &rows)?;
    reference::check_exact(&product, &found, n)
        .map(drop)
        .map_err(Failure::Wrong)
}

/// Uploads dense rows at once. Uploads rows that are far apart one by one, because a
/// strided upload would copy the memory between them too.
fn write_rows(matrix: &mut Matrix<f16>, elements: &[f16]) -> Result<(), Error> {
    let cols = matrix.cols();
    if matrix.layout().row_stride == cols {
        return matrix.copy_from_slice(elements);
    }
    for (row, line) in elements.chunks_exact(cols).enumerate() {
        matrix
            .view_mut()
            .slice(row..row + 1, 0..cols)?
            .copy_from_slice(line)?;
    }
    Ok(())
}
