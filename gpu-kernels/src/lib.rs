//! The device side of tilewise: GEMM kernels, and everything that host and
//! device must agree on.
//!
//! This crate is compiled in four ways:
//!
//! 1. for `nvptx64-nvidia-cuda`, where [`mod@entry`] becomes the PTX entry points,
//!    by rustc's own NVPTX code generator or by rust-cuda's (feature `standalone`);
//! 2. for the host, where the same orders, schedules, constants and launch
//!    parameters are plain functions and types;
//! 3. for the host with the feature `emulator`, where the crate `tilewise-emulator`
//!    runs the same kernels, instruction by instruction, and checks each instruction;
//! 4. for `wasm32-unknown-unknown`, as for the host but without `std`: a web page
//!    walks the tiles by the same orders (crate `tilewise-explorer`).
//!
//! Read the modules in the direction in which the data flows:
//!
//! | module | question it answers |
//! |---|---|
//! | [`mod@cluster`] | how many CTAs work together? |
//! | [`form`] | which parts has the epilogue of a launch? |
//! | [`problem`] | what does a launch receive? |
//! | [`order`] | which tile of C does a linear id mean? |
//! | [`schedule`] | which ids does one CTA run, and when does it stop? |
//! | [`stream_k`] | which k-blocks of a shared tile does one CTA run? |
//! | [`kernels`] | how is one tile computed? (the ladder: naive, tiled, tensor_core, hopper) |
//! | [`epilogue`] | how does an accumulator become an element of C? |
//! | `fold` | how does the host fold the form of a launch into PTX? |
//! | [`isa`] | which PTX instruction does that, and where is it specified? |
//! | [`mod@entry`] | which instantiations exist? (the one list) |
//! | [`probe`] | does one instruction do on a GPU what it does in the emulator? |

#![cfg_attr(
    target_arch = "nvptx64",
    feature(asm_experimental_arch),
    allow(missing_docs)
)]
// Without `standalone`, rust-cuda's `cuda_builder` adds `no_std` to every crate.
#![cfg_attr(
    all(target_arch = "nvptx64", feature = "standalone"),
    no_std,
    feature(abi_ptx, link_llvm_intrinsics),
    allow(
        internal_features,
        reason = "convergent barriers are intrinsics of LLVM"
    )
)]
#![cfg_attr(target_arch = "wasm32", no_std)]

#[cfg(not(target_arch = "nvptx64"))]
extern crate alloc;

pub mod cluster;
pub mod dtype;
pub mod element;
pub mod entry;
pub mod epilogue;
pub mod f16x3;
#[cfg(not(target_arch = "nvptx64"))]
pub mod fold;
pub mod form;
pub mod isa;
pub mod kernel;
pub mod kernels;
pub mod order;
pub mod probe;
pub mod problem;
pub mod schedule;
pub mod split_k;
pub mod stream_k;
pub mod tensor_ref;
mod unroll;

pub use cluster::{Cluster, ClusterIds, ClusterShape};
pub use dtype::{DType, Major};
pub use form::{EpilogueArguments, EvictFirst, Form, Planes};
pub use kernel::{Arch, Block, Family, KernelInfo};
pub use order::{Raster, Tile, TileGrid, TileOrder};
pub use problem::{GemmParams, OutputType, TensorMaps};
pub use schedule::Schedule;
pub use tensor_ref::TensorRef;

/// The panic handler that the language requires. Kernels cannot panic: the build gate
/// refuses PTX with a panic path. Where this crate is only a part of the device program,
/// rust-cuda's `cuda_std` has the handler.
#[cfg(all(target_arch = "nvptx64", feature = "standalone"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    isa::thread::trap()
}
