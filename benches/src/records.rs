//! What was measured: records, their files, and row-major order against another order.

pub mod comparison;
pub mod files;
pub mod record;
