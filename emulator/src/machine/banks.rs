//! Bank conflicts: shared memory has 32 banks of 4 bytes, and a warp's access takes
//! as many cycles as it needs words of the bank with the most (CUDA C++ Best
//! Practices Guide, "Shared Memory and Memory Banks"). Accesses of 8 and 16 bytes a
//! lane are served by half and quarter warps.
//!
//! Threads do not run in lock-step here, so the emulator assumes that the n-th access
//! of a lane since the last count belongs with the n-th access of the other lanes.

use super::{Cluster, WARP};

const BANKS: usize = 32;

/// Accesses of a lane that are kept before some are counted.
const KEPT: usize = 128;

/// The accesses of a warp's lanes that are not yet counted: address and bytes.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    lanes: [Vec<(u32, u32)>; WARP as usize],
}

/// Cycles that the accesses of a group of lanes take.
fn cycles(accesses: &[(u32, u32)]) -> u64 {
    let mut words: Vec<u32> = accesses
        .iter()
        .flat_map(|&(address, bytes)| address / 4..(address + bytes).div_ceil(4))
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut banks = [0; BANKS];
    for word in words {
        banks[word as usize % BANKS] += 1;
    }
    banks.into_iter().max().unwrap_or(0)
}

impl Cluster<'_> {
    /// Counts the accesses that go through the banks at once.
    pub(super) fn count_phase(&mut self, accesses: &[(u32, u32)]) {
        self.counts.shared_accesses += 1;
        self.counts.bank_conflicts += cycles(accesses).saturating_sub(1);
    }

    /// Keeps a thread's access until the accesses of its warp can be counted.
    pub(super) fn count_access(&mut self, thread: u32, address: u32, bytes: u32) {
        let warp = (thread / WARP) as usize;
        let lane = &mut self.accesses[warp].lanes[(thread % WARP) as usize];
        lane.push((address, bytes));
        if lane.len() == KEPT {
            // A lane may be behind, and comes with its accesses later; or it has none to come.
            let lanes = self.accesses[warp].lanes.iter();
            let of_all = lanes.map(Vec::len).min().unwrap_or(0);
            self.count_first(warp, if of_all > 0 { of_all } else { KEPT });
        }
    }

    /// Counts all accesses that are kept.
    pub(crate) fn count_accesses(&mut self) {
        for warp in 0..self.accesses.len() {
            self.count_first(warp, KEPT);
        }
    }

    /// Counts the first `most` accesses of each lane of a warp.
    fn count_first(&mut self, warp: usize, most: usize) {
        let first = |lane: &mut Vec<(u32, u32)>| lane.drain(..most.min(lane.len())).collect();
        let lanes: [Vec<(u32, u32)>; WARP as usize] =
            self.accesses[warp].lanes.each_mut().map(first);
        for index in 0..most {
            let together: Vec<(u32, u32)> = lanes
                .iter()
                .filter_map(|lane| lane.get(index).copied())
                .collect();
            let Some(widest) = together.iter().map(|&(_, bytes)| bytes).max() else {
                return;
            };
            for phase in together.chunks((128 / widest.max(4)) as usize) {
                self.count_phase(phase);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_bank_take_turns() {
        let row: Vec<_> = (0..32).map(|lane| (4 * lane, 4)).collect();
        let column: Vec<_> = (0..32).map(|lane| (128 * lane, 4)).collect();
        let padded: Vec<_> = (0..32).map(|lane| (132 * lane, 4)).collect();
        let same: Vec<_> = (0..32).map(|_| (64, 4)).collect();
        let wide: Vec<_> = (0..8).map(|lane| (16 * lane, 16)).collect();
        let all = [row, column, padded, same, wide].map(|accesses| cycles(&accesses));
        assert_eq!(all, [1, 32, 1, 1, 1]);
    }
}
