//! Products in f64, and random elements.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise_cudarc::tilewise::{Element, Layout};

use crate::Verdict;

/// Number of products that [`assert_close`] has compared.
static COMPARED: AtomicU64 = AtomicU64::new(0);

pub fn compared() -> u64 {
    COMPARED.load(Ordering::Relaxed)
}

/// Random elements in -1..1.
pub fn random<T: Element>(len: usize, seed: u64) -> Vec<T> {
    let mut random = StdRng::seed_from_u64(seed);
    (0..len)
        .map(|_| T::from_f64(random.random_range(-1.0..1.0)))
        .collect()
}

/// Index of an element of a layout.
pub fn at(layout: Layout, batch: usize, row: usize, col: usize) -> usize {
    batch * layout.batch_stride + row * layout.row_stride + col * layout.col_stride
}

/// One value of a product, and the scale of its rounding errors.
#[derive(Clone, Copy, Default)]
pub struct Sum {
    pub value: f64,
    pub magnitude: f64,
}

impl Sum {
    /// Row `row` of A times column `col` of B.
    pub fn of<T: Element>(
        [a, b]: [&[T]; 2],
        [a_layout, b_layout]: [Layout; 2],
        batch: usize,
        (row, col): (usize, usize),
    ) -> Sum {
        let mut sum = Sum::default();
        for k in 0..a_layout.cols {
            let product =
                a[at(a_layout, batch, row, k)].to_f64() * b[at(b_layout, batch, k, col)].to_f64();
            sum.value += product;
            sum.magnitude += product.abs();
        }
        sum
    }

    /// The sum times a factor.
    pub fn scaled(self, factor: f64) -> Sum {
        Sum {
            value: self.value * factor,
            magnitude: self.magnitude * factor.abs(),
        }
    }

    /// The sum with one more term.
    pub fn plus(self, term: f64) -> Sum {
        Sum {
            value: self.value + term,
            magnitude: self.magnitude + term.abs(),
        }
    }

    /// A function, no steeper than 2, of the sum.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Sum {
        Sum {
            value: function(self.value),
            magnitude: 2.0 * self.magnitude,
        }
    }
}

/// Returns an error unless `found` is `before` outside of `layout`, and in it `expected` but
/// for its last bit, and for rounding errors of f32.
pub fn assert_close<O: Element>(
    what: &str,
    found: &[O],
    before: &[O],
    layout: Layout,
    expected: impl Fn(usize, usize, usize) -> Sum,
) -> Verdict {
    COMPARED.fetch_add(1, Ordering::Relaxed);
    let unit = match size_of::<O>() {
        4 => 2_f64.powi(-23),
        // bf16 has 8 significant bits, f16 has 11.
        _ if O::from_f64(1.0 + 2_f64.powi(-10)) == O::from_f64(1.0) => 2_f64.powi(-7),
        _ => 2_f64.powi(-10),
    };
    let mut rest = before.to_vec();
    for batch in 0..layout.batches {
        for (row, col) in (0..layout.rows).flat_map(|r| (0..layout.cols).map(move |c| (r, c))) {
            let index = at(layout, batch, row, col);
            let Sum { value, magnitude } = expected(batch, row, col);
            // The smallest f16 is 2^-24.
            let bound = unit * value.abs() + 2_f64.powi(-18) * magnitude + 2_f64.powi(-24);
            let found = found[index].to_f64();
            // False for a NaN, too.
            let is_close = (found - value).abs() <= bound;
            if !is_close {
                return Err(format!(
                    "{what}: C[{batch}, {row}, {col}] is {found}, expected {value} ± {bound}"
                )
                .into());
            }
            rest[index] = O::from_f64(found);
        }
    }
    if rest != found {
        return Err(format!("{what}: an element outside of C has changed").into());
    }
    Ok(())
}
