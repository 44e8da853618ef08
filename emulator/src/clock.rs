//! Vector clocks: what has happened before what.
//!
//! Every agent that touches memory counts its own epochs, and a vector clock says
//! up to which epoch of each agent one has heard of (Lamport 1978; Fidge and
//! Mattern 1988). An access is ordered after another when its vector covers the
//! other's epoch; two that conflict and are not ordered are a data race. The
//! shadow memory keeps epochs and not vectors, as FastTrack does (Flanagan and
//! Freund, PLDI 2009).
//!
//! Agents are the threads of a cluster, and whatever works beside them: a
//! mbarrier's copies, a warpgroup's multiplies, a thread's bulk stores and its
//! `cp.async`. Each of the latter finishes in groups, in order, so that its epoch
//! is the number of the group, and who waits for the group learns of the epoch.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// One agent of a cluster: threads first, in order, then what works beside them.
pub(super) type Agent = u32;

/// A moment in the life of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Epoch {
    pub(super) agent: Agent,
    /// From 1; 0 is before everything.
    pub(super) clock: u32,
}

/// Up to which epoch of each agent is known. Copies share their memory until one
/// of them changes: most threads know the same, namely what the last barrier said.
#[derive(Clone, Debug, Default)]
pub(super) struct VectorClock(Rc<Vec<u32>>);

impl VectorClock {
    /// What is known of `agent`.
    pub(super) fn get(&self, agent: Agent) -> u32 {
        self.0.get(agent as usize).copied().unwrap_or(0)
    }

    /// Whether `epoch` is known.
    pub(super) fn covers(&self, epoch: Epoch) -> bool {
        self.get(epoch.agent) >= epoch.clock
    }

    /// Learns of `epoch`, and all of its agent before it.
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

    /// Forgets what `other` does not know too.
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

/// What one agent knows of other clusters: for each, its agents' epochs. Learnt
/// through flags in global memory alone.
type Foreign = Option<Arc<BTreeMap<u32, Vec<u32>>>>;

/// All that a thread knows, and what a barrier passes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// What has happened before.
    pub(super) generic: VectorClock,
    /// The part of it that is visible to the async proxy: what a proxy fence
    /// stands behind (PTX ISA, "Memory Consistency Model", "Proxies").
    pub(super) asynchronous: VectorClock,
    foreign: Foreign,
}

impl Knowledge {
    pub(super) fn join(&mut self, other: &Knowledge) {
        self.generic.join(&other.generic);
        self.asynchronous.join(&other.asynchronous);
        self.join_foreign(&other.foreign);
    }

    /// What all of several know, as threads that start something together.
    pub(super) fn meet(&mut self, other: &Knowledge) {
        self.generic.meet(&other.generic);
        self.asynchronous.meet(&other.asynchronous);
    }

    /// Both kinds of knowledge of `epoch`.
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

/// What a thread of one cluster tells those of others through a flag.
#[derive(Clone, Debug)]
pub(super) struct Message(Arc<BTreeMap<u32, Vec<u32>>>);

impl Message {
    /// What `knowledge`, of a thread of `cluster`, covers.
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
