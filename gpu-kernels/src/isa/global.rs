//! Loads and stores in global memory (PTX ISA, "Data Movement and Conversion
//! Instructions: ld, ld.global.nc, st").
//!
//! Addresses are plain `u64`: a Rust pointer would be a generic address, and
//! generic accesses are slower.

use crate::dtype::{DType, ElementType};
use crate::element::{Bf16, F16, F32};

/// `ld.global.nc.u16`: loads 2 bytes that no thread writes during the launch.
///
/// # Safety
/// `address` is readable, aligned to 2, and not written during the launch.
#[inline(always)]
pub unsafe fn load_u16(address: u64) -> u32 {
    instruction!(
        ptx = {
            let value: u16;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.global.nc.u16 {}, [{}];", out(reg16) value, in(reg64) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            value as u32
        },
        emulated = machine::global::load_u16(address)
    )
}

/// [`load_u16`] if `active`, else 0, without a branch: loads that do not wait for each other.
///
/// # Safety
/// See [`load_u16`], where `active`.
#[inline(always)]
pub unsafe fn load_u16_if(active: bool, address: u64) -> u32 {
    instruction!(
        ptx = {
            let mut value: u16 = 0;
            // SAFETY: the caller's duty.
            unsafe {
                asm_if!(active, ["ld.global.nc.u16 {0}, [{1}];"],
                        (inout(reg16) value, in(reg64) address,),
                        options(pure, readonly, nostack, preserves_flags));
            }
            value as u32
        },
        emulated = if active {
            machine::global::load_u16(address)
        } else {
            0
        }
    )
}

/// [`load_u32`] if `active`, else 0, without a branch.
///
/// # Safety
/// See [`load_u32`], where `active`.
#[inline(always)]
pub unsafe fn load_u32_if(active: bool, address: u64) -> u32 {
    instruction!(
        ptx = {
            let mut value: u32 = 0;
            // SAFETY: the caller's duty.
            unsafe {
                asm_if!(active, ["ld.global.nc.u32 {0}, [{1}];"],
                        (inout(reg32) value, in(reg64) address,),
                        options(pure, readonly, nostack, preserves_flags));
            }
            value
        },
        emulated = if active {
            machine::global::load_constant::<1>(address)[0]
        } else {
            0
        }
    )
}

/// `ld.global.nc.u32`.
///
/// # Safety
/// `address` is readable, aligned to 4, and not written during the launch.
#[inline(always)]
pub unsafe fn load_u32(address: u64) -> u32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.global.nc.u32 {}, [{}];", out(reg32) value, in(reg64) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            value
        },
        emulated = machine::global::load_constant::<1>(address)[0]
    )
}

/// `ld.global.nc.v4.u32`: loads 16 bytes.
///
/// # Safety
/// `address` is readable, aligned to 16, and not written during the launch.
#[inline(always)]
pub unsafe fn load_u32x4(address: u64) -> [u32; 4] {
    instruction!(
        ptx = {
            let (x, y, z, w): (u32, u32, u32, u32);
            // SAFETY: the caller's duty.
            unsafe {
                asm!("ld.global.nc.v4.u32 {{{}, {}, {}, {}}}, [{}];",
                     out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg64) address,
                     options(pure, readonly, nostack, preserves_flags));
            }
            [x, y, z, w]
        },
        emulated = machine::global::load_constant(address)
    )
}

/// [`load_u32x4`] if `active`, else zeros, without a branch. It stays where it stands among
/// barriers and matrix instructions, so that the time to its use is the caller's choice.
///
/// # Safety
/// See [`load_u32x4`], where `active`.
#[inline(always)]
pub unsafe fn load_u32x4_if(active: bool, address: u64) -> [u32; 4] {
    instruction!(
        ptx = {
            let (mut x, mut y, mut z, mut w): (u32, u32, u32, u32) = (0, 0, 0, 0);
            // SAFETY: the caller's duty.
            unsafe {
                asm_if!(active, ["ld.global.nc.v4.u32 {{{0}, {1}, {2}, {3}}}, [{4}];"],
                        (inout(reg32) x, inout(reg32) y, inout(reg32) z, inout(reg32) w,
                         in(reg64) address,),
                        options(readonly, nostack, preserves_flags));
            }
            [x, y, z, w]
        },
        emulated = if active {
            machine::global::load_constant(address)
        } else {
            [0; 4]
        }
    )
}

