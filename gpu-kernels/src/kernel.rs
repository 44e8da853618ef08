//! The constants of one kernel that host, build and device share.
//!
//! A kernel is a type that implements [`Kernel`]; its block shape, thread
//! count, stages and shared memory are constants of that type. The rest of the
//! project reads them from [`KernelInfo`]: the launcher (grid, block, dynamic
//! shared memory), the PTX post-processing (`.maxntid`, `.minnctapersm`,
//! `.reqnctapercluster`) and the tables of `cargo xtask ptx`.

use crate::cluster::Cluster;
use crate::dtype::{DType, Major};
use crate::schedule::Schedule;

/// The steps of the ladder, and the kernels that prepare operands for them or finish their sums.
/// Each step leaves the steps before it runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Computes no product: copies a matrix into a layout that the other kernels can read.
    Pack,
    /// Computes no product: splits f32 elements into parts that the other kernels multiply.
    Split,
    /// Computes no product: adds the sums that [`Schedule::SplitK`] leaves, and stores C.
    Reduce,
    /// Computes no product: tells on which SM each CTA of a launch runs.
    Placement,
    /// One thread computes one element of C.
    Naive,
    /// Shared-memory tiles and register tiles on the CUDA cores.
    Tiled,
    /// `ldmatrix` and `mma.sync`, with copies by `cp.async` or, on sm_75, through registers.
    TensorCore,
    /// TMA, mbarrier ring, `wgmma`, warp specialisation.
    Hopper,
}

impl Family {
    /// The name used in entry points, tables and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Pack => "pack",
            Family::Split => "split",
            Family::Reduce => "reduce",
            Family::Placement => "placement",
            Family::Naive => "naive",
            Family::Tiled => "tiled",
            Family::TensorCore => "tensor_core",
            Family::Hopper => "hopper",
        }
    }

    /// Whether its kernels compute products.
    pub const fn multiplies(self) -> bool {
        !matches!(
            self,
            Family::Pack | Family::Split | Family::Reduce | Family::Placement
        )
    }
}

/// The PTX target a kernel is compiled for: the oldest that has its
/// instructions. `sm_75` and `sm_80` code also runs on all newer GPUs;
/// `sm_90a` runs on compute capability 9.0 alone (PTX ISA, "`.target`").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// Turing.
    Sm75,
    /// Ampere.
    Sm80,
    /// Hopper, with its architecture-specific instructions.
    Sm90a,
}

impl Arch {
    /// All targets, oldest first.
    pub const ALL: [Arch; 3] = [Arch::Sm75, Arch::Sm80, Arch::Sm90a];

    /// The name `rustc -C target-cpu` and `ptxas -arch` use.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::Sm75 => "sm_75",
            Arch::Sm80 => "sm_80",
            Arch::Sm90a => "sm_90a",
        }
    }

    /// Whether code for this target runs on compute capability `major.minor`.
    pub const fn runs_on(self, major: u32, minor: u32) -> bool {
        match self {
            Arch::Sm75 => major > 7 || (major == 7 && minor >= 5),
            Arch::Sm80 => major >= 8,
            Arch::Sm90a => major == 9 && minor == 0,
        }
    }
}

/// The part of C one CTA computes, and the depth of one k-block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    /// BLOCK_M: rows of C a CTA computes.
    pub m: u32,
    /// BLOCK_N: columns of C a CTA computes.
    pub n: u32,
    /// BLOCK_K: depth of one k-block.
    pub k: u32,
}

/// One instantiation of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name; unique.
    pub name: &'static str,
    /// The PTX entry point. Kernels that differ in the shape of their clusters alone have the same,
    /// and the [form](crate::Form::cluster) of a launch has the shape.
    pub entry: &'static str,
    /// The kernels that it is compiled together with ([`entry`](crate::entry)).
    pub codegen_unit: &'static str,
    /// The step of the ladder that it instantiates.
    pub family: Family,
    /// The PTX target it is compiled for.
    pub arch: Arch,
    /// Element type of A and B. C is that type or f32, chosen at launch.
    pub input: DType,
    /// Whether C must have elements as wide as those of A and B, and be stored through TMA.
    pub c_by_tma_only: bool,
    /// Whether C must be contiguous along M. Such kernels also store through TMA only.
    pub c_along_m: bool,
    /// Whether launches may divide the lines of A, or of B where C is contiguous along M, into
    /// classes ([`hopper::line_classes`](crate::kernels::hopper::line_classes)).
    pub line_classes: bool,
    /// Whether it takes every [`Form`](crate::Form). Other kernels compute single products
    /// that are stored as they are.
    pub fused: bool,
    /// CTA tile.
    pub block: Block,
    /// The layout of A it reads; `None` for any strides.
    pub a_major: Option<Major>,
    /// The layout of B it reads; `None` for any strides.
    pub b_major: Option<Major>,
    /// CTAs that form one cluster.
    pub cluster: Cluster,
    /// Whether a CTA's consumer warpgroups alternate at tiles, so that one
    /// multiplies while the other stores.
    pub ping_pong: bool,
    /// Whether it loads operands through TMA. A hopper kernel that does not takes operands of any
    /// strides.
    pub loads_by_tma: bool,
    /// Consumer warpgroups of a CTA; 0 for kernels without warp specialisation.
    pub consumers: u32,
    /// Columns of C that a consumer computes: those of the CTA's tile, or half of them where consumers
    /// divide its columns instead of its rows.
    pub consumer_n: u32,
    /// Threads a CTA (`.maxntid`).
    pub threads: u32,
    /// CTAs an SM must hold at once (`.minnctapersm`); bounds registers.
    pub ctas_per_sm: u32,
    /// Depth of the shared-memory pipeline.
    pub stages: u32,
    /// Shared memory of the pipeline of a hopper kernel, bytes; 0 for the others.
    pub pipeline_bytes: u32,
    /// Shared memory in which the consumers of a hopper kernel stage C, bytes; 0 for the
    /// others.
    pub staging_bytes: u32,
    /// Dynamic shared memory of one CTA, bytes.
    pub shared_bytes: u32,
    /// Device memory for each CTA, or cluster, that shares tiles under [`Schedule::StreamK`] or
    /// [`Schedule::SplitK`], bytes; 0 for kernels that share none.
    pub stream_k_bytes: u32,
    /// Whether it stores no C: it leaves its sums for [`Family::Reduce`], which computes the
    /// epilogue.
    pub leaves_sums: bool,
}

