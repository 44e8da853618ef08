//! The entry points: a list of kernel instantiations, with each tile once.
//!
//! The one list below becomes
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
//! - **A tile**: add a row to [`for_each_entry!`](crate::for_each_entry), below `tiles`. Its
//!   constants are checked at compile time; shared memory, threads and staging follow.
//!   If the selection may take the kernel, `cargo xtask test` runs it in every test, and
//!   the selection estimates its cost from its [`KernelInfo`] (`host/src/select/cost.rs`).
//! - **A shape of clusters**: name it in the rows of `Clusters` that are to have it. Nothing more is
//!   compiled ahead of a launch.
//! - **A kernel schedule**: add a file beside `kernels/hopper/cooperative.rs` with a type
//!   that implements `KernelSchedule`, its name in [`names`], and rows that use it.
//! - **An element type**: add a variant of [`DType`](crate::DType), a type in `element.rs`,
//!   its instruction in `isa/mma.rs` and `isa/wgmma.rs`, and lines that use it in
//!   [`for_each_entry!`](crate::for_each_entry), below the tiles.
//! - **An epilogue**: it needs no entry, because every kernel has all epilogues, or none
//!   (`epilogue.rs`).
//! - **A tile order**: it needs no entry, because every kernel has all orders. `order.rs`
//!   says how to write one.

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

