//! What a case has to give: by one device, and by exact sums on the host.

use std::ops::Range;

use tilewise::{Activation, Bias, Device, Element, Epilogue, Gemm, Inputs, Matrix, Output};

use tilewise_parallel::program::{Operation, Shards};

use super::Case;
use super::operands::Operands;

impl Case {
    /// The elements of the C of `rank`, by products of whole matrices on `device` alone.
    pub fn reference<T: Element, O: Output<T>>(
        &self,
        run: &Operands<T, O>,
        device: &Device,
        rank: usize,
    ) -> Result<Vec<O>, tilewise::Error> {
        let ranks = self.rows.len();
        let bias = match self.bias {
            true => Some(device.from_slice(&run.bias[rank].to_vec()?, 1, self.cols[rank])?),
            false => None,
        };
        let owners = match self.operation {
            Operation::AllGather => {
                let mut rows = Vec::new();
                for a in &run.a {
                    rows.extend(a.view()?.to_vec()?);
                }
                let a = device.from_slice(&rows, self.m(), self.depth[0])?;
                let b = run.b[rank].view()?.to_vec()?;
                let b = device.from_slice(&b, self.depth[rank], self.cols[rank])?;
                let c = self.product(device, (&a, &b), None, (bias.as_ref(), true))?;
                return c.to_vec();
            }
            Operation::ReduceScatter => rank..rank + 1,
            Operation::AllReduce => 0..ranks,
        };
        let mut result = Vec::new();
        for owner in owners {
            let rows = self.owned(owner);
            // The sum begins behind the rank that owns the rows.
            let mut sum: Option<Matrix<O>> = None;
            for hop in 0..ranks {
                let part = (owner + 1 + hop) % ranks;
                let k = self.depth[part];
                let a = run.a[part].view()?.slice(rows.clone(), 0..k)?.to_vec()?;
                let a = device.from_slice(&a, rows.len(), k)?;
                let b = run.b[part].view()?.to_vec()?;
                let b = device.from_slice(&b, k, self.cols[rank])?;
                let last = (bias.as_ref(), hop + 1 == ranks);
                sum = Some(self.product(device, (&a, &b), sum.as_ref(), last)?);
            }
            if let Some(sum) = sum {
                result.extend(sum.to_vec()?);
            }
        }
        Ok(result)
    }

    /// The rows that `owner` adds last in a sum over ranks.
    fn owned(&self, owner: usize) -> Range<usize> {
        if self.operation == Operation::ReduceScatter {
            return self.rows_of(owner);
        }
        let even = self.m().div_ceil(self.rows.len());
        let even = even.next_multiple_of(Shards::ALIGNMENT);
        (owner * even).min(self.m())..((owner + 1) * even).min(self.m())
    }

    /// A·B + `source`; with `bias` and the activation, if it is the last of a sum.
    fn product<T: Element, O: Output<T>>(
        &self,
        device: &Device,
        (a, b): (&Matrix<T>, &Matrix<T>),
        source: Option<&Matrix<O>>,
        (bias, is_last): (Option<&Matrix<O>>, bool),
    ) -> Result<Matrix<O>, tilewise::Error> {
        let (mut epilogue, mut inputs) = (Epilogue::new(), Inputs::new());
        if let Some(source) = source {
            epilogue = epilogue.beta(1.0);
            inputs = inputs.source(source.view());
        }
        if is_last {
            epilogue = epilogue.activation(self.activation());
        }
        if let (Some(bias), true) = (bias, is_last) {
            epilogue = epilogue.bias(Bias::PerColumn);
            inputs = inputs.bias(bias.view());
        }
        let mut c = device.zeros::<O>(a.rows(), b.cols())?;
        let gemm = Gemm::new(device).batch_invariant(true).epilogue(epilogue);
        gemm.run(a, b, &mut c, &inputs)?;
        Ok(c)
    }

    /// Whether `found`, the C of `rank`, holds the exact sums.
    pub fn is_exact<T: Element, O: Output<T>>(
        &self,
        run: &Operands<T, O>,
        rank: usize,
        found: &[O],
    ) -> Result<bool, tilewise::Error> {
        let n = self.cols[rank];
        let rows = self.rows_of(rank);
        let mut sums = vec![0.0_f64; rows.len() * n];
        let is_gather = self.operation == Operation::AllGather;
        let mut first = 0;
        for part in 0..self.rows.len() {
            let (a, b) = (&run.a[part], &run.b[if is_gather { rank } else { part }]);
            let (a_rows, k) = (a.view()?.rows(), self.depth[part]);
            let (a, b) = (a.view()?.to_vec()?, b.view()?.to_vec()?);
            let own = match is_gather {
                true => 0..a_rows,
                false => rows.clone(),
            };
            for (row, to) in own.zip(if is_gather { first.. } else { 0.. }) {
                for i in 0..k {
                    let factor = a[row * k + i].to_f64();
                    for j in 0..n {
                        sums[to * n + j] += factor * b[i * n + j].to_f64();
                    }
                }
            }
            first += a_rows;
        }
        let bias = match self.bias {
            true => run.bias[rank].to_vec()?,
            false => vec![O::from_f64(0.0); n],
        };
        let expected = sums.iter().enumerate().map(|(i, sum)| {
            let sum = sum + bias[i % n].to_f64();
            match self.activation() {
                Activation::Relu => sum.max(0.0),
                _ => sum,
            }
        });
        Ok(found.iter().map(|e| e.to_f64()).eq(expected))
    }
}
