//! A flag in global memory, by which one CTA tells another that data is ready.
//!
//! ```text
//! writer     stores of all threads → barrier → raise      (one thread)
//! reader                                wait → barrier → loads of all threads
//! ```
//!
//! `st.release` and the `ld.acquire` that sees it synchronise; barriers order
//! the accesses of the other threads of each side before and after; and causality
//! order is transitive (PTX ISA, "Memory Consistency Model": "Release and Acquire
//! Patterns", "Synchronizes-with", "Causality Order"). The scope is the GPU, because
//! writer and reader are CTAs of one grid.

/// `st.release.gpu` of 1, if `active`. It is predicated, because it stands between
/// warp-aligned instructions (see `isa/convergent.rs`).
///
/// # Safety
/// Where `active`, `address` is a writable word, aligned to 4, which is 0.
#[inline(always)]
pub unsafe fn raise_if(active: bool, address: u64) {
    instruction!(
        // SAFETY: the caller's duty; the missing `nomem` keeps memory accesses in place.
        ptx = unsafe {
            asm_if!(active, ["st.release.gpu.global.u32 [{0}], {active};"],
                    (in(reg64) address,), options(nostack, preserves_flags));
        },
        emulated = if active {
            machine::flag::raise(address)
        }
    )
}

/// Repeats `ld.acquire.gpu` until it sees a value other than 0.
///
/// # Safety
/// `address` is a readable word, aligned to 4; the thread that raises it runs, or has
/// run.
#[inline(always)]
pub unsafe fn wait(address: u64) {
    instruction!(
        ptx = {
            loop {
                let value: u32;
                // SAFETY: the caller's duty; the missing `nomem` keeps memory accesses in place.
                unsafe {
                    asm!("ld.acquire.gpu.global.u32 {}, [{}];", out(reg32) value, in(reg64) address,
                         options(nostack, preserves_flags));
                }
                if value != 0 {
                    return;
                }
            }
        },
        emulated = machine::flag::wait(address)
    )
}

/// Resets the flag to 0 for the next launch. The end of this launch orders the store before the
/// next.
///
/// # Safety
/// `address` is a writable word, aligned to 4, and no thread waits for it any more.
#[inline(always)]
pub unsafe fn lower(address: u64) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.global.u32 [{}], 0;", in(reg64) address, options(nostack, preserves_flags));
        },
        emulated = machine::global::store(address, [0])
    )
}
