//! The copy engine: tiles between global and shared memory (PTX ISA, "Data
//! Movement and Conversion Instructions: cp.async.bulk.tensor").
//!
//! A tensor map (128 bytes, encoded by the driver) says where the tensor lies,
//! how large a box one copy moves, and how the box is swizzled in shared
//! memory. A load fills elements outside the tensor with zeros, which still count
//! towards the barrier's bytes; a store drops them. Coordinates name the box's
//! first element, contiguous dimension first.

/// `prefetch.tensormap`.
///
/// # Safety
/// `map` is the generic address of a tensor map.
#[inline(always)]
pub unsafe fn prefetch_map(map: u64) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { asm!("prefetch.tensormap [{}];", in(reg64) map, options(nostack)) },
        emulated = machine::tma::prefetch_map(map)
    )
}

/// [`prefetch_map`], if `active`.
///
/// # Safety
/// As [`prefetch_map`].
#[inline(always)]
pub unsafe fn prefetch_map_if(active: bool, map: u64) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(
                active,
                ["prefetch.tensormap [{0}];"],
                (in(reg64) map,),
                options(nostack)
            );
        },
        emulated = if active {
            machine::tma::prefetch_map(map)
        }
    )
}

/// Starts copying the box at (`x`, `y`) to `shared`; `barrier` counts its bytes.
///
/// # Safety
/// `shared` has room for the box at the alignment that its swizzle requires, no thread
/// uses that room until `barrier` completes, and `barrier` expects the bytes.
#[inline(always)]
pub unsafe fn load(shared: u32, map: u64, x: u32, y: u32, barrier: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
                "[{0}], [{1}, {{{2}, {3}}}], [{4}];",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) barrier,
                options(nostack)
            );
        },
        emulated = machine::tma::load(shared, map, x, y, barrier)
    )
}

/// [`load`] from plane `z` of a tensor map with three dimensions.
///
/// # Safety
/// See [`load`].
#[inline(always)]
pub unsafe fn load_3d(shared: u32, map: u64, (x, y, z): (u32, u32, u32), barrier: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes",
                "[{0}], [{1}, {{{2}, {3}, {4}}}], [{5}];",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) z,
                in(reg32) barrier, options(nostack)
            );
        },
        emulated = machine::tma::load_3d(shared, map, (x, y, z), barrier)
    )
}

/// Starts a [`load`] into every CTA of the cluster whose bit is set in `ctas`. Each CTA
/// receives the box at the same shared offset, and its barrier at the same offset counts
/// the bytes.
///
/// # Safety
/// The conditions of [`load`] hold in each of those CTAs.
#[inline(always)]
pub unsafe fn load_multicast(shared: u32, map: u64, x: u32, y: u32, barrier: u32, ctas: u16) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
                "[{0}], [{1}, {{{2}, {3}}}], [{4}], {5};",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) barrier,
                in(reg16) ctas, options(nostack)
            );
        },
        emulated = machine::tma::load_multicast(shared, map, x, y, barrier, ctas)
    )
}

/// [`load_multicast`] from plane `z` of a tensor map with three dimensions.
///
/// # Safety
/// See [`load_multicast`].
#[inline(always)]
pub unsafe fn load_multicast_3d(
    shared: u32,
    map: u64,
    (x, y, z): (u32, u32, u32),
    barrier: u32,
    ctas: u16,
) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
                "[{0}], [{1}, {{{2}, {3}, {4}}}], [{5}], {6};",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) z,
                in(reg32) barrier, in(reg16) ctas, options(nostack)
            );
        },
        emulated = machine::tma::load_multicast_3d(shared, map, (x, y, z), barrier, ctas)
    )
}

