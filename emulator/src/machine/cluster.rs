//! Clusters: the barrier of all threads of a cluster, and accesses to a peer's shared memory.

use super::{Broken, Check, Cluster, Wait, checked, issue, poison, wait_until, with};
use crate::clock::Knowledge;
use crate::instruction::Instruction;

/// Lowest bit of the CTA's rank in an address of the cluster's window.
const RANK_SHIFT: u32 = 24;

/// The barrier of a cluster (PTX ISA, "barrier.cluster").
#[derive(Debug)]
pub(super) struct Barrier {
    /// Threads that have neither arrived in this phase nor ended.
    missing: u32,
    /// Phases that are complete.
    phase: u32,
    arriving: Knowledge,
    arrived: Knowledge,
}

impl Barrier {
    pub(super) fn new(threads: u32) -> Barrier {
        Barrier {
            missing: threads,
            phase: 0,
            arriving: Knowledge::default(),
            arrived: Knowledge::default(),
        }
    }
}

/// `%cluster_ctarank`.
pub fn rank() -> u32 {
    with(|cluster, thread| cluster.threads[thread as usize].cta)
}

/// `mapa.shared::cluster`. The upper bits hold the rank plus 1, so that the result is
/// never an address in a CTA's own window.
pub fn address_in(shared: u32, rank: u32) -> u32 {
    shared | (rank + 1) << RANK_SHIFT
}

/// `barrier.cluster.arrive.release`.
pub fn arrive() {
    if issue(Instruction::ClusterArrive, []).is_some() {
        checked(|cluster, thread| {
            let knowledge = cluster.release(thread);
            cluster.arrive_at_cluster(thread, &knowledge)
        });
    }
}

/// `barrier.cluster.arrive.relaxed`: passes on only the knowledge from before the last
/// `fence.mbarrier_init.release.cluster`.
pub fn arrive_relaxed() {
    if issue(Instruction::ClusterArriveRelaxed, []).is_some() {
        checked(|cluster, thread| {
            let knowledge = cluster.threads[thread as usize].at_init_fence.clone();
            cluster.arrive_at_cluster(thread, &knowledge)
        });
    }
}

/// `barrier.cluster.wait.acquire`.
pub fn wait() {
    if issue(Instruction::ClusterWait, []).is_none() {
        return;
    }
    wait_until(Wait::Cluster, |cluster, thread| {
        let state = &cluster.threads[thread as usize];
        if state.waits == state.arrivals {
            let detail = "this thread has not arrived";
            return Err(Broken::new(Check::BarrierDivergence, detail));
        }
        let done = cluster.cluster_barrier.phase > state.waits;
        if done {
            let knowledge = cluster.cluster_barrier.arrived.clone();
            cluster.acquire(thread, &knowledge);
            cluster.threads[thread as usize].waits += 1;
        }
        Ok(done)
    });
}

/// `st.shared::cluster` of `N` words.
#[inline(never)]
pub fn store<const N: usize>(address: u32, values: [u32; N]) {
    poison::check(&values);
    let Some([address]) = issue(Instruction::StoreCluster, [address.into()]) else {
        return;
    };
    checked(|cluster, thread| {
        let place = cluster.peer(thread, address as u32)?;
        let bytes = values.map(u32::to_le_bytes);
        cluster.store_shared(thread, place, bytes.as_flattened())
    });
}

impl Cluster<'_> {
    fn arrive_at_cluster(&mut self, thread: u32, knowledge: &Knowledge) -> Result<(), Broken> {
        let checks = self.checks();
        let state = &mut self.threads[thread as usize];
        if state.arrivals > state.waits {
            let detail = "this thread has arrived, and not waited";
            return Err(Broken::new(Check::BarrierDivergence, detail));
        }
        state.arrivals += 1;
        if checks {
            self.cluster_barrier.arriving.join(knowledge);
        }
        self.miss_one_less();
        Ok(())
    }

    /// Called when a thread ends: the barrier no longer waits for it.
    pub(super) fn leave_cluster_barrier(&mut self, thread: u32) {
        if self.threads[thread as usize].arrivals == self.cluster_barrier.phase {
            self.miss_one_less();
        }
    }

    fn miss_one_less(&mut self) {
        let alive = self.ctas.iter().map(|cta| cta.alive).sum();
        let barrier = &mut self.cluster_barrier;
        barrier.missing -= 1;
        if barrier.missing == 0 {
            barrier.phase += 1;
            barrier.missing = alive;
            barrier.arrived.join(&barrier.arriving);
            self.wake(|_, wait| *wait == Wait::Cluster);
        }
    }

    /// The CTA and the shared address in it that an address in the cluster's window means.
    pub(super) fn peer(&mut self, thread: u32, address: u32) -> Result<(u32, u32), Broken> {
        let own = self.threads[thread as usize].cta;
        let cta = match address >> RANK_SHIFT {
            0 => own,
            rank => rank - 1,
        };
        let place = (cta, address & ((1 << RANK_SHIFT) - 1));
        self.reach(thread, cta, "its memory")?;
        Ok(place)
    }

    /// Records that `thread` touches `what` of CTA `cta`. The CTA must not have ended, and
    /// must not end before the cluster's next barrier.
    pub(super) fn reach(&mut self, thread: u32, cta: u32, what: &str) -> Result<(), Broken> {
        let state = &self.threads[thread as usize];
        if cta == state.cta {
            return Ok(());
        }
        let needed_until = state.arrivals + 1;
        let name = self.grid_index(cta);
        let Some(peer) = self.ctas.get_mut(cta as usize) else {
            let detail = format!("rank {cta}, accepted: ranks of the cluster");
            return Err(Broken::new(Check::InvalidArgument, detail));
        };
        if peer.alive == 0 {
            let detail = format!("CTA {name} has ended, and {what} with it");
            return Err(Broken::new(Check::PeerGone, detail));
        }
        peer.needed_until = peer.needed_until.max(needed_until);
        Ok(())
    }

    /// A CTA may end when a barrier of the cluster has followed all accesses by peers to its
    /// memory.
    pub(super) fn check_peers_done(&self, cta: u32) -> Result<(), Broken> {
        let threads = self.threads.iter().filter(|thread| thread.cta == cta);
        let waited = threads.map(|thread| thread.waits).max().unwrap_or(0);
        let needed = self.ctas[cta as usize].needed_until;
        if waited >= needed {
            return Ok(());
        }
        let detail = format!(
            "the CTA ends after {waited} phases of the cluster's barrier, but peers use its \
             shared memory before phase {needed}"
        );
        Err(Broken::new(Check::PeerGone, detail))
    }
}
