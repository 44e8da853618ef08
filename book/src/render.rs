//! Builds the book: HTML that stands on its own.
//!
//! Pages of `docs/` link to source files outside of it. A book has no such files, so each
//! one that is linked to becomes a page, below the chapter "Sources" that ends the book.

use crate::check::is_external;
use crate::page::Page;
use crate::repository::{Repository, resolve};
use anyhow::{Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter, SectionNumber};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder of the book's source pages.
const SOURCES: &str = "sources";

/// Builds the book, and returns the folder with its `index.html`.
///
/// # Errors
/// What mdBook refuses, and a link to something that is not a text file.
pub fn render(repository: &Repository) -> Result<PathBuf> {
    let mut book = MDBook::load(repository.root.join("book"))?;
    let mut sources = BTreeSet::new();
    let mut unreadable = Vec::new();
    book.book.for_each_chapter_mut(|chapter| {
        let Some(path) = &chapter.source_path else {
            return;
        };
        let page = format!("docs/{}", path.display());
        match with_links_to_sources(repository, &page, &chapter.content) {
            Ok((content, linked)) => {
                chapter.content = content;
                sources.extend(linked);
            }
            Err(error) => unreadable.push(format!("{page}: {error:#}")),
        }
    });
    if !unreadable.is_empty() {
        bail!("{}", unreadable.join("\n"));
    }
    let chapters = book.book.items.iter();
    let numbered =
        chapters.filter(|item| matches!(item, BookItem::Chapter(c) if c.number.is_some()));
    let number = numbered.count() as u32 + 1;
    let chapter = source_chapter(repository, &sources, number)?;
    book.book.push_item(chapter);
    book.build()?;
    let folder = book.build_dir_for("html");
    let missing = missing_targets(&folder)?;
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    Ok(folder)
}

/// Links of the book's pages that lead to no file of the book.
fn missing_targets(book: &Path) -> Result<Vec<String>> {
    let built = Repository::read(book)?;
    let mut missing = Vec::new();
    // The printed page repeats the others.
    for page in built
        .files()
        .filter(|file| file.ends_with(".html") && *file != "print.html")
    {
        let text = built.text(page)?;
        for rest in text.split("href=\"").skip(1) {
            let target = rest.split(['"', '#']).next().unwrap_or_default();
            if target.is_empty() || is_external(target) {
                continue;
            }
            if !resolve(page, target).is_some_and(|file| built.has_file(&file)) {
                missing.push(format!("{page} of the book: there is no `{target}`"));
            }
        }
    }
    Ok(missing)
}

/// The page with its links to files outside `docs/` turned to the pages of those files, and
/// the files.
fn with_links_to_sources(
    repository: &Repository,
    page: &str,
    text: &str,
) -> Result<(String, Vec<String>)> {
    let mut turned = text.to_owned();
    let mut sources = Vec::new();
    // From the last to the first, so that the places of the others stay.
    for link in Page::parse(text).links.into_iter().rev() {
        let (Some(span), false) = (link.span, is_external(&link.target)) else {
            continue;
        };
        let file = link.target.split('#').next().unwrap_or_default();
        let Some(target) = resolve(page, file).filter(|_| !file.is_empty()) else {
            continue;
        };
        if target.starts_with("docs/") {
            if let Some(folder) = file.strip_suffix("README.md") {
                // mdBook makes such a page the index of its folder, and leaves links to it
                // alone.
                turned.replace_range(
                    span.start..span.start + file.len(),
                    &format!("{folder}index.md"),
                );
            }
            continue;
        }
        if !repository.has_file(&target) {
            bail!("`{}` is no file", link.target);
        }
        let up = "../".repeat(page.matches('/').count() - 1);
        turned.replace_range(span, &format!("{up}{SOURCES}/{target}.md"));
        sources.push(target);
    }
    Ok((turned, sources))
}

/// The chapter "Sources", of this number, and below it a page for each file.
fn source_chapter(
    repository: &Repository,
    files: &BTreeSet<String>,
    number: u32,
) -> Result<Chapter> {
    let title = "Sources";
    let mut list = format!("# {title}\n\nThe files that this book links to.\n\n");
    let mut pages = Vec::new();
    for (file, index) in files.iter().zip(1..) {
        list += &format!("- [`{file}`]({file}.md)\n");
        let text = repository.text(file)?;
        let language = file.rsplit('.').next().unwrap_or_default();
        let language = if language == "rs" {
            "rust,ignore"
        } else {
            language
        };
        // Longer than any fence in the comments of a file.
        let content = format!("# `{file}`\n\n``````{language}\n{text}\n``````\n");
        let path = format!("{SOURCES}/{file}.md");
        let mut page = page(file, content, path, vec![title.to_owned()]);
        // The depth of its number is its depth in the table of contents.
        page.number = Some(SectionNumber::new([number, index]));
        pages.push(page);
    }
    let mut chapter = page(title, list, format!("{SOURCES}/index.md"), Vec::new());
    chapter.number = Some(SectionNumber::new([number]));
    chapter.sub_items = pages.into_iter().map(BookItem::Chapter).collect();
    Ok(chapter)
}

/// A chapter that is no file of `docs/`.
fn page(name: &str, content: String, path: String, parents: Vec<String>) -> Chapter {
    let mut chapter = Chapter::new(name, content, path, parents);
    chapter.source_path = None;
    chapter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders a book of one page with this text, in a folder, beside a source file.
    fn rendered(text: &str) -> (tempfile::TempDir, Result<PathBuf>) {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("book/book.toml", include_str!("../book.toml")),
            ("docs/SUMMARY.md", "[One](one.md)\n\n[Two](two/README.md)\n"),
            ("docs/one.md", "# One\n"),
            ("docs/two/README.md", text),
            ("src/a.rs", "//! ``````\nfn marked_function() {}\n"),
            ("src/README.md", "marked text\n"),
        ];
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let folder = render(&Repository::read(root.path()).unwrap());
        (root, folder)
    }

    #[test]
    fn a_source_that_a_page_links_to_is_a_page_of_the_book() {
        let (_root, folder) = rendered(
            "# Two\n[`a`](../../src/a.rs), [its page](../../src/README.md), [one](../one.md)\n",
        );
        let folder = folder.unwrap();
        let page = std::fs::read_to_string(folder.join("two/index.html")).unwrap();
        assert!(page.contains("href=\"../sources/src/a.rs.html\""), "{page}");
        let source = std::fs::read_to_string(folder.join("sources/src/a.rs.html")).unwrap();
        assert!(source.contains("marked_function"), "{source}");
        let source = std::fs::read_to_string(folder.join("sources/src/README.md.html")).unwrap();
        assert!(source.contains("marked text"), "{source}");
    }

    #[test]
    fn a_link_that_leads_out_of_the_book_fails() {
        let (_root, folder) = rendered("# Two\n[three](../three.md)\n");
        let error = format!("{:#}", folder.unwrap_err());
        assert!(error.contains("two/index.html of the book"), "{error}");
    }
}
