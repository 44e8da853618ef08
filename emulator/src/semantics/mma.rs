//! `mma.sync`: which elements of A, B and D the registers of a warp hold (PTX ISA,
//! "Matrix Fragments for mma.m16n8k16 with floating point type", "Matrix
//! Fragments for mma.m16n8k8"; with f16 the latter has the registers of the former's first
//! half of K).
//!
//! D (16×8, f32) = A (16×K) · B (K×8) + D, K being 16 for f16 and bf16, 8 for
//! TF32, and 8 for f16 on sm_75. The arithmetic is that of [`dot`].

use super::convert::unpack;
use super::dot;
use super::factor::Factor;
use super::matrix::LANES;
use crate::semantics::format::Format;

/// Rows of A and D.
pub const ROWS: usize = 16;

/// Columns of B and D.
pub const COLUMNS: usize = 8;

/// (row, column) of the element that `register` (of 4) of `lane` holds of D.
pub const fn d_element(lane: usize, register: usize) -> (usize, usize) {
    (lane / 4 + 8 * (register / 2), 2 * (lane % 4) + register % 2)
}

/// (row, k) of element `part` of `register` (of 4) of `lane`, of A with `parts`
/// elements a register: 2 for 16-bit types, 1 for TF32.
const fn a_element(lane: usize, register: usize, part: usize, parts: usize) -> (usize, usize) {
    let row = lane / 4 + 8 * (register % 2);
    (row, parts * (lane % 4 + 4 * (register / 2)) + part)
}

/// (k, column) of element `part` of `register` (of 2) of `lane`, of B.
const fn b_element(lane: usize, register: usize, part: usize, parts: usize) -> (usize, usize) {
    (parts * (lane % 4 + 4 * register) + part, lane / 4)
}

/// A and B, from the registers of each lane: four of A and two of B, or, for the `mma` of half
/// that depth, two and one. [`Format::F32`] is read as TF32.
///
/// # Panics
/// A does not have twice as many registers as B.
pub fn factors<const A: usize, const B: usize>(
    dtype: Format,
    a: &[[u32; A]; LANES],
    b: &[[u32; B]; LANES],
) -> (Factor, Factor) {
    assert_eq!(A, 2 * B, "A has 16 rows, and B 8 columns");
    let parts = 4 / dtype.bytes() as usize;
    let element = |register: u32, part: usize| match parts {
        1 => register,
        _ => unpack(register)[part].into(),
    };
    let mut rows = Factor::zeros_of_depth(dtype, ROWS, 4 * B * parts);
    let mut columns = Factor::zeros_of_depth(dtype, COLUMNS, 4 * B * parts);
    for lane in 0..LANES {
        for part in 0..parts {
            for (register, &bits) in a[lane].iter().enumerate() {
                let (row, k) = a_element(lane, register, part, parts);
                rows.set(row, k, element(bits, part));
            }
            for (register, &bits) in b[lane].iter().enumerate() {
                let (k, column) = b_element(lane, register, part, parts);
                columns.set(column, k, element(bits, part));
            }
        }
    }
    (rows, columns)
}

