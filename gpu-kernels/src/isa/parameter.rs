//! The address of a kernel parameter (PTX ISA, "Kernel Function Parameters", `cvta.param`).

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

/// The generic address of the kernel's second parameter, its tensor maps.
///
/// TMA must find the maps in parameter space. A Rust reference to the parameter would make
/// the compiler copy them to local memory. `ptx-builder` puts the parameter's name, which
/// depends on the kernel, in the place of `tensor_maps_parameter`. It takes two instructions
/// to compute the address anew, and two registers to keep it.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn tensor_maps() -> u64 {
    let address: u64;
    // SAFETY: this takes an address and touches no memory.
    unsafe {
        asm!(
            "{{ .reg .b64 parameter; mov.b64 parameter, tensor_maps_parameter;",
            "cvta.param.u64 {0}, parameter; }}",
            out(reg64) address,
            options(nomem, nostack, preserves_flags)
        );
    }
    address
}
