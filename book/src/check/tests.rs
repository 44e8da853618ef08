//! The check, on this repository and on small ones with each kind of broken reference.

use super::*;
use std::path::Path;

/// Broken things of a repository with these files, as `line: what`.
fn broken(files: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let repository = Repository::read(root.path()).unwrap();
    let found = check(&repository).unwrap();
    found.iter().map(Broken::to_string).collect()
}

#[test]
fn the_documentation_of_this_repository_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let repository = Repository::read(root).unwrap();
    assert!(repository.pages().any(|page| page == "README.md"));
    assert!(repository.has_file(SUMMARY));
    let found = check(&repository).unwrap();
    let found: Vec<_> = found.iter().map(Broken::to_string).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn what_exists_is_not_reported() {
    let page = "# One\n[b](docs/b.md#two), [`Tile::run`](src/a.rs), [docs](docs), \
                [out](https://example.com/x.md#y), `src/a.rs`, `a.rs`, `src/`, \
                `target/x.rs`, `a/b`, `bench.html`\n";
    let a = "// ANCHOR: part\nimpl Tile { fn run() {} }\n// ANCHOR_END: part\n";
    let b = "## Two\n{{#include ../src/a.rs}}\n{{#include ../src/a.rs:part}}\n[self](#two)\n";
    let summary = "[b](b.md)\n";
    let found = broken(&[
        ("README.md", page),
        ("src/a.rs", a),
        ("docs/b.md", b),
        (SUMMARY, summary),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn every_kind_of_broken_reference_is_found() {
    let a = ("src/a.rs", "fn run() {}\n");
    let one = |text: &str| broken(&[("README.md", text), a]);
    let first = |text: &str| one(text).into_iter().next().unwrap_or_default();
    let expect = |text, what: &str| assert_eq!(first(text), format!("README.md:1: {what}"));
    expect("[x](gone.md)", "`gone.md`: there is no file `gone.md`");
    expect("![x](x.svg)", "`x.svg`: there is no file `x.svg`");
    expect("[x](../y.md)", "`../y.md` leads out of the repository");
    expect("[x](#no)", "`#no`: `README.md` has no heading #no");
    expect("[`walk`](src/a.rs)", "`walk`: `src/a.rs` has no `walk`");
    expect("[`ru`](src/a.rs)", "`ru`: `src/a.rs` has no `ru`");
    expect("`src/b.rs`", "`src/b.rs` is no file or folder here");
    expect("`isa/b.rs`", "`isa/b.rs` is no file or folder here");
    expect("`b.rs`", "`b.rs` is no file or folder here");
    expect("`web/`", "`web/` is no file or folder here");
    expect("`src/gone`", "`src/gone` is no file or folder here");
    expect(
        "{{#include b.rs}}",
        "include of `b.rs`: there is no such file",
    );
    expect(
        "{{#include src/a.rs:part}}",
        "include of `src/a.rs:part`: `src/a.rs` has no such anchor",
    );
    expect(
        "{{#include src/a.rs:1:2}}",
        "include of `src/a.rs:1:2`: name an anchor, because line numbers move",
    );
}

#[test]
fn comments_name_pages_and_quote_headings_that_exist() {
    // No comment of this file is meant: `~` stands for the quotation mark of code.
    let code = |text: &str| text.replace('~', "`");
    let source = "//! ~docs/b.md~, \"First\n//! contact\"; ~docs/b.md~, \"Gone\n\
                  //! again\"\n/// (~docs/c.md~)\n";
    let found = broken(&[
        (SUMMARY, "[b](b.md)\n"),
        ("docs/b.md", "## 2026 · First contact\n"),
        ("src/a.rs", &code(source)),
    ]);
    assert_eq!(
        found,
        [
            code("src/a.rs:2: ~docs/b.md~ has no heading \"Gone again\""),
            code("src/a.rs:4: ~docs/c.md~: there is no such page"),
        ]
    );
}

#[test]
fn pages_of_the_book_are_chapters_and_link_to_files_only() {
    let found = broken(&[
        (SUMMARY, "[b](b.md)\n"),
        ("docs/b.md", "[src](../src)\n"),
        ("docs/c.md", "text\n"),
        ("src/a.rs", ""),
    ]);
    assert_eq!(
        found,
        [
            "docs/b.md:1: `../src`: there is no file `src`",
            "docs/c.md:1: not a chapter of docs/SUMMARY.md",
        ]
    );
}
