//! [`Shape`]: which extents of the arguments belong together.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewise::{Bias, Gated};

use crate::array::{Array, MAX_RANK};

/// The extents of a product, from its operands.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows of A and C.
    m: usize,
    /// Columns of B.
    n: usize,
    /// Batches, rows and columns of C.
    output: [usize; MAX_RANK],
    /// Whether C is a batch.
    is_batch: bool,
}

impl Shape {
    /// Returns an error unless the operands belong together.
    pub fn of(a: &Array, b: &Array, gated: Option<Gated>) -> PyResult<Shape> {
        a.check_matrix("a")?;
        b.check_matrix("b")?;
        if a.cols() != b.rows() {
            return Err(PyValueError::new_err(format!(
                "a is {:?} and b is {:?}; accepted: as many columns of a as rows of b",
                a.dimensions(),
                b.dimensions()
            )));
        }
        let (x, y) = (a.batches(), b.batches());
        if x != y && x != 1 && y != 1 {
            return Err(PyValueError::new_err(format!(
                "a has {x} batches and b has {y}; accepted: as many, or 1 for a matrix that all \
                 batches share"
            )));
        }
        let n = b.cols();
        if gated.is_some() && n % 2 == 1 {
            return Err(PyValueError::new_err(format!(
                "b has {n} columns; accepted with gated: an even number"
            )));
        }
        let m = a.rows();
        Ok(Shape {
            m,
            n,
            // A batch of zero meets a shared matrix in zero batches.
            output: [
                if x == 1 { y } else { x },
                m,
                if gated.is_some() { n / 2 } else { n },
            ],
            is_batch: a.rank == 3 || b.rank == 3,
        })
    }

    /// The extents of C.
    pub fn output(&self) -> &[usize] {
        match self.is_batch {
            true => &self.output,
            false => &self.output[1..],
        }
    }

    /// Returns an error unless the argument has the extents of C.
    pub fn check_output(&self, argument: &str, array: &Array) -> PyResult<()> {
        let expected = self.output();
        if array.dimensions() != expected {
            return Err(PyValueError::new_err(format!(
                "{argument} is {:?}; accepted: {expected:?}",
                array.dimensions()
            )));
        }
        Ok(())
    }

    /// A vector along the rows (M values), with the layout that the library takes.
    pub fn row_vector(&self, argument: &str, array: Array) -> PyResult<Array> {
        match *array.dimensions() {
            [len] if len == self.m => contiguous(argument, array, Bias::PerRow),
            [len, 1] if len == self.m => contiguous(argument, array, Bias::PerRow),
            _ => Err(self.wrong_vector(argument, &array, format!("[{0}], [{0}, 1]", self.m))),
        }
    }

    /// A vector along the columns (N values).
    pub fn col_vector(&self, argument: &str, array: Array) -> PyResult<Array> {
        match *array.dimensions() {
            [len] if len == self.n => contiguous(argument, array, Bias::PerColumn),
            [1, len] if len == self.n => contiguous(argument, array, Bias::PerColumn),
            _ => Err(self.wrong_vector(argument, &array, format!("[{0}], [1, {0}]", self.n))),
        }
    }

    /// A bias as NumPy would broadcast it: a vector, or a single row, has a value for each
    /// column; a single column has a value for each row.
    pub fn bias(&self, array: Array) -> PyResult<(Bias, Array)> {
        match *array.dimensions() {
            [rows, 1] if rows == self.m && self.n != 1 => {
                Ok((Bias::PerRow, contiguous("bias", array, Bias::PerRow)?))
            }
            [len] | [1, len] if len == self.n => {
                Ok((Bias::PerColumn, contiguous("bias", array, Bias::PerColumn)?))
            }
            [rows, 1] if rows == self.m => {
                Ok((Bias::PerRow, contiguous("bias", array, Bias::PerRow)?))
            }
            _ => {
                let accepted = format!("[{0}], [1, {0}], [{1}, 1]", self.n, self.m);
                Err(self.wrong_vector("bias", &array, accepted))
            }
        }
    }

    fn wrong_vector(&self, argument: &str, array: &Array, accepted: String) -> PyErr {
        PyValueError::new_err(format!(
            "{argument} is {:?}; accepted: {accepted}",
            array.dimensions()
        ))
    }
}

/// The vector as a row or a column without gaps.
fn contiguous(argument: &str, array: Array, along: Bias) -> PyResult<Array> {
    let (len, stride) = (0..3)
        .map(|at| (array.shape[at], array.strides[at]))
        .find(|&(extent, _)| extent != 1)
        .unwrap_or((1, 1));
    if stride != 1 && len > 1 {
        return Err(PyValueError::new_err(format!(
            "{argument} has the stride {stride}; accepted: 1"
        )));
    }
    let (shape, strides) = match along {
        Bias::PerRow => ([1, len, 1], [len, 1, 1]),
        Bias::PerColumn => ([1, 1, len], [len, len, 1]),
    };
    Ok(Array {
        shape,
        strides,
        ..array
    })
}
