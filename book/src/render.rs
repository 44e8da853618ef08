//! Builds the book: HTML that stands on its own.
//!
//! Pages of `docs/` link to source files outside of it. A book has no such files, so each
//! one that is linked to becomes a page, below the chapter "Sources" that ends the book.

use crate::check::is_external;
use crate::page::Page;
use crate::repository::{Repository, resolve};
use anyhow::{Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The folder of the book's source pages.
const SOURCES: &str = "sources";

/// Builds the book, and returns the folder with its `index.html`.
///
/// # Errors
/// What mdBook refuses, and a link to something that is not a text file.
pub fn render(repository: &Repository) -> Result<PathBuf> {
    let mut book = MDBook::load(repository.root.join("docs"))?;
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
    book.book.push_item(source_chapter(repository, &sources)?);
    book.build()?;
    Ok(book.build_dir_for("html"))
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
        let outside = |path: &String| !file.is_empty() && !path.starts_with("docs/");
        let Some(file) = resolve(page, file).filter(outside) else {
            continue;
        };
        if !repository.has_file(&file) {
            bail!("`{}` is no file", link.target);
        }
        let up = "../".repeat(page.matches('/').count() - 1);
        turned.replace_range(span, &format!("{up}{SOURCES}/{file}.md"));
        sources.push(file);
    }
    Ok((turned, sources))
}

/// The chapter "Sources" and, below it, a page for each file.
fn source_chapter(repository: &Repository, files: &BTreeSet<String>) -> Result<BookItem> {
    let title = "Sources";
    let mut list = format!("# {title}\n\nThe files that this book links to.\n\n");
    let mut pages = Vec::new();
    for file in files {
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
        pages.push(page(file, content, path, vec![title.to_owned()]));
    }
    let mut chapter = page(title, list, format!("{SOURCES}/index.md"), Vec::new());
    chapter.sub_items = pages.into_iter().map(BookItem::Chapter).collect();
    Ok(BookItem::Chapter(chapter))
}

/// A chapter that is no file of `docs/`.
fn page(name: &str, content: String, path: String, parents: Vec<String>) -> Chapter {
    let mut chapter = Chapter::new(name, content, path, parents);
    chapter.source_path = None;
    chapter
}
