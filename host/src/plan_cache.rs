//! [`PlanCache`]: the plans that a device keeps for [`Device::matmul`] and
//! [`Gemm::run`](crate::Gemm::run).
//!
//! A plan is taken out to run and put back afterwards, so that no lock is held while
//! kernels are compiled or run. Two threads that compute the same product at once
//! therefore use two plans. When the cache is full, the least recently used plan is
//! dropped.
//!
//! A plan whose workspace a CUDA graph has captured belongs to that graph: it serves other
//! products of the same capture, is never dropped, and does not count.
//!
//! [`Device::matmul`]: crate::Device::matmul

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpu_kernels::DType;

use crate::epilogue_form::EpilogueForm;
use crate::operands::Operands;
use crate::select::choice::Request;
use crate::untyped_plan::UntypedPlan;

/// Most plans that one device keeps. The layers of a neural network, forward and
/// backward, have fewer different products than this.
pub(crate) const MAX_PLANS: usize = 64;

/// Most bytes that the workspaces of these plans have together. A plan that needs more
/// by itself is not kept: its product takes so long that planning again costs little in
/// comparison.
pub(crate) const MAX_WORKSPACE_BYTES: u64 = 256 << 20;

/// The products that a plan in the cache can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The element type of A and B, and how it is multiplied.
    pub(crate) input: DType,
    /// The element type of C.
    pub(crate) output: DType,
    pub(crate) operands: Operands,
    /// The epilogue without its values, which a plan takes at each run.
    pub(crate) epilogue: EpilogueForm,
    /// The forced choices.
    pub(crate) request: Request,
}

/// Plans of one device.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    /// Sorted by last use, the least recently used plan first.
    plans: Mutex<VecDeque<(Key, UntypedPlan)>>,
    /// The plans of graphs, with the number of the capture.
    captured: Mutex<Vec<(u64, Key, UntypedPlan)>>,
}

impl PlanCache {
    /// Takes a plan for `key` out of the cache, if there is one, for a product on a stream
    /// that captures `capture`, or runs.
    pub(crate) fn take(&self, key: &Key, capture: Option<u64>) -> Option<UntypedPlan> {
        if let Some(capture) = capture {
            let mut captured = lock(&self.captured);
            let is_wanted = |(number, other, _): &(_, _, _)| *number == capture && other == key;
            if let Some(index) = captured.iter().position(is_wanted) {
                return Some(captured.swap_remove(index).2);
            }
        }
        let mut plans = lock(&self.plans);
        let index = plans.iter().rposition(|(other, _)| other == key)?;
        plans.remove(index).map(|(_, plan)| plan)
    }

    /// Keeps `plan`, and drops the least recently used plans until the cache is within its
    /// bounds. While the stream captures, nothing is dropped, because freeing memory would
    /// break the capture.
    pub(crate) fn put(&self, key: Key, plan: UntypedPlan, capture: Option<u64>) {
        if let Some(capture) = capture.filter(|_| plan.belongs_to_graph()) {
            lock(&self.captured).push((capture, key, plan));
            return;
        }
        let bytes = |(_, plan): &(Key, UntypedPlan)| plan.info.workspace_bytes();
        let entry = (key, plan);
        let may_drop = capture.is_none();
        if may_drop && bytes(&entry) > MAX_WORKSPACE_BYTES {
            return;
        }
        // Freeing a workspace may wait for the GPU, so evicted plans are dropped after the
        // lock is released.
        let mut evicted = Vec::new();
        let mut plans = lock(&self.plans);
        plans.push_back(entry);
        let mut kept: u64 = plans.iter().map(bytes).sum();
        while may_drop && (plans.len() > MAX_PLANS || kept > MAX_WORKSPACE_BYTES) {
            let Some(oldest) = plans.pop_front() else {
                break;
            };
            kept -= bytes(&oldest);
            evicted.push(oldest);
        }
    }

    /// Drops all plans that no graph uses. Returns whether there were any.
    pub(crate) fn clear(&self) -> bool {
        let plans = std::mem::take(&mut *lock(&self.plans));
        !plans.is_empty()
    }
}

