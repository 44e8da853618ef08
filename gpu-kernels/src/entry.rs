//! The entry points: nothing but instantiations, each named once.
//!
//! The one list below becomes
//!
//! - on the device, a kernel for each entry of the target being compiled (cargo
//!   feature `sm_75`, `sm_80` or `sm_90a`), through
//!   [`define_entry_points!`](crate::define_entry_points): here for rustc's own
//!   NVPTX code generator, in `rust-cuda/kernels` for rust-cuda's;
//! - on the host, [`KERNELS`], which the launcher, the build and every table read;
//! - for the emulator, `FUNCTIONS`, what the entry points call.
//!
//! Names say family, element type, layouts where they are fixed (`ak`/`am`: A
//! contiguous along K or M; `bk`/`bn`: B along K or N) and the CTA tile, then
//! what consumers do together, `pingpong`, or CTAs: `cluster2x1` down × across,
//! `split2` along K, `streamk`; or `stages4`, of two that differ in nothing else.

/// The types that the list names, for the crate that instantiates it.
#[doc(hidden)]
#[allow(unused_imports, reason = "a device build instantiates one target")]
pub mod names {
    pub use crate::element::{Bf16, F16, F32, Tf32};
    pub use crate::kernel::{AlongK, AlongMn};
    pub use crate::kernels::hopper::{Clusters, Hopper, PingPong, SplitK, StreamK};
    pub use crate::kernels::naive::Naive;
    pub use crate::kernels::pack::Pack;
    pub use crate::kernels::tensor_core::{Large, LargeTf32, Medium, MediumTf32, Small, SmallTf32};
    pub use crate::kernels::tiled::Tiled;
}