/// `st.global.u16`: stores the low 16 bits of `value`.
///
/// # Safety
/// `address` is writable and aligned to 2.
#[inline(always)]
pub unsafe fn store_u16(address: u64, value: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.global.u16 [{}], {};", in(reg64) address, in(reg16) value as u16,
                 options(nostack, preserves_flags));
        },
        emulated = machine::global::store_u16(address, value as u16)
    )
}

/// `st.global.u32`.
///
/// # Safety
/// `address` is writable and aligned to 4.
#[inline(always)]
pub unsafe fn store_u32(address: u64, value: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.global.u32 [{}], {};", in(reg64) address, in(reg32) value,
                 options(nostack, preserves_flags));
        },
        emulated = machine::global::store(address, [value])
    )
}

/// [`store_u16`] if `active`, without a branch.
///
/// # Safety
/// See [`store_u16`], where `active`.
#[inline(always)]
pub unsafe fn store_u16_if(active: bool, address: u64, value: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active, ["st.global.u16 [{0}], {1};"],
                    (in(reg64) address, in(reg16) value as u16,),
                    options(nostack, preserves_flags));
        },
        emulated = if active {
            machine::global::store_u16(address, value as u16)
        }
    )
}

/// [`store_u32`] if `active`, without a branch.
///
/// # Safety
/// See [`store_u32`], where `active`.
#[inline(always)]
pub unsafe fn store_u32_if(active: bool, address: u64, value: u32) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm_if!(active, ["st.global.u32 [{0}], {1};"],
                    (in(reg64) address, in(reg32) value,),
                    options(nostack, preserves_flags));
        },
        emulated = if active {
            machine::global::store(address, [value])
        }
    )
}

/// `st.global.v2.u32`: stores 8 bytes.
///
/// # Safety
/// `address` is writable and aligned to 8.
#[inline(always)]
pub unsafe fn store_u32x2(address: u64, [x, y]: [u32; 2]) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.global.v2.u32 [{}], {{{}, {}}};",
                 in(reg64) address, in(reg32) x, in(reg32) y,
                 options(nostack, preserves_flags));
        },
        emulated = machine::global::store(address, [x, y])
    )
}

/// `ld.global.v4.f32`: loads 16 bytes that another CTA wrote before it raised a
/// [`flag`](super::flag) that this CTA has seen.
///
/// # Safety
/// `address` is readable and aligned to 16; the writes are ordered before.
#[inline(always)]
pub unsafe fn load_f32x4(address: u64) -> [f32; 4] {
    instruction!(
        ptx = {
            let (x, y, z, w): (f32, f32, f32, f32);
            // SAFETY: the caller's duty. Without `pure` the load stays after the flag.
            unsafe {
                asm!("ld.global.v4.f32 {{{}, {}, {}, {}}}, [{}];",
                     out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg64) address,
                     options(nostack, preserves_flags));
            }
            [x, y, z, w]
        },
        emulated = machine::global::load::<4>(address).map(f32::from_bits)
    )
}

/// `st.global.v4.f32`: stores 16 bytes.
///
/// # Safety
/// `address` is writable and aligned to 16.
#[inline(always)]
pub unsafe fn store_f32x4(address: u64, [x, y, z, w]: [f32; 4]) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.global.v4.f32 [{}], {{{}, {}, {}, {}}};",
                 in(reg64) address, in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) w,
                 options(nostack, preserves_flags));
        },
        emulated = machine::global::store(address, [x, y, z, w].map(f32::to_bits))
    )
}

/// `st.global.v4.u32`: stores 16 bytes.
///
/// # Safety
/// `address` is writable and aligned to 16.
#[inline(always)]
pub unsafe fn store_u32x4(address: u64, [x, y, z, w]: [u32; 4]) {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe {
            asm!("st.global.v4.u32 [{}], {{{}, {}, {}, {}}};",
                 in(reg64) address, in(reg32) x, in(reg32) y, in(reg32) z, in(reg32) w,
                 options(nostack, preserves_flags));
        },
        emulated = machine::global::store(address, [x, y, z, w])
    )
}

/// Loads one element of type `T`, as f32.
///
/// # Safety
/// `address` is readable, aligned to the element, and not written during the launch.
#[inline(always)]
pub unsafe fn load<T: ElementType>(address: u64) -> f32 {
    // SAFETY: the caller's duty.
    let bits = unsafe {
        if T::DTYPE.bytes() == 4 {
            load_u32(address)
        } else {
            load_u16(address)
        }
    };
    T::to_f32(bits)
}

