//! TMA: loads and stores of boxes. A thread starts a copy, and the copy engine
//! (`copy_engine.rs`) performs it when the scheduler chooses.

use super::copy_engine::Start;
use super::{Wait, checked, issue, wait_until, with};
use crate::agent::Role;
use crate::instruction::Instruction;

/// `prefetch.tensormap`.
pub fn prefetch_map(map: u64) {
    if let Some([map]) = issue(Instruction::PrefetchMap, [map]) {
        checked(|cluster, thread| cluster.tensor_map(thread, map).map(|_| ()));
    }
}

/// A load to the executing thread's CTA.
pub fn load(shared: u32, map: u64, x: u32, y: u32, barrier: u32) {
    let arguments = [shared.into(), map, x.into(), y.into(), barrier.into()];
    if let Some([shared, map, x, y, barrier]) = issue(Instruction::TensorLoad, arguments) {
        let start = Start::new(x, y, None);
        load_here((shared as u32, map, start, barrier as u32));
    }
}

/// A load from a plane of a tensor of three dimensions.
pub fn load_3d(shared: u32, map: u64, (x, y, z): (u32, u32, u32), barrier: u32) {
    let [shared, x, y, z, barrier] = [shared, x, y, z, barrier].map(u64::from);
    let arguments = [shared, map, x, y, z, barrier];
    if let Some([shared, map, x, y, z, barrier]) = issue(Instruction::TensorLoad, arguments) {
        let start = Start::new(x, y, Some(z));
        load_here((shared as u32, map, start, barrier as u32));
    }
}

fn load_here(copy: (u32, u64, Start, u32)) {
    checked(|cluster, thread| {
        let own = 1 << cluster.threads[thread as usize].cta;
        cluster.start_loads(thread, copy, own)
    });
}

/// A load to each CTA of the cluster whose bit is set in `ctas`.
pub fn load_multicast(shared: u32, map: u64, x: u32, y: u32, barrier: u32, ctas: u16) {
    let [shared, x, y, barrier, ctas] = [shared, x, y, barrier, ctas.into()].map(u64::from);
    let arguments = [shared, map, x, y, barrier, ctas];
    if let Some([shared, map, x, y, barrier, ctas]) =
        issue(Instruction::TensorLoadMulticast, arguments)
    {
        checked(|cluster, thread| {
            let start = Start::new(x, y, None);
            let copy = (shared as u32, map, start, barrier as u32);
            cluster.start_loads(thread, copy, ctas as u32)
        });
    }
}

/// [`load_multicast`] from a plane of a tensor of three dimensions.
pub fn load_multicast_3d(
    shared: u32,
    map: u64,
    (x, y, z): (u32, u32, u32),
    barrier: u32,
    ctas: u16,
) {
    let [shared, x, y, z, barrier, ctas] = [shared, x, y, z, barrier, ctas.into()].map(u64::from);
    let arguments = [shared, map, x, y, z, barrier, ctas];
    if let Some([shared, map, x, y, z, barrier, ctas]) =
        issue(Instruction::TensorLoadMulticast, arguments)
    {
        checked(|cluster, thread| {
            let start = Start::new(x, y, Some(z));
            let copy = (shared as u32, map, start, barrier as u32);
            cluster.start_loads(thread, copy, ctas as u32)
        });
    }
}

/// A store, in the thread's open bulk group.
pub fn store(map: u64, shared: u32, x: u32, y: u32) {
    let arguments = [map, shared.into(), x.into(), y.into()];
    if let Some([map, shared, x, y]) = issue(Instruction::TensorStore, arguments) {
        let start = Start::new(x, y, None);
        checked(|cluster, thread| cluster.start_store(thread, map, shared as u32, start));
    }
}

/// [`store`] to a plane of a tensor of three dimensions.
pub fn store_3d(map: u64, shared: u32, (x, y, z): (u32, u32, u32)) {
    let arguments = [map, shared.into(), x.into(), y.into(), z.into()];
    if let Some([map, shared, x, y, z]) = issue(Instruction::TensorStore, arguments) {
        let start = Start::new(x, y, Some(z));
        checked(|cluster, thread| cluster.start_store(thread, map, shared as u32, start));
    }
}

/// `cp.async.bulk.commit_group`.
pub fn commit_stores() {
    if issue(Instruction::CommitStores, []).is_some() {
        with(|cluster, thread| {
            let groups = &mut cluster.threads[thread as usize].stores;
            groups.committed += 1;
            groups.open = 0;
        });
    }
}

/// `cp.async.bulk.wait_group.read`.
pub fn wait_stores_read(pending: u32) {
    if let Some([pending]) = issue(Instruction::WaitStoresRead, [pending.into()]) {
        wait(pending as u32, false);
    }
}

/// `cp.async.bulk.wait_group 0`.
pub fn wait_stores() {
    if issue(Instruction::WaitStores, []).is_some() {
        wait(0, true);
    }
}

/// Waits until at most `pending` bulk groups still have to read shared memory or, if
/// `complete`, still have to be complete.
fn wait(pending: u32, complete: bool) {
    let upto = with(|cluster, thread| {
        let groups = &cluster.threads[thread as usize].stores;
        groups.committed.saturating_sub(pending)
    });
    wait_until(Wait::Stores(upto), |cluster, thread| {
        Ok(!cluster.stores_upto(thread, upto))
    });
    with(|cluster, thread| {
        let groups = &mut cluster.threads[thread as usize].stores;
        groups.read = groups.read.max(upto);
        if upto > 0 {
            cluster.learn_of(thread, Role::StoreReads(thread), upto);
            if complete {
                cluster.learn_of(thread, Role::Stores(thread), upto);
            }
        }
    });
}

/// `fence.proxy.async`.
pub fn fence_shared() {
    if issue(Instruction::ProxyFence, []).is_some() {
        with(|cluster, thread| cluster.fence_proxy(thread));
    }
}
