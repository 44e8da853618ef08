//! The aligned barriers, which a compiler must neither copy nor move under a
//! condition (PTX ISA, "bar, barrier", "bar.warp.sync": all threads of a warp
//! execute the same one).
//!
//! To LLVM an `asm!` is no barrier. Where two branches on the same condition have
//! one between them, it may join the branches and give each arm a copy, and a warp
//! whose lanes take different arms hangs: seen on an H200, in a probe. LLVM's
//! intrinsics are `convergent`, which forbids that (LLVM Language Reference,
//! "Convergence And Uniformity"). rust-cuda's LLVM 7 has them under other names, and
//! gets the `asm!`.

use super::instruction;

#[cfg(all(target_arch = "nvptx64", feature = "standalone"))]
mod convergent {
    #[allow(improper_ctypes, reason = "no C function: an intrinsic of LLVM")]
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
        pub(super) fn sync_all(barrier: u32);
        #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.count"]
        pub(super) fn sync_count(barrier: u32, threads: u32);
        #[link_name = "llvm.nvvm.bar.warp.sync"]
        pub(super) fn sync_lanes(mask: u32);
    }
}

#[cfg(all(target_arch = "nvptx64", not(feature = "standalone")))]
mod convergent {
    use core::arch::asm;

    pub(super) unsafe fn sync_all(barrier: u32) {
        // SAFETY: the caller's duty; the missing `nomem` keeps memory accesses in place.
        unsafe { asm!("bar.sync {};", in(reg32) barrier, options(nostack)) }
    }

    pub(super) unsafe fn sync_count(barrier: u32, threads: u32) {
        // SAFETY: as above.
        unsafe { asm!("bar.sync {}, {};", in(reg32) barrier, in(reg32) threads, options(nostack)) }
    }

    pub(super) unsafe fn sync_lanes(mask: u32) {
        // SAFETY: as above.
        unsafe { asm!("bar.warp.sync {};", in(reg32) mask, options(nostack)) }
    }
}
