//! `bar.sync`: barriers of a CTA, by number, and of a warp.

use super::gather::{Scope, gather, operands};
use super::{Broken, Check, Cluster, Wait, block, checked, issue};
use crate::clock::Knowledge;
use crate::instruction::Instruction;

/// Barriers of a CTA (PTX ISA, "bar, barrier").
const BARRIERS: u32 = 16;

/// One of the numbered barriers.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// Threads that have arrived.
    arrived: Vec<u32>,
    /// Threads that must arrive.
    pub(super) expected: u32,
    knowledge: Knowledge,
}

impl Barrier {
    pub(super) fn all() -> Vec<Barrier> {
        (0..BARRIERS).map(|_| Barrier::default()).collect()
    }
}

/// `bar.sync 0` with all threads of the CTA.
pub fn sync_cta() {
    if issue(Instruction::SyncCta, []).is_some() {
        meet(0, None);
    }
}

/// `bar.sync barrier, threads`.
pub fn sync(barrier: u32, threads: u32) {
    if let Some([barrier]) = issue(Instruction::SyncNamed, [barrier.into()]) {
        meet(barrier as u32, Some(threads));
    }
}

/// Waits at barrier `number` for `threads` threads, or for all threads of the CTA.
fn meet(number: u32, threads: Option<u32>) {
    let complete = checked(|cluster, thread| {
        let expected = threads.unwrap_or(cluster.launch.threads);
        cluster.arrive_at_barrier(thread, number, expected)
    });
    if !complete {
        block(Wait::Barrier(number));
    }
}

/// `bar.warp.sync` with all lanes.
pub fn sync_warp() {
    if issue(Instruction::SyncWarp, []).is_none() {
        return;
    }
    let instruction = Instruction::SyncWarp;
    gather(
        Scope::Warp,
        instruction,
        operands([]),
        |cluster, warp, lanes| {
            let first = warp * lanes.len() as u32;
            let lanes = first..first + lanes.len() as u32;
            let mut knowledge = Knowledge::default();
            for lane in lanes.clone() {
                knowledge.join(&cluster.release(lane));
            }
            for lane in lanes {
                cluster.acquire(lane, &knowledge);
            }
            Ok(())
        },
    );
}

impl Cluster<'_> {
    /// Whether `thread` was the last to arrive; then it has woken the others.
    fn arrive_at_barrier(
        &mut self,
        thread: u32,
        number: u32,
        expected: u32,
    ) -> Result<bool, Broken> {
        let cta = self.threads[thread as usize].cta as usize;
        let knowledge = self.release(thread);
        let checks = self.checks();
        let Some(barrier) = self.ctas[cta].barriers.get_mut(number as usize) else {
            let detail = format!("barrier {number}, accepted: below {BARRIERS}");
            return Err(Broken::new(Check::InvalidArgument, detail));
        };
        if !barrier.arrived.is_empty() && barrier.expected != expected {
            let detail = format!(
                "{expected} threads are to meet at barrier {number}, where others expect {}",
                barrier.expected
            );
            return Err(Broken::new(Check::BarrierDivergence, detail));
        }
        barrier.expected = expected;
        barrier.arrived.push(thread);
        if checks {
            barrier.knowledge.join(&knowledge);
        }
        if (barrier.arrived.len() as u32) < expected {
            return Ok(false);
        }
        let arrived = std::mem::take(&mut barrier.arrived);
        let knowledge = std::mem::take(&mut barrier.knowledge);
        self.ctas[cta].loaded_lines.clear();
        for other in arrived {
            if checks {
                self.threads[other as usize].knowledge = knowledge.clone();
            }
            if other != thread {
                self.wake_one(other);
            }
        }
        Ok(true)
    }
}
