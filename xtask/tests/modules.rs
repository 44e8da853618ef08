//! The modules of a crate use each other one way: no circle of files, and none of the folders
//! below `src/`. Tests are left out: they may use whatever they like.

#[path = "modules/graph.rs"]
mod graph;

use std::path::Path;

use graph::{ModuleGraph, circles_of_files, circles_of_folders};

/// The crates of the workspace that have circles, each with the reason. A crate that has none
/// any more must leave this list.
const WITH_CIRCLES: &[(&str, &str)] = &[(
    "emulator",
    "the instructions act on the machine, whose state is made of their types",
)];

/// The crates of the workspace, by the folders that hold them.
const CRATES: &[&str] = &[
    "benches",
    "book",
    "emulate",
    "emulator",
    "explorer",
    "gpu-kernels",
    "host",
    "model",
    "parallel",
    "program",
    "ptx-builder",
    "python",
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
    let mut found = circles_of_files(&files);
    found.extend(circles_of_folders(&files));
    found
}

#[test]
fn modules_use_each_other_one_way() {
    let mut complaints = String::new();
    for &folder in CRATES {
        let circles = circles_of(folder);
        let listed = WITH_CIRCLES.iter().any(|(name, _)| *name == folder);
        if listed && circles.is_empty() {
            complaints += &format!("{folder} has no circle: take it off the list\n");
        }
        if !listed && !circles.is_empty() {
            complaints += &format!("{folder}: in circles are {}\n", circles.join("; "));
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
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
        assert_eq!(circles_of_files(&graph), ["a, b"], "{a} {b}");
    }
}

#[test]
fn a_parent_and_its_child_can_be_a_circle() {
    let graph = graph_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; pub struct A(child::C);"),
        ("a/child.rs", "use super::A; pub struct C(A);"),
    ]);
    assert_eq!(circles_of_files(&graph), ["a, a::child"]);
    assert!(circles_of_folders(&graph).is_empty());
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
    assert!(circles_of_files(&graph).is_empty());
    assert_eq!(circles_of_folders(&graph), ["a, b"]);
}

#[test]
fn what_is_passed_on_is_used_where_it_comes_from() {
    let graph = graph_of(&[
        (
            "lib.rs",
            "mod a; mod error; pub use error::Error; pub use a::*;",
        ),
        (
            "a.rs",
            "mod x; mod y; pub use x::X; pub use self::y::Y as Z;",
        ),
        ("a/x.rs", "use crate::Error; use super::Z; pub struct X;"),
        ("a/y.rs", "pub struct Y(super::X);"),
        ("error.rs", "pub struct Error;"),
    ]);
    assert_eq!(circles_of_files(&graph), ["a::x, a::y"]);
    assert!(circles_of_folders(&graph).is_empty());
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
    assert!(circles_of_files(&graph).is_empty());
}
