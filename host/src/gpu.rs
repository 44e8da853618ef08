//! GPUs: everything between a [`Choice`](crate::select::Choice) and a launch.
//!
//! A plan loads its kernels, allocates workspaces, encodes tensor maps and launches. It
//! does so through one trait, [`Backend`](backend::Backend), which the CUDA driver and
//! the emulator implement; all other code is the same for both.
//!
//! | module | contents |
//! |---|---|
//! | [`opened`] | one opened GPU: its properties, its backend, whether it is overdue |
//! | [`placement`] | which clusters of a launch share a GPC |
//! | [`backend`] | the trait [`Backend`](backend::Backend) |
//! | `driver` | the backend for the CUDA driver |
//! | `emulated` | the backend for the emulator (feature `emulator`) |
//! | [`stream`] | streams of the driver |
//! | [`current`] | the context that is current on a thread |
//! | [`buffer`] | memory that is freed on drop |
//! | [`tensor_map`] | the description of a matrix from which a tensor map is encoded |
//! | [`hopper_maps`] | the three tensor maps of a hopper launch |
//! | [`pack`] | the launch that copies an operand for TMA |
//! | [`epilogue`] | the epilogue of one run, as a launch takes it |
//! | [`product`] | one launch of a product |
//! | [`gates`] | the first launch of a gated product that takes two |
//! | [`plan`] | a product, ready to launch |
//! | [`run_order`] | a plan's runs on several streams, one after the other |
//! | [`sums`] | the workspace of stream-K |
//! | [`stopwatch`] | timing of work on a GPU |
//! | [`wait`] | waiting with a time limit |

pub(crate) mod backend;
pub(crate) mod buffer;
pub(crate) mod current;
mod driver;
#[cfg(feature = "emulator")]
pub(crate) mod emulated;
pub(crate) mod epilogue;
mod gates;
mod hopper_maps;
pub(crate) mod opened;
pub(crate) mod operand_launch;
pub(crate) mod pack;
mod placement;
pub(crate) mod plan;
mod product;
mod reduce;
mod run_order;
mod split;
pub(crate) mod stopwatch;
pub(crate) mod stream;
mod sums;
pub(crate) mod tensor_map;
pub(crate) mod wait;

pub(crate) use driver::open::{count, open};
