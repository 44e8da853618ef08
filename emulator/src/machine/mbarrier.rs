//! mbarriers: arrivals, expected bytes, phases.

use super::{Broken, Check, Cluster, Wait, checked, issue, wait_until, with};
use crate::agent::Role;
use crate::clock::{Epoch, Knowledge, VectorClock};
use crate::instruction::Instruction;

/// Bytes of an mbarrier, and its alignment.
const BYTES: u32 = 8;

/// The state that the hardware keeps in 8 opaque bytes, and the knowledge that the mbarrier
/// passes on.
#[derive(Debug)]
pub(super) struct Mbarrier {
    /// Arrivals that a phase needs.
    expected: u32,
    /// Arrivals that this phase still needs.
    pub(super) pending: u32,
    /// Bytes that this phase still needs (the PTX ISA's tx-count).
    pub(super) bytes: i64,
    /// Phases that are complete.
    pub(super) phase: u32,
    /// The thread that initialised the mbarrier, with its epoch.
    initialised: Epoch,
    /// The last phase for which a copy was started, counted from 1.
    loads_until: u32,
    /// The arrivals of threads of other CTAs.
    remote: VectorClock,
    arriving: Knowledge,
    /// The knowledge that a thread acquires when it sees the last phase complete.
    completed: Knowledge,
}

/// `mbarrier.init`.
pub fn init(barrier: u32, arrivals: u32) {
    let Some([barrier, arrivals]) =
        issue(Instruction::BarrierInit, [barrier, arrivals].map(u64::from))
    else {
        return;
    };
    checked(|cluster, thread| {
        let place = (cluster.threads[thread as usize].cta, barrier as u32);
        cluster.locate(place, BYTES, BYTES)?;
        cluster.store_shared(thread, place, &[0; BYTES as usize])?;
        let mbarrier = Mbarrier {
            expected: arrivals as u32,
            pending: arrivals as u32,
            bytes: 0,
            phase: 0,
            initialised: cluster.epoch(thread),
            loads_until: 0,
            remote: VectorClock::default(),
            arriving: Knowledge::default(),
            completed: Knowledge::default(),
        };
        let cta = &mut cluster.ctas[place.0 as usize];
        cta.mbarriers.insert(place.1, mbarrier);
        Ok(())
    });
}

/// `fence.mbarrier_init.release.cluster`, and `fence.proxy.async`.
pub fn fence_init() {
    if issue(Instruction::BarrierFenceInit, []).is_some() {
        with(|cluster, thread| {
            cluster.fence_proxy(thread);
            let knowledge = cluster.release(thread);
            let thread = &mut cluster.threads[thread as usize];
            thread.at_init_fence = knowledge;
        });
    }
}

/// `mbarrier.arrive.expect_tx`.
pub fn arrive_expecting(barrier: u32, bytes: u32) {
    let arguments = [barrier, bytes].map(u64::from);
    if let Some([barrier, bytes]) = issue(Instruction::BarrierArriveExpect, arguments) {
        checked(|cluster, thread| {
            let place = (cluster.threads[thread as usize].cta, barrier as u32);
            cluster.mbarrier(thread, place)?.bytes += bytes as i64;
            cluster.arrive_at_mbarrier(thread, place)
        });
    }
}

/// `mbarrier.arrive`.
pub fn arrive(barrier: u32) {
    if let Some([barrier]) = issue(Instruction::BarrierArrive, [barrier.into()]) {
        checked(|cluster, thread| {
            let place = (cluster.threads[thread as usize].cta, barrier as u32);
            cluster.arrive_at_mbarrier(thread, place)
        });
    }
}

/// `mbarrier.arrive.shared::cluster` at the same address of CTA `rank`.
pub fn arrive_at(barrier: u32, rank: u32) {
    let arguments = [barrier, rank].map(u64::from);
    if let Some([barrier, rank]) = issue(Instruction::BarrierArriveRemote, arguments) {
        checked(|cluster, thread| {
            let place = (rank as u32, barrier as u32);
            cluster.reach(thread, place.0, "its mbarrier")?;
            let epoch = cluster.epoch(thread);
            if cluster.checks() && cluster.threads[thread as usize].cta != place.0 {
                cluster.mbarrier(thread, place)?.remote.learn(epoch);
            }
            cluster.arrive_at_mbarrier(thread, place)
        });
    }
}

/// `mbarrier.try_wait.parity` until it succeeds.
pub fn wait(barrier: u32, parity: u32) {
    let arguments = [barrier, parity].map(u64::from);
    let Some([address, parity]) = issue(Instruction::BarrierWait, arguments) else {
        return;
    };
    let (address, parity) = (address as u32, parity as u32);
    wait_until(Wait::Mbarrier { address, parity }, |cluster, thread| {
        let cta = cluster.threads[thread as usize].cta;
        let mbarrier = cluster.mbarrier(thread, (cta, address))?;
        // The phase before the first counts as a phase of parity 1.
        let done = mbarrier.phase % 2 != parity % 2;
        if done {
            let completed = mbarrier.completed.clone();
            cluster.acquire(thread, &completed);
        }
        Ok(done)
    });
}

