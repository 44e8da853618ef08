//! The HTML page in headless Chromium: does it show what the Rust code on the host
//! computes, by keyboard, offline, on a phone?
//!
//! Without Chromium every test is skipped, and the last line says so.

mod browser;
mod chromium;
mod ranks;
mod sample;
mod tests;

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use browser::Browser;
use tests::TESTS;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("there is room for files");
    let page = folder.path().join("page.html");
    let program = chromium::find().and_then(|program| {
        let written = sample::write(&page).map_err(|error| error.to_string());
        written.map(|()| program)
    });
    let program = match program {
        Ok(program) => program,
        Err(reason) => {
            println!(
                "page: 0 passed, 0 failed, {} skipped: {reason}",
                TESTS.len()
            );
            return ExitCode::SUCCESS;
        }
    };
    println!("page: by {}", program.display());
    let failed = TESTS
        .iter()
        .filter(|(name, test)| {
            let profile = folder.path().join(name.replace(' ', "-"));
            let passed = passes(&program, &profile, &page, *test);
            println!("page: {name} ... {}", if passed { "ok" } else { "FAILED" });
            !passed
        })
        .count();
    println!(
        "page: {} passed, {failed} failed, 0 skipped",
        TESTS.len() - failed
    );
    ExitCode::from(u8::from(failed > 0))
}

/// Runs a test in a browser of its own: opens the page, waits for the model, and looks
/// for complaints in the end.
fn passes(program: &Path, profile: &Path, page: &Path, test: fn(&mut Browser)) -> bool {
    panic::catch_unwind(AssertUnwindSafe(|| {
        let mut browser = Browser::start(program, profile);
        browser.open(page);
        tests::settle(&mut browser);
        test(&mut browser);
        let complaints = browser.complaints();
        assert!(complaints.is_empty(), "{complaints:#?}");
        let trouble = browser.evaluate("document.getElementById('trouble').textContent");
        assert_eq!(trouble, "");
    }))
    .is_ok()
}
