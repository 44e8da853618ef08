//! What an order asks of L2 and DRAM, as numbers for a page.

use tilewise_model::{Limit, Traffic, bound, traffic};

use crate::Query;

/// The names of what [`figures`] returns, in its order. The page gets the names with
/// its data, so that they are written down once.
pub const FIGURES: [&str; 6] = [
    // Bytes that travel from L2 to the SMs.
    "l2_read_bytes",
    // Share of them that L2 has, 0 to 1.
    "l2_hit_rate",
    "dram_read_bytes",
    "dram_write_bytes",
    // A lower bound on the time.
    "seconds",
    // Where it comes from: place in [`LIMITS`].
    "bound_by",
];

/// What can bind, in the order of the figure `bound_by`.
pub const LIMITS: [Limit; 3] = [Limit::TensorCores, Limit::L2, Limit::Dram];

/// The model's figures for `query`, named by [`FIGURES`].
pub fn figures(query: &Query) -> [f64; FIGURES.len()] {
    let traffic = traffic(&query.workload, query.order, query.gpu.machine(1));
    let Traffic {
        l2_to_sm_bytes,
        dram_read_bytes,
        c_write_bytes,
        ..
    } = traffic;
    let bound = bound(&query.workload, &traffic, &query.gpu);
    let place = LIMITS.iter().position(|&limit| limit == bound.limit);
    [
        l2_to_sm_bytes as f64,
        traffic.hit_rate(),
        dram_read_bytes as f64,
        c_write_bytes as f64,
        bound.seconds,
        place.map_or(f64::NAN, |place| place as f64),
    ]
}
