//! What the page of `cargo xtask bench --html` computes in the reader's browser:
//! the tiles of C in any order, the blocks that each wave loads, and what the model
//! of L2 makes of it; and what several GPUs multiply and copy when.
//!
//! There is no second implementation in JavaScript. The functions here call
//! [`gpu_kernels::TileOrder`], which the kernels call, and [`tilewise_model`], which
//! the library calls, and [`tilewise_program`], whose programs `tilewise-parallel` runs. Compiled for `wasm32-unknown-unknown` they get the plain C
//! interface of module `abi`; on the host they are what the page's test compares
//! that with.
//!
//! | module | question it answers |
//! |---|---|
//! | [`query`] | what is asked, and is it of a size that a page can answer? |
//! | [`mod@tiles`] | which tile runs when? |
//! | [`predict`] | what does that ask of L2 and DRAM? |
//! | [`mod@ranks`] | which rank multiplies and copies what when? |
//! | `abi` | how does JavaScript call it? (wasm32 only) |
//! | `arena` | where does memory come from? (wasm32 only) |

#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod abi;
#[cfg(target_arch = "wasm32")]
mod arena;
pub mod predict;
pub mod query;
pub mod ranks;
pub mod tiles;

pub use predict::{FIGURES, LIMITS, figures};
pub use query::Query;
pub use ranks::{Ranks, ranks};
pub use tiles::{tiles, waves};

/// A browser shows a trap as an exception, with the stack; that is all a page needs.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
