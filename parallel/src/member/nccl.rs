//! [`ByNccl`]: a whole product, before or after one collective of NCCL, on one rank.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tilewise::{Element, Inputs, Matrix, Output, PlanInfo as ProductInfo};

use super::control::Control;
use super::segment::Segment;
use super::shared::Shared;
use super::task::OwnRun;
use crate::cuda::{Rank, Words};
use crate::error::Error;
use crate::nccl::{Communicator, SHARING, shares_gpus};
use crate::operands::Operands;
use crate::options::{Engine, Options};
use crate::plan::{PlanInfo, collective};
use crate::program::{Operation, Queue, Shards, matmul_reduce_scatter};
use crate::rank_error::RankError;

/// The product of one rank, and what it receives or gives. Every plan has a communicator of its
/// own, so that runs in another order on another rank wait, and are ended by the time limit, but
/// never mix the matrices of two plans.
#[derive(Debug)]
pub(super) struct ByNccl<T, O> {
    communicator: Arc<Communicator>,
    prepared: Prepared<T, O>,
}

/// All that a rank needs but the communicator.
#[derive(Debug)]
struct Prepared<T, O> {
    rank: Arc<Rank>,
    operation: Operation,
    product: tilewise::Plan<T, O>,
    gathered: Option<Matrix<T>>,
    summand: Option<Matrix<O>>,
    control: Arc<Control>,
    /// The numbers of this rank's runs, which no other process sees.
    words: Words,
    _segment: Arc<Segment>,
}

/// What ranks tell each other before they create a communicator.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    /// Its name, from rank 0.
    name: Option<Vec<u8>>,
    /// The GPU of the rank.
    gpu: [u8; 16],
}

impl<T: Element, O: Output<T>> ByNccl<T, O> {
    /// Plans the product and joins the other ranks, which do the same.
    pub fn create(
        shared: &Shared,
        options: &Options,
        operands: &Operands,
    ) -> Result<(Self, Arc<Control>, PlanInfo), Error> {
        // What can fail on one rank alone fails before any rank waits for another inside NCCL.
        let prepared = Prepared::new(shared, options, operands);
        let part = prepared.as_ref().map_err(Error::clone);
        let parts = shared.agree(part.and_then(|prepared| prepared.part(shared)))?;
        let prepared = prepared?;
        if let Some(why) = shared_gpu(&parts, shares_gpus()) {
            return Err(Error::NoNccl { why });
        }
        let name = parts.into_iter().next().and_then(|part| part.name);
        let created = join(shared, &prepared.rank, &name.unwrap_or_default());
        let created = created.map_err(|error| {
            let error = shared.reason(error);
            // The others may wait inside NCCL, where they see the end of the group alone.
            shared.fail(&error);
            error
        });
        let joined = shared.agree(created.as_ref().map(drop).map_err(Error::clone));
        let communicator = Arc::new(created?);
        if let Err(error) = joined {
            communicator.abort();
            return Err(error);
        }
        let (control, info) = (
            Arc::clone(&prepared.control),
            prepared.info(shared, operands),
        );
        if let Some((_, watch)) = &shared.gpu {
            watch.add(&control, Some(&communicator));
        }
        let way = ByNccl {
            communicator,
            prepared,
        };
        Ok((way, control, info))
    }

    /// Enqueues the product and the collective.
    pub fn run(
        &mut self,
        shared: &Shared,
        control: &Control,
        epoch: u32,
        run: &mut OwnRun<T, O>,
    ) -> Result<(), Error> {
        let Prepared {
            operation,
            product,
            gathered,
            summand,
            words,
            ..
        } = &mut self.prepared;
        let (operation, communicator) = (*operation, &*self.communicator);
        let mut a = run.a;
        if let Some(gathered) = gathered {
            let memory = (run.a.address(), gathered.view().address());
            let count = run.a.rows() * run.a.cols();
            // SAFETY: see `exchange`.
            unsafe { exchange::<T>(shared, communicator, operation, memory, count)? };
            a = gathered.view();
        }
        let inputs: Inputs<O> = run.inputs(true);
        let c = run.c.as_view();
        let (to, count) = (c.address(), c.rows() * c.cols());
        let from = match summand {
            Some(summand) => {
                product.run_with(a, run.b, &mut *summand, &inputs)?;
                summand.view().address()
            }
            None => {
                product.run_with(a, run.b, run.c.reborrow(), &inputs)?;
                to
            }
        };
        if operation != Operation::AllGather {
            // SAFETY: see `exchange`.
            unsafe { exchange::<O>(shared, communicator, operation, (from, to), count)? };
        }
        words.write(Queue::Compute, control.ended(), epoch)
    }
}

