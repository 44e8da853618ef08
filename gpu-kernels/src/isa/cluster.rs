//! Thread-block clusters (PTX ISA, "Cluster of Cooperative Thread Arrays",
//! "barrier.cluster").

use core::arch::asm;

/// `%cluster_ctarank`: index of this CTA in its cluster.
#[inline(always)]
pub fn rank() -> u32 {
    let value: u32;
    // SAFETY: reads a special register.
    unsafe {
        asm!("mov.u32 {}, %cluster_ctarank;", out(reg32) value,
             options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// `barrier.cluster.arrive` and `.wait`: every thread of every CTA of the
/// cluster arrives and waits.
///
/// # Safety
/// All of them must reach it.
#[inline(always)]
pub unsafe fn sync() {
    // SAFETY: the caller's duty. Not `.aligned`: a warp may arrive lane by lane.
    unsafe {
        asm!(
            "barrier.cluster.arrive;",
            "barrier.cluster.wait;",
            options(nostack)
        );
    }
}