/// Loads one element of type `dtype`, as f32.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn load_as(dtype: DType, address: u64) -> f32 {
    // SAFETY: the caller's duty.
    unsafe {
        match dtype {
            DType::F16 => load::<F16>(address),
            DType::Bf16 => load::<Bf16>(address),
            DType::F32 | DType::Tf32 | DType::F16x3 => load::<F32>(address),
        }
    }
}

/// `ld.global.u16`, of memory that this launch may write.
///
/// # Safety
/// `address` is readable and aligned to 2, and no other thread writes it meanwhile.
#[inline(always)]
pub unsafe fn load_written_u16(address: u64) -> u32 {
    instruction!(
        ptx = {
            let value: u16;
            // SAFETY: the caller's duty. Without `pure` the load stays before the store of
            // the same element.
            unsafe {
                asm!("ld.global.u16 {}, [{}];", out(reg16) value, in(reg64) address,
                     options(readonly, nostack, preserves_flags));
            }
            value as u32
        },
        emulated = machine::global::load_written_u16(address)
    )
}

/// `ld.global.u32`, of memory that this launch may write.
///
/// # Safety
/// `address` is readable and aligned to 4, and no other thread writes it meanwhile.
#[inline(always)]
pub unsafe fn load_written_u32(address: u64) -> u32 {
    instruction!(
        ptx = {
            let value: u32;
            // SAFETY: as for `load_written_u16`.
            unsafe {
                asm!("ld.global.u32 {}, [{}];", out(reg32) value, in(reg64) address,
                     options(readonly, nostack, preserves_flags));
            }
            value
        },
        emulated = machine::global::load::<1>(address)[0]
    )
}

/// [`load_written_u16`] if `active`, else 0, without a branch.
///
/// # Safety
/// See [`load_written_u16`], where `active`.
#[inline(always)]
pub unsafe fn load_written_u16_if(active: bool, address: u64) -> u32 {
    instruction!(
        ptx = {
            let mut value: u16 = 0;
            // SAFETY: as for `load_written_u16`.
            unsafe {
                asm_if!(active, ["ld.global.u16 {0}, [{1}];"],
                        (inout(reg16) value, in(reg64) address,),
                        options(readonly, nostack, preserves_flags));
            }
            value as u32
        },
        emulated = if active {
            machine::global::load_written_u16(address)
        } else {
            0
        }
    )
}

/// [`load_written_u32`] if `active`, else 0, without a branch.
///
/// # Safety
/// See [`load_written_u32`], where `active`.
#[inline(always)]
pub unsafe fn load_written_u32_if(active: bool, address: u64) -> u32 {
    instruction!(
        ptx = {
            let mut value: u32 = 0;
            // SAFETY: as for `load_written_u16`.
            unsafe {
                asm_if!(active, ["ld.global.u32 {0}, [{1}];"],
                        (inout(reg32) value, in(reg64) address,),
                        options(readonly, nostack, preserves_flags));
            }
            value
        },
        emulated = if active {
            machine::global::load::<1>(address)[0]
        } else {
            0
        }
    )
}

/// [`load_written_u32_if`], of a word of which the launch uses one half or both. A half that it
/// does not use may be anybody's, in the same allocation, and has any value.
///
/// # Safety
/// `address` is readable and aligned to 4, where `active`, and no other thread writes meanwhile what
/// the launch uses.
#[inline(always)]
pub unsafe fn load_word_in_part_if(active: bool, address: u64) -> u32 {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { load_written_u32_if(active, address) },
        emulated = if active {
            machine::global::load_word_in_part(address)
        } else {
            0
        }
    )
}

/// [`load_written_u32`], of a word of which the launch uses one half or both, as
/// [`load_word_in_part_if`] does.
///
/// # Safety
/// `address` is readable and aligned to 4, and no other thread writes meanwhile what the launch uses.
#[inline(always)]
pub unsafe fn load_word_in_part(address: u64) -> u32 {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { load_written_u32(address) },
        emulated = machine::global::load_word_in_part(address)
    )
}

/// Loads one element of type `dtype`, as f32, from memory that this launch may write.
///
/// # Safety
/// `address` is readable, aligned to the element, and no other thread writes it meanwhile.
#[inline(always)]
pub unsafe fn load_written_as(dtype: DType, address: u64) -> f32 {
    // SAFETY: the caller's duty.
    unsafe {
        match dtype {
            DType::F16 => F16::to_f32(load_written_u16(address)),
            DType::Bf16 => Bf16::to_f32(load_written_u16(address)),
            DType::F32 | DType::Tf32 | DType::F16x3 => f32::from_bits(load_written_u32(address)),
        }
    }
}
