//! What an order asks of L2 and DRAM, as numbers for a page.

use tilewise_model::{Machine, Traffic, traffic};

use crate::Query;

/// The names of what [`figures`] returns, in its order. The page gets the names with
/// its data, so that they are written down once.
pub const FIGURES: [&str; 5] = [
    // Bytes that travel from L2 to the SMs.
    "l2_read_bytes",
    // Requests that L2 answers itself, 0 to 1.
    "l2_hit_rate",
    "dram_read_bytes",
    "dram_write_bytes",
    // A lower bound on the time.
    "seconds",
];

/// The model's figures for `query`, named by [`FIGURES`].
pub fn figures(query: &Query) -> [f64; FIGURES.len()] {
    let machine = Machine {
        ctas: query.gpu.sms,
        l2_bytes: query.gpu.l2_bytes,
    };
    let traffic = traffic(&query.workload, query.order, machine);
    let Traffic {
        l2_to_sm_bytes,
        dram_read_bytes,
        c_write_bytes,
        ..
    } = traffic;
    let dram_bytes = (dram_read_bytes + c_write_bytes) as f64;
    [
        l2_to_sm_bytes as f64,
        traffic.hit_rate(),
        dram_read_bytes as f64,
        c_write_bytes as f64,
        dram_bytes / query.gpu.dram_bytes_per_second,
    ]
}
