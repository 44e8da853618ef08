//! Which module of a crate names which: the files are parsed, and each path in a `use`, a type
//! or an expression is followed to the module that holds what it names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// The modules of a crate that are files, by their paths without `crate::`.
#[derive(Default)]
pub struct ModuleGraph(BTreeMap<String, Module>);

/// What a file says.
#[derive(Default)]
struct Module {
    /// Paths that it names.
    uses: Vec<String>,
    /// What it passes on with `pub use`: the name, `*` for all, and the path. That alone is no
    /// use: who names it here uses the module that it comes from.
    exports: Vec<(String, String)>,
    /// Names of its items.
    items: BTreeSet<String>,
}

impl ModuleGraph {
    /// Reads the crate whose root is this file.
    ///
    /// # Errors
    /// A file cannot be read or parsed: which, and why.
    pub fn read(root: &Path) -> Result<Self, String> {
        let folder = root.parent().unwrap_or(Path::new(""));
        let mut graph = ModuleGraph::default();
        graph.add(root, folder, String::new())?;
        Ok(graph)
    }

    /// Reads the module `name` of a file, whose children lie in `folder`.
    fn add(&mut self, file: &Path, folder: &Path, name: String) -> Result<(), String> {
        let refuse = |error: &dyn Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| refuse(&error))?;
        let parsed = syn::parse_file(&text).map_err(|error| refuse(&error))?;
        let mut names = Names {
            at: segments(&name),
            depth: 0,
            children: children(&parsed.items),
            module: Module::default(),
        };
        names.visit_file(&parsed);
        self.0.insert(name.clone(), names.module);
        for child in names.children {
            let (file, folder) = place(folder, &child);
            self.add(&file, &folder, joined(&name, &child))?;
        }
        Ok(())
    }

    /// The modules, sorted.
    pub fn modules(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Each module with one that it uses.
    fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(move |(name, module)| {
            let used = module.uses.iter().map(|path| self.module_of(path));
            used.map(move |used| (name.as_str(), used))
        })
    }

    /// The module that holds what `path` names, wherever it is passed on.
    fn module_of(&self, path: &str) -> &str {
        let parts = segments(path);
        let mut count = parts.len();
        while count > 0 && !self.0.contains_key(&parts[..count].join("::")) {
            count -= 1;
        }
        let Some((name, module)) = self.0.get_key_value(&parts[..count].join("::")) else {
            return "";
        };
        let Some(item) = parts
            .get(count)
            .filter(|item| !module.items.contains(*item))
        else {
            return name;
        };
        let comes_from = |(exported, path): &&(String, String)| {
            let of_glob = || self.0.get(path).is_some_and(|of| of.items.contains(item));
            exported == item || exported == "*" && of_glob()
        };
        match module.exports.iter().find(comes_from) {
            Some((_, path)) if path != name => self.module_of(path),
            _ => name,
        }
    }
}

/// The files that use each other in a circle, a line for each circle.
pub fn circles_of_files(graph: &ModuleGraph) -> Vec<String> {
    circles(graph.edges())
}

/// The same of what lies in the root's folder: files, each with the folder of its name.
pub fn circles_of_folders(graph: &ModuleGraph) -> Vec<String> {
    let folder = |path: &'_ str| path.split("::").next().unwrap_or_default().to_owned();
    let edges: Vec<(String, String)> = (graph.edges())
        .map(|(from, to)| (folder(from), folder(to)))
        .collect();
    circles(edges.iter().map(|(from, to)| (from.as_str(), to.as_str())))
}

fn circles<'a>(edges: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let graph = DiGraphMap::<&str, ()>::from_edges(edges.filter(|(from, to)| from != to));
    let circles = tarjan_scc(&graph).into_iter();
    let mut lines: Vec<String> = circles
        .filter(|circle| circle.len() > 1)
        .map(|mut circle| {
            circle.sort_unstable();
            circle.join(", ")
        })
        .collect();
    lines.sort();
    lines
}

