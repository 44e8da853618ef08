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
