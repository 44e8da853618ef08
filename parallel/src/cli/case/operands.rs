//! The operands of one run, with gaps around their elements.

use rand::RngExt as _;
use rand::rngs::SmallRng;
use tilewise::{Device, Element, Layout, Matrix, MatrixView, MatrixViewMut, Output};
use tilewise_parallel::program::Operation;

use super::Case;

/// The operands of one run.
pub struct Operands<T, O> {
    pub a: Vec<Padded<T>>,
    pub b: Vec<Padded<T>>,
    pub c: Vec<Padded<O>>,
    pub bias: Vec<Matrix<O>>,
}

impl<T: Element, O: Output<T>> Operands<T, O> {
    /// Random operands of `case`; C is poisoned.
    pub fn random(
        case: &Case,
        devices: &[Device],
        rng: &mut SmallRng,
    ) -> Result<Self, tilewise::Error> {
        let mut value = || match case.integers {
            // Sums stay below 2⁸, which every type holds.
            true => f64::from(u8::from(rng.random_bool(0.2))) * f64::from(rng.random_range(-1..=1)),
            false => rng.random_range(-1.0..1.0),
        };
        let mut run = Operands {
            a: Vec::new(),
            b: Vec::new(),
            c: Vec::new(),
            bias: Vec::new(),
        };
        for (rank, device) in devices.iter().enumerate() {
            let a_rows = match case.operation {
                Operation::AllGather => case.rows[rank],
                _ => case.m(),
            };
            let (k, n) = (case.depth[rank], case.cols[rank]);
            let [a, b, c] = case.by_columns.map(|by_columns| (by_columns, case.padding));
            let nan = O::from_f64(f64::NAN);
            run.a.push(Padded::new(device, (a_rows, k), a, |_| {
                T::from_f64(value())
            })?);
            run.b
                .push(Padded::new(device, (k, n), b, |_| T::from_f64(value()))?);
            run.c.push(Padded::new(
                device,
                (case.rows_of(rank).len(), n),
                c,
                |_| nan,
            )?);
            let mut bias: Vec<O> = (0..n).map(|_| O::from_f64(value())).collect();
            if let (Operation::AllReduce, Some(first)) = (case.operation, run.bias.first()) {
                // One C has one bias.
                bias = first.to_vec()?;
            }
            run.bias.push(device.from_slice(&bias, 1, n)?);
        }
        Ok(run)
    }
}

/// A matrix inside a larger one, whose gaps hold a pattern.
pub struct Padded<E> {
    /// Lines with their gaps, in rows.
    whole: Matrix<E>,
    shape: (usize, usize),
    by_columns: bool,
}

impl<E: Element> Padded<E> {
    fn new(
        device: &Device,
        shape: (usize, usize),
        (by_columns, padding): (bool, usize),
        mut value: impl FnMut(usize) -> E,
    ) -> Result<Self, tilewise::Error> {
        let (lines, length) = match by_columns {
            true => (shape.1, shape.0),
            false => shape,
        };
        let pitch = length + padding;
        let elements: Vec<E> = (0..lines * pitch)
            .map(|index| match index % pitch.max(1) < length {
                true => value(index),
                false => E::from_f64(GAP),
            })
            .collect();
        Ok(Padded {
            whole: device.from_slice(&elements, lines, pitch)?,
            shape,
            by_columns,
        })
    }

    fn layout(&self) -> Layout {
        let pitch = self.whole.cols();
        match self.by_columns {
            true => Layout::strided(self.shape.0, self.shape.1, 1, pitch),
            false => Layout::strided(self.shape.0, self.shape.1, pitch, 1),
        }
    }

    /// The matrix.
    pub fn view(&self) -> Result<MatrixView<'_, E>, tilewise::Error> {
        self.whole.view().with_layout(self.layout())
    }

    /// The matrix, to write.
    pub fn view_mut(&mut self) -> Result<MatrixViewMut<'_, E>, tilewise::Error> {
        let layout = self.layout();
        self.whole.view_mut().with_layout(layout)
    }

    /// Whether the gaps still hold the pattern.
    pub fn gaps_are_untouched(&self) -> Result<bool, tilewise::Error> {
        let length = match self.by_columns {
            true => self.shape.0,
            false => self.shape.1,
        };
        let pitch = self.whole.cols().max(1);
        let elements = self.whole.to_vec()?;
        let mut gaps = elements
            .iter()
            .enumerate()
            .filter(|(index, _)| index % pitch >= length);
        Ok(gaps.all(|(_, element)| element.to_f64() == GAP))
    }
}

/// What gaps hold.
const GAP: f64 = 77.0;
