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

/// How long L2 keeps the lines of a load.
#[derive(Clone, Copy)]
pub struct CachePolicy(pub u64);

impl CachePolicy {
    /// L2 treats the lines like those of any other load (`TMA::CacheHintSm90` of CUTLASS).
    pub const EVICT_NORMAL: CachePolicy = CachePolicy(0x1000_0000_0000_0000);

    /// L2 evicts so many sixteenths of the lines before others, up to 16.
    ///
    /// `createpolicy.fractional.L2::evict_first` computes the same value. But ptxas does not
    /// evaluate it, and in two kernels the registers that it took made others spill.
    #[inline(always)]
    pub const fn evict_first(sixteenths: u8) -> CachePolicy {
        match sixteenths {
            0 => CachePolicy::EVICT_NORMAL,
            _ => CachePolicy((0x11F0 + 0x10 * sixteenths as u64) << 48),
        }
    }
}

/// Starts copying the box at (`x`, `y`) to `shared`; `barrier` counts its bytes, and L2 keeps its
/// lines by `policy`.
///
/// # Safety
/// `shared` has room for the box at the alignment that its swizzle requires, no thread
/// uses that room until `barrier` completes, and `barrier` expects the bytes.
#[inline(always)]
pub unsafe fn load(shared: u32, map: u64, (x, y): (u32, u32), barrier: u32, policy: CachePolicy) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
                "[{0}], [{1}, {{{2}, {3}}}], [{4}], {5};",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) barrier,
                in(reg64) policy.0, options(nostack)
            );
        },
        emulated = {
            let _ = policy;
            machine::tma::load(shared, map, x, y, barrier)
        }
    )
}

/// [`load`] from plane `z` of a tensor map with three dimensions.
///
/// # Safety
/// See [`load`].
#[inline(always)]
pub unsafe fn load_3d(
    shared: u32,
    map: u64,
    (x, y, z): (u32, u32, u32),
    barrier: u32,
    policy: CachePolicy,
) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
                "[{0}], [{1}, {{{2}, {3}, {4}}}], [{5}], {6};",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) z,
                in(reg32) barrier, in(reg64) policy.0, options(nostack)
            );
        },
        emulated = {
            let _ = policy;
            machine::tma::load_3d(shared, map, (x, y, z), barrier)
        }
    )
}

/// Starts a [`load`] into every CTA of the cluster whose bit is set in `ctas`. Each CTA
/// receives the box at the same shared offset, and its barrier at the same offset counts
/// the bytes.
///
/// # Safety
/// The conditions of [`load`] hold in each of those CTAs.
#[inline(always)]
pub unsafe fn load_multicast(
    shared: u32,
    map: u64,
    (x, y): (u32, u32),
    barrier: u32,
    ctas: u16,
    policy: CachePolicy,
) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint",
                "[{0}], [{1}, {{{2}, {3}}}], [{4}], {5}, {6};",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) barrier,
                in(reg16) ctas, in(reg64) policy.0, options(nostack)
            );
        },
        emulated = {
            let _ = policy;
            machine::tma::load_multicast(shared, map, x, y, barrier, ctas)
        }
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
    policy: CachePolicy,
) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint",
                "[{0}], [{1}, {{{2}, {3}, {4}}}], [{5}], {6}, {7};",
                in(reg32) shared, in(reg64) map, in(reg32) x, in(reg32) y, in(reg32) z,
                in(reg32) barrier, in(reg16) ctas, in(reg64) policy.0, options(nostack)
            );
        },
        emulated = {
            let _ = policy;
            machine::tma::load_multicast_3d(shared, map, (x, y, z), barrier, ctas)
        }
    )
}

/// [`load_3d`], if `active`; [`load`], if `active` and the map has two dimensions (`z` is
/// `None`); without a policy. It is predicated for the same reason as [`store_if`].
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

#[cfg(test)]
mod tests {
    use super::CachePolicy;

    /// The values are those that ptxas 13.0 computes for `createpolicy`.
    #[test]
    fn policies_are_those_of_createpolicy() {
        let of = |sixteenths| CachePolicy::evict_first(sixteenths).0;
        assert_eq!(of(16), 0x12F0_0000_0000_0000, "1.0");
        assert_eq!(of(12), 0x12B0_0000_0000_0000, "0.75");
        assert_eq!(of(8), 0x1270_0000_0000_0000, "0.5");
        assert_eq!(of(4), 0x1230_0000_0000_0000, "0.25");
        assert_eq!(of(0), CachePolicy::EVICT_NORMAL.0);
    }
}
