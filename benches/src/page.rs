//! The HTML page: an explorer of tile orders, the study's measurements and the benchmark's
//! records, in one file that needs no network.

pub mod data;
pub mod html;