/// Where the module `child` of a folder is, and where its own children are.
fn place(folder: &Path, child: &str) -> (PathBuf, PathBuf) {
    let inside = folder.join(child);
    let beside = folder.join(format!("{child}.rs"));
    match beside.is_file() {
        true => (beside, inside),
        false => (inside.join("mod.rs"), inside),
    }
}

/// The modules that are declared and lie in files of their own.
fn children(items: &[Item]) -> Vec<String> {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && !is_left_out(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    modules.collect()
}

/// Whether an item is of the tests, or of a file that lies elsewhere.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|condition| condition.is_ident("test"));
        is_test || attribute.path().is_ident("path")
    })
}

fn segments(name: &str) -> Vec<String> {
    let parts = name.split("::").filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn joined(parent: &str, child: &str) -> String {
    match parent {
        "" => child.to_owned(),
        parent => format!("{parent}::{child}"),
    }
}

/// Collects what a file says.
struct Names {
    /// Where the walk is: the file's module, and inline modules in it.
    at: Vec<String>,
    /// How many inline modules deep.
    depth: usize,
    /// Modules of the file in files of their own.
    children: Vec<String>,
    module: Module,
}

impl Names {
    /// The path without `crate::`, if it is one within the crate.
    fn absolute(&self, path: &[String]) -> Option<String> {
        let mut module = self.at.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = &path[1..];
            }
            "self" | "super" => {
                let ups = |name: &&String| *name == "self" || *name == "super";
                for name in path.iter().take_while(ups) {
                    if name == "super" {
                        module.pop();
                    }
                    rest = &rest[1..];
                }
            }
            child if self.children.iter().any(|known| known == child) => {}
            _ => return None,
        }
        module.extend_from_slice(rest);
        Some(module.join("::"))
    }

    /// Notes every path of a `use`; `before` has what stands outside of the braces.
    fn note_tree(&mut self, before: &[String], tree: &UseTree, passed_on: bool) {
        let inside = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => {
                return self.note_tree(&inside(&path.ident), &path.tree, passed_on);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_tree(before, tree, passed_on);
                }
                return;
            }
            UseTree::Name(name) => (inside(&name.ident), name.ident.to_string()),
            UseTree::Rename(rename) => (inside(&rename.ident), rename.rename.to_string()),
            UseTree::Glob(_) => (before.to_vec(), "*".to_owned()),
        };
        if let Some(path) = self.absolute(&path) {
            match passed_on {
                true => self.module.exports.push((name, path)),
                false => self.module.uses.push(path),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        let (name, attributes) = match item {
            Item::Const(item) => (Some(&item.ident), &item.attrs),
            Item::Enum(item) => (Some(&item.ident), &item.attrs),
            Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
            Item::Impl(item) => (None, &item.attrs),
            Item::Mod(item) => (None, &item.attrs),
            Item::Static(item) => (Some(&item.ident), &item.attrs),
            Item::Struct(item) => (Some(&item.ident), &item.attrs),
            Item::Trait(item) => (Some(&item.ident), &item.attrs),
            Item::Type(item) => (Some(&item.ident), &item.attrs),
            Item::Union(item) => (Some(&item.ident), &item.attrs),
            Item::Use(item) => (None, &item.attrs),
            _ => return visit::visit_item(self, item),
        };
        if is_left_out(attributes) {
            return;
        }
        if let (Some(name), 0) = (name, self.depth) {
            self.module.items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.content.is_some() {
            self.at.push(module.ident.to_string());
            self.depth += 1;
            visit::visit_item_mod(self, module);
            self.depth -= 1;
            self.at.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_private = matches!(item.vis, Visibility::Inherited);
        self.note_tree(&[], &item.tree, self.depth == 0 && !is_private);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if path.leading_colon.is_none() && names.len() > 1 {
            self.module.uses.extend(self.absolute(&names));
        }
        visit::visit_path(self, path);
    }
}
