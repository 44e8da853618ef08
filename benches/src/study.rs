//! The study: which tile order is fastest, and whether the model of L2 and the library's choice
//! know it.
//!
//! Times are those of [`crate::runner`], bytes those of Nsight Compute's counters. Both
//! become rows of [`row::StudyRow`], the CSV of `docs/study/`; the report is made from the rows
//! alone, so that it can be made again from the file: `--from`.
//!
//! | module | question it answers |
//! |---|---|
//! | [`study_arguments`], [`products`], [`sweep`], [`picks`] | what is measured, and who would pick which order? |
//! | [`collect`], [`tuned`] | how long does it take? |
//! | [`ncu`], [`counters`] | how many bytes move? |
//! | [`row`], [`row_store`] | what is a row, and where are they kept? |
//! | [`predict`], [`gpus`] | what does the model say? |
//! | [`groups`], [`accuracy`], [`rules`], [`findings`] | what follows? |

pub mod accuracy;
pub mod collect;
pub mod counters;
pub mod findings;
pub mod gpus;
pub mod groups;
pub mod ncu;
pub mod picks;
pub mod predict;
pub mod products;
pub mod row;
pub mod row_store;
pub mod rules;
pub mod study_arguments;
pub mod sweep;
pub mod tuned;
