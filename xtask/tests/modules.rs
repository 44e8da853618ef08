//! The modules of a crate use each other one way: no circle of files, and none of the folders
//! below `src/`. Tests are left out: they may use whatever they like.

#[path = "modules/graph.rs"]
mod graph;

use std::path::Path;

use graph::{ModuleGraph, circles};

/// The crates of the workspace that have circles, each with the reason. A crate that has none
/// any more must leave this list.
const WITH_CIRCLES: &[(&str, &str)] = &[];

/// The crates of the workspace, by the folders that hold them.
const CRATES: &[&str] = &[
    "benches",
    "emulate",
    "emulator",
    "explorer",
    "gpu-kernels",
    "host",
    "model",
    "ptx-builder",
    "watchdog",
    "xtask",
];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The circles of a crate's files, and of the folders and files that lie in its `src/`.
fn circles_of(folder: &str) -> Vec<String> {
    let source = workspace().join(folder).join("src");
    let root = ["lib.rs", "main.rs"].map(|name| source.join(name));
    let root = root.iter().find(|root| root.is_file()).unwrap();
    let files = ModuleGraph::read(root).unwrap();
    assert!(!files.modules().is_empty(), "{folder} has modules");
    let mut found = circles(&files);
    found.extend(circles(&files.folders()));
    found
}

#[test]
fn modules_use_each_other_one_way() {
    for &folder in CRATES {
        let circles = circles_of(folder);
        let listed = WITH_CIRCLES.iter().find(|(name, _)| *name == folder);
        match listed {
            None => assert!(
                circles.is_empty(),
                "{folder}: modules that use each other in a circle:\n{}",
                circles.join("\n")
            ),
            Some((_, reason)) => assert!(
                !circles.is_empty(),
                "{folder} has no circle: take it off the list ({reason})"
            ),
        }
    }
}

#[test]
fn every_crate_of_the_workspace_is_read() {
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let members = manifest
        .lines()
        .find(|line| line.starts_with("members"))
        .unwrap();
    let mut members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    members.sort_unstable();
    assert_eq!(members, CRATES);
}

/// Writes a crate of these files into a new folder and returns its graph.
fn graph_of(files: &[(&str, &str)]) -> ModuleGraph {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    ModuleGraph::read(&folder.path().join("lib.rs")).unwrap()
}

#[test]
fn a_circle_is_found_however_the_path_is_written() {
    for (a, b) in [
        (
            "use crate::b::B; pub struct A;",
            "use crate::a::A; pub struct B;",
        ),
        ("use super::b; pub struct A;", "fn f() { crate::a::f() }"),
        ("use crate::{b::{B, C}}; pub struct A;", "use super::a::*;"),
        ("pub fn f(_: &crate::b::B) {}", "pub struct B(super::a::A);"),
    ] {
        let graph = graph_of(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(circles(&graph), ["a, b"], "{a} {b}");
    }
}

#[test]
fn a_parent_and_its_child_can_be_a_circle() {
    let graph = graph_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; pub use child::C; pub struct A;"),
        ("a/child.rs", "use super::A; pub struct C(A);"),
    ]);
    assert_eq!(circles(&graph), ["a, a::child"]);
    assert!(circles(&graph.folders()).is_empty());
}

#[test]
fn folders_can_be_a_circle_where_files_are_none() {
    let graph = graph_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod x; mod y;"),
        ("a/x.rs", "use crate::b::x::X;"),
        ("a/y.rs", "pub struct Y;"),
        ("b.rs", "pub mod x;"),
        ("b/x.rs", "use crate::a::y::Y; pub struct X;"),
    ]);
    assert!(circles(&graph).is_empty());
    assert_eq!(circles(&graph.folders()), ["a, b"]);
}

#[test]
fn tests_comments_and_texts_are_no_use() {
    let graph = graph_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; #[cfg(test)] mod tests;"),
        ("a/tests.rs", "use super::*;"),
        (
            "b.rs",
            "//! See [`crate::a`].
             pub struct B;
             const TEXT: &str = \"crate::a::A\";
             #[cfg(test)] mod tests { use crate::a::A; use super::*; }
             #[cfg(test)] use crate::a::A;
             mod inner { use super::B; }",
        ),
    ]);
    assert_eq!(graph.modules(), ["", "a", "b"]);
    assert!(circles(&graph).is_empty());
}
