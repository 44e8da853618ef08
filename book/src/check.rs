//! The check: every relative link, anchor, include and path in the documentation leads to
//! something that exists.
//!
//! - A **link** leads to a file or a folder of the repository; a page of the book links to
//!   files only, since a book has no page for a folder.
//! - Its **anchor** is that of a heading of the page.
//! - A **name in the text of a link** to a source file, as in
//!   ``[`TileOrder::tile`](…/order.rs)``, occurs in that file.
//! - An **include** names a file, and an anchor that the file has.
//! - A **path in a code span** is one of the repository.
//! - Every page of `docs/` is a chapter of the book.
//! - A comment of a Rust source that names a page, and perhaps quotes one of its headings
//!   (`docs/perf-log.md`, "First contact"), names one that exists.

use crate::page::{Link, Page};
use crate::repository::{Repository, resolve};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// The table of contents of the book.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// Files whose text may hold the names that a link's text promises.
const SOURCES: [&str; 7] = ["rs", "toml", "sh", "py", "js", "html", "css"];

/// Ends of a code span that is taken for a path wherever it has a `/` in it.
const FILES: [&str; 9] = ["rs", "toml", "sh", "py", "js", "html", "css", "md", "csv"];

/// Paths that only builds and programs make.
const GENERATED: [&str; 4] = ["target/", ".tools/", "bundle/", "rust-cuda/target/"];

/// Something in the documentation that leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// The page, relative to the root.
    pub page: String,
    /// Line of the page, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Display for Broken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.page, self.line, self.what)
    }
}

/// Checks all pages of a repository.
///
/// # Errors
/// A page or a source file that cannot be read.
pub fn check(repository: &Repository) -> Result<Vec<Broken>> {
    let mut pages = BTreeMap::new();
    for path in repository.pages() {
        pages.insert(path, Page::parse(&repository.text(path)?));
    }
    let mut broken = Vec::new();
    for (&path, page) in &pages {
        let mut report = |line, what| {
            broken.push(Broken {
                page: path.to_owned(),
                line,
                what,
            });
        };
        for link in &page.links {
            if let Some(what) = wrong_link(repository, &pages, path, link)? {
                report(link.line, what);
            }
        }
        for (line, include) in &page.includes {
            if let Some(what) = wrong_include(repository, path, include)? {
                report(*line, what);
            }
        }
        for (line, span) in &page.code_spans {
            if is_path(repository, span) && !repository.has_somewhere(span) {
                report(*line, format!("`{span}` is no file or folder here"));
            }
        }
    }
    broken.extend(not_in_summary(&pages));
    for path in repository.sources() {
        broken.extend(wrong_comments(&pages, path, &repository.text(path)?));
    }
    Ok(broken)
}

/// Comments of a source that name a page, or quote a heading, that does not exist.
fn wrong_comments(pages: &BTreeMap<&str, Page>, source: &str, text: &str) -> Vec<Broken> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("`docs/") {
        let rest = &text[start + 1..];
        let Some((path, rest)) = rest.split_once('`') else {
            continue;
        };
        if !path.ends_with(".md") {
            continue;
        }
        let what = match pages.get(path) {
            None => Some(format!("`{path}`: there is no such page")),
            Some(page) => quoted(rest).and_then(|quote| {
                let mut headings = page.headings.iter();
                let exists = headings.any(|heading| heading.contains(&quote));
                (!exists).then(|| format!("`{path}` has no heading \"{quote}\""))
            }),
        };
        found.extend(what.map(|what| Broken {
            page: source.to_owned(),
            line: 1 + text[..start].matches('\n').count(),
            what,
        }));
    }
    found
}

/// The words in quotation marks that follow a comma, over the lines of a comment.
fn quoted(rest: &str) -> Option<String> {
    let words = rest
        .lines()
        .map(|line| line.trim_start().trim_start_matches(['/', '!']));
    let words = words.take(4).flat_map(str::split_whitespace);
    let joined = words.collect::<Vec<_>>().join(" ");
    let (quote, _) = joined.strip_prefix(", \"")?.split_once('"')?;
    Some(quote.to_owned())
}