impl KernelInfo {
    /// A kernel without clusters, shared memory and layouts of its own, for the list of kernels and
    /// the kernel's type to fill in.
    pub const fn new(family: Family, arch: Arch, input: DType, block: Block, threads: u32) -> Self {
        KernelInfo {
            name: "",
            entry: "",
            codegen_unit: "",
            family,
            arch,
            input,
            c_by_tma_only: false,
            c_along_m: false,
            line_classes: false,
            fused: true,
            block,
            a_major: None,
            b_major: None,
            cluster: Cluster::NONE,
            ping_pong: false,
            loads_by_tma: false,
            consumers: 0,
            consumer_n: block.n,
            threads,
            ctas_per_sm: 1,
            stages: 1,
            pipeline_bytes: 0,
            staging_bytes: 0,
            shared_bytes: 0,
            stream_k_bytes: 0,
            leaves_sums: false,
        }
    }

    /// Refuses a cluster that the kernel cannot run in, at compile time.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const fn check_cluster(&self) {
        let Cluster { m, n, .. } = self.cluster;
        if !self.family.multiplies() {
            return;
        }
        assert!(m.is_power_of_two() && n.is_power_of_two());
        assert!(
            self.cluster.ctas() <= 8,
            "the largest cluster every Hopper GPU can launch"
        );
        assert!(
            self.block.m.is_multiple_of(n) && self.block.n.is_multiple_of(m),
            "CTAs that share a tile load equal parts of it"
        );
        assert!(
            !matches!(self.family, Family::Hopper)
                || self.block.m / n <= 256 && self.block.n / m <= 256,
            "a TMA box has at most 256 rows"
        );
        assert!(
            !self.fused || m == 1 || matches!(self.b_major, Some(Major::K)),
            "the loads of pairs of columns do not divide boxes along K"
        );
    }

    /// Whether it takes [gated](crate::Form::gated) forms.
    pub const fn takes_gated(&self) -> bool {
        matches!(self.family, Family::Hopper)
            && self.fused
            && self.input.parts() == 1
            && self.block.n.is_multiple_of(128)
    }

    /// Whether consumers divide the columns of a tile, and not its rows.
    pub const fn divides_columns(&self) -> bool {
        self.consumer_n < self.block.n
    }

    /// m64 tiles of C that a consumer accumulates at a time; 0 for kernels without warp specialisation.
    pub const fn m64_tiles(&self) -> u32 {
        if self.consumers == 0 {
            return 0;
        }
        let at_a_tile = if self.ping_pong { 1 } else { self.consumers };
        self.block.m * self.block.n / (64 * self.consumer_n * at_a_tile)
    }

    /// Rows and columns of C that one cluster computes; without clusters, one CTA.
    pub const fn cluster_tile(&self) -> (u32, u32) {
        (self.block.m * self.cluster.m, self.block.n * self.cluster.n)
    }

    /// Whether it adds the sums that `product` leaves under split-K.
    pub fn adds_sums_of(&self, product: &KernelInfo) -> bool {
        self.family == Family::Reduce && (self.block.m, self.block.n) == product.cluster_tile()
    }

    /// Whether it can run under `schedule`: kernels with clusters need a 1-D grid, kernels for
    /// stream-K run under stream-K and split-K only, and those that leave their sums under the latter.
    /// A kernel that packs has a CTA for each tile.
    pub const fn runs_under(&self, schedule: Schedule) -> bool {
        match schedule {
            _ if matches!(self.family, Family::Pack) => matches!(schedule, Schedule::Grid1d),
            Schedule::Grid2d => self.stream_k_bytes == 0 && self.cluster.ctas() == 1,
            Schedule::Grid1d | Schedule::Persistent => self.stream_k_bytes == 0,
            Schedule::StreamK => self.stream_k_bytes > 0 && !self.leaves_sums,
            Schedule::SplitK => self.stream_k_bytes > 0,
        }
    }
}

/// A kernel: its constants, and the function that runs it.
pub trait Kernel {
    /// All constants but the name, which the entry list gives.
    const INFO: KernelInfo;

    /// One thread's share of one launch.
    ///
    /// # Safety
    /// The thread runs on the device, in a launch as [`Kernel::INFO`] says, and the
    /// parameters describe live allocations. `maps` are the launch's tensor maps.
    unsafe fn run(params: &crate::problem::GemmParams, maps: crate::problem::MapAddress);
}
