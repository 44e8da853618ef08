//! `cargo xtask book`: checks the documentation, then builds the book.

use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::ExitCode;
use tilewise_book::{check, render, repository::Repository};

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<()> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().context("the package is in a folder")?;
    let repository = Repository::read(root)?;
    let broken = check::check(&repository)?;
    for reference in &broken {
        eprintln!("{reference}");
    }
    if !broken.is_empty() {
        bail!("{} broken references in the documentation", broken.len());
    }
    let folder = render::render(&repository)?;
    let page = folder.join("index.html").canonicalize()?;
    println!("the book: {}", page.display());
    Ok(())
}
