//! A case's operands on the host and on the device, and their expected values after the
//! product.

use tilewise::{Device, Element, Error, Output, Plan};

use crate::case::{Case, Data, Failure};
use crate::guarded::{Guarded, Resident};
use crate::reference;

/// A, B and a C of NaN, on the host.
pub struct Operands<T, O> {
    /// A.
    pub a: Guarded<T>,
    /// B.
    pub b: Guarded<T>,
    /// C.
    pub c: Guarded<O>,
}

/// The same on a device.
pub struct OnDevice<T, O> {
    /// A.
    pub a: Resident<T>,
    /// B.
    pub b: Resident<T>,
    /// C.
    pub c: Resident<O>,
}

/// The buffers as copied back from the device.
pub struct ReadBack<T, O> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<O>,
}

impl<T: Element, O: Output<T>> Operands<T, O> {
    /// Operands that only the seed and the case's name decide.
    pub fn draw(case: &Case, seed: u64) -> Self {
        let mut random = case.random(seed);
        let [a, b, c] = case.placements();
        Operands {
            a: Guarded::filled(a, || case.draw(&mut random)),
            b: Guarded::filled(b, || case.draw(&mut random)),
            c: Guarded::poisoned(c),
        }
    }

    /// Copies on `device`.
    pub fn upload(&self, device: &Device) -> Result<OnDevice<T, O>, Error> {
        Ok(OnDevice {
            a: self.a.upload(device)?,
            b: self.b.upload(device)?,
            c: self.c.upload(device)?,
        })
    }

    /// Whether `found` has the product in C, and nothing else was written. The
    /// number is the largest error over the largest accepted.
    pub fn check(&self, case: &Case, found: &ReadBack<T, O>) -> Result<f64, Failure> {
        let wrong = |why| Err(Failure::Wrong(why));
        if let Some(place) = self.c.trespass(&found.c) {
            return wrong(format!("wrote outside C, {place} elements after its first"));
        }
        for (name, operand, found) in [("A", &self.a, &found.a), ("B", &self.b, &found.b)] {
            if !operand.is_unchanged(found) {
                return wrong(format!("wrote to {name}"));
            }
        }
        let (m, n, k) = case.shape;
        let all = self.c.elements(&found.c);
        if let Some(place) = all.iter().position(|element| element.to_f64().is_nan()) {
            let (row, col) = (place / n, place % n);
            return wrong(format!("row {row}, column {col}: NaN, or never written"));
        }
        let factor = |operand: &Guarded<T>| {
            reference::as_multiplied(operand.elements(&operand.expected), case.input)
        };
        let rows = reference::rows_to_check(m, n, k);
        let product = reference::product(&factor(&self.a), &factor(&self.b), (n, k), &rows)?;
        let found: Vec<O> = rows
            .iter()
            .flat_map(|row| &all[row * n..][..n])
            .copied()
            .collect();
        match case.data {
            Data::Uniform => reference::check(&product, &found, n, case.input),
            Data::Integers => reference::check_exact(&product, &found, n),
        }
        .map_err(Failure::Wrong)
    }
}

impl<T: Element, O: Output<T>> OnDevice<T, O> {
    /// Plans `case` for these operands.
    pub fn plan(&mut self, case: &Case, device: &Device) -> Result<Plan<T, O>, Error> {
        case.gemm(device)
            .plan(self.a.view()?, self.b.view()?, self.c.view_mut()?)
    }

    /// Runs `plan` with these operands.
    pub fn run(&mut self, plan: &mut Plan<T, O>) -> Result<(), Error> {
        plan.run(self.a.view()?, self.b.view()?, self.c.view_mut()?)
    }

    /// Makes them copies of `operands`, of the same case.
    pub fn write(&mut self, operands: &Operands<T, O>) -> Result<(), Error> {
        self.a.write(&operands.a)?;
        self.b.write(&operands.b)?;
        self.c.write(&operands.c)
    }

    /// All of them as they are now.
    pub fn read_back(&self) -> Result<ReadBack<T, O>, Error> {
        Ok(ReadBack {
            a: self.a.read_back()?,
            b: self.b.read_back()?,
            c: self.c.read_back()?,
        })
    }
}
