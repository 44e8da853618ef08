//! [`Collective`]: the whole product of each rank, before or after one collective of NCCL.

use std::sync::Arc;
use std::time::Duration;

use tilewise::{Device, Element, Layout, Matrix, MatrixView, Output, PlanInfo as ProductInfo};

use super::info::PlanInfo;
use super::memory::bytes;
use super::run::Run;
use crate::error::Error;
use crate::nccl::{Exchange, Nccl};
use crate::operands::Operands;
use crate::options::{Engine, Options};
use crate::program::Operation;
use crate::ranks::Ranks;

/// From here on copies hide behind the products, and the estimate of NCCL is not asked for.
const LONG: Duration = Duration::from_micros(500);

/// The percentage by which copies have to be better than NCCL.
const MARGIN: u32 = 10;

/// What the estimate of copies leaves out: the seams between launches, and in an all-reduce the
/// way back. Measured with 13 layers on two H200 (docs/parallel.md, "NCCL"), of which one
/// all-gather was chosen wrongly without it, and one all-reduce.
fn seams(operation: Operation) -> Duration {
    Duration::from_micros(match operation {
        Operation::AllGather | Operation::ReduceScatter => 12,
        Operation::AllReduce => 30,
    })
}

/// The products of all ranks, planned, before anything is created for the exchange.
pub(super) struct Candidate<T, O> {
    operation: Operation,
    products: Vec<tilewise::Plan<T, O>>,
    /// The estimated time of a run, and of the slowest product alone.
    estimate: Duration,
    slowest: Duration,
}

/// One product for each rank, and one collective.
#[derive(Debug)]
pub(super) struct Collective<T, O> {
    nccl: Arc<Nccl>,
    operation: Operation,
    products: Vec<tilewise::Plan<T, O>>,
    /// All rows of A on each rank, or the products whose sums are scattered.
    gathered: Vec<Matrix<T>>,
    summands: Vec<Matrix<O>>,
}

impl<T: Element, O: Output<T>> Candidate<T, O> {
    /// Whether NCCL may be faster than copies with this estimate.
    pub(super) fn may_gain(copies: Duration) -> bool {
        copies < LONG
    }

    /// Whether NCCL is as fast as copies with this estimate.
    pub(super) fn gains(&self, copies: Duration) -> bool {
        (copies + seams(self.operation)) * 100 > self.estimate * (100 - MARGIN)
    }

    /// What is in the way of the operation, if anything is.
    pub(super) fn obstacle(
        ranks: &Ranks,
        options: &Options,
        operands: &Operands,
    ) -> Option<String> {
        obstacle(options, operands).or_else(|| ranks.nccl_obstacle())
    }

    /// Plans the products.
    pub(super) fn new(
        ranks: &Ranks,
        options: &Options,
        operands: &Operands,
    ) -> Result<Self, Error> {
        let devices = ranks.devices();
        let operation = operands.operation;
        let mut products = Vec::new();
        let mut slowest = Duration::ZERO;
        for (rank, device) in devices.iter().enumerate() {
            let plan = product(device, options, operands, rank)?;
            if let ProductInfo::Gpu(info) = plan.info() {
                slowest = slowest.max(info.estimate);
            }
            products.push(plan);
        }
        Ok(Candidate {
            operation,
            products,
            estimate: slowest + time::<T, O>(operands, devices.len()),
            slowest,
        })
    }

    /// Allocates what the ranks of `nccl` receive into.
    pub(super) fn create(
        self,
        nccl: Arc<Nccl>,
        ranks: &Ranks,
        operands: &Operands,
    ) -> Result<(Collective<T, O>, PlanInfo), Error> {
        let mut collective = Collective {
            nccl,
            operation: self.operation,
            products: self.products,
            gathered: Vec::new(),
            summands: Vec::new(),
        };
        for (rank, device) in ranks.devices().iter().enumerate() {
            match self.operation {
                Operation::AllGather => {
                    let layout = gathered(operands, rank);
                    let memory = device.zeros(layout.rows, layout.cols)?;
                    collective.gathered.push(memory);
                }
                Operation::ReduceScatter => {
                    let layout = summands(operands, rank);
                    let memory = device.zeros(layout.rows, layout.cols)?;
                    collective.summands.push(memory);
                }
                Operation::AllReduce => {}
            }
        }
        let info = PlanInfo {
            engine: Engine::Nccl,
            chunks: 1,
            workspace_bytes: bytes(collective.gathered.iter()) + bytes(collective.summands.iter()),
            estimate: self.estimate,
            products: self.slowest,
        };
        Ok((collective, info))
    }
}

