//! Barriers that the compiler knows to be barriers (PTX ISA, "bar, barrier",
//! "bar.warp.sync": all threads of a warp execute the same instruction).
//!
//! To LLVM an `asm!` is an instruction like any other. Where one stands between two
//! branches on the same condition, LLVM may join the branches and give each arm a
//! copy, and a warp whose lanes take different arms hangs: seen on an H200, in a
//! probe. LLVM's intrinsics are `convergent`, which forbids that (LLVM Language
//! Reference, "Function Attributes").

pub(super) use imp::{sync_all, sync_count, sync_lanes};

#[cfg(feature = "standalone")]
mod imp {
    unsafe extern "C" {
        /// `bar.sync barrier`.
        #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
        pub fn sync_all(barrier: u32);
        /// `bar.sync barrier, threads`.
        #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.count"]
        pub fn sync_count(barrier: u32, threads: u32);
        /// `bar.warp.sync lanes`.
        #[link_name = "llvm.nvvm.bar.warp.sync"]
        pub fn sync_lanes(lanes: u32);
    }
}

/// rust-cuda's LLVM 7 has the intrinsics under other names, and rust-cuda its own
/// way to reach them; it gets the instructions.
#[cfg(not(feature = "standalone"))]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub unsafe fn sync_all(barrier: u32) {
        // SAFETY: the caller's duty; the missing `nomem` keeps memory accesses in place.
        unsafe { asm!("bar.sync {};", in(reg32) barrier, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn sync_count(barrier: u32, threads: u32) {
        // SAFETY: as in `sync_all`.
        unsafe { asm!("bar.sync {}, {};", in(reg32) barrier, in(reg32) threads, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn sync_lanes(lanes: u32) {
        // SAFETY: as in `sync_all`.
        unsafe { asm!("bar.warp.sync {};", in(reg32) lanes, options(nostack)) }
    }
}
