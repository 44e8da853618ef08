//! The measuring side of tilewise: what is compared, how, and how it is reported.

pub mod choice;
pub mod cli;
pub mod error;
pub mod peak;
pub mod record;
pub mod report;
pub mod shape;
pub mod stats;
