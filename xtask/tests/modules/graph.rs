//! Which module of a crate names which: the files are parsed, and each path in a `use`, a type
//! or an expression is followed to the module that holds what it names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, ItemUse, UseTree};

/// The modules of a crate that are files, by their paths without `crate::`, each with the
/// paths that it names.
pub struct ModuleGraph(BTreeMap<String, Vec<String>>);

impl ModuleGraph {
    /// Reads the crate whose root is this file.
    ///
    /// # Errors
    /// A file cannot be read or parsed: which, and why.
    pub fn read(root: &Path) -> Result<Self, String> {
        let folder = root.parent().unwrap_or(Path::new(""));
        let mut graph = ModuleGraph(BTreeMap::new());
        graph.add(root, folder, String::new())?;
        Ok(graph)
    }

    /// Reads the module `name` of a file, whose children lie in `folder`.
    fn add(&mut self, file: &Path, folder: &Path, name: String) -> Result<(), String> {
        let text =
            fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed: File =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut names = Names {
            module: segments(&name),
            children: children(&parsed.items),
            found: Vec::new(),
        };
        names.visit_file(&parsed);
        self.0.insert(name.clone(), names.found);
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

    /// The same with one module for each file and folder below the root.
    pub fn folders(&self) -> ModuleGraph {
        let top = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
        let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (module, named) in &self.0 {
            let named = named.iter().filter_map(|path| self.module_of(path));
            let names = folders.entry(top(module)).or_default();
            names.extend(named.map(top));
        }
        ModuleGraph(folders)
    }

    /// The module that holds what `path` names: the longest part of it that is a module.
    fn module_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        let mut part = path;
        loop {
            if self.0.contains_key(part) {
                return Some(part);
            }
            part = part.rsplit_once("::").map_or("", |(parent, _)| parent);
            if part.is_empty() {
                return self.0.contains_key("").then_some("");
            }
        }
    }
}

/// The modules that use each other in a circle, a line for each circle.
pub fn circles(graph: &ModuleGraph) -> Vec<String> {
    let mut edges: DiGraphMap<&str, ()> = DiGraphMap::new();
    for (module, named) in &graph.0 {
        for other in named.iter().filter_map(|path| graph.module_of(path)) {
            // A root declares its modules; what they take from it is no matter of order.
            if other != module {
                edges.add_edge(module, other, ());
            }
        }
    }
    let circles = tarjan_scc(&edges).into_iter();
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

/// Collects the paths within the crate that a file names.
struct Names {
    /// Where the walk is: the file's module, and inline modules in it.
    module: Vec<String>,
    /// Modules of the file in files of their own.
    children: Vec<String>,
    found: Vec<String>,
}

impl Names {
    /// Notes a path, if it is one within the crate.
    fn note(&mut self, path: &[String]) {
        let mut module = self.module.clone();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => {
                module.clear();
                rest = &path[1..];
            }
            Some("self" | "super") => {
                while let Some((first, after)) = rest.split_first() {
                    match first.as_str() {
                        "self" => {}
                        "super" => {
                            module.pop();
                        }
                        _ => break,
                    }
                    rest = after;
                }
            }
            Some(child) if self.children.iter().any(|known| known == child) => {}
            _ => return,
        }
        module.extend_from_slice(rest);
        self.found.push(module.join("::"));
    }

    /// Notes every path of a `use`, `before` it what stands outside of the braces.
    fn note_tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_tree(before, tree);
                }
            }
            UseTree::Name(name) => self.note_name(before, name.ident.to_string()),
            UseTree::Rename(rename) => self.note_name(before, rename.ident.to_string()),
            UseTree::Glob(_) => self.note(before),
        }
    }

    fn note_name(&mut self, before: &mut Vec<String>, name: String) {
        before.push(name);
        self.note(before);
        before.pop();
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_left_out(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.content.is_some() {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if path.leading_colon.is_none() && names.len() > 1 {
            self.note(&names);
        }
        visit::visit_path(self, path);
    }
}
