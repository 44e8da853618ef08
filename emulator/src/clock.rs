//! Vector clocks: which accesses happened before which.
//!
//! Every agent that accesses memory counts its own epochs, and has a vector clock, which
//! holds the last epoch that it knows of every other agent (Lamport 1978; Fidge and
//! Mattern 1988). An access is ordered after another access if its agent's vector covers
//! the epoch of the other. Two accesses that conflict and are not ordered are a data race.
//! The shadow memory keeps epochs and not vectors, as FastTrack does (Flanagan and Freund,
//! PLDI 2009).
//!
//! The agents are the threads of a cluster and the asynchronous units beside them: an
//! mbarrier's copies, a warpgroup's multiplies, a thread's bulk stores and its `cp.async`.
//! An asynchronous unit finishes groups of operations in order. Its epoch is the number of
//! the group, and a thread that waits for a group learns of that epoch.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The number of an agent of a cluster: threads first, in order, then asynchronous units.
pub(super) type Agent = u32;

/// A moment in the life of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Epoch {
    pub(super) agent: Agent,
    /// Counts from 1; 0 is before everything.
    pub(super) clock: u32,
}

/// The last known epoch of each agent. Copies share their memory until one of them
/// changes, because after a barrier most threads have equal knowledge.
#[derive(Clone, Debug, Default)]
pub(super) struct VectorClock(Rc<Vec<u32>>);

impl VectorClock {
    /// The last known epoch of `agent`.
    pub(super) fn get(&self, agent: Agent) -> u32 {
        self.0.get(agent as usize).copied().unwrap_or(0)
    }

    /// Whether `epoch` is known.
    pub(super) fn covers(&self, epoch: Epoch) -> bool {
        self.get(epoch.agent) >= epoch.clock
    }

    /// Whether all that `other` knows is known.
    pub(super) fn includes(&self, other: &VectorClock) -> bool {
        let epochs = (0..).zip(other.0.iter());
        epochs
            .map(|(agent, &clock)| Epoch { agent, clock })
            .all(|epoch| self.covers(epoch))
    }

    /// Learns of `epoch`, and of all earlier epochs of its agent.
    pub(super) fn learn(&mut self, epoch: Epoch) {
        if !self.covers(epoch) {
            let entries = Rc::make_mut(&mut self.0);
            let index = epoch.agent as usize;
            if entries.len() <= index {
                entries.resize(index + 1, 0);
            }
            entries[index] = epoch.clock;
        }
    }

    /// Learns all that `other` knows.
    pub(super) fn join(&mut self, other: &VectorClock) {
        if Rc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return;
        }
        if self.0.is_empty() {
            self.0 = other.0.clone();
            return;
        }
        let entries = Rc::make_mut(&mut self.0);
        if entries.len() < other.0.len() {
            entries.resize(other.0.len(), 0);
        }
        for (mine, theirs) in entries.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Keeps only the epochs that `other` knows too.
    pub(super) fn meet(&mut self, other: &VectorClock) {
        if Rc::ptr_eq(&self.0, &other.0) {
            return;
        }
        let entries = Rc::make_mut(&mut self.0);
        entries.truncate(other.0.len());
        for (mine, theirs) in entries.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).min(*theirs);
        }
    }
}

/// One agent's knowledge of other clusters: for each cluster, the epochs of its agents. Only
/// flags in global memory pass this knowledge on.
type Foreign = Option<Arc<BTreeMap<u32, Vec<u32>>>>;

/// All knowledge of a thread; a barrier passes it on.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// The epochs that happened before.
    pub(super) generic: VectorClock,
    /// The part of `generic` that is visible to the async proxy: the accesses before a
    /// proxy fence (PTX ISA, "Memory Consistency Model", "Proxies").
    pub(super) asynchronous: VectorClock,
    foreign: Foreign,
}

impl Knowledge {
    pub(super) fn join(&mut self, other: &Knowledge) {
        self.generic.join(&other.generic);
        self.asynchronous.join(&other.asynchronous);
        self.join_foreign(&other.foreign);
    }