impl Cluster<'_> {
    /// The mbarrier at an address of a CTA, which `thread` must know to be
    /// initialised.
    fn mbarrier(&mut self, thread: u32, place: (u32, u32)) -> Result<&mut Mbarrier, Broken> {
        let address = self.shared_address(place.0, place.1);
        let checks = self.checks();
        let state = &self.threads[thread as usize];
        let Some(cta) = self.ctas.get_mut(place.0 as usize) else {
            let detail = format!("CTA {} of the cluster", place.0);
            return Err(Broken::new(Check::InvalidArgument, detail));
        };
        let Some(mbarrier) = cta.mbarriers.get_mut(&place.1) else {
            return Err(Broken::new(Check::Uninitialized, "no mbarrier there").at(address));
        };
        let init = mbarrier.initialised;
        if checks && init.agent != thread && !state.knowledge.generic.covers(init) {
            let detail = "nothing orders this after the mbarrier's initialisation";
            return Err(Broken::new(Check::DataRace, detail).at(address));
        }
        Ok(mbarrier)
    }

    fn arrive_at_mbarrier(&mut self, thread: u32, place: (u32, u32)) -> Result<(), Broken> {
        let knowledge = self.release(thread);
        let checks = self.checks();
        let address = self.shared_address(place.0, place.1);
        let mbarrier = self.mbarrier(thread, place)?;
        if mbarrier.pending == 0 {
            let detail = format!("more than {} arrivals in a phase", mbarrier.expected);
            return Err(Broken::new(Check::InvalidArgument, detail).at(address));
        }
        mbarrier.pending -= 1;
        if checks {
            mbarrier.arriving.join(&knowledge);
        }
        self.complete_phase(place)
    }

    /// Records that a copy, which `thread` starts now, will signal the mbarrier. Returns
    /// the epoch of the copy's writes, which is the epoch of the phase.
    pub(super) fn expect_load(&mut self, thread: u32, place: (u32, u32)) -> Result<Epoch, Broken> {
        let address = self.shared_address(place.0, place.1);
        let agent = self.agents.number(Role::Loads {
            cta: place.0,
            address: place.1,
        });
        let checks = self.checks();
        let mbarrier = self.mbarrier(thread, place)?;
        mbarrier.loads_until = mbarrier.phase + 1;
        let clock = mbarrier.loads_until;
        let initialised = mbarrier.initialised;
        let knowledge = &self.threads[thread as usize].knowledge;
        if checks && !knowledge.asynchronous.covers(initialised) {
            let detail = "no proxy fence after the mbarrier's initialisation";
            return Err(Broken::new(Check::MissingProxyFence, detail).at(address));
        }
        Ok(Epoch { agent, clock })
    }

    /// Records that `bytes` have landed of a copy that was started in the phase of `epoch`.
    pub(super) fn land(
        &mut self,
        place: (u32, u32),
        epoch: Epoch,
        bytes: u32,
    ) -> Result<(), Broken> {
        let address = self.shared_address(place.0, place.1);
        let Some(mbarrier) = self.ctas[place.0 as usize].mbarriers.get_mut(&place.1) else {
            return Err(Broken::new(Check::Uninitialized, "no mbarrier there").at(address));
        };
        mbarrier.bytes -= i64::from(bytes);
        let early = mbarrier.phase + 1 > epoch.clock;
        if early || mbarrier.pending == 0 && mbarrier.bytes < 0 {
            let detail = format!(
                "{} bytes more than expected land in a phase",
                if early {
                    i64::from(bytes)
                } else {
                    -mbarrier.bytes
                }
            );
            return Err(Broken::new(Check::ByteCount, detail).at(address));
        }
        mbarrier.arriving.learn(epoch);
        self.complete_phase(place)
    }

    fn complete_phase(&mut self, place: (u32, u32)) -> Result<(), Broken> {
        let cta = &mut self.ctas[place.0 as usize];
        let Some(mbarrier) = cta.mbarriers.get_mut(&place.1) else {
            return Ok(());
        };
        if mbarrier.pending == 0 && mbarrier.bytes == 0 {
            mbarrier.pending = mbarrier.expected;
            mbarrier.phase += 1;
            mbarrier.completed.join(&mbarrier.arriving);
            let phase = mbarrier.phase;
            self.wake(|thread, wait| {
                let Wait::Mbarrier { address, parity } = *wait else {
                    return false;
                };
                (thread.cta, address) == place && phase % 2 != parity % 2
            });
        }
        Ok(())
    }

    /// Called when a CTA ends: its threads must have waited for all TMA loads into its memory, and for
    /// the arrivals of other CTAs at its mbarriers. On a GPU an arrival takes its time, and one that
    /// comes to a CTA that has exited fails the launch; a relaxed cluster barrier does not order it.
    pub(super) fn check_memory_awaited(&mut self, cta: u32) -> Result<(), Broken> {
        if !self.checks() {
            return Ok(());
        }
        let mut known = Knowledge::default();
        for thread in self.threads.iter().filter(|thread| thread.cta == cta) {
            known.join(&thread.knowledge);
        }
        for (&address, mbarrier) in &self.ctas[cta as usize].mbarriers {
            if !known.generic.includes(&mbarrier.remote) {
                let detail = "the CTA ends, and has not waited for another CTA's arrival there";
                let address = self.shared_address(cta, address);
                return Err(Broken::new(Check::PeerGone, detail).at(address));
            }
            let clock = mbarrier.loads_until;
            if clock == 0 {
                continue;
            }
            let agent = self.agents.number(Role::Loads { cta, address });
            if !known.generic.covers(Epoch { agent, clock }) {
                let detail = "the CTA ends, and has not waited for a TMA load into its memory";
                let address = self.shared_address(cta, address);
                return Err(Broken::new(Check::PeerGone, detail).at(address));
            }
        }
        Ok(())
    }
}
