//! [`Control`]: the words in shared memory by which the ranks of a plan wait for each other.
//!
//! There is a flag for each step that a step of another rank waits for. The rank that runs the step
//! writes the number of the run, the *epoch*, behind it, and the other waits until the flag has at
//! least the epoch of its own run. Epochs are compared cyclically, so they may wrap. They begin
//! shortly before they do, so that every plan that runs three times shows that it is so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::segment::Segment;
use crate::program::Program;

/// The epoch of the first run.
const FIRST: u32 = u32::MAX - 1;

/// How far ahead a flag is set that nobody shall wait for any more. A member is never so many runs
/// ahead of another.
const AHEAD: u32 = 1 << 30;

/// Bytes of each rank's own words: the epochs begun and ended, and whether it has let go of the
/// memory of the others.
const PER_RANK: usize = 64;

/// Whether `epoch` is that of `other`, or a later one.
pub(super) fn has_reached(epoch: u32, other: u32) -> bool {
    epoch.wrapping_sub(other) as i32 >= 0
}

/// The words of one plan, and what this member knows of its runs.
#[derive(Debug)]
pub(super) struct Control {
    segment: Arc<Segment>,
    rank: usize,
    ranks: usize,
    steps: usize,
    /// The steps of other ranks that this one waits for, with their ranks.
    awaited: Vec<(usize, usize)>,
    /// The epoch of the last run that this member has begun.
    begun: AtomicU32,
    /// The last epoch that is known to have ended before any failure.
    verified: AtomicU32,
}

impl Control {
    /// Bytes of the words of `program`.
    pub fn bytes(program: &Program) -> usize {
        let flags = 4 * program.steps.len();
        (64 + PER_RANK * program.ranks + flags).next_multiple_of(256)
    }

    /// Writes the words of a new segment.
    pub fn format(segment: &Segment, program: &Program) {
        let before = FIRST.wrapping_sub(1);
        let store = |byte: usize| segment.word(byte).store(before, Ordering::Release);
        for rank in 0..program.ranks {
            store(begun(rank));
            store(ended(rank));
        }
        (0..program.steps.len()).for_each(|step| store(flag(program.ranks, step)));
    }

    /// The words in `segment`, for `rank`.
    pub fn new(segment: Arc<Segment>, program: &Program, rank: usize) -> Self {
        let own = program.steps.iter().filter(|step| step.rank == rank);
        let awaited = own.flat_map(|step| &step.after);
        let awaited = awaited.map(|&before| (before, program.steps[before].rank));
        Control {
            segment,
            rank,
            ranks: program.ranks,
            steps: program.steps.len(),
            awaited: awaited.filter(|&(_, other)| other != rank).collect(),
            begun: AtomicU32::new(FIRST.wrapping_sub(1)),
            verified: AtomicU32::new(FIRST.wrapping_sub(1)),
        }
    }

    /// The epoch of the run that comes next.
    pub fn next(&self) -> u32 {
        self.begun.load(Ordering::Acquire).wrapping_add(1)
    }

    /// Notes that this member begins the run `epoch`.
    pub fn begin(&self, epoch: u32) {
        self.begun.store(epoch, Ordering::Release);
        let word = self.segment.word(begun(self.rank));
        word.store(epoch, Ordering::SeqCst);
    }

    /// Whether `rank` has begun the run `epoch`, as far as can be seen: ranks that exchange rows by
    /// NCCL have no words in common.
    pub fn has_begun(&self, rank: usize, epoch: u32) -> bool {
        rank < self.ranks
            && has_reached(self.segment.word(begun(rank)).load(Ordering::SeqCst), epoch)
    }

    /// The first of `ranks` that has not begun a run that this member has begun.
    pub fn is_behind(&self, mut ranks: impl Iterator<Item = usize>) -> Option<usize> {
        let epoch = self.begun.load(Ordering::Acquire);
        ranks.find(|&rank| rank < self.ranks && !self.has_begun(rank, epoch))
    }

    /// Whether `step` of another rank is done, in the run `epoch`.
    pub fn is_done(&self, step: usize, epoch: u32) -> bool {
        let word = self.segment.word(self.flag(step));
        has_reached(word.load(Ordering::Acquire), epoch)
    }

    /// Notes that `step` of this rank is done in the run `epoch`.
    pub fn done(&self, step: usize, epoch: u32) {
        let word = self.segment.word(self.flag(step));
        word.store(epoch, Ordering::Release);
    }

    /// Notes that this rank's part of the run `epoch` has ended.
    pub fn end(&self, epoch: u32) {
        let word = self.segment.word(self.ended());
        word.store(epoch, Ordering::Release);
    }

    /// Where the flag of `step` lies.
    pub fn flag(&self, step: usize) -> usize {
        flag(self.ranks, step)
    }

    /// Where the epoch lies that this rank has ended last.
    pub fn ended(&self) -> usize {
        ended(self.rank)
    }