    /// Keeps the common knowledge, for threads that start an operation together.
    pub(super) fn meet(&mut self, other: &Knowledge) {
        self.generic.meet(&other.generic);
        self.asynchronous.meet(&other.asynchronous);
    }

    /// Learns of `epoch` in both kinds of knowledge.
    pub(super) fn learn(&mut self, epoch: Epoch) {
        self.generic.learn(epoch);
        self.asynchronous.learn(epoch);
    }

    /// Whether `epoch` of cluster `cluster` is known.
    pub(super) fn covers_foreign(&self, cluster: u32, epoch: Epoch) -> bool {
        self.foreign.as_ref().is_some_and(|foreign| {
            foreign
                .get(&cluster)
                .and_then(|clocks| clocks.get(epoch.agent as usize))
                .is_some_and(|&clock| clock >= epoch.clock)
        })
    }

    fn join_foreign(&mut self, other: &Foreign) {
        let Some(theirs) = other else { return };
        let Some(mine) = &mut self.foreign else {
            self.foreign = other.clone();
            return;
        };
        if Arc::ptr_eq(mine, theirs) {
            return;
        }
        let mine = Arc::make_mut(mine);
        for (cluster, clocks) in theirs.iter() {
            join_clocks(mine.entry(*cluster).or_default(), clocks);
        }
    }
}

fn join_clocks(mine: &mut Vec<u32>, theirs: &[u32]) {
    if mine.len() < theirs.len() {
        mine.resize(theirs.len(), 0);
    }
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(*theirs);
    }
}

/// The knowledge that a thread of one cluster passes to threads of other clusters through a
/// flag.
#[derive(Clone, Debug)]
pub(super) struct Message(Arc<BTreeMap<u32, Vec<u32>>>);

impl Message {
    /// A message with the `knowledge` of a thread of `cluster`.
    pub(super) fn new(cluster: u32, knowledge: &Knowledge) -> Message {
        let mut told = knowledge.foreign.as_deref().cloned().unwrap_or_default();
        told.insert(cluster, knowledge.generic.0.to_vec());
        Message(Arc::new(told))
    }

    /// Hands the message to a thread.
    pub(super) fn tell(&self, knowledge: &mut Knowledge) {
        knowledge.join_foreign(&Some(self.0.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(entries: &[u32]) -> VectorClock {
        VectorClock(Rc::new(entries.to_vec()))
    }

    #[test]
    fn joins_and_meets_are_elementwise() {
        let (a, b) = (clock(&[3, 0, 5]), clock(&[1, 4]));
        let mut joined = a.clone();
        joined.join(&b);
        assert_eq!(*joined.0, [3, 4, 5]);
        let mut met = a.clone();
        met.meet(&b);
        assert_eq!((met.get(0), met.get(1), met.get(2)), (1, 0, 0));
        assert_eq!(*a.0, [3, 0, 5], "copies are apart");
    }

    #[test]
    fn epochs_up_to_the_known_one_are_covered() {
        let mut known = clock(&[]);
        known.learn(Epoch { agent: 2, clock: 4 });
        for (agent, clock, covered) in [(2, 4, true), (2, 5, false), (1, 1, false), (7, 0, true)] {
            assert_eq!(known.covers(Epoch { agent, clock }), covered);
        }
    }

    #[test]
    fn flags_carry_knowledge_of_third_clusters() {
        let mut first = Knowledge::default();
        first.learn(Epoch { agent: 1, clock: 9 });
        let mut second = Knowledge::default();
        Message::new(10, &first).tell(&mut second);
        let mut third = Knowledge::default();
        Message::new(20, &second).tell(&mut third);
        assert!(third.covers_foreign(10, Epoch { agent: 1, clock: 9 }));
        assert!(!third.covers_foreign(
            10,
            Epoch {
                agent: 1,
                clock: 10
            }
        ));
        assert!(!third.covers_foreign(30, Epoch { agent: 1, clock: 1 }));
    }
}
