//! Why no thread of a cluster can go on.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::WARPGROUP;
use super::{Broken, Check, Cluster, Status, WARP, Wait};
use crate::report::Report;

impl Cluster<'_> {
    /// The report of a cluster in which every thread waits or has ended.
    pub(crate) fn stuck(&self) -> Report {
        let (thread, broken) = self
            .unexpected_bytes()
            .or_else(|| self.divergence())
            .unwrap_or_else(|| (self.first_waiting(), self.deadlock()));
        let detail = format!("{}\n{}", broken.detail, self.who_waits());
        let broken = Broken { detail, ..broken };
        self.report(thread, broken)
    }

    fn first_waiting(&self) -> Option<u32> {
        let waits = |status: Status| matches!(status, Status::Waiting(_));
        let place = self.threads.iter().position(|thread| waits(thread.status));
        place.map(|place| place as u32)
    }

    fn deadlock(&self) -> Broken {
        Broken::new(Check::Deadlock, "every thread waits")
    }

    /// An mbarrier with all arrivals, but not the bytes it expects.
    fn unexpected_bytes(&self) -> Option<(Option<u32>, Broken)> {
        for (number, thread) in self.threads.iter().enumerate() {
            let Status::Waiting(Wait::Mbarrier { address, .. }) = thread.status else {
                continue;
            };
            let mbarrier = self.ctas[thread.cta as usize].mbarriers.get(&address)?;
            if mbarrier.pending == 0 && mbarrier.bytes != 0 {
                let detail = format!("{} bytes are expected that never land", mbarrier.bytes);
                let address = self.shared_address(thread.cta, address);
                let broken = Broken::new(Check::ByteCount, detail).at(address);
                return Some((Some(number as u32), broken));
            }
        }
        None
    }

    /// A thread that waits at an instruction for threads that cannot reach it: they have
    /// ended, or wait at another such instruction.
    fn divergence(&self) -> Option<(Option<u32>, Broken)> {
        for (number, thread) in self.threads.iter().enumerate() {
            let Status::Waiting(wait) = thread.status else {
                continue;
            };
            let number = number as u32;
            let in_cta = self.launch.threads;
            let (scope, what) = match wait {
                Wait::Warp(instruction) => (WARP, instruction.name().to_owned()),
                Wait::Warpgroup(instruction) => (WARPGROUP, instruction.name().to_owned()),
                Wait::Barrier(barrier) => {
                    let state = &self.ctas[thread.cta as usize].barriers[barrier as usize];
                    let scope = if state.expected == in_cta {
                        in_cta
                    } else {
                        WARPGROUP
                    };
                    (scope, format!("barrier {barrier}"))
                }
                _ => continue,
            };
            let first = number / scope * scope;
            let others = first..(first + scope).min(self.threads.len() as u32);
            let elsewhere = others.clone().filter(|&other| {
                let status = self.threads[other as usize].status;
                status != Status::Waiting(wait) && cannot_come(status)
            });
            let missing = elsewhere.count();
            if missing > 0 {
                let detail = format!(
                    "of {} threads that must meet at {what}, {missing} ended or are elsewhere",
                    others.len()
                );
                let broken = Broken::new(Check::BarrierDivergence, detail);
                return Some((Some(number), broken));
            }
        }
        None
    }

    /// A line for each event that threads wait for, with the waiting threads.
    fn who_waits(&self) -> String {
        let mut waits: BTreeMap<(u32, Wait), Vec<u32>> = BTreeMap::new();
        for thread in &self.threads {
            if let Status::Waiting(wait) = thread.status {
                waits
                    .entry((thread.cta, wait))
                    .or_default()
                    .push(thread.index);
            }
        }
        let mut text = String::new();
        for ((cta, wait), threads) in waits {
            let _ = write!(
                text,
                "    CTA {}: {} for {}",
                self.grid_index(cta),
                ranges(&threads),
                self.describe(cta, wait)
            );
            text.push('\n');
        }
        text.pop();
        text
    }

    fn describe(&self, cta: u32, wait: Wait) -> String {
        match wait {
            Wait::Warp(instruction) => format!("the rest of the warp at {}", instruction.name()),
            Wait::Warpgroup(instruction) => {
                format!("the rest of the warpgroup at {}", instruction.name())
            }
            Wait::Barrier(barrier) => format!("the others at barrier {barrier}"),
            Wait::Mbarrier { address, parity } => {
                let mbarrier = self.ctas[cta as usize].mbarriers.get(&address);
                let state = mbarrier.map_or(String::new(), |mbarrier| {
                    format!(
                        ", which is in phase {} and lacks {} arrivals and {} bytes",
                        mbarrier.phase, mbarrier.pending, mbarrier.bytes
                    )
                });
                format!("parity {parity} of mbarrier {address:#x}{state}")
            }
            Wait::Cluster => "the cluster's barrier".into(),
            Wait::Stores(group) => format!("its bulk group {group}"),
            Wait::Flag(address) => format!("the flag at {address:#x}"),
            Wait::Registers => "registers".into(),
        }
    }
}

/// Whether a thread of this status cannot reach the instruction at which other threads wait
/// for it, whatever happens to mbarriers.
fn cannot_come(status: Status) -> bool {
    match status {
        Status::Ended => true,
        Status::Waiting(wait) => {
            matches!(wait, Wait::Warp(_) | Wait::Warpgroup(_) | Wait::Barrier(_))
        }
        Status::Ready => false,
    }
}

/// Ascending numbers in short form: `threads 0, 4-7`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    });
    format!("threads {}", runs.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_are_shortened() {
        assert_eq!(ranges(&[0, 1, 2, 5, 8, 9]), "threads 0-2, 5, 8-9");
    }
}