/// The list. `$instantiate` is a macro that takes `$arguments`, one token tree,
/// and then the list.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_entry {
    ($instantiate:path, $arguments:tt) => {
        $instantiate! {
            $arguments
            "sm_75" {
                pack_16: Pack<F16>;
                naive_f32: Naive<F32>;
                naive_f16: Naive<F16>;
                naive_bf16: Naive<Bf16>;
                tiled_f32_128x128x16: Tiled<F32, 128, 128, 16>;
                tiled_f32_64x64x16: Tiled<F32, 64, 64, 16>;
                tiled_f16_128x128x16: Tiled<F16, 128, 128, 16>;
                tiled_f16_64x64x16: Tiled<F16, 64, 64, 16>;
                tiled_bf16_128x128x16: Tiled<Bf16, 128, 128, 16>;
                tiled_bf16_64x64x16: Tiled<Bf16, 64, 64, 16>;
            }
            "sm_80" {
                pack_tf32: Pack<Tf32>;
                tensor_core_f16_ak_bk_128x256x64: Large<F16, AlongK, AlongK>;
                tensor_core_f16_ak_bn_128x256x64: Large<F16, AlongK, AlongMn>;
                tensor_core_f16_am_bk_128x256x64: Large<F16, AlongMn, AlongK>;
                tensor_core_f16_am_bn_128x256x64: Large<F16, AlongMn, AlongMn>;
                tensor_core_f16_ak_bk_128x128x64: Medium<F16, AlongK, AlongK>;
                tensor_core_f16_ak_bn_128x128x64: Medium<F16, AlongK, AlongMn>;
                tensor_core_f16_am_bk_128x128x64: Medium<F16, AlongMn, AlongK>;
                tensor_core_f16_am_bn_128x128x64: Medium<F16, AlongMn, AlongMn>;
                tensor_core_f16_ak_bk_64x64x64: Small<F16, AlongK, AlongK>;
                tensor_core_f16_ak_bn_64x64x64: Small<F16, AlongK, AlongMn>;
                tensor_core_f16_am_bk_64x64x64: Small<F16, AlongMn, AlongK>;
                tensor_core_f16_am_bn_64x64x64: Small<F16, AlongMn, AlongMn>;
                tensor_core_bf16_ak_bk_128x256x64: Large<Bf16, AlongK, AlongK>;
                tensor_core_bf16_ak_bn_128x256x64: Large<Bf16, AlongK, AlongMn>;
                tensor_core_bf16_am_bk_128x256x64: Large<Bf16, AlongMn, AlongK>;
                tensor_core_bf16_am_bn_128x256x64: Large<Bf16, AlongMn, AlongMn>;
                tensor_core_bf16_ak_bk_128x128x64: Medium<Bf16, AlongK, AlongK>;
                tensor_core_bf16_ak_bn_128x128x64: Medium<Bf16, AlongK, AlongMn>;
                tensor_core_bf16_am_bk_128x128x64: Medium<Bf16, AlongMn, AlongK>;
                tensor_core_bf16_am_bn_128x128x64: Medium<Bf16, AlongMn, AlongMn>;
                tensor_core_bf16_ak_bk_64x64x64: Small<Bf16, AlongK, AlongK>;
                tensor_core_bf16_ak_bn_64x64x64: Small<Bf16, AlongK, AlongMn>;
                tensor_core_bf16_am_bk_64x64x64: Small<Bf16, AlongMn, AlongK>;
                tensor_core_bf16_am_bn_64x64x64: Small<Bf16, AlongMn, AlongMn>;
                tensor_core_tf32_ak_bk_128x256x32: LargeTf32<AlongK, AlongK>;
                tensor_core_tf32_ak_bn_128x256x32: LargeTf32<AlongK, AlongMn>;
                tensor_core_tf32_am_bk_128x256x32: LargeTf32<AlongMn, AlongK>;
                tensor_core_tf32_am_bn_128x256x32: LargeTf32<AlongMn, AlongMn>;
                tensor_core_tf32_ak_bk_128x128x32: MediumTf32<AlongK, AlongK>;
                tensor_core_tf32_ak_bn_128x128x32: MediumTf32<AlongK, AlongMn>;
                tensor_core_tf32_am_bk_128x128x32: MediumTf32<AlongMn, AlongK>;
                tensor_core_tf32_am_bn_128x128x32: MediumTf32<AlongMn, AlongMn>;
                tensor_core_tf32_ak_bk_64x64x32: SmallTf32<AlongK, AlongK>;
                tensor_core_tf32_ak_bn_64x64x32: SmallTf32<AlongK, AlongMn>;
                tensor_core_tf32_am_bk_64x64x32: SmallTf32<AlongMn, AlongK>;
                tensor_core_tf32_am_bn_64x64x32: SmallTf32<AlongMn, AlongMn>;
            }
            "sm_90a" {
                hopper_tf32_ak_bk_128x256x32: Hopper<Tf32, AlongK, AlongK, 128, 256, 32, 3>;
                hopper_tf32_ak_bk_128x128x32: Hopper<Tf32, AlongK, AlongK, 128, 128, 32, 6>;
                hopper_tf32_ak_bk_64x64x32: Hopper<Tf32, AlongK, AlongK, 64, 64, 32, 8>;
                hopper_f16_ak_bk_128x256x64: Hopper<F16, AlongK, AlongK, 128, 256, 64, 3>;
                hopper_f16_ak_bk_128x256x64_stages4: Hopper<F16, AlongK, AlongK, 128, 256, 64, 4>;
                hopper_f16_ak_bk_128x256x64_streamk: Hopper<F16, AlongK, AlongK, 128, 256, 64, 3, StreamK>;
                hopper_f16_ak_bk_128x256x64_cluster2x1: Hopper<F16, AlongK, AlongK, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_f16_ak_bk_256x128x64: Hopper<F16, AlongK, AlongK, 256, 128, 64, 3>;
                hopper_f16_ak_bk_256x192x64: Hopper<F16, AlongK, AlongK, 256, 192, 64, 3>;
                hopper_f16_ak_bk_256x192x64_cluster1x2: Hopper<F16, AlongK, AlongK, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_f16_ak_bk_128x192x64: Hopper<F16, AlongK, AlongK, 128, 192, 64, 4>;
                hopper_f16_ak_bk_128x192x64_cluster2x1: Hopper<F16, AlongK, AlongK, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_f16_ak_bk_128x192x64_pingpong: Hopper<F16, AlongK, AlongK, 128, 192, 64, 4, PingPong>;
                hopper_f16_ak_bk_128x128x64: Hopper<F16, AlongK, AlongK, 128, 128, 64, 6>;
                hopper_f16_ak_bk_128x128x64_pingpong: Hopper<F16, AlongK, AlongK, 128, 128, 64, 5, PingPong>;
                hopper_f16_ak_bk_128x128x64_streamk: Hopper<F16, AlongK, AlongK, 128, 128, 64, 6, StreamK>;
                hopper_f16_ak_bk_64x256x64: Hopper<F16, AlongK, AlongK, 64, 256, 64, 4>;
                hopper_f16_ak_bk_64x128x64: Hopper<F16, AlongK, AlongK, 64, 128, 64, 8>;
                hopper_f16_ak_bk_128x64x64: Hopper<F16, AlongK, AlongK, 128, 64, 64, 8>;
                hopper_f16_ak_bk_128x64x64_cluster1x2: Hopper<F16, AlongK, AlongK, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_f16_ak_bk_64x64x128: Hopper<F16, AlongK, AlongK, 64, 64, 128, 6>;
                hopper_f16_ak_bk_64x64x64_split2: Hopper<F16, AlongK, AlongK, 64, 64, 64, 8, SplitK<2>>;
                hopper_f16_ak_bk_64x64x64_split4: Hopper<F16, AlongK, AlongK, 64, 64, 64, 8, SplitK<4>>;
                hopper_f16_ak_bn_128x256x64: Hopper<F16, AlongK, AlongMn, 128, 256, 64, 3>;
                hopper_f16_ak_bn_128x256x64_stages4: Hopper<F16, AlongK, AlongMn, 128, 256, 64, 4>;
                hopper_f16_ak_bn_128x256x64_streamk: Hopper<F16, AlongK, AlongMn, 128, 256, 64, 3, StreamK>;
                hopper_f16_ak_bn_128x256x64_cluster2x1: Hopper<F16, AlongK, AlongMn, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_f16_ak_bn_256x128x64: Hopper<F16, AlongK, AlongMn, 256, 128, 64, 3>;
                hopper_f16_ak_bn_256x192x64: Hopper<F16, AlongK, AlongMn, 256, 192, 64, 3>;
                hopper_f16_ak_bn_256x192x64_cluster1x2: Hopper<F16, AlongK, AlongMn, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_f16_ak_bn_128x192x64: Hopper<F16, AlongK, AlongMn, 128, 192, 64, 4>;
                hopper_f16_ak_bn_128x192x64_cluster2x1: Hopper<F16, AlongK, AlongMn, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_f16_ak_bn_128x192x64_pingpong: Hopper<F16, AlongK, AlongMn, 128, 192, 64, 4, PingPong>;
                hopper_f16_ak_bn_128x128x64: Hopper<F16, AlongK, AlongMn, 128, 128, 64, 6>;
                hopper_f16_ak_bn_128x128x64_pingpong: Hopper<F16, AlongK, AlongMn, 128, 128, 64, 5, PingPong>;
                hopper_f16_ak_bn_128x128x64_streamk: Hopper<F16, AlongK, AlongMn, 128, 128, 64, 6, StreamK>;
                hopper_f16_ak_bn_64x256x64: Hopper<F16, AlongK, AlongMn, 64, 256, 64, 4>;
                hopper_f16_ak_bn_64x128x64: Hopper<F16, AlongK, AlongMn, 64, 128, 64, 8>;
                hopper_f16_ak_bn_128x64x64: Hopper<F16, AlongK, AlongMn, 128, 64, 64, 8>;
                hopper_f16_ak_bn_128x64x64_cluster1x2: Hopper<F16, AlongK, AlongMn, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_f16_ak_bn_64x64x128: Hopper<F16, AlongK, AlongMn, 64, 64, 128, 6>;
                hopper_f16_ak_bn_64x64x64_split2: Hopper<F16, AlongK, AlongMn, 64, 64, 64, 8, SplitK<2>>;
                hopper_f16_ak_bn_64x64x64_split4: Hopper<F16, AlongK, AlongMn, 64, 64, 64, 8, SplitK<4>>;
                hopper_f16_am_bk_128x256x64: Hopper<F16, AlongMn, AlongK, 128, 256, 64, 3>;
                hopper_f16_am_bk_128x256x64_stages4: Hopper<F16, AlongMn, AlongK, 128, 256, 64, 4>;
                hopper_f16_am_bk_128x256x64_streamk: Hopper<F16, AlongMn, AlongK, 128, 256, 64, 3, StreamK>;
                hopper_f16_am_bk_128x256x64_cluster2x1: Hopper<F16, AlongMn, AlongK, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_f16_am_bk_256x128x64: Hopper<F16, AlongMn, AlongK, 256, 128, 64, 3>;
                hopper_f16_am_bk_256x192x64: Hopper<F16, AlongMn, AlongK, 256, 192, 64, 3>;
                hopper_f16_am_bk_256x192x64_cluster1x2: Hopper<F16, AlongMn, AlongK, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_f16_am_bk_128x192x64: Hopper<F16, AlongMn, AlongK, 128, 192, 64, 4>;
                hopper_f16_am_bk_128x192x64_cluster2x1: Hopper<F16, AlongMn, AlongK, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_f16_am_bk_128x192x64_pingpong: Hopper<F16, AlongMn, AlongK, 128, 192, 64, 4, PingPong>;
                hopper_f16_am_bk_128x128x64: Hopper<F16, AlongMn, AlongK, 128, 128, 64, 6>;
                hopper_f16_am_bk_128x128x64_pingpong: Hopper<F16, AlongMn, AlongK, 128, 128, 64, 5, PingPong>;
                hopper_f16_am_bk_128x128x64_streamk: Hopper<F16, AlongMn, AlongK, 128, 128, 64, 6, StreamK>;
                hopper_f16_am_bk_64x256x64: Hopper<F16, AlongMn, AlongK, 64, 256, 64, 4>;
                hopper_f16_am_bk_64x128x64: Hopper<F16, AlongMn, AlongK, 64, 128, 64, 8>;
                hopper_f16_am_bk_128x64x64: Hopper<F16, AlongMn, AlongK, 128, 64, 64, 8>;
                hopper_f16_am_bk_128x64x64_cluster1x2: Hopper<F16, AlongMn, AlongK, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_f16_am_bk_64x64x128: Hopper<F16, AlongMn, AlongK, 64, 64, 128, 6>;
                hopper_f16_am_bk_64x64x64_split2: Hopper<F16, AlongMn, AlongK, 64, 64, 64, 8, SplitK<2>>;
                hopper_f16_am_bk_64x64x64_split4: Hopper<F16, AlongMn, AlongK, 64, 64, 64, 8, SplitK<4>>;
                hopper_f16_am_bn_128x256x64: Hopper<F16, AlongMn, AlongMn, 128, 256, 64, 3>;
                hopper_f16_am_bn_128x256x64_stages4: Hopper<F16, AlongMn, AlongMn, 128, 256, 64, 4>;
                hopper_f16_am_bn_128x256x64_streamk: Hopper<F16, AlongMn, AlongMn, 128, 256, 64, 3, StreamK>;
                hopper_f16_am_bn_128x256x64_cluster2x1: Hopper<F16, AlongMn, AlongMn, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_f16_am_bn_256x128x64: Hopper<F16, AlongMn, AlongMn, 256, 128, 64, 3>;
                hopper_f16_am_bn_256x192x64: Hopper<F16, AlongMn, AlongMn, 256, 192, 64, 3>;
                hopper_f16_am_bn_256x192x64_cluster1x2: Hopper<F16, AlongMn, AlongMn, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_f16_am_bn_128x192x64: Hopper<F16, AlongMn, AlongMn, 128, 192, 64, 4>;
                hopper_f16_am_bn_128x192x64_cluster2x1: Hopper<F16, AlongMn, AlongMn, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_f16_am_bn_128x192x64_pingpong: Hopper<F16, AlongMn, AlongMn, 128, 192, 64, 4, PingPong>;
                hopper_f16_am_bn_128x128x64: Hopper<F16, AlongMn, AlongMn, 128, 128, 64, 6>;
                hopper_f16_am_bn_128x128x64_pingpong: Hopper<F16, AlongMn, AlongMn, 128, 128, 64, 5, PingPong>;
                hopper_f16_am_bn_128x128x64_streamk: Hopper<F16, AlongMn, AlongMn, 128, 128, 64, 6, StreamK>;
                hopper_f16_am_bn_64x256x64: Hopper<F16, AlongMn, AlongMn, 64, 256, 64, 4>;
                hopper_f16_am_bn_64x128x64: Hopper<F16, AlongMn, AlongMn, 64, 128, 64, 8>;
                hopper_f16_am_bn_128x64x64: Hopper<F16, AlongMn, AlongMn, 128, 64, 64, 8>;
                hopper_f16_am_bn_128x64x64_cluster1x2: Hopper<F16, AlongMn, AlongMn, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_f16_am_bn_64x64x128: Hopper<F16, AlongMn, AlongMn, 64, 64, 128, 6>;
                hopper_f16_am_bn_64x64x64_split2: Hopper<F16, AlongMn, AlongMn, 64, 64, 64, 8, SplitK<2>>;
                hopper_f16_am_bn_64x64x64_split4: Hopper<F16, AlongMn, AlongMn, 64, 64, 64, 8, SplitK<4>>;
                hopper_bf16_ak_bk_128x256x64: Hopper<Bf16, AlongK, AlongK, 128, 256, 64, 3>;
                hopper_bf16_ak_bk_128x256x64_stages4: Hopper<Bf16, AlongK, AlongK, 128, 256, 64, 4>;
                hopper_bf16_ak_bk_128x256x64_streamk: Hopper<Bf16, AlongK, AlongK, 128, 256, 64, 3, StreamK>;
                hopper_bf16_ak_bk_128x256x64_cluster2x1: Hopper<Bf16, AlongK, AlongK, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_bf16_ak_bk_256x128x64: Hopper<Bf16, AlongK, AlongK, 256, 128, 64, 3>;
                hopper_bf16_ak_bk_256x192x64: Hopper<Bf16, AlongK, AlongK, 256, 192, 64, 3>;
                hopper_bf16_ak_bk_256x192x64_cluster1x2: Hopper<Bf16, AlongK, AlongK, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_bf16_ak_bk_128x192x64: Hopper<Bf16, AlongK, AlongK, 128, 192, 64, 4>;
                hopper_bf16_ak_bk_128x192x64_cluster2x1: Hopper<Bf16, AlongK, AlongK, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_bf16_ak_bk_128x192x64_pingpong: Hopper<Bf16, AlongK, AlongK, 128, 192, 64, 4, PingPong>;
                hopper_bf16_ak_bk_128x128x64: Hopper<Bf16, AlongK, AlongK, 128, 128, 64, 6>;
                hopper_bf16_ak_bk_128x128x64_pingpong: Hopper<Bf16, AlongK, AlongK, 128, 128, 64, 5, PingPong>;
                hopper_bf16_ak_bk_128x128x64_streamk: Hopper<Bf16, AlongK, AlongK, 128, 128, 64, 6, StreamK>;
                hopper_bf16_ak_bk_64x256x64: Hopper<Bf16, AlongK, AlongK, 64, 256, 64, 4>;
                hopper_bf16_ak_bk_64x128x64: Hopper<Bf16, AlongK, AlongK, 64, 128, 64, 8>;
                hopper_bf16_ak_bk_128x64x64: Hopper<Bf16, AlongK, AlongK, 128, 64, 64, 8>;
                hopper_bf16_ak_bk_128x64x64_cluster1x2: Hopper<Bf16, AlongK, AlongK, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_bf16_ak_bk_64x64x128: Hopper<Bf16, AlongK, AlongK, 64, 64, 128, 6>;
                hopper_bf16_ak_bk_64x64x64_split2: Hopper<Bf16, AlongK, AlongK, 64, 64, 64, 8, SplitK<2>>;
                hopper_bf16_ak_bk_64x64x64_split4: Hopper<Bf16, AlongK, AlongK, 64, 64, 64, 8, SplitK<4>>;
                hopper_bf16_ak_bn_128x256x64: Hopper<Bf16, AlongK, AlongMn, 128, 256, 64, 3>;
                hopper_bf16_ak_bn_128x256x64_stages4: Hopper<Bf16, AlongK, AlongMn, 128, 256, 64, 4>;
                hopper_bf16_ak_bn_128x256x64_streamk: Hopper<Bf16, AlongK, AlongMn, 128, 256, 64, 3, StreamK>;
                hopper_bf16_ak_bn_128x256x64_cluster2x1: Hopper<Bf16, AlongK, AlongMn, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_bf16_ak_bn_256x128x64: Hopper<Bf16, AlongK, AlongMn, 256, 128, 64, 3>;
                hopper_bf16_ak_bn_256x192x64: Hopper<Bf16, AlongK, AlongMn, 256, 192, 64, 3>;
                hopper_bf16_ak_bn_256x192x64_cluster1x2: Hopper<Bf16, AlongK, AlongMn, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_bf16_ak_bn_128x192x64: Hopper<Bf16, AlongK, AlongMn, 128, 192, 64, 4>;
                hopper_bf16_ak_bn_128x192x64_cluster2x1: Hopper<Bf16, AlongK, AlongMn, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_bf16_ak_bn_128x192x64_pingpong: Hopper<Bf16, AlongK, AlongMn, 128, 192, 64, 4, PingPong>;
                hopper_bf16_ak_bn_128x128x64: Hopper<Bf16, AlongK, AlongMn, 128, 128, 64, 6>;
                hopper_bf16_ak_bn_128x128x64_pingpong: Hopper<Bf16, AlongK, AlongMn, 128, 128, 64, 5, PingPong>;
                hopper_bf16_ak_bn_128x128x64_streamk: Hopper<Bf16, AlongK, AlongMn, 128, 128, 64, 6, StreamK>;
                hopper_bf16_ak_bn_64x256x64: Hopper<Bf16, AlongK, AlongMn, 64, 256, 64, 4>;
                hopper_bf16_ak_bn_64x128x64: Hopper<Bf16, AlongK, AlongMn, 64, 128, 64, 8>;
                hopper_bf16_ak_bn_128x64x64: Hopper<Bf16, AlongK, AlongMn, 128, 64, 64, 8>;
                hopper_bf16_ak_bn_128x64x64_cluster1x2: Hopper<Bf16, AlongK, AlongMn, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_bf16_ak_bn_64x64x128: Hopper<Bf16, AlongK, AlongMn, 64, 64, 128, 6>;
                hopper_bf16_ak_bn_64x64x64_split2: Hopper<Bf16, AlongK, AlongMn, 64, 64, 64, 8, SplitK<2>>;
                hopper_bf16_ak_bn_64x64x64_split4: Hopper<Bf16, AlongK, AlongMn, 64, 64, 64, 8, SplitK<4>>;
                hopper_bf16_am_bk_128x256x64: Hopper<Bf16, AlongMn, AlongK, 128, 256, 64, 3>;
                hopper_bf16_am_bk_128x256x64_stages4: Hopper<Bf16, AlongMn, AlongK, 128, 256, 64, 4>;
                hopper_bf16_am_bk_128x256x64_streamk: Hopper<Bf16, AlongMn, AlongK, 128, 256, 64, 3, StreamK>;
                hopper_bf16_am_bk_128x256x64_cluster2x1: Hopper<Bf16, AlongMn, AlongK, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_bf16_am_bk_256x128x64: Hopper<Bf16, AlongMn, AlongK, 256, 128, 64, 3>;
                hopper_bf16_am_bk_256x192x64: Hopper<Bf16, AlongMn, AlongK, 256, 192, 64, 3>;
                hopper_bf16_am_bk_256x192x64_cluster1x2: Hopper<Bf16, AlongMn, AlongK, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_bf16_am_bk_128x192x64: Hopper<Bf16, AlongMn, AlongK, 128, 192, 64, 4>;
                hopper_bf16_am_bk_128x192x64_cluster2x1: Hopper<Bf16, AlongMn, AlongK, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_bf16_am_bk_128x192x64_pingpong: Hopper<Bf16, AlongMn, AlongK, 128, 192, 64, 4, PingPong>;
                hopper_bf16_am_bk_128x128x64: Hopper<Bf16, AlongMn, AlongK, 128, 128, 64, 6>;
                hopper_bf16_am_bk_128x128x64_pingpong: Hopper<Bf16, AlongMn, AlongK, 128, 128, 64, 5, PingPong>;
                hopper_bf16_am_bk_128x128x64_streamk: Hopper<Bf16, AlongMn, AlongK, 128, 128, 64, 6, StreamK>;
                hopper_bf16_am_bk_64x256x64: Hopper<Bf16, AlongMn, AlongK, 64, 256, 64, 4>;
                hopper_bf16_am_bk_64x128x64: Hopper<Bf16, AlongMn, AlongK, 64, 128, 64, 8>;
                hopper_bf16_am_bk_128x64x64: Hopper<Bf16, AlongMn, AlongK, 128, 64, 64, 8>;
                hopper_bf16_am_bk_128x64x64_cluster1x2: Hopper<Bf16, AlongMn, AlongK, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_bf16_am_bk_64x64x128: Hopper<Bf16, AlongMn, AlongK, 64, 64, 128, 6>;
                hopper_bf16_am_bk_64x64x64_split2: Hopper<Bf16, AlongMn, AlongK, 64, 64, 64, 8, SplitK<2>>;
                hopper_bf16_am_bk_64x64x64_split4: Hopper<Bf16, AlongMn, AlongK, 64, 64, 64, 8, SplitK<4>>;
                hopper_bf16_am_bn_128x256x64: Hopper<Bf16, AlongMn, AlongMn, 128, 256, 64, 3>;
                hopper_bf16_am_bn_128x256x64_stages4: Hopper<Bf16, AlongMn, AlongMn, 128, 256, 64, 4>;
                hopper_bf16_am_bn_128x256x64_streamk: Hopper<Bf16, AlongMn, AlongMn, 128, 256, 64, 3, StreamK>;
                hopper_bf16_am_bn_128x256x64_cluster2x1: Hopper<Bf16, AlongMn, AlongMn, 128, 256, 64, 3, Clusters<2, 1>>;
                hopper_bf16_am_bn_256x128x64: Hopper<Bf16, AlongMn, AlongMn, 256, 128, 64, 3>;
                hopper_bf16_am_bn_256x192x64: Hopper<Bf16, AlongMn, AlongMn, 256, 192, 64, 3>;
                hopper_bf16_am_bn_256x192x64_cluster1x2: Hopper<Bf16, AlongMn, AlongMn, 256, 192, 64, 3, Clusters<1, 2>>;
                hopper_bf16_am_bn_128x192x64: Hopper<Bf16, AlongMn, AlongMn, 128, 192, 64, 4>;
                hopper_bf16_am_bn_128x192x64_cluster2x1: Hopper<Bf16, AlongMn, AlongMn, 128, 192, 64, 4, Clusters<2, 1>>;
                hopper_bf16_am_bn_128x192x64_pingpong: Hopper<Bf16, AlongMn, AlongMn, 128, 192, 64, 4, PingPong>;
                hopper_bf16_am_bn_128x128x64: Hopper<Bf16, AlongMn, AlongMn, 128, 128, 64, 6>;
                hopper_bf16_am_bn_128x128x64_pingpong: Hopper<Bf16, AlongMn, AlongMn, 128, 128, 64, 5, PingPong>;
                hopper_bf16_am_bn_128x128x64_streamk: Hopper<Bf16, AlongMn, AlongMn, 128, 128, 64, 6, StreamK>;
                hopper_bf16_am_bn_64x256x64: Hopper<Bf16, AlongMn, AlongMn, 64, 256, 64, 4>;
                hopper_bf16_am_bn_64x128x64: Hopper<Bf16, AlongMn, AlongMn, 64, 128, 64, 8>;
                hopper_bf16_am_bn_128x64x64: Hopper<Bf16, AlongMn, AlongMn, 128, 64, 64, 8>;
                hopper_bf16_am_bn_128x64x64_cluster1x2: Hopper<Bf16, AlongMn, AlongMn, 128, 64, 64, 8, Clusters<1, 2>>;
                hopper_bf16_am_bn_64x64x128: Hopper<Bf16, AlongMn, AlongMn, 64, 64, 128, 6>;
                hopper_bf16_am_bn_64x64x64_split2: Hopper<Bf16, AlongMn, AlongMn, 64, 64, 64, 8, SplitK<2>>;
                hopper_bf16_am_bn_64x64x64_split4: Hopper<Bf16, AlongMn, AlongMn, 64, 64, 64, 8, SplitK<4>>;
            }
        }
    };
}

