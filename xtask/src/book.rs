//! `cargo xtask book`: the documentation as a book, its links checked.

use anyhow::Result;

use crate::project;

/// Checks every link in the documentation, and builds the book.
pub fn run() -> Result<()> {
    project::run(project::cargo().args(["run", "--package=tilewise-book"]))
}
