//! The sweep: every kernel on problems drawn from a seed, and what the rule behind
//! [`tilewise::select`] loses against the best of them.
//!
//! The rule is asked anew for every report, so one set of measurements judges any number of
//! changes to the rule. Its constants are fitted on the problems of even index; those of odd
//! index are held out.

pub mod choices;
pub mod menu;
pub mod outcome;
pub mod report;
pub mod row;
pub mod sweep_arguments;