/// `mma.m16n8k16` for f16 and bf16, `mma.m16n8k8` for TF32, and with half as many registers
/// `mma.m16n8k8` for f16: D += A·B, all in the registers of each lane.
///
/// # Panics
/// Those of [`factors`].
pub fn multiply<const A: usize, const B: usize>(
    dtype: Format,
    d: &mut [[f32; 4]; LANES],
    a: &[[u32; A]; LANES],
    b: &[[u32; B]; LANES],
) {
    let (rows, columns) = factors(dtype, a, b);
    let mut tile = [0.0; ROWS * COLUMNS];
    let places = |lane: usize| {
        (0..4).map(move |register| {
            let (row, column) = d_element(lane, register);
            (register, row * COLUMNS + column)
        })
    };
    for (lane, registers) in d.iter().enumerate() {
        for (register, at) in places(lane) {
            tile[at] = registers[register];
        }
    }
    dot::multiply_add(&rows, &columns, &mut tile);
    for (lane, registers) in d.iter_mut().enumerate() {
        for (register, at) in places(lane) {
            registers[register] = tile[at];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::convert::{bf16_from_f32, f16_from_f32, pack};
    use std::collections::BTreeSet;

    #[test]
    fn fragments_are_those_of_the_figures_in_the_isa() {
        // m16n8k16: lane 5 (group 1, thread 1). a0..a3 in row 1, row 9, ...
        let a: Vec<_> = (0..4)
            .flat_map(|register| (0..2).map(move |part| a_element(5, register, part, 2)))
            .collect();
        assert_eq!(
            a,
            [
                (1, 2),
                (1, 3),
                (9, 2),
                (9, 3),
                (1, 10),
                (1, 11),
                (9, 10),
                (9, 11)
            ]
        );
        let b: Vec<_> = (0..2)
            .flat_map(|register| (0..2).map(move |part| b_element(5, register, part, 2)))
            .collect();
        assert_eq!(b, [(2, 1), (3, 1), (10, 1), (11, 1)]);
        // m16n8k8 with TF32.
        assert_eq!(
            [0, 1, 2, 3].map(|r| a_element(5, r, 0, 1)),
            [(1, 1), (9, 1), (1, 5), (9, 5)]
        );
        assert_eq!([0, 1].map(|r| b_element(5, r, 0, 1)), [(1, 1), (5, 1)]);
        assert_eq!(
            [0, 1, 2, 3].map(|r| d_element(5, r)),
            [(1, 2), (1, 3), (9, 2), (9, 3)]
        );
    }

    #[test]
    fn every_element_is_in_one_register() {
        // Elements a register, and registers of B.
        for (parts, registers) in [(1, 2), (2, 2), (2, 1)] {
            let all = |registers: usize| {
                (0..LANES * registers * parts)
                    .map(move |i| (i / parts / registers, i / parts % registers, i % parts))
            };
            let depth = 4 * parts * registers;
            let a = all(2 * registers).map(|(l, r, p)| a_element(l, r, p, parts));
            let a: BTreeSet<_> = a.collect();
            assert_eq!((a.len(), a.last()), (16 * depth, Some(&(15, depth - 1))));
            let b = all(registers).map(|(l, r, p)| b_element(l, r, p, parts));
            let b: BTreeSet<_> = b.collect();
            assert_eq!((b.len(), b.last()), (8 * depth, Some(&(depth - 1, 7))));
        }
        let d: BTreeSet<_> = (0..128).map(|i| d_element(i / 4, i % 4)).collect();
        assert_eq!((d.len(), d.last()), (128, Some(&(15, 7))));
    }

    #[test]
    fn the_product_of_small_integers_is_exact() {
        for dtype in [Format::F16, Format::Bf16, Format::Tf32] {
            product_is_exact::<4, 2>(dtype);
        }
        product_is_exact::<2, 1>(Format::F16);
    }

    fn product_is_exact<const A: usize, const B: usize>(dtype: Format) {
        let a_at = |row: usize, k: usize| (row as f32) - (k as f32);
        let b_at = |k: usize, column: usize| (k * column % 5) as f32;
        let parts = 4 / dtype.bytes() as usize;
        let register = |at: &dyn Fn(usize) -> f32| match dtype {
            Format::F16 => pack(f16_from_f32(at(0)), f16_from_f32(at(1))),
            Format::Bf16 => pack(bf16_from_f32(at(0)), bf16_from_f32(at(1))),
            Format::Tf32 | Format::F32 => at(0).to_bits(),
        };
        let a: [[u32; A]; LANES] = std::array::from_fn(|lane| {
            std::array::from_fn(|r| {
                register(&|part| {
                    let (row, k) = a_element(lane, r, part, parts);
                    a_at(row, k)
                })
            })
        });
        let b: [[u32; B]; LANES] = std::array::from_fn(|lane| {
            std::array::from_fn(|r| {
                register(&|part| {
                    let (k, column) = b_element(lane, r, part, parts);
                    b_at(k, column)
                })
            })
        });
        let mut d = [[0.5; 4]; LANES];
        multiply(dtype, &mut d, &a, &b);
        for (lane, registers) in d.iter().enumerate() {
            for (r, &found) in registers.iter().enumerate() {
                let (row, column) = d_element(lane, r);
                let terms = (0..4 * B * parts).map(|k| a_at(row, k) * b_at(k, column));
                let sum: f32 = terms.sum();
                assert_eq!(found, sum + 0.5, "{dtype:?} {row} {column}");
            }
        }
    }
}