impl<T: Element, O: Output<T>> Collective<T, O> {
    /// Enqueues the products and the collective, on the streams of the devices.
    pub(super) fn run(&mut self, run: &mut Run<T, O>) -> Result<(), Error> {
        fn addresses<'m, E: Element>(views: impl Iterator<Item = MatrixView<'m, E>>) -> Vec<u64> {
            views.map(|view| view.address()).collect()
        }
        if self.operation == Operation::AllGather {
            let exchange = Exchange {
                from: addresses(run.a.iter().copied()),
                to: addresses(self.gathered.iter().map(Matrix::view)),
                count: run.a[0].rows() * run.a[0].cols(),
            };
            // SAFETY: A is live, and so is the memory of the plan; both are used by the
            // streams of their devices alone, which order what follows.
            unsafe { self.nccl.exchange::<T>(self.operation, &exchange)? };
        }
        for (rank, plan) in self.products.iter_mut().enumerate() {
            let b = run.b[rank];
            match self.operation {
                Operation::AllGather => {
                    let a = self.gathered[rank].view();
                    let mut inputs = tilewise::Inputs::new();
                    if let Some(bias) = run.bias {
                        inputs = inputs.bias(bias[rank]);
                    }
                    plan.run_with(a, b, run.c[rank].reborrow(), &inputs)?;
                }
                Operation::ReduceScatter => plan.run(run.a[rank], b, &mut self.summands[rank])?,
                Operation::AllReduce => plan.run(run.a[rank], b, run.c[rank].reborrow())?,
            }
        }
        let c = addresses(run.c.iter().map(|c| c.as_view()));
        let count = run.c[0].rows() * run.c[0].cols();
        match self.operation {
            Operation::AllGather => Ok(()),
            Operation::ReduceScatter => {
                let exchange = Exchange {
                    from: addresses(self.summands.iter().map(Matrix::view)),
                    to: c,
                    count,
                };
                // SAFETY: as above.
                unsafe { self.nccl.exchange::<O>(self.operation, &exchange) }
            }
            Operation::AllReduce => {
                let exchange = Exchange {
                    from: c.clone(),
                    to: c,
                    count,
                };
                // SAFETY: as above.
                unsafe { self.nccl.exchange::<O>(self.operation, &exchange) }
            }
        }
    }
}

/// What is in the way of the operation on these operands, if anything is.
pub(crate) fn obstacle(options: &Options, operands: &Operands) -> Option<String> {
    let is_dense = |layout: &Layout| {
        (layout.col_stride == 1 || layout.cols <= 1)
            && (layout.row_stride == layout.cols || layout.rows <= 1)
    };
    let (moved, name) = match operands.operation {
        Operation::AllGather => (&operands.layouts[0], "a"),
        Operation::ReduceScatter | Operation::AllReduce => (&operands.layouts[2], "c"),
    };
    if let Some(rank) = moved.iter().position(|layout| !is_dense(layout)) {
        return Some(format!(
            "{name} of rank {rank} is {}, not dense rows",
            moved[rank]
        ));
    }
    if let Some(rank) = (moved.iter()).position(|layout| layout.rows != moved[0].rows) {
        return Some(format!(
            "{name} of rank {rank} has {} rows, that of rank 0 has {}",
            moved[rank].rows, moved[0].rows
        ));
    }
    if operands.operation != Operation::AllGather && options.finishes() {
        return Some("a bias or an activation follows the sum over ranks".into());
    }
    if moved[0].is_empty() {
        return Some("there is nothing to exchange".into());
    }
    None
}

/// The product of `rank`, on `device`: of all rows that it has or receives.
pub(crate) fn product<T: Element, O: Output<T>>(
    device: &Device,
    options: &Options,
    operands: &Operands,
    rank: usize,
) -> Result<tilewise::Plan<T, O>, Error> {
    let [mut a, b, mut c] = [0, 1, 2].map(|index: usize| operands.layouts[index][rank]);
    let [mut of_a, of_b, mut of_c] = [0, 1, 2].map(|index: usize| operands.alignments[index][rank]);
    match operands.operation {
        Operation::AllGather => {
            a = gathered(operands, rank);
            of_a = Operands::ALIGNMENT;
        }
        Operation::ReduceScatter => {
            c = summands(operands, rank);
            of_c = Operands::ALIGNMENT;
        }
        Operation::AllReduce => {}
    }
    let gemm = options
        .gemm(device, false, true)
        .alignment(1 << (of_a | of_b | of_c).trailing_zeros());
    Ok(gemm.plan_for(a, b, c)?)
}

/// All rows of A, which `rank` receives.
pub(crate) fn gathered(operands: &Operands, rank: usize) -> Layout {
    Layout::row_major(operands.rows.rows(), operands.layouts[0][rank].cols)
}

/// The product of `rank` before the sum over ranks.
pub(crate) fn summands(operands: &Operands, rank: usize) -> Layout {
    Layout::row_major(
        operands.layouts[0][rank].rows,
        operands.layouts[2][rank].cols,
    )
}

/// Bytes of one rank's part of what is exchanged; of all of it in an all-reduce.
fn moved_bytes<T, O>(operands: &Operands) -> u64 {
    let (layout, size) = match operands.operation {
        Operation::AllGather => (operands.layouts[0][0], size_of::<T>()),
        Operation::ReduceScatter | Operation::AllReduce => (operands.layouts[2][0], size_of::<O>()),
    };
    (layout.rows * layout.cols * size) as u64
}

/// The time of a collective of NCCL over `ranks`: a ring, at the rates measured on two H200 of one host with eleven layers of 3 to
/// 117 MB, each within 20 % (NCCL 2.28, without NVLink multicast).
pub(crate) fn time<T, O>(operands: &Operands, ranks: usize) -> Duration {
    let bytes = moved_bytes::<T, O>(operands);
    let (start, rate, steps) = match operands.operation {
        Operation::AllGather => (25e-6, 230e9, ranks as f64 - 1.0),
        Operation::ReduceScatter => (15e-6, 230e9, ranks as f64 - 1.0),
        Operation::AllReduce => (20e-6, 280e9, 2.0 * (ranks as f64 - 1.0) / ranks as f64),
    };
    Duration::from_secs_f64(start + steps * bytes as f64 / rate)
}
