//! Not a step of the ladder: `placement` tells on which SM a GPU runs each CTA of a launch.
//!
//! The host learns from it which clusters of a launch share a GPC
//! ([`GemmParams::cluster_ids`](crate::GemmParams::cluster_ids)). A CTA takes more than half of
//! the shared memory of an SM and stays for a while, so that no two have the same SM until all SMs
//! are taken.

use crate::cluster::Cluster;
use crate::dtype::DType;
use crate::isa::{global, thread};
use crate::kernel::{Arch, Block, Family, Kernel, KernelInfo};
use crate::problem::{GemmParams, MapAddress};

/// More than half of the shared memory of an SM, bytes.
const SHARED_BYTES: u32 = 128 << 10;

/// How long a CTA stays, in nanoseconds: some ten times what the launch of all CTAs takes.
const STAYS: u32 = 20_000;

/// Writes the index of the SM of each CTA to `c`, a u32 for each, in launches with clusters of
/// `CTAS` CTAs.
pub struct Placement<const CTAS: u32>;

impl<const CTAS: u32> Kernel for Placement<CTAS> {
    const INFO: KernelInfo = KernelInfo {
        cluster: Cluster {
            m: CTAS,
            ..Cluster::NONE
        },
        shared_bytes: SHARED_BYTES,
        ..KernelInfo::new(
            Family::Placement,
            Arch::Sm90a,
            DType::F32,
            Block { m: 1, n: 1, k: 1 },
            32,
        )
    };

    #[inline(always)]
    unsafe fn run(params: &GemmParams, _: MapAddress) {
        if thread::thread_index() == 0 {
            let address = params.c.address + 4 * thread::cta_position().x as u64;
            // SAFETY: `c` has a u32 for each CTA.
            unsafe { global::store_u32(address, thread::sm_index()) };
        }
        thread::wait_for(STAYS);
    }
}
