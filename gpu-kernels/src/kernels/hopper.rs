//! Step 4, `hopper`: the kernel that the H100 and H200 were built for. It uses TMA, an
//! mbarrier pipeline, `wgmma` and warp specialisation.
//!
//! ```text
//!            global memory
//!                 │ TMA (zero-fills past the edges)
//!   producer ─────┤                 one thread of warpgroup 0
//!                 ▼
//!   pipeline of STAGES × (A tile, B tile) in shared memory, 128-byte swizzle
//!       full[s]: the bytes have landed      empty[s]: all have read them
//!                 │ wgmma, accumulators in registers
//!   consumers ────┤                 one to three warpgroups
//!                 ▼
//!   staging ── some tiles of C at a time ── TMA store, or masked stores
//! ```
//!
//! # The ladder
//!
//! Read [`cooperative`] first: it is the whole kernel, from set-up to store. Each further
//! rung is one idea, a kernel schedule in a file of its own, over the same parts.
//!
//! | rung | idea | gained on an H200, × cuBLAS or cuBLASLt (`docs/perf-log.md`) |
//! |---|---|---|
//! | 1 [`cooperative`] | a producer, two consumers that share the rows of a tile | 4096³: 0.99 on its first run ("First contact") |
//! | 2 [`ping_pong`] | the consumers alternate at tiles: one stores, one multiplies | 8192×8192×1024 cold, 128×192: 0.94 → 1.00 ("Ping-pong, and k-blocks of 128") |
//! | 3 [`cluster`] | CTAs multicast the tiles they share to each other | 3000³ cold, 128×256: 0.66 → 0.74 ("Requests that meet, and what multicast is for") |
//! | 4 [`split_k`] | the CTAs of a cluster split the K of a tile | 16×1024×8192 cold, 64×64: 0.52 → 0.94 ("Two ideas that did not pay, and one that did") |
//! | 5 [`stream_k`] | CTAs share the tiles of the last wave | 3072³ cold, 128×256: 0.77 → 0.86 ("Stream-K for the last wave") |
//! | 6 [`unaligned`] | producers load through registers what TMA cannot read | 966×137×75 cold: 0.71 → 0.99 ("Operands that TMA cannot read") |
//! | 7 [`split_k_parallel`] | clusters split the K of a tile, and a second launch adds their sums | 488×1528×11832 tn cold: 0.81 → 0.99 ("Split-K over clusters") |
//!
//! | part | what it holds |
//! |---|---|
//! | [`traits`] | the constants of one kernel, and what a kernel schedule is |
//! | [`shared_memory`] | where everything stands in shared memory |
//! | [`pipeline`] | the ring of stages, and its signals between producer and consumers |
//! | [`tma_load`] | the boxes that fill a stage |
//! | [`main_loop`] | the multiplies of a consumer's part of a tile |
//! | [`line_classes`] | the rows of A whose lines begin at the same place in a cache line, as a batch |
//! | [`origin`] | where the tile of a CTA begins |
//! | [`parts`] | the main loop for f32 elements in two parts |
//! | [`registers`] | the main loop for TF32 where A is contiguous along M |
//! | [`epilogue`] | from accumulators to C |
//! | [`fusion`] | the formula of the epilogue, on a lane's accumulators |
//!
//! CUTLASS's warp-specialised kernels and DeepGEMM have the same parts; the instructions
//! are specified in the PTX ISA, sections `wgmma`, `cp.async.bulk.tensor`,
//! `mbarrier` and `setmaxnreg`.

pub mod cluster;
pub mod cooperative;
pub mod epilogue;
pub mod fusion;
pub mod line_classes;
pub mod main_loop;
pub mod origin;
pub mod parts;
pub mod ping_pong;
pub mod pipeline;
pub mod registers;
pub mod shared_memory;
pub mod split_k;
pub mod split_k_parallel;
pub mod stream_k;
pub mod tma_load;
pub mod traits;
pub mod unaligned;

use core::marker::PhantomData;

use crate::dtype::Contiguous;
use crate::dtype::ElementType;
use crate::isa::warpgroup::WARPGROUP;
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};
use shared_memory::SharedMemory;
use traits::{Columns, KernelSchedule, KernelTraits, Width};

