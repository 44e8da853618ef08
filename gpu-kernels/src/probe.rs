//! Probes: one kernel for each family of instructions, to show that the emulator
//! computes what a GPU does.
//!
//! A probe reads random bits, executes one instruction of `isa` on them and stores
//! every bit of the result. Its source is written once and runs on a GPU and in the
//! emulator, like the kernels; the program `emulator-proof` compares the results. Only
//! the cargo feature `probes` builds probes into PTX, so a build of the kernels has no
//! probe.
//!
//! A probe takes [`GemmParams`], like every entry point, and gives the fields its own
//! meaning, which its documentation states. CTA i works on record i of its operands.

#![cfg_attr(
    all(target_arch = "nvptx64", not(feature = "probes")),
    allow(
        unused_imports,
        unused_macros,
        dead_code,
        reason = "a build of the kernels"
    )
)]

mod convert;
mod matrix;
mod mma;
mod tma;
mod wgmma;

pub use convert::{CONVERSION_WORDS, Conversions};
pub use matrix::{LoadMatrices, MATRIX_BYTES, StoreMatrices};
pub use mma::{FRAGMENT_WORDS, Multiply, MultiplyK8};
pub use tma::{BOX_AREA_BYTES, LoadBox, StoreBox, UNTOUCHED};
pub use wgmma::{A_AREA_BYTES, B_AREA_BYTES, MultiplyShared};

use crate::dtype::DType;
use crate::dtype::{AlongK, AlongMn};
use crate::element::{Bf16, F16, Tf32};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

/// The constants of a probe with `threads` threads and `shared_bytes` of shared
/// memory, on elements of type `input`.
const fn probe(input: DType, threads: u32, shared_bytes: u32) -> KernelInfo {
    KernelInfo {
        shared_bytes,
        // A probe computes no product, and no list of kernels contains it.
        ..KernelInfo::new(
            Family::Pack,
            Arch::Sm90a,
            input,
            Block { m: 1, n: 1, k: 1 },
            threads,
        )
    }
}

macro_rules! for_each_probe {
    ($instantiate:ident) => {
        $instantiate! {
            probe_convert: Conversions;
            probe_ldmatrix: LoadMatrices;
            probe_stmatrix: StoreMatrices;
            probe_mma_f16: Multiply<F16>;
            probe_mma_f16_k8: MultiplyK8;
            probe_mma_bf16: Multiply<Bf16>;
            probe_mma_tf32: Multiply<Tf32>;
            probe_wgmma_f16_ak_bk_n64: MultiplyShared<F16, AlongK, AlongK, [u32; 32]>;
            probe_wgmma_f16_ak_bn_n64: MultiplyShared<F16, AlongK, AlongMn, [u32; 32]>;
            probe_wgmma_f16_am_bk_n64: MultiplyShared<F16, AlongMn, AlongK, [u32; 32]>;
            probe_wgmma_f16_am_bn_n64: MultiplyShared<F16, AlongMn, AlongMn, [u32; 32]>;
            probe_wgmma_f16_ak_bk_n128: MultiplyShared<F16, AlongK, AlongK, [u32; 64]>;
            probe_wgmma_f16_ak_bk_n192: MultiplyShared<F16, AlongK, AlongK, [u32; 96]>;
            probe_wgmma_f16_ak_bk_n256: MultiplyShared<F16, AlongK, AlongK, [u32; 128]>;
            probe_wgmma_f16_am_bn_n256: MultiplyShared<F16, AlongMn, AlongMn, [u32; 128]>;
            probe_wgmma_bf16_ak_bk_n64: MultiplyShared<Bf16, AlongK, AlongK, [u32; 32]>;
            probe_wgmma_bf16_ak_bn_n64: MultiplyShared<Bf16, AlongK, AlongMn, [u32; 32]>;
            probe_wgmma_bf16_am_bk_n64: MultiplyShared<Bf16, AlongMn, AlongK, [u32; 32]>;
            probe_wgmma_bf16_am_bn_n64: MultiplyShared<Bf16, AlongMn, AlongMn, [u32; 32]>;
            probe_wgmma_tf32_ak_bk_n64: MultiplyShared<Tf32, AlongK, AlongK, [u32; 32]>;
            probe_wgmma_tf32_ak_bk_n256: MultiplyShared<Tf32, AlongK, AlongK, [u32; 128]>;
            probe_tma_load: LoadBox;
            probe_tma_store: StoreBox;
        }
    };
}

#[cfg(all(target_arch = "nvptx64", feature = "standalone", feature = "probes"))]
macro_rules! define_entry_points {
    ($($name:ident: $probe:ty;)*) => {$(
        /// # Safety
        /// See [`Kernel::run`].
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name(
            params: GemmParams,
            _maps: crate::problem::TensorMaps,
        ) {
            let maps = MapAddress::PARAMETER;
            // SAFETY: the launcher's duty.
            unsafe { <$probe as Kernel>::run(&params, maps) }
        }
    )*};
}

#[cfg(all(target_arch = "nvptx64", feature = "standalone", feature = "probes"))]
for_each_probe!(define_entry_points);

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! define_table {
    ($($name:ident: $probe:ty;)*) => {
        /// Every probe.
        pub const PROBES: &[Probe] = &[$(
            Probe {
                info: KernelInfo { name: stringify!($name), entry: stringify!($name), ..<$probe as Kernel>::INFO },
                run: <$probe as Kernel>::run,
            },
        )*];
    };
}

/// A probe, for the host.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The probe's launch constants; `info.name` is its entry point.
    pub info: KernelInfo,
    /// [`Kernel::run`], for the emulator.
    pub run: unsafe fn(&GemmParams, MapAddress),
}

#[cfg(not(target_arch = "nvptx64"))]
for_each_probe!(define_table);
