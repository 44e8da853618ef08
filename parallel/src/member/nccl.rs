//! [`ByNccl`]: a whole product, before or after one collective of NCCL, on one rank.

use std::sync::Arc;

use tilewise::{Element, Inputs, Matrix, Output, PlanInfo as ProductInfo};

use super::control::Control;
use super::segment::Segment;
use super::shared::Shared;
use super::task::OwnRun;
use crate::cuda::{Rank, Words};
use crate::error::Error;
use crate::nccl::Communicator;
use crate::operands::Operands;
use crate::options::{Engine, Options};
use crate::plan::{PlanInfo, collective};
use crate::program::{Operation, Queue, Shards, matmul_reduce_scatter};

/// The product of one rank, and what it receives or gives. Every plan has a communicator of its
/// own, so that runs in another order on another rank wait, and are ended by the time limit, but
/// never mix the matrices of two plans.
#[derive(Debug)]
pub(super) struct ByNccl<T, O> {
    rank: Arc<Rank>,
    communicator: Arc<Communicator>,
    operation: Operation,
    product: tilewise::Plan<T, O>,
    gathered: Option<Matrix<T>>,
    summand: Option<Matrix<O>>,
    /// The numbers of this rank's runs, which no other process sees.
    words: Words,
    _segment: Arc<Segment>,
}

impl<T: Element, O: Output<T>> ByNccl<T, O> {
    /// Plans the product and joins the other ranks, which do the same.
    pub fn create(
        shared: &Shared,
        options: &Options,
        operands: &Operands,
    ) -> Result<(Self, Arc<Control>, PlanInfo), Error> {
        let no_gpu = || Some("the devices are not GPUs of the driver".into());
        let why = collective::obstacle(options, operands).or_else(|| match shared.gpu {
            Some(_) => Communicator::obstacle(),
            None => no_gpu(),
        });
        let name = match (why, shared.rank) {
            (Some(why), _) => Err(Error::NoNccl { why }),
            (None, 0) => Communicator::name().map(Some),
            (None, _) => Ok(None),
        };
        let names = shared.agree(name)?;
        let name = names.into_iter().next().flatten().unwrap_or_default();
        let created = Self::join(shared, options, operands, &name);
        let joined = shared.agree(created.as_ref().map(drop).map_err(Error::clone));
        let (way, control, info) = created?;
        if let Err(error) = joined {
            way.communicator.abort();
            return Err(error);
        }
        if let Some((_, watch)) = &shared.gpu {
            watch.add(&control, Some(&way.communicator));
        }
        Ok((way, control, info))
    }

    fn join(
        shared: &Shared,
        options: &Options,
        operands: &Operands,
        name: &[u8],
    ) -> Result<(Self, Arc<Control>, PlanInfo), Error> {
        let Some((rank, _)) = &shared.gpu else {
            return Err(Error::NoRanks);
        };
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
        let failure = || shared.wire.failure().map(Error::Rank);
        let communicator = Communicator::new(rank, (own, shared.ranks), name, failure)?;
        let estimate = match product.info() {
            ProductInfo::Gpu(info) => info.estimate,
            _ => Default::default(),
        };
        let elements = |rows: usize, cols: usize, size: usize| (rows * cols * size) as u64;
        let of_gathered = gathered.as_ref();
        let of_gathered = of_gathered.map(|m| elements(m.rows(), m.cols(), size_of::<T>()));
        let of_summand = summand.as_ref();
        let of_summand = of_summand.map(|m| elements(m.rows(), m.cols(), size_of::<O>()));
        let info = PlanInfo {
            engine: Engine::Nccl,
            chunks: 1,
            // NCCL takes equal parts, so all ranks have as much.
            workspace_bytes: of_gathered.or(of_summand).unwrap_or(0) * shared.ranks as u64,
            estimate: estimate + collective::time::<T, O>(operands, shared.ranks),
            products: estimate,
        };
        let control = Arc::new(Control::new(Arc::clone(&segment), &alone, 0));
        let way = ByNccl {
            rank: Arc::clone(rank),
            communicator: Arc::new(communicator),
            operation: operands.operation,
            product,
            gathered,
            summand,
            words,
            _segment: segment,
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
        let mut a = run.a;
        if let Some(gathered) = &self.gathered {
            let memory = (run.a.address(), gathered.view().address());
            self.exchange::<T>(shared, memory, run.a.rows() * run.a.cols())?;
            a = gathered.view();
        }
        let inputs: Inputs<O> = run.inputs(true);
        let c = run.c.as_view();
        let (to, count) = (c.address(), c.rows() * c.cols());
        match &mut self.summand {
            Some(summand) => self.product.run_with(a, run.b, &mut *summand, &inputs)?,
            None => (self.product).run_with(a, run.b, run.c.reborrow(), &inputs)?,
        }
        match (self.operation, &self.summand) {
            (Operation::AllGather, _) => {}
            (_, Some(summand)) => {
                self.exchange::<O>(shared, (summand.view().address(), to), count)?;
            }
            (_, None) => self.exchange::<O>(shared, (to, to), count)?,
        }
        self.words.write(Queue::Compute, control.ended(), epoch)
    }

    fn exchange<E: Element>(
        &self,
        shared: &Shared,
        memory: (u64, u64),
        count: usize,
    ) -> Result<(), Error> {
        let failure = || shared.wire.failure().map(Error::Rank);
        // SAFETY: the caller has borrowed its matrices to the run and its later work is behind it;
        // the plan's memory is freed in the order of the stream. All is used by this stream alone.
        unsafe { (self.communicator).exchange::<E>(self.operation, memory, count, failure) }
    }
}

impl<T, O> ByNccl<T, O> {
    /// Ends what is under way, because the group has failed.
    pub fn abort(&self) {
        self.communicator.abort();
    }

    /// Waits until the stream has finished, or failed.
    pub fn finish(&self) {
        self.rank.finish();
    }
}
