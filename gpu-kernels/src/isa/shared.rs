//! Loads and stores in shared memory (PTX ISA, "State Spaces: .shared", "Data
//! Movement and Conversion Instructions: ld, st").
//!
//! Addresses are 32-bit offsets into the CTA's shared window, as `ld.shared`,
//! `ldmatrix`, mbarriers and TMA take them. A kernel lays out its dynamic shared
//! memory by adding constants to [`base`].

#[cfg(target_arch = "nvptx64")]
use core::arch::global_asm;

// This is the only declaration of dynamic shared memory; the launch gives its size
// (`KernelInfo::shared_bytes`). 1024 is the alignment of a 128-byte swizzle
// atom, the largest alignment that any kernel needs.
#[cfg(target_arch = "nvptx64")]
global_asm!(".extern .shared .align 1024 .b8 dyn_smem[];");

/// Address of the first byte of dynamic shared memory, aligned to 1024.
#[inline(always)]
pub fn base() -> u32 {
    instruction!(
        ptx = {
            let address: u32;
            // SAFETY: this takes the address of a symbol and touches no memory.
            unsafe {
                asm!("mov.u32 {}, dyn_smem;", out(reg32) address,
                     options(pure, nomem, nostack, preserves_flags));
            }
            address
        },
        emulated = machine::shared::BASE
    )
}

/// `ld.shared.f32`.
///
/// # Safety
/// `address` is inside the CTA's shared memory and aligned to 4; a write by
/// another thread is ordered before it by a barrier.
#[inline(always)]
pub unsafe fn load_f32(address: u32) -> f32 {
    instruction!(
        ptx = {
            let value: f32;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.shared.f32 {}, [{}];", out(reg32) value, in(reg32) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            value
        },
        emulated = f32::from_bits(machine::shared::load::<1>(address)[0])
    )
}

/// `ld.shared.v4.f32`: loads 16 bytes.
///
/// # Safety
/// See [`load_f32`]; `address` is aligned to 16.
#[inline(always)]
pub unsafe fn load_f32x4(address: u32) -> [f32; 4] {
    instruction!(
        ptx = {
            // The operands are the bits, for the reason that `arithmetic::fma` gives.
            let (x, y, z, w): (u32, u32, u32, u32);
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.shared.v4.f32 {{{}, {}, {}, {}}}, [{}];",
                     out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg32) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            [x, y, z, w].map(f32::from_bits)
        },
        emulated = machine::shared::load::<4>(address).map(f32::from_bits)
    )
}

/// `ld.volatile.shared.u32`: stays where it stands among accesses to shared memory.
///
/// # Safety
/// See [`load_f32`].
#[inline(always)]
pub unsafe fn load_in_place_u32(address: u32) -> u32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.volatile.shared.u32 {}, [{}];", out(reg32) value, in(reg32) address,
                     options(nostack, preserves_flags));
            }
            value
        },
        emulated = machine::shared::load::<1>(address)[0]
    )
}

/// `st.shared.f32`.
///
/// # Safety
/// `address` is inside the CTA's shared memory, aligned to 4, and no other
/// thread accesses it before the next barrier.
#[inline(always)]
pub unsafe fn store_f32(address: u32, value: f32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.shared.f32 [{}], {};", in(reg32) address, in(reg32) value,
                 options(nostack, preserves_flags));
        },
        emulated = machine::shared::store(address, [value.to_bits()])
    )
}

/// `st.shared.v4.f32`: stores 16 bytes.
///
/// # Safety
/// See [`store_f32`]; `address` is aligned to 16.
#[inline(always)]
pub unsafe fn store_f32x4(address: u32, values: [f32; 4]) {
    instruction!(
        ptx = {
            let [x, y, z, w] = values;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("st.shared.v4.f32 [{}], {{{}, {}, {}, {}}};",
                     in(reg32) address, in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) w,
                     options(nostack, preserves_flags));
            }
        },
        emulated = machine::shared::store(address, values.map(f32::to_bits))
    )
}

/// `st.shared.u32`.
///
/// # Safety
/// See [`store_f32`].
#[inline(always)]
pub unsafe fn store_u32(address: u32, value: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.shared.u32 [{}], {};", in(reg32) address, in(reg32) value,
                 options(nostack, preserves_flags));
        },
        emulated = machine::shared::store(address, [value])
    )
}

/// `st.shared.u16` of the lower half of `value`, if `active`, without a branch.
///
/// # Safety
/// See [`store_f32`], where `active`; `address` is aligned to 2.
#[inline(always)]
pub unsafe fn store_u16_if(active: bool, address: u32, value: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active, ["st.shared.u16 [{0}], {1};"],
                    (in(reg32) address, in(reg16) value as u16,),
                    options(nostack, preserves_flags));
        },
        emulated = if active {
            machine::shared::store_u16(address, value as u16)
        }
    )
}

/// `ld.shared.u32`.
///
/// # Safety
/// See [`load_f32`].
#[inline(always)]
pub unsafe fn load_u32(address: u32) -> u32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.shared.u32 {}, [{}];", out(reg32) value, in(reg32) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            value
        },
        emulated = machine::shared::load::<1>(address)[0]
    )
}

/// `st.shared.v2.f32`: stores 8 bytes.
///
/// # Safety
/// See [`store_f32`]; `address` is aligned to 8.
#[inline(always)]
pub unsafe fn store_f32x2(address: u32, values: [f32; 2]) {
    instruction!(
        ptx = {
            let [x, y] = values;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("st.shared.v2.f32 [{}], {{{}, {}}};",
                     in(reg32) address, in(reg32) x, in(reg32) y, options(nostack, preserves_flags));
            }
        },
        emulated = machine::shared::store(address, values.map(f32::to_bits))
    )
}

/// `st.shared.v4.u32`: stores 16 bytes.
///
/// # Safety
/// See [`store_f32`]; `address` is aligned to 16.
#[inline(always)]
pub unsafe fn store_u32x4(address: u32, values: [u32; 4]) {
    instruction!(
        ptx = {
            let [x, y, z, w] = values;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("st.shared.v4.u32 [{}], {{{}, {}, {}, {}}};",
                     in(reg32) address, in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) w,
                     options(nostack, preserves_flags));
            }
        },
        emulated = machine::shared::store(address, values)
    )
}

/// [`store_u32x4`] if `active`, without a branch.
///
/// # Safety
/// See [`store_u32x4`], where `active`.
#[inline(always)]
pub unsafe fn store_u32x4_if(active: bool, address: u32, values: [u32; 4]) {
    instruction!(
        ptx = {
            let [x, y, z, w] = values;
            // SAFETY: the caller's duty.
            unsafe {
                asm_if!(active, ["st.shared.v4.u32 [{0}], {{{1}, {2}, {3}, {4}}};"],
                        (in(reg32) address, in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) w,),
                        options(nostack, preserves_flags));
            }
        },
        emulated = if active {
            machine::shared::store(address, values)
        }
    )
}

/// `ld.shared.v2.f32`: loads 8 bytes.
///
/// # Safety
/// See [`load_f32`]; `address` is aligned to 8.
#[inline(always)]
pub unsafe fn load_f32x2(address: u32) -> [f32; 2] {
    instruction!(
        ptx = {
            let (x, y): (f32, f32);
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.shared.v2.f32 {{{}, {}}}, [{}];",
                     out(reg32) x, out(reg32) y, in(reg32) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            [x, y]
        },
        emulated = machine::shared::load::<2>(address).map(f32::from_bits)
    )
}
