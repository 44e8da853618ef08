//! Asynchronous copies from global to shared memory, sm_80 (PTX ISA, "Data
//! Movement and Conversion Instructions: Non-bulk copy").
//!
//! A thread starts copies, closes them into a group with [`commit_group`], and
//! later waits until all but its newest groups are complete. That makes the
//! data visible to the waiting thread; a barrier makes it visible to the CTA.

/// `cp.async.cg.shared.global`: copies 16 bytes, bypassing L1, if `active`. The
/// prefetch hint brings the 128-byte line into L2, which the neighbouring threads
/// of a K-contiguous copy read anyway.
///
/// # Safety
/// Where `active`: `source` is readable for 16 bytes and aligned to 16;
/// `destination` is 16 bytes of the CTA's shared memory, aligned to 16, that
/// no other thread accesses until the copy is waited for.
#[inline(always)]
pub unsafe fn copy_16_if(active: bool, destination: u32, source: u64) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active, ["cp.async.cg.shared.global.L2::128B [{0}], [{1}], 16;"],
                    (in(reg32) destination, in(reg64) source,), options(nostack, preserves_flags));
        },
        emulated = machine::cp_async::copy_16_if(active, destination, source)
    )
}

/// `cp.async.cg.shared.global` with a source size: copies the first `bytes` of
/// 16 and fills the rest with zeros. With `bytes = 0` nothing is read.
///
/// # Safety
/// See [`copy_16_if`]; only the first `bytes <= 16` bytes of the source need exist.
#[inline(always)]
pub unsafe fn copy_16_clipped(destination: u32, source: u64, bytes: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("cp.async.cg.shared.global [{}], [{}], 16, {};",
                 in(reg32) destination, in(reg64) source, in(reg32) bytes,
                 options(nostack, preserves_flags));
        },
        emulated = machine::cp_async::copy_16_clipped(destination, source, bytes)
    )
}

/// `cp.async.commit_group`: closes the copies since the last one into a group,
/// which may be empty.
#[inline(always)]
pub fn commit_group() {
    instruction!(
        // SAFETY: this only groups this thread's own copies.
        ptx = unsafe { asm!("cp.async.commit_group;", options(nostack, preserves_flags)) },
        emulated = machine::cp_async::commit_group()
    )
}

/// `cp.async.wait_group STAGES − 2`: waits until at most that many of this
/// thread's newest groups are incomplete. With one group for each buffer of a
/// ring of `STAGES`, all but one of them started, it waits for the oldest.
#[inline(always)]
pub fn wait_for_oldest<const STAGES: u32>() {
    instruction!(
        // SAFETY: only waits; the missing `nomem` keeps reads of the data after it.
        ptx = unsafe {
            asm!("cp.async.wait_group {};", const STAGES - 2, options(nostack, preserves_flags))
        },
        emulated = machine::cp_async::wait(STAGES - 2)
    )
}

/// `cp.async.wait_all`: waits for every copy of this thread.
#[inline(always)]
pub fn wait_all() {
    instruction!(
        // SAFETY: only waits; the missing `nomem` keeps reads of the data after it.
        ptx = unsafe { asm!("cp.async.wait_all;", options(nostack, preserves_flags)) },
        emulated = machine::cp_async::wait_all()
    )
}
