//! The entry points: a list of kernel instantiations, with each tile once.
//!
//! The one list, [`for_each_entry!`](crate::for_each_entry) in `entry/list.rs`, becomes
//!
//! - on the device, a kernel for each entry of the codegen units being compiled, through
//!   [`define_entry_points!`](crate::define_entry_points): here for rustc's own
//!   NVPTX code generator, in `rust-cuda/kernels` for rust-cuda's;
//! - on the host, [`ENTRIES`], which the build reads, and [`KERNELS`], which the launcher and every
//!   table read: a kernel there is an entry point with a shape of clusters;
//! - for the emulator, `FUNCTIONS`, the functions that the entry points call.
//!
//! A name gives the family, the element type, the layouts where they are fixed
//! (`ak`/`am`: A contiguous along K or M; `bk`/`bn`: B along K or N; `cm`: C along M, where the
//! kernel writes no other) and the CTA tile, then the kernel schedule, `pingpong`, `cluster2x1`
//! (down × across), `split2` (along K) or `streamk`; or `stages4`, where two kernels differ in
//! nothing else; or `sm75`, where a family has kernels for a newer target. The kernels of one entry
//! point with several shapes of clusters have its name, which ends in `cluster`, and their shape.
//!
//! A *codegen unit* is a part of one target's kernels, of which a compiler makes one PTX module. Each
//! has a cargo feature of its name: `sm_75`, `sm_80`, and of `sm_90a`, whose kernels take longest,
//! one for each 16-bit type and layout of A. rustc compiles them side by side.
//!
//! # How to add
//!
//! - **A tile**: add a row to `entry/list.rs`. Its constants are checked at compile time; shared
//!   memory, threads and staging follow. If the selection may take the kernel, `cargo xtask test` runs
//!   it in every test, and the selection estimates its cost from its [`KernelInfo`]
//!   (`host/src/select/cost.rs`).
//! - **A shape of clusters**: name it in the rows of `Clusters` that are to have it. Nothing more is
//!   compiled ahead of a launch.
//! - **A kernel schedule**: add a file beside `kernels/hopper/cooperative.rs` with a type
//!   that implements `KernelSchedule`, its name in [`names`], and rows that use it.
//! - **An element type**: add a variant of [`DType`](crate::DType), a type in `element.rs`,
//!   its instruction in `isa/mma.rs` and `isa/wgmma.rs`, and lines that use it in
//!   `entry/instances.rs`.
//! - **An epilogue**: it needs no entry, because every kernel has all epilogues, or none
//!   (`epilogue.rs`).
//! - **A tile order**: it needs no entry, because every kernel has all orders. `order.rs`
//!   says how to write one.

mod instances;
mod list;
#[cfg(not(target_arch = "nvptx64"))]
mod table;

/// The types that appear in the list, for the crate that instantiates it.
#[doc(hidden)]
#[allow(unused_imports, reason = "a device build instantiates one target")]
pub mod names {
    pub use crate::dtype::{AlongK, AlongMn};
    pub use crate::element::{Bf16, F16, F16x3, F32, Tf32};
    pub use crate::kernels::hopper::{
        Clusters, Cooperative, Hopper, PingPong, SplitK, SplitKParallel, StreamK, Unaligned,
        UnalignedSplitK, UnalignedSplitKParallel,
    };
    pub use crate::kernels::naive::Naive;
    pub use crate::kernels::pack::Pack;
    pub use crate::kernels::placement::Placement;
    pub use crate::kernels::reduce::Reduce;
    pub use crate::kernels::split::Split;
    pub use crate::kernels::tensor_core::{Multistage, MultistageParts, Pipelined, TensorCore};
    pub use crate::kernels::tiled::Tiled;
}

