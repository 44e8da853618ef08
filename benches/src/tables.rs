//! Records as tables for a terminal.

pub mod comparison;
pub mod records;
pub mod suite_summary;
pub mod tuning;