/// The list of kernels. `$instantiate` is a macro that takes `$arguments`, one token tree, and then
/// codegen units with their kernels, as `(the parts of the name): type;`. A unit may come again.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_entry {
    ($instantiate:path, $arguments:tt) => {
        $crate::for_each_entry! {
            tiles of $instantiate, $arguments;
            // M N K
            tiled {
                128 128 16;
                64 64 16;
            }
            // M N K of the CTA; M N of a warp; main loop, with its stages
            tensor_core {
                128 256 64, 64 64, Multistage<3>;
                128 128 64, 64 64, Multistage<3>;
                64 64 64, 32 32, Multistage<4>;
            }
            tensor_core_tf32 {
                128 256 32, 64 64, Multistage<3>;
                128 128 32, 64 64, Multistage<3>;
                64 64 32, 32 32, Multistage<4>;
            }
            tensor_core_f16x3 {
                128 128 32, 64 32, MultistageParts<4>;
                64 64 32, 32 32, MultistageParts<4>;
            }
            // M N K of the CTA; M N of a warp; main loop, with the CTAs of an SM
            tensor_core_sm75 {
                128 128 32, 64 64, Pipelined<2>;
                64 64 32, 32 32, Pipelined<3>;
            }
            // M N K; stages, kernel schedule; whether it takes every form; suffix; of clusters, their
            // shapes (down x across)
            hopper {
                128 256 64, 3, Cooperative, true, "";
                128 256 64, 4, Cooperative, false, "_stages4";
                128 256 64, 3, StreamK, false, "_streamk";
                256 192 64, 4, Cooperative, false, "";
                256 192 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                256 128 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "1x4";
                128 256 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "1x4";
                192 192 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 128 64, 4, Cooperative, false, "";
                192 128 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                128 192 64, 4, Cooperative, false, "";
                128 192 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "2x4" "4x2";
                128 192 64, 4, PingPong, false, "_pingpong";
                128 128 64, 6, Cooperative, true, "";
                128 128 64, 5, PingPong, true, "_pingpong";
                128 128 64, 6, StreamK, true, "_streamk";
                128 128 64, 6, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4" "4x2";
                128 64 64, 8, Cooperative, true, "";
                64 128 64, 8, Cooperative, true, "";
                128 64 64, 8, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                64 128 64, 8, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4" "4x2";
                128 64 64, 8, StreamK, true, "_streamk";
                64 64 128, 6, Cooperative, true, "";
                64 64 64, 10, PingPong, true, "_pingpong";
                64 16 64, 8, Cooperative, false, "";
                64 64 64, 12, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4" "4x2";
                64 64 64, 8, SplitK<2>, true, "_split2";
                64 64 64, 8, SplitK<4>, true, "_split4";
                64 64 64, 8, SplitK<8>, true, "_split8";
                128 64 64, 6, SplitK<4>, false, "_split4";
                128 128 64, 4, SplitK<2>, false, "_split2";
                64 32 64, 12, SplitK<8>, false, "_split8";
                192 128 64, 5, SplitKParallel, false, "_splitk_cluster" of "1x2" "1x4";
                128 192 64, 5, SplitKParallel, false, "_splitk_cluster" of "2x1";
                128 128 64, 7, SplitKParallel, false, "_splitk_cluster" of "1x2" "2x1" "2x2";
                128 64 64, 9, SplitKParallel, false, "_splitk_cluster" of "1x4" "1x2" "2x1" "4x2";
                64 64 64, 6, Unaligned, true, "_unaligned";
                64 64 64, 6, UnalignedSplitK<4>, false, "_unaligned_split4";
                64 64 64, 6, UnalignedSplitK<8>, false, "_unaligned_split8";
                64 128 64, 5, Unaligned, false, "_unaligned";
                64 128 64, 5, UnalignedSplitK<2>, false, "_unaligned_split2";
                64 64 64, 6, UnalignedSplitKParallel, false, "_unaligned_splitk";
                64 128 64, 5, UnalignedSplitKParallel, false, "_unaligned_splitk";
            }
            // B along K: tiles with a width between multiples of 64, and as many stages as fit.
            hopper_bk {
                128 160 64, 5, Cooperative, false, "";
                128 160 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                128 160 64, 5, StreamK, false, "_streamk";
                128 144 64, 5, Cooperative, false, "";
                128 112 64, 6, Cooperative, false, "";
                128 96 64, 6, Cooperative, false, "";
                128 80 64, 7, Cooperative, false, "";
                64 96 64, 10, Cooperative, false, "";
                64 96 64, 10, Clusters, false, "_cluster" of "4x1" "2x4";
                128 160 64, 6, SplitKParallel, false, "_splitk_cluster" of "2x1";
                64 96 64, 11, SplitKParallel, false, "_splitk_cluster" of "4x1" "2x4";
                64 80 64, 12, SplitKParallel, false, "_splitk_cluster" of "4x1";
                64 192 64, 6, Cooperative, false, "";
                256 112 64, 4, Clusters, false, "_cluster" of "1x2";
                128 80 64, 6, SplitK<4>, false, "_split4";
                128 176 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4";
                128 208 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                192 112 64, 5, Clusters, false, "_cluster" of "1x2" "1x4" "2x4";
                192 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "4x2";
                128 96 64, 7, Clusters, false, "_cluster" of "1x2" "1x4" "2x4" "4x2";
                128 80 64, 7, Clusters, false, "_cluster" of "1x4" "4x1" "2x4" "4x2";
                64 112 64, 9, Clusters, false, "_cluster" of "4x1" "4x2";
                128 104 64, 7, Clusters, false, "_cluster" of "1x4" "4x1" "4x2";
                128 136 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                192 88 64, 5, Clusters, false, "_cluster" of "1x2" "1x4";
            }
            // B along N, which is loaded in boxes of 64 columns: fewer stages fit, and a width
            // between multiples of 64 loads as much as the next multiple. It gains where its tiles
            // end in a whole wave of clusters.
            hopper_bn {
                128 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                128 160 64, 5, SplitKParallel, false, "_splitk_cluster" of "2x1";
                64 112 64, 8, Clusters, false, "_cluster" of "4x1";
                256 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                128 224 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                192 96 64, 5, Clusters, false, "_cluster" of "1x2" "1x4" "4x1";
                128 96 64, 6, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4" "4x2";
                64 96 64, 9, SplitKParallel, false, "_splitk_cluster" of "4x1";
            }
            // B along K, and C along M, for plain products: few rows of a row-major C, which are
            // columns here, make tiles of as many columns.
            hopper_cm {
                128 160 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "2x4";
                128 80 64, 7, Cooperative, false, "";
                64 48 64, 14, Cooperative, false, "";
                64 32 64, 16, Cooperative, false, "";
                256 160 64, 4, Clusters, false, "_cluster" of "1x2" "4x2";
                64 96 64, 10, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4";
                64 176 64, 7, Clusters, false, "_cluster" of "4x1" "2x4";
                192 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x2";
                128 224 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                128 144 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                128 128 64, 6, Clusters, false, "_cluster" of "1x2" "2x1" "1x4";
                128 96 64, 6, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4";
                192 176 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                64 72 64, 12, Clusters, false, "_cluster" of "2x4" "4x2";
                128 104 64, 7, Clusters, false, "_cluster" of "1x2" "2x4" "4x2";
                128 136 64, 5, Clusters, false, "_cluster" of "1x2" "2x4" "4x1";
                128 168 64, 5, Clusters, false, "_cluster" of "2x1" "2x4" "4x1";
                128 200 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                64 104 64, 9, Clusters, false, "_cluster" of "4x1" "2x4" "4x2";
            }
            // The same with B along N.
            hopper_cm_bn {
                256 160 64, 4, Clusters, false, "_cluster" of "1x2" "4x2";
                64 96 64, 8, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4";
                64 176 64, 6, Clusters, false, "_cluster" of "4x1" "2x4";
                128 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "2x4" "4x2";
                128 128 64, 6, Clusters, false, "_cluster" of "1x2" "2x1" "1x4";
                128 96 64, 6, Clusters, false, "_cluster" of "1x2" "1x4" "4x1";
                128 224 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                256 96 64, 4, Clusters, false, "_cluster" of "2x1" "4x1";
            }
            hopper_f16x3 {
                128 128 64, 6, Cooperative, true, "";
                128 128 64, 6, Clusters, true, "_cluster" of "2x1";
                64 128 64, 8, Cooperative, true, "";
                64 64 64, 8, Cooperative, true, "";
                64 64 64, 8, SplitK<2>, true, "_split2";
                64 64 64, 8, SplitK<4>, true, "_split4";
            }
            hopper_tf32 {
                128 256 32, 3, Cooperative, true, "";
                128 256 32, 4, Cooperative, false, "_stages4";
                128 256 32, 4, Clusters, false, "_cluster" of "2x1";
                128 256 32, 4, StreamK, false, "_streamk";
                128 192 32, 4, Cooperative, false, "";
                128 128 32, 6, Cooperative, true, "";
                128 128 32, 5, PingPong, true, "_pingpong";
                128 128 32, 6, StreamK, true, "_streamk";
                64 128 32, 8, Cooperative, true, "";
                128 64 32, 8, Cooperative, true, "";
                64 64 32, 8, Cooperative, true, "";
                64 64 64, 6, Cooperative, true, "";
                64 64 32, 8, SplitK<2>, true, "_split2";
                64 64 32, 8, SplitK<4>, true, "_split4";
                64 64 32, 8, SplitK<8>, true, "_split8";
            }
            // A along M, which goes through registers: one m64 tile a consumer, no clusters.
            hopper_tf32_am {
                128 256 32, 4, Cooperative, false, "";
                128 192 32, 4, Cooperative, false, "";
                128 128 32, 6, Cooperative, true, "";
                128 64 32, 8, Cooperative, true, "";
                64 64 32, 8, Cooperative, true, "";
            }
            // The same with C along M, for plain products.
            hopper_tf32_am_cm {
                128 256 32, 4, Cooperative, false, "";
                128 192 32, 4, Cooperative, false, "";
                128 128 32, 6, Cooperative, false, "";
                128 64 32, 8, Cooperative, false, "";
                64 64 32, 8, Cooperative, false, "";
            }
            // M N of every tile under stream-K, and of every cluster, or CTA, that leaves its sums
            reduce {
                512 128;
                512 80;
                256 256;
                256 192;
                256 160;
                256 128;
                256 96;
                256 80;
                256 64;
                192 512;
                192 256;
                128 384;
                128 256;
                128 160;
                128 128;
                128 64;
                64 128;
                64 64;
            }
        }
    };
    // Instantiates every tile in every type and layout.
    (
        tiles of $instantiate:path, $arguments:tt;
        tiled { $($tiled:tt)* }
        tensor_core { $($tensor_core:tt)* }
        tensor_core_tf32 { $($tensor_core_tf32:tt)* }
        tensor_core_f16x3 { $($tensor_core_f16x3:tt)* }
        tensor_core_sm75 { $($tensor_core_sm75:tt)* }
        hopper { $($hopper:tt)* }
        hopper_bk { $($hopper_bk:tt)* }
        hopper_bn { $($hopper_bn:tt)* }
        hopper_cm { $($hopper_cm:tt)* }
        hopper_cm_bn { $($hopper_cm_bn:tt)* }
        hopper_f16x3 { $($hopper_f16x3:tt)* }
        hopper_tf32 { $($hopper_tf32:tt)* }
        hopper_tf32_am { $($hopper_tf32_am:tt)* }
        hopper_tf32_am_cm { $($hopper_tf32_am_cm:tt)* }
        reduce { $($reduce:tt)* }
    ) => {
        $crate::for_each_entry! {
            types of $instantiate, $arguments;
            tiled {
                ("tiled_f32_" F32) { $($tiled)* }
                ("tiled_f16_" F16) { $($tiled)* }
                ("tiled_bf16_" Bf16) { $($tiled)* }
            }
            tensor_core {
                ("tensor_core_f16_" F16) { $($tensor_core)* }
                ("tensor_core_bf16_" Bf16) { $($tensor_core)* }
                ("tensor_core_tf32_" Tf32) { $($tensor_core_tf32)* }
            }
            tensor_core_f16x3 {
                ("tensor_core_f16x3_" F16x3) { $($tensor_core_f16x3)* }
            }
            tensor_core_sm75 {
                ("tensor_core_f16_" F16) { $($tensor_core_sm75)* }
            }
            hopper {
                "sm_90a_f32" ("hopper_f16x3_ak_bk_" F16x3, AlongK, AlongK) {
                    $($hopper_f16x3)*
                }
                "sm_90a_f32" ("hopper_tf32_ak_bk_" Tf32, AlongK, AlongK) {
                    $($hopper_tf32)*
                }
                "sm_90a_f32" ("hopper_tf32_am_bk_" Tf32, AlongMn, AlongK) {
                    $($hopper_tf32_am)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bk_" F16, AlongK, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bn_" F16, AlongK, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bk_" F16, AlongMn, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bn_" F16, AlongMn, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bk_" Bf16, AlongK, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bn_" Bf16, AlongK, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bk_" Bf16, AlongMn, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bn_" Bf16, AlongMn, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
            }
            hopper_cm {
                "sm_90a_f32" ("hopper_tf32_am_bk_cm_" Tf32, AlongMn, AlongK) {
                    $($hopper_tf32_am_cm)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bk_cm_" F16, AlongK, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bk_cm_" F16, AlongMn, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bk_cm_" Bf16, AlongK, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bk_cm_" Bf16, AlongMn, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bn_cm_" F16, AlongK, AlongMn) {
                    $($hopper_cm_bn)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bn_cm_" F16, AlongMn, AlongMn) {
                    $($hopper_cm_bn)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bn_cm_" Bf16, AlongK, AlongMn) {
                    $($hopper_cm_bn)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bn_cm_" Bf16, AlongMn, AlongMn) {
                    $($hopper_cm_bn)*
                }
            }
            reduce { $($reduce)* }
        }
    };
    (
        types of $instantiate:path, $arguments:tt;
        tiled {
            $(($t_name:literal $t_type:ty) { $($tm:literal $tn:literal $tk:literal;)* })*
        }
        tensor_core {
            $(($c_name:literal $ct:ty) {
                $($cm:literal $cn:literal $ck:literal,
                  $wm:literal $wn:literal, $c_loop:ty;)*
            })*
        }
        tensor_core_f16x3 {
            $(($x_name:literal $xt:ty) {
                $($xm:literal $xn:literal $xk:literal,
                  $xwm:literal $xwn:literal, $x_loop:ty;)*
            })*
        }
        tensor_core_sm75 {
            $(($p_name:literal $pt:ty) {
                $($pm:literal $pn:literal $pk:literal,
                  $pwm:literal $pwn:literal, $p_loop:ty;)*
            })*
        }
        hopper {
            $($h_unit:literal ($h_name:literal $ht:ty, $ha:ty, $hb:ty) {
                $($hm:literal $hn:literal $hk:literal,
                  $h_stages:literal, $schedule:ty, $fused:literal,
                  $suffix:literal $(of $($shape:literal)+)?;)*
            })*
        }
        hopper_cm {
            $($m_unit:literal ($m_name:literal $mt:ty, $ma:ty, $mb:ty) {
                $($mm:literal $mn:literal $mk:literal,
                  $m_stages:literal, $m_schedule:ty, $m_fused:literal,
                  $m_suffix:literal $(of $($m_shape:literal)+)?;)*
            })*
        }
        reduce { $($rm:literal $rn:literal;)* }
    ) => {
        $instantiate! {
            $arguments
            "sm_75" {
                ("pack_16"): Pack<F16>;
                ("pack_32"): Pack<F32>;
                ("split_f16x3"): Split<F16x3>;
                ("naive_f32"): Naive<F32>;
                ("naive_f16"): Naive<F16>;
                ("naive_bf16"): Naive<Bf16>;
                $($(
                    ($t_name, $tm, "x", $tn, "x", $tk): Tiled<$t_type, $tm, $tn, $tk>;
                )*)*
                $($(
                    ($p_name, "ak_bk_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongK, AlongK, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                    ($p_name, "ak_bn_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongK, AlongMn, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                    ($p_name, "am_bk_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongMn, AlongK, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                    ($p_name, "am_bn_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongMn, AlongMn, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                )*)*
            }
            "sm_80" {
                $($(
                    ($c_name, "ak_bk_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongK, AlongK, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                    ($c_name, "ak_bn_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongK, AlongMn, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                    ($c_name, "am_bk_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongMn, AlongK, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                    ($c_name, "am_bn_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongMn, AlongMn, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                )*)*
                $($(
                    ($x_name, "ak_bk_", $xm, "x", $xn, "x", $xk):
                        TensorCore<$xt, AlongK, AlongK, $xm, $xn, $xk, $xwm, $xwn, $x_loop>;
                )*)*
            }
            $($h_unit {
                $(
                    ($h_name, $hm, "x", $hn, "x", $hk, $suffix) $([$($shape)+])?:
                        Hopper<$ht, $ha, $hb, $hm, $hn, $hk, $h_stages, $schedule, $fused>;
                )*
            })*
            $($m_unit {
                $(
                    ($m_name, $mm, "x", $mn, "x", $mk, $m_suffix) $([$($m_shape)+])?: Hopper<
                        $mt, $ma, $mb, $mm, $mn, $mk, $m_stages, $m_schedule, $m_fused, true,
                    >;
                )*
            })*
            "sm_90a_f32" {
                $(("reduce_", $rm, "x", $rn): Reduce<$rm, $rn>;)*
                ("placement_2"): Placement<2>;
                ("placement_4"): Placement<4>;
                ("placement_16"): Placement<16>;
            }
        }
    };
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
for_each_entry!(define_table, ());

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
for_each_entry!(define_functions, ());

#[cfg(not(target_arch = "nvptx64"))]
mod table;