/// Defines the kernels of the target being compiled, as functions with at most one
/// attribute and one ABI: `define_entry_points!(extern "ptx-kernel");`
///
/// The calling crate has a feature for each codegen unit, and a build enables those of one
/// target. Each function takes a [`GemmParams`](crate::GemmParams) and
/// [`TensorMaps`](crate::problem::TensorMaps) by value.
#[macro_export]
macro_rules! define_entry_points {
    ($(#[$attribute:meta])? extern $abi:literal) => {
        #[allow(unused_imports, reason = "a build of the probes has no kernel")]
        use $crate::entry::names::*;
        $crate::for_each_entry!(
            $crate::define_entry_points, ($(#[$attribute])? extern $abi)
        );
    };
    ($arguments:tt $($unit:literal {
        $($name:tt $([$($shape:literal)+])?: $kernel:ty;)*
    })*) => {$($(
        $crate::define_entry_points! { @one $arguments $unit $name: $kernel }
    )*)*};
    (
        @one ($(#[$attribute:meta])? extern $abi:literal)
        $unit:literal ($($name:literal),+): $kernel:ty
    ) => {
        // `concat!` gives the name as a string, not as an identifier, so each function
        // needs a scope of its own.
        #[cfg(feature = $unit)]
        const _: () = {
            /// # Safety
            /// See `gpu_kernels::kernel::Kernel::run`.
            $(#[$attribute])?
            #[unsafe(export_name = concat!($($name),+))]
            pub unsafe extern $abi fn entry(
                params: $crate::GemmParams,
                _maps: $crate::problem::TensorMaps,
            ) {
                let maps = $crate::problem::MapAddress::PARAMETER;
                // SAFETY: the launcher's duty.
                unsafe { <$kernel as $crate::kernel::Kernel>::run(&params, maps) }
            }
        };
    };
}

#[cfg(all(target_arch = "nvptx64", feature = "standalone"))]
define_entry_points!(extern "ptx-kernel");

/// The name that some parts make, with the shape of a cluster behind it.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! name {
    (($($part:literal),+) $($shape:literal)?) => { concat!($($part,)+ $($shape)?) };
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! define_table {
    (() $($unit:literal {
        $($name:tt $([$($shape:literal)+])?: $kernel:ty;)*
    })*) => {
        const TABLE: &[table::Row] = &[$($(
            table::Row {
                compiled: KernelInfo {
                    name: name!($name),
                    entry: name!($name),
                    codegen_unit: $unit,
                    ..<$kernel as Kernel>::INFO
                },
                shapes: &[$($((name!($name $shape), $shape)),+)?],
            },
        )*)*];
    };
}

#[cfg(not(target_arch = "nvptx64"))]
use crate::kernel::{Kernel, KernelInfo};
#[cfg(not(target_arch = "nvptx64"))]
use names::*;
#[cfg(not(target_arch = "nvptx64"))]
crate::for_each_entry!(define_table, ());

/// What is compiled, in the order of the list: a row for each entry point, which is its name, too. Of
/// those for several shapes of clusters it has the first.
#[cfg(not(target_arch = "nvptx64"))]
pub const ENTRIES: &[KernelInfo] = &table::entries::<{ TABLE.len() }>(TABLE);

/// Every kernel, in the order of the list: an entry point, with the shape of its clusters.
#[cfg(not(target_arch = "nvptx64"))]
pub const KERNELS: &[KernelInfo] = &table::kernels::<{ table::count(TABLE) }>(TABLE);

/// The kernels with the entry point of `kernel`, which differ in the shape of their clusters alone, and
/// the place of `kernel` among them; none for a kernel that is not in the list.
#[cfg(not(target_arch = "nvptx64"))]
pub fn of_same_entry(kernel: &KernelInfo) -> (&'static [KernelInfo], usize) {
    let kernels = KERNELS
        .chunk_by(|one, next| one.entry == next.entry)
        .find(|kernels| kernels[0].entry == kernel.entry)
        .unwrap_or_default();
    let place = kernels.iter().position(|other| other.name == kernel.name);
    (kernels, place.unwrap_or(0))
}

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
macro_rules! define_functions {
    (() $($unit:literal {
        $($name:tt $([$($shape:literal)+])?: $kernel:ty;)*
    })*) => {
        /// The function that each entry point calls, in the order of [`ENTRIES`]. It is a
        /// constant, so that only crates that use it compile the functions.
        pub const FUNCTIONS: &[unsafe fn(&crate::problem::GemmParams, crate::problem::MapAddress)] = &[$($(
            <$kernel as Kernel>::run,
        )*)*];
    };
}

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
crate::for_each_entry!(define_functions, ());
