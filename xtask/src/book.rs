//! `cargo xtask book`: the documentation as a book, its links checked.

use anyhow::Result;

use crate::project;

/// What compiles mdBook.
const WITH_MDBOOK: [&str; 2] = ["--package=tilewise-book", "--features=render"];

/// Checks every link in the documentation, and builds the book.
pub fn run() -> Result<()> {
    project::run(project::cargo().arg("run").args(WITH_MDBOOK))
}

/// Tests the program that does, and runs it.
pub fn test() -> Result<()> {
    project::run(project::cargo().arg("test").args(WITH_MDBOOK))?;
    run()
}
