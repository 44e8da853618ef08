//! How many CTAs form a cluster, and what they share ([`Cluster`]).

/// CTAs that work together (PTX ISA, "Cluster of Cooperative Thread Arrays").
///
/// `m` × `n` CTAs work on adjacent tiles and share their loads: CTAs side by side need the
/// same rows of A, and CTAs above each other need the same columns of B. `k` CTAs work on
/// one tile, each on its part of K, and add up their accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cluster {
    /// CTAs along M.
    pub m: u32,
    /// CTAs along N.
    pub n: u32,
    /// CTAs along K.
    pub k: u32,
}

impl Cluster {
    /// No cluster: a CTA by itself.
    pub const NONE: Cluster = Cluster { m: 1, n: 1, k: 1 };

    /// Number of CTAs.
    pub const fn ctas(self) -> u32 {
        self.m * self.n * self.k
    }

    /// Whether CTAs share loads of A and loads of B, each with other CTAs.
    pub const fn shares_both(self) -> bool {
        self.m > 1 && self.n > 1
    }

    /// CTAs whose loads are shared.
    pub const fn sharing(self) -> u32 {
        self.m * self.n
    }
}

/// The logarithms to base 2 of the numbers of CTAs of a cluster that share loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ClusterShape {
    /// Of the CTAs along M.
    pub log2_m: u8,
    /// Of the CTAs along N.
    pub log2_n: u8,
}

impl ClusterShape {
    /// CTAs share no loads.
    pub const NONE: ClusterShape = ClusterShape {
        log2_m: 0,
        log2_n: 0,
    };

    /// The shape of `cluster`, whose numbers of CTAs are powers of two.
    pub const fn of(cluster: Cluster) -> Self {
        ClusterShape {
            log2_m: cluster.m.ilog2() as u8,
            log2_n: cluster.n.ilog2() as u8,
        }
    }

    /// Whether several CTAs along M share loads of B.
    #[inline(always)]
    pub const fn shares_b(self) -> bool {
        is_several(self.log2_m)
    }

    /// Whether several CTAs along N share loads of A.
    #[inline(always)]
    pub const fn shares_a(self) -> bool {
        is_several(self.log2_n)
    }

    /// A cluster of this shape whose CTAs do not split K.
    #[inline(always)]
    pub const fn cluster(self) -> Cluster {
        Cluster {
            m: 1 << self.log2_m,
            n: 1 << self.log2_n,
            k: 1,
        }
    }
}

/// Whether 2 to the power of `log2`, up to 8, is more than 1.
///
/// `log2 != 0` says the same, but LLVM compares it as a 16-bit part of the eight bytes that it loads, and
/// ptxas makes no constant of that when the eight bytes are one: 64×64 tiles in clusters of 2×4 then
/// took 5 to 12 % longer where K is short, for a branch at each box.
const fn is_several(log2: u8) -> bool {
    (0b1110_u32 >> log2 as u32) & 1 != 0
}

/// The ids that the clusters of a launch take, by their index in the launch grid: a permutation of the
/// indices.
///
/// A GPU deals clusters to its GPCs in turn, so clusters with consecutive indices do not share a GPC.
/// Requests of one GPC for the same line that meet on their way to L2 are made once. So the host lets
/// the clusters of a GPC have the ids of tiles that lie together, or of one part of such tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ClusterIds(pub [u8; ClusterIds::MAX as usize]);

impl ClusterIds {
    /// Most clusters of a launch that can have other ids than their indices: more than a GPU with 132
    /// SMs runs at once.
    pub const MAX: u32 = 72;

    /// Every cluster has its index.
    pub const INDICES: ClusterIds = {
        let mut ids = [0; ClusterIds::MAX as usize];
        let mut index = 0;
        while index < ids.len() {
            ids[index] = index as u8;
            index += 1;
        }
        ClusterIds(ids)
    };
}
