//! Records as tables for a terminal.

pub mod comparison_table;
pub mod invariance_cost;
pub mod record_tables;
pub mod suite_summary;
pub mod tuning_gain;
