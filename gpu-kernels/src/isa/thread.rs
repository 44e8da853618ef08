//! The indices of a thread and its CTA, and the barriers of a CTA and a warp (PTX ISA,
//! "Special Registers", "Parallel Synchronization and Communication Instructions").

use crate::cluster::Cluster;

/// A position in the launch grid: the CTA's index and the grid's size.
///
/// For a kernel with clusters, index and size along x count clusters, not CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtaPosition {
    /// `blockIdx.x`.
    pub x: u32,
    /// `blockIdx.y`.
    pub y: u32,
    /// `gridDim.x`.
    pub grid_x: u32,
    /// `gridDim.y`.
    pub grid_y: u32,
}

impl CtaPosition {
    /// The position of this CTA's cluster, whose CTAs lie along x, among the launch's clusters.
    #[inline(always)]
    pub fn of_cluster(self, cluster: Cluster) -> CtaPosition {
        // One by one: LLVM knows that a power of two is not 0, but not that a product of them is not,
        // and would check the divisor.
        let clusters = |ctas| ctas / cluster.m / cluster.n / cluster.k;
        CtaPosition {
            x: clusters(self.x),
            grid_x: clusters(self.grid_x),
            ..self
        }
    }
}

macro_rules! special_registers {
    ($($(#[$doc:meta])* $name:ident = $register:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> u32 {
            instruction!(
                ptx = {
                    let value: u32;
                    // SAFETY: this reads a special register, without memory access or
                    // side effect.
                    unsafe {
                        asm!(concat!("mov.u32 {}, ", $register, ";"), out(reg32) value,
                             options(pure, nomem, nostack, preserves_flags));
                    }
                    value
                },
                emulated = machine::thread::$name()
            )
        }
    )*};
}

special_registers! {
    /// `%tid.x`: index of this thread in its CTA.
    thread_index = "%tid.x";
    /// `%ctaid.x`.
    cta_index_x = "%ctaid.x";
    /// `%ctaid.y`.
    cta_index_y = "%ctaid.y";
    /// `%nctaid.x`: CTAs along x.
    grid_size_x = "%nctaid.x";
    /// `%nctaid.y`: CTAs along y.
    grid_size_y = "%nctaid.y";
    /// `%smid`: index of the SM that runs this thread.
    sm_index = "%smid";
}

/// The position of this CTA in the launch grid.
#[inline(always)]
pub fn cta_position() -> CtaPosition {
    CtaPosition {
        x: cta_index_x(),
        y: cta_index_y(),
        grid_x: grid_size_x(),
        grid_y: grid_size_y(),
    }
}

/// [`thread_index`], read here and not before a loop ([`hint`](super::hint)).
#[inline(always)]
pub fn thread_index_here() -> u32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: as `thread_index`; without `pure` it stays where it is.
            unsafe {
                asm!("mov.u32 {}, %tid.x;", out(reg32) value,
                     options(nomem, nostack, preserves_flags));
            }
            value
        },
        emulated = machine::thread::thread_index()
    )
}

/// [`cta_position`], with the size of the grid read here and not before a loop
/// ([`hint`](super::hint)).
#[inline(always)]
pub fn cta_position_here() -> CtaPosition {
    CtaPosition {
        grid_x: instruction!(
            ptx = {
                let value: u32;
                // SAFETY: as `grid_size_x`; without `pure` it stays where it is.
                unsafe {
                    asm!("mov.u32 {}, %nctaid.x;", out(reg32) value,
                         options(nomem, nostack, preserves_flags));
                }
                value
            },
            emulated = machine::thread::grid_size_x()
        ),
        ..cta_position()
    }
}

/// `shfl.sync.idx`: lane 0's `value`, in every lane. The compiler then knows that the
/// value is the same across the warp, and can keep it in uniform registers.
///
/// # Safety
/// All lanes of the warp must execute it together.
#[inline(always)]
pub unsafe fn broadcast(value: u32) -> u32 {
    instruction!(
        // SAFETY: the caller's duty (PTX ISA, "shfl.sync").
        ptx = unsafe { super::convergent::shuffle_first(value) },
        emulated = machine::thread::broadcast(value)
    )
}

/// `shfl.sync.down`: the `value` of the lane behind this one. The last lane keeps its own.
///
/// # Safety
/// All lanes of the warp must execute it together.
#[inline(always)]
pub unsafe fn shuffle_next(value: u32) -> u32 {
    instruction!(
        // SAFETY: the caller's duty (PTX ISA, "shfl.sync").
        ptx = unsafe { super::convergent::shuffle_next(value) },
        emulated = machine::thread::shuffle_next(value)
    )
}

/// `bar.sync 0`: every thread of the CTA arrives and waits; shared and global
/// memory accesses before it are ordered before those after it.
///
/// # Safety
/// All threads of the CTA must reach it.
#[inline(always)]
pub unsafe fn sync_cta() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::sync_all(0) },
        emulated = machine::barrier::sync_cta()
    )
}

/// `bar.warp.sync`: like [`sync_cta`], for the 32 lanes of a warp.
///
/// # Safety
/// All lanes of the warp must reach it.
#[inline(always)]
pub unsafe fn sync_warp() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::sync_lanes(u32::MAX) },
        emulated = machine::barrier::sync_warp()
    )
}

/// Returns when `nanoseconds` have passed by `%globaltimer`; in the emulator at once.
#[inline(always)]
pub fn wait_for(nanoseconds: u32) {
    instruction!(
        ptx = {
            let start = global_timer();
            while global_timer().wrapping_sub(start) < nanoseconds as u64 {}
        },
        emulated = {
            let _ = nanoseconds;
        }
    );
}

/// `%globaltimer`, nanoseconds.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn global_timer() -> u64 {
    let value: u64;
    // SAFETY: this reads a special register, without memory access; it changes with time.
    unsafe {
        core::arch::asm!("mov.u64 {}, %globaltimer;", out(reg64) value,
             options(nomem, nostack, preserves_flags));
    }
    value
}

/// `trap`: ends the grid with an error the host sees.
#[inline(always)]
pub fn trap() -> ! {
    instruction!(
        // SAFETY: `trap` does not return.
        ptx = unsafe { asm!("trap;", options(noreturn, nostack)) },
        emulated = machine::thread::trap()
    )
}
