//! What the consumers of a CTA, and the CTAs of a launch, do together.
//!
//! Consumers either share the rows of a tile ("cooperative" in CUTLASS) or take
//! turns at whole tiles ("ping-pong"). CTAs work alone, share loads, or share a
//! tile's K: within a cluster, or by stream-K.

use crate::kernel::Cluster;

/// One way of working together, as a type parameter of
/// [`Hopper`](super::Hopper).
pub trait Form {
    /// CTAs that form a cluster.
    const CLUSTER: Cluster = Cluster::NONE;
    /// Whether CTAs share the tiles of the last wave by
    /// [`Schedule::StreamK`](crate::Schedule), and run under that alone: the walk
    /// over parts of tiles would cost the others registers and instructions in the
    /// main loop.
    const STREAM_K: bool = false;
    /// Whether the two consumers take turns: each computes every other tile, all
    /// of it, so that one multiplies while the other stores.
    const PING_PONG: bool = false;
}

/// Consumers share the rows of a tile; CTAs work alone.
pub struct Cooperative;

impl Form for Cooperative {}

/// Consumers take turns at tiles; CTAs work alone.
pub struct PingPong;

impl Form for PingPong {
    const PING_PONG: bool = true;
}

/// CTAs on adjacent tiles share their loads: `DOWN` along M those of B, `ACROSS`
/// along N those of A.
pub struct Clusters<const DOWN: u32, const ACROSS: u32>;

impl<const DOWN: u32, const ACROSS: u32> Form for Clusters<DOWN, ACROSS> {
    const CLUSTER: Cluster = Cluster {
        m: DOWN,
        n: ACROSS,
        k: 1,
    };
}

/// The CTAs of a cluster split the K of one tile, for products with fewer tiles
/// than SMs.
pub struct SplitK<const CTAS: u32>;

impl<const CTAS: u32> Form for SplitK<CTAS> {
    const CLUSTER: Cluster = Cluster {
        m: 1,
        n: 1,
        k: CTAS,
    };
}

/// CTAs share the tiles of the last wave.
pub struct StreamK;

impl Form for StreamK {
    const STREAM_K: bool = true;
}