fn lock<T>(plans: &Mutex<T>) -> MutexGuard<'_, T> {
    plans.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epilogue::Epilogue;
    use crate::layout::Layout;
    use crate::{Device, Gemm, f16};

    /// A plan of a 1×n by n×1 product, and its key.
    fn plan(n: usize) -> (Key, UntypedPlan) {
        let layouts = [(1, n), (n, 1), (1, 1)].map(|(rows, cols)| Layout::row_major(rows, cols));
        let operands = Operands::of_layouts(layouts, [2; 3], &Epilogue::new()).unwrap();
        let gemm = Gemm::new(&Device::cpu());
        let key = gemm.key::<f16, f16>(operands).unwrap();
        (key, gemm.untyped_plan::<f16, f16>(operands).unwrap())
    }

    /// Takes all plans for `keys` out of `cache` and returns their number for each key.
    fn count(cache: &PlanCache, keys: &[Key]) -> Vec<usize> {
        let takes = |key| std::iter::from_fn(|| cache.take(key, None)).count();
        keys.iter().map(takes).collect()
    }

    #[test]
    fn a_plan_is_taken_by_one_and_found_again_when_it_is_back() {
        let cache = PlanCache::default();
        let (key, first) = plan(3);
        let (other, _) = plan(4);
        cache.put(key.clone(), first, None);
        assert!(cache.take(&other, None).is_none());
        let taken = cache.take(&key, None).unwrap();
        assert!(
            cache.take(&key, None).is_none(),
            "another thread needs its own"
        );
        cache.put(key.clone(), taken, None);
        // Both threads put their plans back.
        cache.put(key.clone(), plan(3).1, None);
        assert_eq!(count(&cache, &[key, other]), [2, 0]);
        assert!(!cache.clear());
    }

    #[test]
    fn the_plan_used_longest_ago_goes_first() {
        let cache = PlanCache::default();
        let keys: Vec<Key> = (0..MAX_PLANS)
            .map(|n| {
                let (key, plan) = plan(n);
                cache.put(key.clone(), plan, None);
                key
            })
            .collect();
        // Using the first plan again makes the second the least recently used.
        let first = cache.take(&keys[0], None).unwrap();
        cache.put(keys[0].clone(), first, None);
        let (key, one_more) = plan(MAX_PLANS);
        cache.put(key.clone(), one_more, None);
        let counts = count(&cache, &keys);
        assert_eq!((counts[0], counts[1], counts[2]), (1, 0, 1));
        assert_eq!(counts.iter().sum::<usize>(), MAX_PLANS - 1);
        assert_eq!(count(&cache, &[key]), [1]);
    }

    #[test]
    fn workspaces_are_bounded_together_and_alone() {
        let cache = PlanCache::default();
        // Each workspace holds two vectors widened to f32, a little more than a third of the
        // bound.
        let third = MAX_WORKSPACE_BYTES as usize / 3 / 8 + 64;
        let keys = [0, 1, 2].map(|more| {
            let (key, plan) = plan(third + more);
            assert!(plan.info.workspace_bytes() > MAX_WORKSPACE_BYTES / 3);
            cache.put(key.clone(), plan, None);
            key
        });
        assert_eq!(count(&cache, &keys), [0, 1, 1]);
        let (small_key, small) = plan(3);
        cache.put(small_key.clone(), small, None);
        let (key, too_large) = plan(3 * third);
        cache.put(key.clone(), too_large, None);
        assert_eq!(count(&cache, &[key, small_key]), [0, 1]);
    }

    #[test]
    fn a_plan_that_adds_in_any_order_serves_no_batch_invariant_product() {
        let cache = PlanCache::default();
        let (key, free) = plan(3);
        let gemm = Gemm::new(&Device::cpu()).batch_invariant(true);
        let invariant = gemm.key::<f16, f16>(key.operands).unwrap();
        cache.put(key.clone(), free, None);
        assert_eq!(count(&cache, &[invariant, key]), [0, 1]);
    }

    #[test]
    fn clearing_says_whether_it_freed_anything() {
        let cache = PlanCache::default();
        assert!(!cache.clear());
        let (key, plan) = plan(3);
        cache.put(key.clone(), plan, None);
        assert!(cache.clear());
        assert!(cache.take(&key, None).is_none());
    }
}
