//! Warp-aligned instructions that the compiler knows to be warp-aligned (PTX ISA,
//! `.aligned`: all threads of a warp execute the same instruction, together).
//!
//! To LLVM an `asm!` is an instruction like any other. Where an `asm!` stands between two
//! branches on the same condition, LLVM may join the branches and give each arm a copy,
//! and a warp whose lanes take different arms hangs: seen on H100 and H200. LLVM's
//! intrinsics are `convergent`, which forbids that (LLVM Language Reference, "Function
//! Attributes"), so instructions with a usable intrinsic are here:
//!
//! | instruction | why it is, or is not, an intrinsic |
//! |---|---|
//! | `bar.sync`, `bar.warp.sync`, `shfl.sync`, `barrier.cluster`, `setmaxnreg`, `wgmma.fence`, `.commit_group`, `.wait_group` | intrinsics |
//! | `wgmma.mma_async` | LLVM 22 has no intrinsic for it |
//! | `ldmatrix`, `stmatrix` | they take a pointer into shared memory, a type that Rust does not have; through a generic pointer each address costs instructions |
//! | `mma.sync` | its intrinsic is not `convergent` in LLVM 22, so it would gain nothing; f16 takes a vector type that Rust cannot pass |
//!
//! **Why the last three rows are safe.** LLVM copies an instruction to join branches on
//! one condition, so such branches must stand on both sides of the instruction. The
//! kernels have no such branches: between warp-aligned instructions, an instruction for
//! one lane of a warp is predicated inside its `asm!`, without a branch
//! (`mbarrier::arrive_if`, `tma::store_if`, `flag::raise_if`, …). LLVM does not promise
//! that this stays enough, so every build checks the PTX (`ptx_builder::convergence`), and
//! refuses a kernel with diverging copies.

pub(super) use imp::*;

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
        /// `barrier.cluster.arrive`, whose default is `.release`.
        #[link_name = "llvm.nvvm.barrier.cluster.arrive"]
        pub fn cluster_arrive();
        /// `barrier.cluster.arrive.relaxed`.
        #[link_name = "llvm.nvvm.barrier.cluster.arrive.relaxed"]
        pub fn cluster_arrive_relaxed();
        /// `barrier.cluster.wait`, whose default is `.acquire`.
        #[link_name = "llvm.nvvm.barrier.cluster.wait"]
        pub fn cluster_wait();
        /// `wgmma.fence`.
        #[link_name = "llvm.nvvm.wgmma.fence.sync.aligned"]
        pub fn wgmma_fence();
        /// `wgmma.commit_group`.
        #[link_name = "llvm.nvvm.wgmma.commit_group.sync.aligned"]
        pub fn wgmma_commit();
        #[link_name = "llvm.nvvm.wgmma.wait_group.sync.aligned"]
        fn wgmma_wait_group(pending: u64);
        #[link_name = "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"]
        fn setmaxnreg_dec(registers: u32);
        #[link_name = "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"]
        fn setmaxnreg_inc(registers: u32);
        #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
        fn shfl_idx(lanes: u32, value: u32, lane: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
        fn shfl_down(lanes: u32, value: u32, distance: u32, clamp: u32) -> u32;
    }

    // LLVM requires these operands to be constants, so they are constants here, too.

    /// `wgmma.wait_group PENDING`.
    #[inline(always)]
    pub unsafe fn wgmma_wait<const PENDING: u32>() {
        // SAFETY: the caller's duty.
        unsafe { wgmma_wait_group(const { PENDING as u64 }) }
    }

    /// `setmaxnreg.dec REGISTERS`.
    #[inline(always)]
    pub unsafe fn release_registers<const REGISTERS: u32>() {
        // SAFETY: the caller's duty.
        unsafe { setmaxnreg_dec(REGISTERS) }
    }

    /// `setmaxnreg.inc REGISTERS`.
    #[inline(always)]
    pub unsafe fn claim_registers<const REGISTERS: u32>() {
        // SAFETY: the caller's duty.
        unsafe { setmaxnreg_inc(REGISTERS) }
    }

    /// `shfl.sync.idx`: lane 0's `value`, in all 32 lanes.
    #[inline(always)]
    pub unsafe fn shuffle_first(value: u32) -> u32 {
        // SAFETY: the caller's duty.
        unsafe { shfl_idx(u32::MAX, value, 0, 31) }
    }

    /// `shfl.sync.down`: the `value` of the lane behind this one.
    #[inline(always)]
    pub unsafe fn shuffle_next(value: u32) -> u32 {
        // SAFETY: the caller's duty.
        unsafe { shfl_down(u32::MAX, value, 1, 31) }
    }
}

/// The instructions as `asm!`, for rust-cuda, whose LLVM 7 lacks most of these intrinsics
/// and has the others under other names. The missing `nomem` keeps memory accesses in
/// place.
#[cfg(not(feature = "standalone"))]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub unsafe fn sync_all(barrier: u32) {
        // SAFETY: the caller's duty.
        unsafe { asm!("bar.sync {};", in(reg32) barrier, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn sync_count(barrier: u32, threads: u32) {
        // SAFETY: the caller's duty.
        unsafe { asm!("bar.sync {}, {};", in(reg32) barrier, in(reg32) threads, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn sync_lanes(lanes: u32) {
        // SAFETY: the caller's duty.
        unsafe { asm!("bar.warp.sync {};", in(reg32) lanes, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn cluster_arrive() {
        // SAFETY: the caller's duty.
        unsafe { asm!("barrier.cluster.arrive;", options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn cluster_arrive_relaxed() {
        // SAFETY: the caller's duty.
        unsafe { asm!("barrier.cluster.arrive.relaxed;", options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn cluster_wait() {
        // SAFETY: the caller's duty.
        unsafe { asm!("barrier.cluster.wait;", options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn wgmma_fence() {
        // SAFETY: the caller's duty.
        unsafe { asm!("wgmma.fence.sync.aligned;", options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn wgmma_commit() {
        // SAFETY: the caller's duty.
        unsafe { asm!("wgmma.commit_group.sync.aligned;", options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn wgmma_wait<const PENDING: u32>() {
        // SAFETY: the caller's duty.
        unsafe { asm!("wgmma.wait_group.sync.aligned {};", const PENDING, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn release_registers<const REGISTERS: u32>() {
        // SAFETY: the caller's duty.
        unsafe { asm!("setmaxnreg.dec.sync.aligned.u32 {};", const REGISTERS, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn claim_registers<const REGISTERS: u32>() {
        // SAFETY: the caller's duty.
        unsafe { asm!("setmaxnreg.inc.sync.aligned.u32 {};", const REGISTERS, options(nostack)) }
    }

    #[inline(always)]
    pub unsafe fn shuffle_first(value: u32) -> u32 {
        let first: u32;
        // SAFETY: the caller's duty.
        unsafe {
            asm!("shfl.sync.idx.b32 {}, {}, 0, 31, -1;", out(reg32) first, in(reg32) value,
                 options(nostack));
        }
        first
    }

    #[inline(always)]
    pub unsafe fn shuffle_next(value: u32) -> u32 {
        let next: u32;
        // SAFETY: the caller's duty.
        unsafe {
            asm!("shfl.sync.down.b32 {}, {}, 1, 31, -1;", out(reg32) next, in(reg32) value,
                 options(nostack));
        }
        next
    }
}