/// [`load_3d`], if `active`; [`load`], if `active` and the map has two dimensions (`z` is
/// `None`). It is predicated for the same reason as [`store_if`].
///
/// # Safety
/// See [`load`], where `active`.
#[inline(always)]
pub unsafe fn load_if(
    active: bool,
    shared: u32,
    map: u64,
    (x, y): (u32, u32),
    z: Option<u32>,
    barrier: u32,
) {
    match z {
        None => instruction!(
            // SAFETY: the caller's duty.
            ptx = unsafe {
                asm_if!(active,
                        ["cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}, {{{2}, {3}}}], [{4}];"],
                        (in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) barrier,), options(nostack));
            },
            emulated = if active {
                machine::tma::load(shared, map, x, y, barrier)
            }
        ),
        Some(z) => instruction!(
            // SAFETY: the caller's duty.
            ptx = unsafe {
                asm_if!(active,
                        ["cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}, {{{2}, {3}, {4}}}], [{5}];"],
                        (in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) barrier,), options(nostack));
            },
            emulated = if active {
                machine::tma::load_3d(shared, map, (x, y, z), barrier)
            }
        ),
    }
}

/// Starts copying the box at `shared` to (`x`, `y`) of the tensor, if `active`, as part
/// of the thread's current bulk group. One thread does this for a warpgroup whose next
/// instructions are warp-aligned, so this function and the three below are predicated
/// (see `isa/convergent.rs`).
///
/// # Safety
/// Where `active`: the box is complete, [`fence_shared`] has made it visible, and it stays
/// unchanged until a [`wait_stores_read_if`] or [`wait_stores_if`] says that it has been
/// read.
#[inline(always)]
pub unsafe fn store_if(active: bool, map: u64, shared: u32, x: u32, y: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active,
                    ["cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [{0}, {{{2}, {3}}}], [{1}];"],
                    (in(reg64) map, in(reg32) shared, in(reg32) x, in(reg32) y,), options(nostack));
        },
        emulated = if active {
            machine::tma::store(map, shared, x, y)
        }
    )
}

/// [`store_if`] to plane `z` of a tensor map with three dimensions.
///
/// # Safety
/// See [`store_if`].
#[inline(always)]
pub unsafe fn store_3d_if(active: bool, map: u64, shared: u32, (x, y, z): (u32, u32, u32)) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active,
                    ["cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [{0}, {{{2}, {3}, {4}}}], [{1}];"],
                    (in(reg64) map, in(reg32) shared, in(reg32) x, in(reg32) y, in(reg32) z,), options(nostack));
        },
        emulated = if active {
            machine::tma::store_3d(map, shared, (x, y, z))
        }
    )
}

/// `cp.async.bulk.commit_group`, if `active`: closes this thread's current group of
/// stores.
#[inline(always)]
pub fn commit_stores_if(active: bool) {
    instruction!(
        // SAFETY: this closes a group and touches no memory.
        ptx = unsafe {
            asm_if!(
                active,
                ["cp.async.bulk.commit_group;"],
                (),
                options(nostack)
            );
        },
        emulated = if active {
            machine::tma::commit_stores()
        }
    )
}

/// `cp.async.bulk.wait_group.read`, if `active`: waits until at most `PENDING` groups of
/// this thread still read shared memory.
#[inline(always)]
pub fn wait_stores_read_if<const PENDING: u32>(active: bool) {
    instruction!(
        // SAFETY: waits.
        ptx = unsafe {
            asm_if!(
                active,
                ["cp.async.bulk.wait_group.read {0};"],
                (const PENDING,),
                options(nostack)
            );
        },
        emulated = if active {
            machine::tma::wait_stores_read(PENDING)
        }
    )
}

/// `cp.async.bulk.wait_group 0`, if `active`: waits until all stores of this thread are
/// complete.
#[inline(always)]
pub fn wait_stores_if(active: bool) {
    instruction!(
        // SAFETY: waits.
        ptx = unsafe {
            asm_if!(
                active,
                ["cp.async.bulk.wait_group 0;"],
                (),
                options(nostack)
            );
        },
        emulated = if active {
            machine::tma::wait_stores()
        }
    )
}

/// `fence.proxy.async.shared::cta`: makes this thread's ordinary writes to shared
/// memory visible to the copy engine and the tensor cores.
#[inline(always)]
pub fn fence_shared() {
    instruction!(
        // SAFETY: fences only order what is around them.
        ptx = unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) },
        emulated = machine::tma::fence_shared()
    )
}