pub use cluster::Clusters;
pub use cooperative::Cooperative;
pub use epilogue::store_rows;
pub use ping_pong::PingPong;
pub use split_k::SplitK;
pub use split_k_parallel::SplitKParallel;
pub use stream_k::StreamK;
pub use tma_load::{box_depth, box_rows, last_box_rows};
pub use traits::{MAX_M64_TILES, last_cols};
pub use unaligned::{Unaligned, UnalignedSplitK, UnalignedSplitKParallel};

/// The Hopper kernel. `T` is f16, bf16, TF32 (which requires B contiguous along K) or f16x3 (which
/// requires both operands contiguous along K); `A` and `B` are the layouts of the operands; a CTA
/// computes `M`×`N` of C in k-blocks of `K`; the pipeline holds `STAGES` k-blocks; `S` is the
/// kernel schedule; `FUSED` says whether it has the whole epilogue, and `C_ALONG_M` whether C is
/// contiguous along M; a consumer computes `CONSUMER_N` columns, all or half of them.
pub struct Hopper<
    T,
    A,
    B,
    const M: u32,
    const N: u32,
    const K: u32,
    const STAGES: u32,
    S = Cooperative,
    const FUSED: bool = true,
    const C_ALONG_M: bool = false,
    const CONSUMER_N: u32 = N,
>(PhantomData<(T, A, B, S)>);

impl<
    T,
    A,
    B,
    const M: u32,
    const N: u32,
    const K: u32,
    const STAGES: u32,
    S,
    const FUSED: bool,
    const C_ALONG_M: bool,
    const CONSUMER_N: u32,
> KernelTraits for Hopper<T, A, B, M, N, K, STAGES, S, FUSED, C_ALONG_M, CONSUMER_N>
where
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    Columns<CONSUMER_N>: Width,
    S: KernelSchedule,
{
    type Element = T;
    type A = A;
    type B = B;
    type Accumulator = <Columns<CONSUMER_N> as Width>::Accumulator;
    type Schedule = S;
    const BLOCK_M: u32 = M;
    const BLOCK_N: u32 = N;
    const BLOCK_K: u32 = K;
    const STAGES: u32 = STAGES;
    const FUSED: bool = FUSED;
    const C_ALONG_M: bool = C_ALONG_M;
}

impl<
    T,
    A,
    B,
    const M: u32,
    const N: u32,
    const K: u32,
    const STAGES: u32,
    S,
    const FUSED: bool,
    const C_ALONG_M: bool,
    const CONSUMER_N: u32,
> Kernel for Hopper<T, A, B, M, N, K, STAGES, S, FUSED, C_ALONG_M, CONSUMER_N>
where
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    Columns<CONSUMER_N>: Width,
    S: KernelSchedule,
{
    const INFO: KernelInfo = {
        let () = <Self as KernelTraits>::VALID;
        KernelInfo {
            c_by_tma_only: Self::STORES_BY_TMA_ONLY,
            c_along_m: C_ALONG_M,
            line_classes: Self::HAS_LINE_CLASSES,
            a_major: Some(A::MAJOR),
            b_major: Some(B::MAJOR),
            cluster: S::CLUSTER,
            fused: FUSED,
            loads_by_tma: S::LOADS_BY_TMA,
            ping_pong: S::PING_PONG,
            consumers: Self::CONSUMERS,
            consumer_n: CONSUMER_N,
            stages: STAGES,
            pipeline_bytes: SharedMemory::<Self>::PIPELINE_BYTES,
            staging_bytes: SharedMemory::<Self>::STAGING_BYTES,
            shared_bytes: SharedMemory::<Self>::BYTES,
            stream_k_bytes: if S::STREAM_K || S::LEAVES_SUMS {
                stream_k::part_bytes(M * S::CLUSTER.m, N * S::CLUSTER.n)
            } else {
                0
            },
            leaves_sums: S::LEAVES_SUMS,
            ..KernelInfo::new(
                Family::Hopper,
                Arch::Sm90a,
                T::DTYPE,
                Block { m: M, n: N, k: K },
                WARPGROUP * (S::PRODUCERS + Self::CONSUMERS),
            )
        }
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, maps: MapAddress) {
        // SAFETY: the caller's duty.
        unsafe { S::run::<Self>(params, maps) }
    }
}
