//! The instructions that a warp executes as one: `ldmatrix`, `stmatrix`, `mma.sync`.

use super::gather::{Operands, Scope, gather, operands};
use super::{Broken, Check, Cluster, WARP, issue, poison};
use crate::instruction::Instruction;
use crate::semantics::format::Format;
use crate::semantics::matrix::{self as lanes, Matrix, Order};
use crate::semantics::mma;

/// Lanes of a warp, as an array's length.
const LANES: usize = WARP as usize;

/// `ldmatrix.x4`.
pub fn load_matrices(row: u32) -> [u32; 4] {
    load(row, Order::AsStored)
}

/// `ldmatrix.x4.trans`.
pub fn load_matrices_transposed(row: u32) -> [u32; 4] {
    load(row, Order::Transposed)
}

fn load(row: u32, order: Order) -> [u32; 4] {
    let instruction = Instruction::LoadMatrix;
    let Some([row]) = issue(instruction, [row.into()]) else {
        return [0; 4];
    };
    let registers = gather(
        Scope::Warp,
        instruction,
        operands([row as u32]),
        |cluster, warp, all| {
            let rows = rows(all)?;
            let mut matrices: [Matrix; 4] = Default::default();
            for (number, (row, bytes)) in rows
                .as_flattened()
                .iter()
                .zip(matrices.as_flattened_mut())
                .enumerate()
            {
                *bytes = cluster.read_row(warp * WARP + number as u32, *row)?;
            }
            for rows in rows {
                cluster.count_phase(&rows.map(|row| (row, 16)));
            }
            for (lane, registers) in all.iter_mut().zip(lanes::load(&matrices, order)) {
                lane[..4].copy_from_slice(&registers);
            }
            Ok(())
        },
    );
    [registers[0], registers[1], registers[2], registers[3]]
}

/// `stmatrix.x4`.
pub fn store(row: u32, matrices: [u32; 4]) {
    store_in(row, matrices, Order::AsStored);
}

/// `stmatrix.x4.trans`.
pub fn store_transposed(column: u32, matrices: [u32; 4]) {
    store_in(column, matrices, Order::Transposed);
}

fn store_in(row: u32, matrices: [u32; 4], order: Order) {
    let instruction = Instruction::StoreMatrix;
    let Some([row]) = issue(instruction, [row.into()]) else {
        return;
    };
    poison::check(&matrices);
    let [a, b, c, d] = matrices;
    let mine = operands([row as u32, a, b, c, d]);
    gather(Scope::Warp, instruction, mine, |cluster, warp, all| {
        let rows = rows(all)?;
        let registers: [[u32; 4]; LANES] = std::array::from_fn(|lane| {
            let [_, a, b, c, d, ..] = all[lane];
            [a, b, c, d]
        });
        let matrices = lanes::store(&registers, order);
        for (number, (row, bytes)) in rows
            .as_flattened()
            .iter()
            .zip(matrices.as_flattened())
            .enumerate()
        {
            let thread = warp * WARP + number as u32;
            let cta = cluster.threads[thread as usize].cta;
            cluster.store_shared(thread, (cta, *row), bytes)?;
        }
        for rows in rows {
            cluster.count_phase(&rows.map(|row| (row, 16)));
        }
        Ok(())
    });
}

/// The rows whose addresses the lanes gave.
fn rows(all: &[Operands]) -> Result<[[u32; 8]; 4], Broken> {
    let addresses: [u32; LANES] = std::array::from_fn(|lane| all[lane][0]);
    lanes::row_addresses(&addresses)
        .map_err(|error| Broken::new(Check::Misaligned, error.to_string()))
}

macro_rules! multiply {
    ($($name:ident = $instruction:ident, $dtype:ident;)*) => {$(
        /// `mma.sync`: C += A · B.
        pub fn $name(c: &mut [f32; 4], a: [u32; 4], b: [u32; 2]) {
            multiply(Instruction::$instruction, Format::$dtype, c, a, b);
        }
    )*};
}

multiply! {
    multiply_f16 = MultiplyF16, F16;
    multiply_bf16 = MultiplyBf16, Bf16;
    multiply_tf32 = MultiplyTf32, Tf32;
}

/// `mma.m16n8k8` of f16: C += A · B.
pub fn multiply_f16_k8(c: &mut [f32; 4], a: [u32; 2], b: u32) {
    multiply(Instruction::MultiplyF16K8, Format::F16, c, a, [b]);
}

fn multiply<const A: usize, const B: usize>(
    instruction: Instruction,
    dtype: Format,
    c: &mut [f32; 4],
    a: [u32; A],
    b: [u32; B],
) {
    if issue(instruction, []).is_none() {
        return;
    }
    poison::check(&a);
    poison::check(&b);
    let mut mine = [0; 10];
    mine[..4].copy_from_slice(&c.map(f32::to_bits));
    mine[4..4 + A].copy_from_slice(&a);
    mine[8..8 + B].copy_from_slice(&b);
    let result = gather(Scope::Warp, instruction, mine, |cluster, _, all| {
        let mut d = [[0.0; 4]; LANES];
        let mut a = [[0; A]; LANES];
        let mut b = [[0; B]; LANES];
        for (lane, registers) in all.iter().enumerate() {
            d[lane] = std::array::from_fn(|i| f32::from_bits(registers[i]));
            a[lane].copy_from_slice(&registers[4..4 + A]);
            b[lane].copy_from_slice(&registers[8..8 + B]);
        }
        mma::multiply(dtype, &mut d, &a, &b);
        for (registers, d) in all.iter_mut().zip(d) {
            registers[..4].copy_from_slice(&d.map(f32::to_bits));
        }
        // Each register of B holds 16 bytes along K, with those of three other lanes.
        let depth = 16 * B as u64 / u64::from(dtype.bytes());
        cluster.counts.tensor_operations += 2 * (mma::ROWS * mma::COLUMNS) as u64 * depth;
        Ok(())
    });
    *c = std::array::from_fn(|i| f32::from_bits(result[i]));
}

impl Cluster<'_> {
    /// The row of a matrix whose address `thread` gave.
    fn read_row(&mut self, thread: u32, row: u32) -> Result<[u8; 16], Broken> {
        let cta = self.threads[thread as usize].cta;
        let mut bytes = [0; 16];
        self.load_shared(thread, (cta, row), &mut bytes)?;
        Ok(bytes)
    }
}
