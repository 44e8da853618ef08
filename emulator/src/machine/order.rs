//! The knowledge of threads: which accesses happened before their next access, and how
//! threads pass that knowledge on.

use super::Cluster;
use crate::agent::Proxy;
use crate::clock::{Epoch, Knowledge};
use crate::memory::Actor;
use crate::shadow::Access;

impl Cluster<'_> {
    /// The epoch of a thread.
    pub(super) fn epoch(&self, thread: u32) -> Epoch {
        Epoch {
            agent: thread,
            clock: self.threads[thread as usize].clock,
        }
    }

    /// All knowledge of `thread` and its own accesses so far, for other threads to acquire.
    /// Its later accesses are not included.
    pub(super) fn release(&mut self, thread: u32) -> Knowledge {
        let epoch = self.epoch(thread);
        let thread = &mut self.threads[thread as usize];
        thread.clock += 1;
        let mut knowledge = thread.knowledge.clone();
        if self.launch.options.checks {
            knowledge.generic.learn(epoch);
        }
        knowledge
    }

    /// The knowledge of `thread`, and its epoch, for an asynchronous operation that it starts.
    pub(super) fn start(&mut self, thread: u32) -> (Knowledge, Epoch) {
        let epoch = self.epoch(thread);
        let thread = &mut self.threads[thread as usize];
        thread.clock += 1;
        (thread.knowledge.clone(), epoch)
    }

    /// Passes knowledge on to a thread.
    pub(super) fn acquire(&mut self, thread: u32, knowledge: &Knowledge) {
        if self.launch.options.checks {
            self.threads[thread as usize].knowledge.join(knowledge);
        }
    }

    /// Lets a thread know of an epoch.
    pub(super) fn learn(&mut self, thread: u32, epoch: Epoch) {
        if self.launch.options.checks {
            self.threads[thread as usize].knowledge.learn(epoch);
        }
    }

    /// Makes all knowledge of a thread visible to the async proxy.
    pub(super) fn fence_proxy(&mut self, thread: u32) {
        let knowledge = self.release(thread);
        let thread = &mut self.threads[thread as usize];
        thread.knowledge.asynchronous.join(&knowledge.generic);
    }

    /// A thread as global memory sees it; `None` if accesses are not checked.
    pub(super) fn actor(&self, thread: u32) -> Option<Actor<'_>> {
        let knowledge = &self.threads[thread as usize].knowledge;
        self.engine_actor(self.epoch(thread), knowledge)
    }

    /// An asynchronous unit as global memory sees it; `None` if accesses are not checked.
    pub(super) fn engine_actor<'k>(
        &self,
        epoch: Epoch,
        knowledge: &'k Knowledge,
    ) -> Option<Actor<'k>> {
        self.checks().then_some(Actor {
            cluster: self.index,
            epoch,
            knowledge,
        })
    }
}

/// The access of an ordinary instruction of the thread at `epoch`.
pub(super) fn own_access(epoch: Epoch, knowledge: &Knowledge) -> Access<'_> {
    Access {
        epoch,
        knowledge,
        issuer: None,
        proxy: Proxy::Generic,
    }
}