/// What is wrong with a link, if anything.
fn wrong_link(
    repository: &Repository,
    pages: &BTreeMap<&str, Page>,
    page: &str,
    link: &Link,
) -> Result<Option<String>> {
    let target = &link.target;
    if is_external(target) {
        return Ok(None);
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if file.is_empty() {
        Some(page.to_owned())
    } else {
        resolve(page, file)
    };
    let Some(file) = resolved else {
        return Ok(Some(format!("`{target}` leads out of the repository")));
    };
    if repository.has_folder(&file) && !page.starts_with("docs/") {
        return Ok(None);
    }
    if !repository.has_file(&file) {
        return Ok(Some(format!("`{target}`: there is no file `{file}`")));
    }
    if !anchor.is_empty() {
        let known = pages.get(file.as_str());
        let exists = known.is_some_and(|page| page.anchors.iter().any(|known| known == anchor));
        return Ok((!exists).then(|| format!("`{target}`: `{file}` has no heading #{anchor}")));
    }
    if has_extension(&file, &SOURCES) {
        let text = repository.text(&file)?;
        for name in link.code.iter().filter(|name| is_name(name)) {
            let segments = name.trim_end_matches("()").trim_end_matches('!');
            let missing = segments
                .split("::")
                .find(|segment| !has_word(&text, segment) && !file.contains(segment));
            if let Some(segment) = missing {
                return Ok(Some(format!("`{name}`: `{file}` has no `{segment}`")));
            }
        }
    }
    Ok(None)
}

/// What is wrong with an include (`path`, `path:anchor`, `path:first:last`), if anything.
fn wrong_include(repository: &Repository, page: &str, include: &str) -> Result<Option<String>> {
    let mut parts = include.split(':');
    let path = parts.next().unwrap_or_default();
    let Some(file) = resolve(page, path).filter(|file| repository.has_file(file)) else {
        return Ok(Some(format!("include of `{path}`: there is no such file")));
    };
    let text = repository.text(&file)?;
    Ok(match parts.next() {
        None => None,
        Some(part) if part.parse::<usize>().is_ok() => Some(format!(
            "include of `{include}`: name an anchor, because line numbers move"
        )),
        Some(anchor) => {
            let has = |mark| {
                let mark = format!("{mark}: {anchor}");
                text.lines().any(|line| {
                    let found = line.split_once(&mark);
                    found.is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(' '))
                })
            };
            let exists = has("ANCHOR") && has("ANCHOR_END");
            (!exists).then(|| format!("include of `{include}`: `{file}` has no such anchor"))
        }
    })
}

/// Pages of `docs/` that the table of contents lacks.
fn not_in_summary(pages: &BTreeMap<&str, Page>) -> Vec<Broken> {
    let Some(summary) = pages.get(SUMMARY) else {
        return Vec::new();
    };
    let listed = |path: &str| {
        let mut links = summary.links.iter();
        links.any(|link| resolve(SUMMARY, &link.target).as_deref() == Some(path))
    };
    let chapters = pages.keys().filter(|path| path.starts_with("docs/"));
    chapters
        .filter(|&&path| path != SUMMARY && !listed(path))
        .map(|&path| Broken {
            page: path.to_owned(),
            line: 1,
            what: format!("not a chapter of {SUMMARY}"),
        })
        .collect()
}

/// Whether a link leads to another site.
pub fn is_external(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Whether a code span is meant as a path of the repository.
fn is_path(repository: &Repository, span: &str) -> bool {
    let spelled = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !span.chars().all(spelled)
        || span.starts_with(['/', '-'])
        || GENERATED.iter().any(|folder| span.starts_with(folder))
    {
        return false;
    }
    span.ends_with(".rs")
        || span.contains('/') && (has_extension(span, &FILES) || span.ends_with('/'))
        || repository.is_below_root(span)
}

/// Whether a code span is the name of an item: `name`, `Type::name`, `name()`, `name!`.
fn is_name(span: &str) -> bool {
    let span = span.trim_end_matches("()").trim_end_matches('!');
    let word = |segment: &str| !segment.is_empty() && segment.chars().all(is_word);
    span.split("::").all(word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        !text[..start].ends_with(is_word) && !text[start + word.len()..].starts_with(is_word)
    })
}

fn has_extension(path: &str, extensions: &[&str]) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, extension)| extensions.contains(&extension))
}

#[cfg(test)]
mod tests;
