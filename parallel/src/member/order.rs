//! [`Order`]: whether all members run their plans in the same order.

use std::sync::atomic::{Ordering, fence};

use super::segment::Segment;

/// For so many of its last runs, a member can be asked which plan they were of. Members that are
/// further apart are not compared; their runs end by the time limit.
const REMEMBERED: usize = 1024;

/// Which plan each member's last runs were of.
#[derive(Debug)]
pub(super) struct Order {
    segment: Segment,
    rank: usize,
    ranks: usize,
}

impl Order {
    /// Bytes for the members of a group.
    pub fn bytes(ranks: usize) -> usize {
        8 * REMEMBERED * ranks
    }

    /// The runs of all, as `rank` sees them, in a segment that began as zeros.
    pub fn new(segment: Segment, rank: usize, ranks: usize) -> Self {
        Order {
            segment,
            rank,
            ranks,
        }
    }

    /// Notes that run `number` of this member is one of `plan`. Returns a rank for which it was
    /// one of another plan, and that plan. Of two such ranks, at least the second sees the other.
    pub fn note(&self, number: u32, plan: u32) -> Option<(usize, u32)> {
        let own = run(number, plan);
        (self.segment.long_word(slot(self.rank, number))).store(own, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        (0..self.ranks).find_map(|rank| {
            let found = self.segment.long_word(slot(rank, number));
            let found = found.load(Ordering::SeqCst);
            let is_same_number = found >> 32 == own >> 32;
            (is_same_number && found != own).then_some((rank, found as u32))
        })
    }
}

/// Where `rank` notes its run `number`.
fn slot(rank: usize, number: u32) -> usize {
    8 * (rank * REMEMBERED + number as usize % REMEMBERED)
}

/// A run as a word, which is not zero.
fn run(number: u32, plan: u32) -> u64 {
    (u64::from(number) + 1) << 32 | u64::from(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_order_is_seen() {
        let (segment, name) = Segment::create(Order::bytes(2)).expect("shared memory");
        let second = Segment::open(name.path(), Order::bytes(2)).expect("the same");
        let (first, second) = (Order::new(segment, 0, 2), Order::new(second, 1, 2));
        for number in 0..3000 {
            assert_eq!(first.note(number, number % 3), None);
            assert_eq!(second.note(number, number % 3), None);
        }
        assert_eq!(first.note(3000, 1), None);
        assert_eq!(second.note(3000, 2), Some((0, 1)));
    }
}
