//! Barriers in shared memory that count arrivals and bytes (PTX ISA, "Parallel
//! Synchronization and Communication Instructions: mbarrier").
//!
//! A phase completes when the expected arrivals have arrived and the expected
//! bytes have landed; the barrier then starts its next phase. A waiter gives
//! the parity of the phase that it waits for.

/// Bytes of one barrier.
pub const BYTES: u32 = 8;

/// `mbarrier.init`: starts phase 0, with `arrivals` expected arrivals a phase.
///
/// # Safety
/// `barrier` is an 8-byte aligned shared address that no thread uses yet.
#[inline(always)]
pub unsafe fn init(barrier: u32, arrivals: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) barrier, in(reg32) arrivals,
                 options(nostack));
        },
        emulated = machine::mbarrier::init(barrier, arrivals)
    )
}

/// `fence.mbarrier_init`: makes initialised barriers visible to the cluster
/// and, with the proxy fence, to the copy engine.
#[inline(always)]
pub fn fence_init() {
    instruction!(
        // SAFETY: fences only order what is around them.
        ptx = unsafe {
            asm!("fence.mbarrier_init.release.cluster;", options(nostack));
            asm!("fence.proxy.async.shared::cta;", options(nostack));
        },
        emulated = machine::mbarrier::fence_init()
    )
}

/// `mbarrier.arrive.expect_tx`: arrives once, and makes the phase expect `bytes` more
/// bytes before it completes.
///
/// # Safety
/// `barrier` is an initialised barrier of this CTA.
#[inline(always)]
pub unsafe fn arrive_expecting(barrier: u32, bytes: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};",
                 in(reg32) barrier, in(reg32) bytes, options(nostack));
        },
        emulated = machine::mbarrier::arrive_expecting(barrier, bytes)
    )
}

/// [`arrive_expecting`], if `active`, predicated as [`arrive_if`] is.
///
/// # Safety
/// Where `active`, `barrier` is an initialised barrier of this CTA.
#[inline(always)]
pub unsafe fn arrive_expecting_if(active: bool, barrier: u32, bytes: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active,
                    ["mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], {1};"],
                    (in(reg32) barrier, in(reg32) bytes,), options(nostack));
        },
        emulated = if active {
            machine::mbarrier::arrive_expecting(barrier, bytes)
        }
    )
}

/// `mbarrier.arrive`, if `active`: arrives once at a barrier of this CTA. It is
/// predicated, because it stands between warp-aligned instructions (see
/// `isa/convergent.rs`).
///
/// # Safety
/// Where `active`, `barrier` is an initialised barrier of this CTA.
#[inline(always)]
pub unsafe fn arrive_if(active: bool, barrier: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active, ["mbarrier.arrive.shared::cta.b64 _, [{0}];"],
                    (in(reg32) barrier,), options(nostack));
        },
        emulated = if active {
            machine::mbarrier::arrive(barrier)
        }
    )
}

/// `mapa` and `mbarrier.arrive`, if `active`: arrives once at the barrier at the same
/// offset in CTA `rank` of the cluster. Predicated like [`arrive_if`].
///
/// The arrival says that this thread has finished *reading*; it releases no writes to
/// the peer. (`.release.cluster` would release them, but costs a GPU-wide memory
/// barrier: a quarter of the kernel's speed, see `docs/perf-log.md`.)
///
/// # Safety
/// Where `active`, `barrier` is initialised in that CTA, which has not exited.
#[inline(always)]
pub unsafe fn arrive_at_if(active: bool, barrier: u32, rank: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            // Without a first value, `ptxas` would keep the last `remote` in a register.
            asm_if!(active, ".reg .b32 remote; mov.b32 remote, 0; ",
                    ["mapa.shared::cluster.u32 remote, {0}, {1};",
                     "mbarrier.arrive.shared::cluster.b64 _, [remote];"],
                    (in(reg32) barrier, in(reg32) rank,), options(nostack));
        },
        emulated = if active {
            machine::mbarrier::arrive_at(barrier, rank)
        }
    )
}

/// Repeats `mbarrier.try_wait.parity` until the phase with parity `parity` has completed.
///
/// # Safety
/// `barrier` is an initialised barrier of this CTA.
#[inline(always)]
pub unsafe fn wait(barrier: u32, parity: u32) {
    instruction!(
        ptx = {
            loop {
                let done: u32;
                // SAFETY: the caller's duty. `try_wait` itself sleeps for a while.
                unsafe {
                    asm!(
                        "{{ .reg .pred done;",
                        "mbarrier.try_wait.parity.shared::cta.b64 done, [{1}], {2};",
                        "selp.u32 {0}, 1, 0, done; }}",
                        out(reg32) done, in(reg32) barrier, in(reg32) parity, options(nostack)
                    );
                }
                if done != 0 {
                    return;
                }
            }
        },
        emulated = machine::mbarrier::wait(barrier, parity)
    )
}
