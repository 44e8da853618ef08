//! How a candidate is measured: on which machine and data, whether its result is right, in
//! which order, for how long, and at which clock.

pub mod batch;
pub mod cuda_graph;
pub mod inputs;
pub mod interval;
pub mod machine;
pub mod memset;
pub mod peak;
pub mod power;
pub mod problem_data;
pub mod regime;
pub mod result_check;
pub mod stats;
pub mod turns;
pub mod watch;
