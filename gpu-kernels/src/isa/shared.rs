//! Shared memory.
use core::arch::asm;
core::arch::global_asm!(".extern .shared .align 1024 .b8 dyn_smem[];");
/// Base.
#[inline(always)]
pub fn base() -> u32 {
    let r: u32;
    // SAFETY: reads an address.
    unsafe { asm!("mov.u32 {}, dyn_smem;", out(reg32) r, options(pure, nomem, nostack)) }
    r
}
