//! Kernel parameters by their address (PTX ISA, "Kernel Function Parameters", `cvta.param`).

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

/// Byte `offset` of the kernel's first parameter, [`GemmParams`](crate::GemmParams).
///
/// An index into an array of the parameter would make the compiler copy the array to local memory.
/// `ptx-builder` puts the parameter's name in the place of `gemm_params_parameter`.
///
/// # Safety
/// The parameter has that byte.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub unsafe fn byte_of_gemm_params(offset: u32) -> u32 {
    let byte: u32;
    // SAFETY: the caller ensures it; a parameter does not change.
    unsafe {
        asm!(
            "{{ .reg .b64 parameter, offset; mov.b64 parameter, gemm_params_parameter;",
            "cvt.u64.u32 offset, {1}; add.s64 parameter, parameter, offset;",
            "ld.param.u8 {0}, [parameter]; }}",
            out(reg32) byte,
            in(reg32) offset,
            options(nomem, nostack, preserves_flags)
        );
    }
    byte
}
