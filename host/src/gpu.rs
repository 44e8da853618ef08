//! GPUs: everything between a choice of the selection and a launch.
//!
//! A plan loads its kernels, allocates workspaces, encodes tensor maps and launches. It
//! does so through one seam, [`Backend`](backend::Backend), behind which stands the CUDA
//! driver or the emulator; everything above the seam is the same code for both.
//!
//! | module | what |
//! |---|---|
//! | [`opened`] | one opened GPU: what it is, its backend, whether it is overdue |
//! | [`backend`] | the seam |
//! | `driver` | behind it, the CUDA driver |
//! | `emulated` | behind it, the emulator (feature `emulator`) |
//! | [`buffer`] | memory that is freed on drop |
//! | [`tensor_map`] | what a tensor map says of a matrix |
//! | [`hopper_maps`] | the three tensor maps of a hopper launch |
//! | [`pack`] | the launch that copies an operand for TMA |
//! | [`plan`] | a product, ready to launch |
//! | [`stopwatch`] | how long work takes |
//! | [`wait`] | waiting no longer than a limit |

pub(crate) mod backend;
pub(crate) mod buffer;
mod driver;
#[cfg(feature = "emulator")]
pub(crate) mod emulated;
mod hopper_maps;
pub(crate) mod opened;
pub(crate) mod pack;
pub(crate) mod plan;
pub(crate) mod stopwatch;
pub(crate) mod tensor_map;
pub(crate) mod wait;

pub(crate) use driver::open::{count, open};
