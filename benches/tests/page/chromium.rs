//! Where Chromium is: for the page's test, and for `cargo xtask setup`, which includes
//! this file.

use std::env;
use std::path::PathBuf;

/// Names the program, before any on PATH.
const VARIABLE: &str = "TILEWISE_CHROMIUM";

/// Names under which distributions and vendors install it.
const NAMES: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// The program, or why there is none.
pub fn find() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            format!(
                "no Chromium: none of {} on PATH, no {VARIABLE}",
                NAMES.join(", ")
            )
        })
}
