//! Planning, together: what the ranks tell each other until all have a plan.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tilewise::{Element, Layout, Output};

use super::control::Control;
use super::describe::Description;
use super::gpu::Gpu;
use super::host::Host;
use super::nccl::ByNccl;
use super::places::Places;
use super::segment::{Name, Segment};
use super::shared::Shared;
use super::task::Task;
use crate::cuda::Handle;
use crate::error::Error;
use crate::operands::Operands;
use crate::options::{Engine, Options};
use crate::plan::{Candidate, PlanInfo, Products};
use crate::program::{Operation, Program};

/// How a plan runs.
#[derive(Debug)]
pub(super) enum Way<T, O> {
    Host(Host, Task<T, O>),
    Gpu(Box<Gpu>, Task<T, O>),
    Nccl(Box<ByNccl<T, O>>),
}

/// What a plan is made of.
pub(super) struct Created<T, O> {
    pub info: PlanInfo,
    pub number: u32,
    pub control: Arc<Control>,
    pub way: Way<T, O>,
}

/// What rank 0 has chosen, and where it has put the memory that all share.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Chosen {
    chunks: usize,
    /// The estimated time of a run, and without transfers.
    estimates: [Duration; 2],
    path: PathBuf,
}

/// The operands of all ranks, from those of this one or the reason why they do not fit.
pub(super) fn describe<T: Element, O: Output<T>>(
    shared: &Shared,
    operation: Operation,
    options: &Options,
    own: Result<([Layout; 3], [u64; 3]), Error>,
) -> Result<Operands, Error> {
    let describe =
        |(layouts, alignments)| Description::new::<T, O>(operation, options, layouts, alignments);
    let all = shared.agree(own.map(describe))?;
    Description::operands::<T, O>(operation, &all)
}

/// Creates the plan of this rank, while the others create theirs.
pub(super) fn create<T: Element, O: Output<T>>(
    shared: &Shared,
    options: &Options,
    operands: &Operands,
) -> Result<Created<T, O>, Error> {
    shared.free();
    match (options.engine, &shared.elsewhere) {
        (Engine::Nccl, _) | (Engine::Auto, Some(_)) => {
            let (way, control, info) = ByNccl::create(shared, options, operands)?;
            return Ok(Created {
                info,
                number: shared.number(),
                control,
                way: Way::Nccl(Box::new(way)),
            });
        }
        (Engine::Peer, Some(elsewhere)) => return Err(elsewhere.clone().into()),
        (Engine::Peer | Engine::Auto, None) => {}
    }
    // The step that a rank fails at is the next one that the others hear of. So all ranks take
    // every step, and all fail at the same one.
    let (chosen, mut kept) = match shared.rank {
        0 => match choose::<T, O>(shared, options, operands) {
            Ok((chosen, segment, name)) => (Ok(Some(chosen)), Some((segment, name))),
            Err(error) => (Err(error), None),
        },
        _ => (Ok(None), None),
    };
    let chosen = shared.agree(chosen)?.into_iter().next().flatten();
    let chosen = chosen.ok_or(Error::NoRanks)?;
    let program = program(operands, chosen.chunks);
    let places = Places::new::<T, O>(&program, operands);
    let bytes = bytes(shared, &program, &places);
    let segment = match kept.take() {
        Some((segment, name)) => Ok((segment, Some(name))),
        None => Segment::open(&chosen.path, bytes).map(|segment| (segment, None)),
    };
    let own = segment.and_then(|(segment, name)| {
        let device_of = |rank| (rank == shared.rank).then_some(&shared.device);
        let products = Products::new(device_of, options, &program, operands)?;
        let segment = Arc::new(segment);
        let gpu = match &shared.gpu {
            Some((gpu, _)) => {
                let bytes = places.bytes()[shared.rank];
                Some(Gpu::new(gpu, &segment, &program, shared.rank, bytes)?)
            }
            None => None,
        };
        Ok((segment, name, products, gpu))
    });
    let handle = own
        .as_ref()
        .map(|(_, _, _, gpu)| gpu.as_ref().map(Gpu::handle));
    let handles: Result<Vec<Option<Handle>>, _> = shared.agree(handle.map_err(Error::clone));
    let (segment, _name, products, mut gpu) = own?;
    let handles = handles?;
    let opened = match &mut gpu {
        Some(gpu) => gpu.open(&program, &handles),
        None => Ok(()),
    };
    // Behind this, all have opened everything, and the segment needs no name.
    let all_opened = shared.agree(opened);
    let control = Arc::new(Control::new(Arc::clone(&segment), &program, shared.rank));
    if let Err(error) = all_opened {
        if let Some(gpu) = &mut gpu {
            gpu.close();
            control.let_go();
            if let Some(arena) = gpu.take_arena() {
                shared.bury(&control, arena);
            }
        }
        control.let_go();
        return Err(error);
    }
    let info = PlanInfo {
        engine: Engine::Peer,
        chunks: chosen.chunks,
        workspace_bytes: places.bytes().iter().map(|&bytes| bytes as u64).sum(),
        estimate: chosen.estimates[0],
        products: chosen.estimates[1],
    };
    let words = Control::bytes(&program);
    let host = Host::new(segment, words, places.bytes());
    let device = shared.device.clone();
    let task = Task::new(shared.rank, device, program, places, products);
    let way = match gpu {
        Some(gpu) => Way::Gpu(Box::new(gpu), task),
        None => Way::Host(host, task),
    };
    if let Some((_, watch)) = &shared.gpu {
        watch.add(&control, None);
    }
    Ok(Created {
        info,
        number: shared.number(),
        control,
        way,
    })
}

/// Chooses the number of launches, by the estimate for the GPU of rank 0, and creates the memory
/// that all share.
fn choose<T: Element, O: Output<T>>(
    shared: &Shared,
    options: &Options,
    operands: &Operands,
) -> Result<(Chosen, Segment, Name), Error> {
    let candidate = Candidate::<T, O>::best(
        |_| Some(&shared.device),
        |chunks| program(operands, chunks),
        options,
        operands,
    )?;
    let places = Places::new::<T, O>(&candidate.program, operands);
    let bytes = bytes(shared, &candidate.program, &places);
    let (segment, name) = Segment::create(bytes)?;
    Control::format(&segment, &candidate.program);
    let chosen = Chosen {
        chunks: candidate.chunks,
        estimates: [candidate.estimate, candidate.without_transfers],
        path: name.path().to_owned(),
    };
    Ok((chosen, segment, name))
}

fn program(operands: &Operands, chunks: usize) -> Program {
    operands.operation.pushed_program(&operands.rows, chunks)
}

/// Bytes of the segment of a plan: GPUs share flags alone, and have memory of their own.
fn bytes(shared: &Shared, program: &Program, places: &Places) -> usize {
    let words = Control::bytes(program);
    match shared.gpu {
        Some(_) => words,
        None => Host::bytes(words, places.bytes()),
    }
}
