//! [`matmul`] against candle's product of contiguous tensors.

use candle_core::{Device, Result, Tensor};
use tilewise_candle::matmul;

use crate::operands::{Operands, TYPES, shapes};
use crate::reference::{self, assert_close};

/// Every kind of strides of A with every kind of B.
pub fn matrices(device: &Device) -> Result<()> {
    for (seed, &(m, n, k)) in shapes(device).iter().enumerate() {
        for dtype in TYPES {
            let mut operands = Operands::new(device, dtype, seed as u64);
            let (a, b) = (operands.views(&[], m, k)?, operands.views(&[], k, n)?);
            for (a_kind, a) in &a {
                for (b_kind, b) in &b {
                    check(&format!("{m}×{n}×{k} {dtype:?}, {a_kind} × {b_kind}"), a, b)?;
                }
            }
        }
    }
    Ok(())
}

/// The same with batches, which broadcast.
pub fn batches(device: &Device) -> Result<()> {
    let batches: [(&[usize], &[usize]); 8] = [
        (&[3], &[3]),
        (&[3], &[]),
        (&[], &[3]),
        (&[1], &[4]),
        (&[2, 3], &[2, 3]),
        (&[2, 3], &[1, 3]),
        (&[2, 1], &[3]),
        (&[2, 3], &[]),
    ];
    // Not the largest: the reference takes long.
    for (seed, &(m, n, k)) in shapes(device).iter().take(3).enumerate() {
        for dtype in TYPES {
            let mut operands = Operands::new(device, dtype, seed as u64);
            for (a_batches, b_batches) in batches {
                let a = operands.views(a_batches, m, k)?;
                let b = operands.views(b_batches, k, n)?;
                for (a_kind, a) in &a {
                    for (b_kind, b) in &b {
                        let what = format!(
                            "{m}×{n}×{k} {dtype:?}, {a_kind} {a_batches:?} × {b_kind} {b_batches:?}"
                        );
                        check(&what, a, b)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Queries and keys with the heads between tokens and features: candle's own product wants
/// copies of both.
pub fn attention(device: &Device) -> Result<()> {
    let (batch, heads, tokens, features) = (2, 3, 17, 8);
    for dtype in TYPES {
        let mut operands = Operands::new(device, dtype, 5);
        let mut split = || -> Result<Tensor> {
            operands
                .dense((batch, tokens, heads * features))?
                .reshape((batch, tokens, heads, features))?
                .transpose(1, 2)
        };
        let (queries, keys, values) = (split()?, split()?, split()?);
        check(&format!("{dtype:?}, Q·Kᵀ"), &queries, &keys.t()?)?;
        let weights = operands.dense((batch, heads, tokens, tokens))?;
        check(&format!("{dtype:?}, weights·V"), &weights, &values)?;
    }
    Ok(())
}

/// Dimensions of 0.
pub fn empty(device: &Device) -> Result<()> {
    for dtype in TYPES {
        let mut operands = Operands::new(device, dtype, 6);
        for (a, b) in [
            (vec![0, 4], vec![4, 5]),
            (vec![3, 4], vec![4, 0]),
            (vec![0, 3, 4], vec![0, 4, 5]),
        ] {
            let (a, b) = (operands.dense(a)?, operands.dense(b)?);
            let c = matmul(&a, &b)?;
            let (m, n) = (a.dims()[a.rank() - 2], b.dims()[b.rank() - 1]);
            assert_eq!(c.dims()[c.rank() - 2..], [m, n]);
            assert_eq!(c.elem_count(), 0);
        }
        // The sum of nothing is 0.
        let c = matmul(&operands.dense((3, 0))?, &operands.dense((0, 5))?)?;
        let zeros = reference::exact(&c)?.zeros_like()?;
        assert_close("K = 0", &c, &zeros, &zeros)?;
    }
    Ok(())
}

/// Compares one product.
fn check(what: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    let c = matmul(a, b)?;
    let (expected, magnitude) = (reference::product(a, b)?, reference::magnitude(a, b)?);
    assert_close(what, &c, &expected, &magnitude)
}