impl<T: Element, O: Output<T>> Prepared<T, O> {
    /// Plans the product, and allocates.
    fn new(shared: &Shared, options: &Options, operands: &Operands) -> Result<Self, Error> {
        let no_nccl = |why| Error::NoNccl { why };
        let Some((rank, _)) = &shared.gpu else {
            return Err(no_nccl("the devices are not GPUs of the driver".into()));
        };
        let why = collective::obstacle(options, operands).or_else(Communicator::obstacle);
        if let Some(why) = why {
            return Err(no_nccl(why));
        }
        let (own, device) = (shared.rank, &shared.device);
        let product = collective::product::<T, O>(device, options, operands, own)?;
        let (mut gathered, mut summand) = (None, None);
        match operands.operation {
            Operation::AllGather => {
                let layout = collective::gathered(operands, own);
                gathered = Some(device.zeros(layout.rows, layout.cols)?);
            }
            Operation::ReduceScatter => {
                let layout = collective::summands(operands, own);
                summand = Some(device.zeros(layout.rows, layout.cols)?);
            }
            Operation::AllReduce => {}
        }
        // A program of one rank, none of whose steps another one waits for.
        let alone = Shards::new([0]).ok_or(Error::NoRanks)?;
        let alone = matmul_reduce_scatter(&alone, 1);
        let (segment, _) = Segment::create(Control::bytes(&alone))?;
        Control::format(&segment, &alone);
        let segment = Arc::new(segment);
        let (memory, length) = segment.memory();
        // SAFETY: a mapping has whole pages, the result holds it, and all of it are words.
        let words = unsafe { Words::new(rank, memory, length)? };
        Ok(Prepared {
            rank: Arc::clone(rank),
            operation: operands.operation,
            product,
            gathered,
            summand,
            control: Arc::new(Control::new(Arc::clone(&segment), &alone, 0)),
            words,
            _segment: segment,
        })
    }

    /// What the others need to know.
    fn part(&self, shared: &Shared) -> Result<Part, Error> {
        Ok(Part {
            name: match shared.rank {
                0 => Some(Communicator::name()?),
                _ => None,
            },
            gpu: self.rank.uuid()?,
        })
    }

    fn info(&self, shared: &Shared, operands: &Operands) -> PlanInfo {
        let estimate = match self.product.info() {
            ProductInfo::Gpu(info) => info.estimate,
            _ => Duration::ZERO,
        };
        let elements = |rows: usize, cols: usize, size: usize| (rows * cols * size) as u64;
        let of_gathered = self.gathered.as_ref();
        let of_gathered = of_gathered.map(|m| elements(m.rows(), m.cols(), size_of::<T>()));
        let of_summand = self.summand.as_ref();
        let of_summand = of_summand.map(|m| elements(m.rows(), m.cols(), size_of::<O>()));
        PlanInfo {
            engine: Engine::Nccl,
            chunks: 1,
            // NCCL takes equal parts, so all ranks have as much.
            workspace_bytes: of_gathered.or(of_summand).unwrap_or(0) * shared.ranks as u64,
            estimate: estimate + collective::time::<T, O>(operands, shared.ranks),
            products: estimate,
        }
    }
}

impl<T, O> ByNccl<T, O> {
    /// Ends what is under way, because the group has failed.
    pub fn abort(&self) {
        self.communicator.abort();
    }

    /// Waits until the stream has finished, or failed.
    pub fn finish(&self) {
        self.prepared.rank.finish();
    }
}

/// Creates the communicator `name`, unless the group fails or the time limit passes: NCCL itself
/// waits for ranks that it cannot reach.
fn join(shared: &Shared, rank: &Arc<Rank>, name: &[u8]) -> Result<Communicator, Error> {
    let (own, limit) = (shared.rank, shared.limit);
    let begin = Instant::now();
    let failure = || {
        let late = || RankError::Late {
            rank: own,
            what: "come to the end of ncclCommInitRankConfig".into(),
            limit,
        };
        let failure = shared.wire.failure();
        let failure = failure.or_else(|| (begin.elapsed() > limit).then(late));
        failure.map(Error::Rank)
    };
    Communicator::new(rank, (own, shared.ranks), name, &shared.closing, failure)
}

/// Why these ranks have no communicator, if two of them have one GPU and may not.
fn shared_gpu(parts: &[Part], may_share: bool) -> Option<String> {
    let first = |gpu| parts.iter().position(|part| part.gpu == gpu);
    let gpus = parts.iter().map(|part| first(part.gpu));
    let (rank, other) = gpus
        .enumerate()
        .find(|(rank, first)| *first != Some(*rank))?;
    let other = other.unwrap_or(rank);
    (!may_share).then(|| format!("rank {rank} has the GPU of rank {other}; {SHARING}"))
}

/// Enqueues the exchange of a run.
///
/// # Safety
/// The memory is the caller's, who has borrowed it to the run and whose later work is behind it; or
/// the plan's, which is freed behind the streams. All is used by the library's stream alone. After an
/// error, the communicator is aborted before anything else.
unsafe fn exchange<E: Element>(
    shared: &Shared,
    communicator: &Communicator,
    operation: Operation,
    memory: (u64, u64),
    count: usize,
) -> Result<(), Error> {
    let failure = || shared.wire.failure().map(Error::Rank);
    // SAFETY: the caller's duty.
    let exchanged = unsafe { communicator.exchange::<E>(operation, memory, count, failure) };
    exchanged.map_err(|error| shared.reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_on_one_gpu_are_named() {
        let part = |gpu| Part {
            name: None,
            gpu: [gpu; 16],
        };
        let own = [1, 2, 3].map(part);
        let shared = [1, 2, 2].map(part);
        assert_eq!(shared_gpu(&own, false), None);
        assert_eq!(shared_gpu(&shared, true), None);
        let why = shared_gpu(&shared, false).expect("two ranks have one");
        assert!(
            why.starts_with("rank 2 has the GPU of rank 1; set NCCL"),
            "{why}"
        );
    }
}
