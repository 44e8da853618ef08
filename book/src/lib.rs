//! The book: `docs/`, built by [mdBook](https://rust-lang.github.io/mdBook/), and the check
//! that its links hold.
//!
//! | module | question it answers |
//! |---|---|
//! | [`page`] | what does one Markdown file link to, and which paths does it name? |
//! | [`repository`] | which files are there? |
//! | [`check`] | which links, anchors, includes and paths are broken? |
//! | `render` | how do pages that link to source files become a book on their own? (feature `render`) |

pub mod check;
pub mod page;
#[cfg(feature = "render")]
pub mod render;
pub mod repository;
