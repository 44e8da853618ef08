//! The files of the repository, by their paths relative to its root.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Folders that hold nothing of the repository's own: what builds and programs leave.
const NOT_OURS: [&str; 4] = [".git", ".tools", "bundle", "target"];

/// A list of all files.
pub struct Repository {
    /// Its root.
    pub root: PathBuf,
    /// Paths with `/`, relative to the root.
    files: BTreeSet<String>,
}

impl Repository {
    /// Lists the files below `root`.
    pub fn read(root: &Path) -> Result<Repository> {
        let mut files = BTreeSet::new();
        let mut folders = vec![(root.to_owned(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            let entries = std::fs::read_dir(&folder);
            for entry in entries.with_context(|| format!("reading {}", folder.display()))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if NOT_OURS.contains(&name.as_str()) {
                    continue;
                }
                let path = format!("{prefix}{name}");
                if entry.file_type()?.is_dir() {
                    folders.push((entry.path(), format!("{path}/")));
                } else {
                    files.insert(path);
                }
            }
        }
        Ok(Repository {
            root: root.to_owned(),
            files,
        })
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// The Rust sources.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|path| path.ends_with(".rs"))
    }

    /// The Markdown files that are checked: those of the root, and all in `docs/`.
    pub fn pages(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|path| {
            path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"))
        })
    }

    /// Whether there is a file of this path.
    pub fn has_file(&self, path: &str) -> bool {
        self.files.contains(path)
    }

    /// Whether there is a folder of this path, without a `/` at its end.
    pub fn has_folder(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        path.is_empty() || self.files.iter().any(|file| file.starts_with(&inside))
    }

    /// Whether a path names a file or a folder of the repository, either from its root or, as
    /// `isa/tma.rs` does, from a folder that the text around it names.
    pub fn has_somewhere(&self, path: &str) -> bool {
        let (file, folder) = (
            format!("/{path}"),
            format!("/{}/", path.trim_end_matches('/')),
        );
        self.files.iter().any(|known| {
            let known = format!("/{known}");
            known.ends_with(&file) || known.contains(&folder)
        })
    }

    /// Whether a path begins with a folder of the root.
    pub fn is_below_root(&self, path: &str) -> bool {
        path.split_once('/')
            .is_some_and(|(first, _)| self.has_folder(first))
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Result<String> {
        std::fs::read_to_string(self.root.join(path)).with_context(|| format!("reading {path}"))
    }
}

/// What `link`, in the file `page`, leads to, relative to the root; `None` if it leads out
/// of the repository.
pub fn resolve(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for component in Path::new(link).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_resolve_from_the_page() {
        let resolved = |page, link| resolve(page, link);
        assert_eq!(resolved("README.md", "docs/a.md").unwrap(), "docs/a.md");
        assert_eq!(resolved("docs/x/a.md", "../b.md").unwrap(), "docs/b.md");
        assert_eq!(resolved("docs/a.md", "../host/").unwrap(), "host");
        assert_eq!(resolved("README.md", "../elsewhere"), None);
        assert_eq!(resolved("README.md", "/etc/passwd"), None);
    }
}
