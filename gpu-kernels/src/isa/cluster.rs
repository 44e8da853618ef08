//! Thread-block clusters (PTX ISA, "Cluster of Cooperative Thread Arrays",
//! "barrier.cluster").

/// `%cluster_ctarank`: index of this CTA in its cluster. It is read where this is called,
/// because a main loop with 192 accumulators has no register to keep it in.
#[inline(always)]
pub fn rank() -> u32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: reads a special register.
            unsafe {
                asm!("mov.u32 {}, %cluster_ctarank;", out(reg32) value,
                     options(nomem, nostack, preserves_flags));
            }
            value
        },
        emulated = machine::cluster::rank()
    )
}

/// `barrier.cluster.arrive.release`: arrives without waiting. Memory accesses of this
/// thread before it, in its own CTA or a peer's, are ordered before the accesses of any
/// thread after its [`wait`] for this phase. `ptxas` implements the release, like
/// `fence.acq_rel.cluster`, as a GPU-wide memory barrier (`MEMBAR.ALL.GPU`).
///
/// # Safety
/// A thread arrives once a phase, and [`wait`]s before it arrives again.
#[inline(always)]
pub unsafe fn arrive() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::cluster_arrive() },
        emulated = machine::cluster::arrive()
    )
}

/// `barrier.cluster.arrive.relaxed`: like [`arrive`], but does not order this
/// thread's accesses to memory.
///
/// # Safety
/// See [`arrive`].
#[inline(always)]
pub unsafe fn arrive_relaxed() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::cluster_arrive_relaxed() },
        emulated = machine::cluster::arrive_relaxed()
    )
}

/// `barrier.cluster.wait.acquire`: waits until all threads of the cluster that have not
/// exited have arrived.
///
/// # Safety
/// The thread calls this once after each of its [`arrive`]s or [`arrive_relaxed`]s.
#[inline(always)]
pub unsafe fn wait() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::cluster_wait() },
        emulated = machine::cluster::wait()
    )
}

/// The address, in the cluster's shared window, of shared address `shared` of CTA
/// `rank` (`mapa`).
#[inline(always)]
pub fn address_in(shared: u32, rank: u32) -> u32 {
    instruction!(
        ptx = {
            let address: u32;
            // SAFETY: arithmetic on addresses.
            unsafe {
                asm!("mapa.shared::cluster.u32 {}, {}, {};", out(reg32) address, in(reg32) shared,
                     in(reg32) rank, options(pure, nomem, nostack, preserves_flags));
            }
            address
        },
        emulated = machine::cluster::address_in(shared, rank)
    )
}

/// `st.shared::cluster.v4.f32`: stores 16 bytes into the shared memory of a CTA of the
/// cluster.
///
/// # Safety
/// `address` is from [`address_in`], aligned to 16, inside that CTA's shared
/// memory, and no other thread accesses it before a barrier orders the accesses.
#[inline(always)]
pub unsafe fn store_f32x4(address: u32, values: [f32; 4]) {
    instruction!(
        ptx = {
            let [x, y, z, w] = values;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("st.shared::cluster.v4.f32 [{}], {{{}, {}, {}, {}}};", in(reg32) address,
                     in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) w, options(nostack));
            }
        },
        emulated = machine::cluster::store(address, values.map(f32::to_bits))
    )
}
