//! Instructions of a warpgroup (four consecutive warps): its registers, its own
//! barrier, and matrix stores from registers to shared memory.

/// Threads of a warpgroup: four consecutive warps (PTX ISA, "Warpgroup").
pub const WARPGROUP: u32 = 128;

/// `setmaxnreg.dec`: gives registers back until each thread has `REGISTERS`.
///
/// # Safety
/// All threads of the warpgroup execute it, once, and keep within the bound.
#[inline(always)]
pub unsafe fn release_registers<const REGISTERS: u32>() {
    instruction!(
        // SAFETY: the caller's duty (PTX ISA, "setmaxnreg").
        ptx = unsafe { super::convergent::release_registers::<REGISTERS>() },
        emulated = machine::warpgroup::release_registers(REGISTERS)
    )
}

/// `setmaxnreg.inc`: waits until each thread can have `REGISTERS`.
///
/// # Safety
/// All threads of the warpgroup execute it, and other warpgroups release enough registers.
#[inline(always)]
pub unsafe fn claim_registers<const REGISTERS: u32>() {
    instruction!(
        // SAFETY: the caller's duty (PTX ISA, "setmaxnreg").
        ptx = unsafe { super::convergent::claim_registers::<REGISTERS>() },
        emulated = machine::warpgroup::claim_registers(REGISTERS)
    )
}

/// `bar.sync barrier, 128`: a barrier of one warpgroup. Barrier 0 is the CTA's.
///
/// # Safety
/// All threads of the warpgroup reach it, and no other warp uses `barrier`.
#[inline(always)]
pub unsafe fn sync(barrier: u32) {
    instruction!(
        // SAFETY: the caller's duty (PTX ISA, "bar, barrier").
        ptx = unsafe { super::convergent::sync_count(barrier, WARPGROUP) },
        emulated = machine::barrier::sync(barrier, WARPGROUP)
    )
}

/// `ldmatrix.x4`: what [`store_matrices`] stored from the same address.
pub use super::mma::load_matrices;

macro_rules! stmatrix {
    ($($(#[$doc:meta])* $name:ident, $emulated:ident = $modifier:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// All lanes execute it; the address is that of 16 writable bytes of shared memory, aligned
        /// to 16.
        #[inline(always)]
        pub unsafe fn $name(address: u32, matrices: [u32; 4]) {
            instruction!(
                ptx = {
                    let [a, b, c, d] = matrices;
                    // SAFETY: the caller's duty (PTX ISA, "stmatrix").
                    unsafe {
                        asm!(concat!("stmatrix.sync.aligned.m8n8.x4", $modifier,
                                     ".shared.b16 [{0}], {{{1}, {2}, {3}, {4}}};"),
                             in(reg32) address, in(reg32) a, in(reg32) b, in(reg32) c,
                             in(reg32) d, options(nostack));
                    }
                },
                emulated = machine::matrix::$emulated(address, matrices)
            )
        }
    )*};
}

stmatrix! {
    /// `stmatrix.x4`: a warp stores four 8×8 matrices of 16-bit elements. Lane `l`
    /// holds elements (l/4, 2·(l%4)) and (l/4, 2·(l%4) + 1) of each matrix and gives
    /// the address of row `l % 8` of matrix `l / 8`.
    store_matrices, store = "";
    /// `stmatrix.x4.trans`: as [`store_matrices`], but lane `l` gives the address of *column*
    /// `l % 8` of matrix `l / 8`, whose elements are stored one after the other.
    store_matrices_transposed, store_transposed = ".trans";
}