/// Defines the kernels of the target being compiled, as functions with one
/// attribute and one ABI:
/// `define_entry_points!(#[unsafe(no_mangle)] extern "ptx-kernel");`
///
/// The calling crate has the features `sm_75`, `sm_80` and `sm_90a`, of which a
/// build enables one. Each function takes a [`GemmParams`](crate::GemmParams) by value.
#[macro_export]
macro_rules! define_entry_points {
    (#[$attribute:meta] extern $abi:literal) => {
        #[allow(unused_imports, reason = "a build of the probes has no kernel")]
        use $crate::entry::names::*;
        $crate::for_each_entry!($crate::define_entry_points, (#[$attribute] extern $abi));
    };
    (
        (#[$attribute:meta] extern $abi:literal)
        $($arch:literal { $($name:ident: $kernel:ty;)* })*
    ) => {$($(
        /// # Safety
        /// See `gpu_kernels::kernel::Kernel::run`.
        #[cfg(feature = $arch)]
        #[$attribute]
        pub unsafe extern $abi fn $name(params: $crate::GemmParams) {
            // SAFETY: the launcher's duty.
            unsafe { <$kernel as $crate::kernel::Kernel>::run(&params) }
        }
    )*)*};
}

#[cfg(all(target_arch = "nvptx64", feature = "standalone"))]
define_entry_points!(#[unsafe(no_mangle)] extern "ptx-kernel");

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! define_table {
    (() $($arch:literal { $($name:ident: $kernel:ty;)* })*) => {
        /// Every kernel there is, in the order of the list.
        pub const KERNELS: &[KernelInfo] = &[$($(
            KernelInfo { name: stringify!($name), ..<$kernel as Kernel>::INFO },
        )*)*];
    };
}

#[cfg(not(target_arch = "nvptx64"))]
use crate::kernel::{Kernel, KernelInfo};
#[cfg(not(target_arch = "nvptx64"))]
use names::*;
#[cfg(not(target_arch = "nvptx64"))]
for_each_entry!(define_table, ());

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
macro_rules! define_functions {
    (() $($arch:literal { $($name:ident: $kernel:ty;)* })*) => {
        /// What each entry point calls, in the order of [`KERNELS`]. A constant: who
        /// uses it compiles all of them, and nobody else any.
        pub const FUNCTIONS: &[unsafe fn(&crate::problem::GemmParams)] = &[$($(
            <$kernel as Kernel>::run,
        )*)*];
    };
}

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
for_each_entry!(define_functions, ());
