//! The cache of the simulation: one partition of L2.

use alloc::vec;
use alloc::vec::Vec;

/// Number of lines per set that measurements of NVIDIA's L2 usually find (Jia et al.,
/// "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 3).
const WAYS: usize = 16;

/// Marks an empty place; no unit has this number.
const EMPTY: u32 = u32::MAX;

/// A set-associative cache of units of equal size. A hash of the unit's number chooses the
/// set, and each set evicts its least recently used unit.
///
/// Because of the sets, hit rates fall smoothly as the data outgrow the cache. In a fully
/// associative cache, a loop over data that are a byte too large would have no hits at all,
/// which is not how GPUs behave.
pub(crate) struct Cache {
    /// The sets, with [`Self::ways`] numbers each, the most recently used first.
    units: Vec<u32>,
    ways: usize,
    sets: u64,
}

impl Cache {
    /// An empty cache with room for `capacity` units.
    pub(crate) fn new(capacity: usize) -> Cache {
        let ways = capacity.min(WAYS);
        let sets = capacity.checked_div(ways).unwrap_or(0);
        Cache {
            units: vec![EMPTY; sets * ways],
            ways,
            sets: sets as u64,
        }
    }

    /// Makes `unit` the most recently used of its set. Returns whether it was in the cache.
    pub(crate) fn touch(&mut self, unit: u32) -> bool {
        if self.sets == 0 {
            return false;
        }
        let start = (hash(unit.into()) % self.sets) as usize * self.ways;
        let set = &mut self.units[start..start + self.ways];
        let found = set.iter().position(|&held| held == unit);
        // More recently used units move down a place, and on a miss the last is evicted.
        let last = found.unwrap_or(self.ways - 1);
        set.copy_within(..last, 1);
        set[0] = unit;
        found.is_some()
    }
}

/// The finaliser of MurmurHash3 (Appleby, 2011): every bit depends on all bits of `value`.
pub(crate) fn hash(value: u64) -> u64 {
    let mixed = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_of_a_set_goes_first() {
        let mut cache = Cache::new(WAYS);
        assert!((0..16).all(|unit| !cache.touch(unit)));
        assert!(cache.touch(0));
        assert!(!cache.touch(16), "drives out 1");
        assert!(cache.touch(0) && !cache.touch(1) && !cache.touch(2));
        assert!(cache.touch(16) && cache.touch(15));
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let mut cache = Cache::new(0);
        assert!(!cache.touch(1) && !cache.touch(1));
        let mut cache = Cache::new(1);
        assert!(!cache.touch(1) && cache.touch(1) && !cache.touch(2) && !cache.touch(1));
    }

    #[test]
    fn hits_fall_smoothly_as_a_loop_outgrows_the_cache() {
        let hits = |units: u32| {
            let mut cache = Cache::new(1024);
            let rounds = (0..8).flat_map(|_| 0..units);
            let touched = rounds.map(|unit| cache.touch(unit));
            touched.skip(units as usize).filter(|hit| *hit).count() as f64 / f64::from(7 * units)
        };
        assert!(hits(512) > 0.99);
        assert!(hits(2048) < 0.05);
        let between = hits(1100);
        assert!((0.2..0.8).contains(&between), "{between}");
    }
}
