//! [`Shared`]: what a member and its plans have in common.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tilewise::Device;

use super::control::Control;
use super::order::Order;
use super::watch::{REASON, Watch};
use crate::cuda::{Arena, Rank};
use crate::error::Error;
use crate::nccl::Closing;
use crate::rank_error::RankError;
use crate::wire::Wire;

/// A member of a group.
#[derive(Debug)]
pub(super) struct Shared {
    pub device: Device,
    pub rank: usize,
    pub ranks: usize,
    pub limit: Duration,
    /// Streams and the watch, on a GPU of the driver.
    pub gpu: Option<(Arc<Rank>, Watch)>,
    /// Who holds it may plan: the steps of two plans are not mixed.
    pub planning: Mutex<()>,
    /// Number of plans that the group has made.
    pub plans: AtomicU32,
    /// The order of runs, where all members are on one host.
    pub order: Option<Order>,
    /// A rank of another host, if there is one.
    pub elsewhere: Option<RankError>,
    /// Memory of plans that are gone, which other ranks may not have closed yet.
    pub graves: Mutex<Vec<(Arc<Control>, Arena)>>,
    /// Communicators of plans that are gone, which other ranks may not have closed yet.
    pub closing: Arc<Closing>,
    /// The number of the next run of all plans. Who holds it may enqueue one.
    pub runs: Mutex<u32>,
    pub wire: Arc<Wire>,
}

impl Shared {
    /// [`agree`] with the other members.
    pub fn agree<T: Serialize + DeserializeOwned>(
        &self,
        part: Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        agree(&self.wire, part, self.limit)
    }

    /// An error if the stream of this rank captures a graph.
    pub fn refuse_capture(&self) -> Result<(), Error> {
        match &self.gpu {
            Some((gpu, _)) if gpu.captures()? => Err(Error::Capturing { rank: self.rank }),
            _ => Ok(()),
        }
    }

    /// Ends the group because of `error`, of this rank unless it is the group's, and returns the
    /// failure.
    pub fn fail(&self, error: &Error) -> RankError {
        let failure = match error {
            Error::Rank(failure) => failure.clone(),
            error => RankError::Failed {
                rank: self.rank,
                why: error.to_string(),
            },
        };
        self.wire.fail(&failure);
        failure
    }

    /// `error`, or the failure of the group that it comes from: where a rank is lost, NCCL may see
    /// so before the wire does.
    pub fn reason(&self, error: Error) -> Error {
        match error {
            Error::Nccl { .. } => (self.wire.failure_within(REASON)).map_or(error, Error::Rank),
            error => error,
        }
    }

    /// The number of a new plan. Plans are made by all ranks, one at a time, so all count alike.
    pub fn number(&self) -> u32 {
        self.plans.fetch_add(1, Ordering::Relaxed)
    }

    /// Frees `arena`, the memory of a plan, once no other rank touches it any more. The others
    /// may drop their plans much later, so this does not wait.
    pub fn bury(&self, control: &Arc<Control>, arena: Arena) {
        let mut graves = self.graves.lock().unwrap_or_else(PoisonError::into_inner);
        graves.push((Arc::clone(control), arena));
        graves.retain(|(control, _)| !control.is_let_go());
    }

    /// Frees the memory of plans that no other rank touches any more.
    pub fn free(&self) {
        let mut graves = self.graves.lock().unwrap_or_else(PoisonError::into_inner);
        graves.retain(|(control, _)| !control.is_let_go());
    }
}

/// How long a member that leaves waits for others to close its memory.
const CLOSING: Duration = Duration::from_secs(2);

impl Drop for Shared {
    /// Waits a moment for the others to close this rank's memory, and NCCL's communicators. What
    /// they have not closed then (because they have failed, or still have their plans) is left to
    /// the end of the process.
    fn drop(&mut self) {
        let begin = Instant::now();
        let left = |shared: &Shared| {
            shared.free();
            let graves = shared.graves.lock().unwrap_or_else(PoisonError::into_inner);
            !graves.is_empty() || shared.closing.is_under_way()
        };
        while left(self) && self.wire.failure().is_none() && begin.elapsed() < CLOSING {
            thread::sleep(Duration::from_millis(1));
        }
        self.closing.give_up();
        let graves = self
            .graves
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        graves.drain(..).for_each(|(_, arena)| arena.leak());
    }
}

/// Gives the part of this rank to the others, or its error, and returns the parts of all if no
/// rank has an error.
pub(super) fn agree<T: Serialize + DeserializeOwned>(
    wire: &Wire,
    part: Result<T, Error>,
    limit: Duration,
) -> Result<Vec<T>, Error> {
    let (part, own): (Result<T, String>, _) = match part {
        Ok(part) => (Ok(part), None),
        Err(error) => (Err(error.to_string()), Some(error)),
    };
    let parts = wire.exchange(&part, limit);
    if let Some(own) = own {
        return Err(own);
    }
    let parts = parts?.into_iter().enumerate();
    let failed = |(rank, part): (usize, Result<T, String>)| {
        part.map_err(|why| Error::Rank(RankError::Failed { rank, why }))
    };
    parts.map(failed).collect()
}