    /// The epoch of the last run of this member that has ended.
    pub fn last_ended(&self) -> u32 {
        self.segment.word(self.ended()).load(Ordering::Acquire)
    }

    /// The number of runs of this member that have begun and not ended.
    pub fn running(&self) -> u32 {
        let begun = self.begun.load(Ordering::Acquire);
        begun.wrapping_sub(self.last_ended())
    }

    /// Whether all runs of this member have ended and no rank had failed by then.
    pub fn is_verified(&self) -> bool {
        let begun = self.begun.load(Ordering::Acquire);
        // A rank notes the failure before it releases a flag. So whoever was released, and has
        // ended, sees it.
        if self.running() == 0 && self.failed().is_none() {
            self.verified.store(begun, Ordering::Release);
        }
        self.verified.load(Ordering::Acquire) == begun
    }

    /// The rank whose failure has released the flags, if they are released.
    pub fn failed(&self) -> Option<usize> {
        match self.segment.word(0).load(Ordering::SeqCst) {
            0 => None,
            rank => Some(rank as usize - 1),
        }
    }

    /// Lets nobody wait for a flag any more, because `culprit` has failed. What the steps of the
    /// runs leave behind is worth nothing, and every rank can see so. Flags that a slow rank
    /// writes later hold for its own run alone, so this is repeated until all streams are done.
    pub fn release(&self, culprit: usize) {
        let word = self.segment.word(0);
        let culprit = culprit as u32 + 1;
        let _ = word.compare_exchange(0, culprit, Ordering::SeqCst, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let ahead = self.begun.load(Ordering::Acquire).wrapping_add(AHEAD);
        for step in 0..self.steps {
            let word = self.segment.word(self.flag(step));
            word.store(ahead, Ordering::Release);
        }
    }

    /// The rank that this member's first unfinished run waits for, if it can be seen.
    pub fn slowest(&self) -> Option<usize> {
        let epoch = self.last_ended().wrapping_add(1);
        let waiting = |&&(step, _): &&(usize, usize)| !self.is_done(step, epoch);
        let not_begun = (0..self.ranks).find(|&rank| !self.has_begun(rank, epoch));
        let slow = || self.awaited.iter().find(waiting).map(|&(_, rank)| rank);
        not_begun.or_else(slow)
    }

    /// Notes that this rank touches the memory of the others no more.
    pub fn let_go(&self) {
        let word = self.segment.word(gone(self.rank));
        word.store(1, Ordering::Release);
    }

    /// Whether this rank has let go, and so waits for nothing.
    pub fn is_gone(&self) -> bool {
        self.segment.word(gone(self.rank)).load(Ordering::Acquire) == 1
    }

    /// Whether no other rank touches this one's memory any more.
    pub fn is_let_go(&self) -> bool {
        let mut others = (0..self.ranks).filter(|&rank| rank != self.rank);
        others.all(|rank| self.segment.word(gone(rank)).load(Ordering::Acquire) == 1)
    }
}

/// Where the epoch lies that `rank` has begun last.
fn begun(rank: usize) -> usize {
    64 + PER_RANK * rank
}

/// Where the epoch lies that `rank` has ended last.
fn ended(rank: usize) -> usize {
    begun(rank) + 4
}

/// Where `rank` says that it touches the memory of the others no more.
fn gone(rank: usize) -> usize {
    begun(rank) + 8
}

/// Where the flag of `step` lies.
fn flag(ranks: usize, step: usize) -> usize {
    64 + PER_RANK * ranks + 4 * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Shards, all_gather_matmul_pushed};

    /// The controls of two ranks of a plan.
    fn pair() -> [Control; 2] {
        let shards = Shards::new([256; 2]).expect("small");
        let program = all_gather_matmul_pushed(&shards, 1);
        let (segment, _) = Segment::create(Control::bytes(&program)).expect("shared memory");
        Control::format(&segment, &program);
        let segment = Arc::new(segment);
        [0, 1].map(|rank| Control::new(Arc::clone(&segment), &program, rank))
    }

    #[test]
    fn epochs_wrap() {
        let [first, second] = pair();
        let mut epochs = Vec::new();
        for _ in 0..5 {
            let epoch = first.next();
            assert!(!second.is_done(0, epoch), "{epoch}");
            first.begin(epoch);
            first.done(0, epoch);
            assert!(second.is_done(0, epoch), "{epoch}");
            epochs.push(epoch);
        }
        assert_eq!(epochs, [u32::MAX - 1, u32::MAX, 0, 1, 2]);
    }

    #[test]
    fn what_was_released_is_not_verified() {
        let [first, second] = pair();
        first.begin(first.next());
        first.end(first.next().wrapping_sub(1));
        assert!(first.is_verified());
        second.begin(second.next());
        assert!(!second.is_verified());
        first.release(1);
        assert!(second.is_done(0, second.next()));
        second.end(second.next().wrapping_sub(1));
        assert!(!second.is_verified());
        assert!(first.is_verified(), "its run had ended before");
        assert_eq!(second.failed(), Some(1));
    }
}
