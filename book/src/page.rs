//! One Markdown file: its headings, links, code spans and includes, with their lines.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use std::collections::HashMap;
use std::ops::Range;

/// What a page refers to.
#[derive(Debug, Default)]
pub struct Page {
    /// The words of its headings.
    pub headings: Vec<String>,
    /// The anchors of its headings, as GitHub and mdBook make them.
    pub anchors: Vec<String>,
    /// Its links, images among them, in their order.
    pub links: Vec<Link>,
    /// Code spans outside of code blocks: (line, text).
    pub code_spans: Vec<(usize, String)>,
    /// What `{{#include …}}` names: (line, path and part of the file).
    pub includes: Vec<(usize, String)>,
}

/// A link, or an image.
#[derive(Debug)]
pub struct Link {
    /// Line of the page, from 1.
    pub line: usize,
    /// Where it leads, as written.
    pub target: String,
    /// The bytes of `target` in the page; `None` where the link does not spell it
    /// (a reference or an autolink).
    pub span: Option<Range<usize>>,
    /// The code spans in its text.
    pub code: Vec<String>,
}

impl Page {
    /// Reads a page.
    pub fn parse(text: &str) -> Page {
        let mut page = Page {
            includes: includes(text),
            ..Page::default()
        };
        let line = |offset: usize| 1 + text[..offset].matches('\n').count();
        let mut seen = HashMap::new();
        let mut heading: Option<String> = None;
        let mut open_links = Vec::new();
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let words = heading.take().unwrap_or_default();
                    let slug = slug(&words);
                    page.headings.push(words);
                    let count = seen.entry(slug.clone()).or_insert(0);
                    page.anchors.push(match *count {
                        0 => slug,
                        n => format!("{slug}-{n}"),
                    });
                    *count += 1;
                }
                Event::Start(
                    Tag::Link {
                        link_type,
                        dest_url,
                        ..
                    }
                    | Tag::Image {
                        link_type,
                        dest_url,
                        ..
                    },
                ) => {
                    open_links.push(page.links.len());
                    page.links.push(Link {
                        line: line(range.start),
                        span: target_span(text, range, link_type, &dest_url),
                        target: dest_url.into_string(),
                        code: Vec::new(),
                    });
                }
                Event::End(TagEnd::Link | TagEnd::Image) => {
                    open_links.pop();
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    if let Some(&link) = open_links.last() {
                        page.links[link].code.push(code.to_string());
                    }
                    page.code_spans
                        .push((line(range.start), code.into_string()));
                }
                Event::Text(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// The bytes of an inline link's target: they follow the last `](` of the link.
fn target_span(
    text: &str,
    link: Range<usize>,
    link_type: LinkType,
    target: &str,
) -> Option<Range<usize>> {
    if link_type != LinkType::Inline {
        return None;
    }
    let start = link.start + text[link.clone()].rfind("](")? + 2;
    let span = start..start + target.len();
    (text.get(span.clone()) == Some(target)).then_some(span)
}

/// The anchor of a heading, by the rule of GitHub and of mdBook: lower case, spaces as
/// hyphens, and no other punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

/// mdBook replaces includes before it reads Markdown, in code blocks too.
fn includes(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for rest in line.split("{{#include ").skip(1) {
            if let Some(end) = rest.find("}}") {
                found.push((index + 1, rest[..end].trim().to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_anchors() {
        let page = Page::parse("# The `GROUP_SIZE_M`, 2× wide\n\n## A · B\n\n## A · B\n");
        assert_eq!(page.anchors, ["the-group_size_m-2-wide", "a--b", "a--b-1"]);
    }

    #[test]
    fn links_have_a_line_a_place_and_code() {
        let text =
            "one\n\ntwo [`run`](a.rs#x), <https://example.com>\n\n```text\n[no](b.rs)\n```\n";
        let page = Page::parse(text);
        let [inline, automatic] = &page.links[..] else {
            panic!("{:?}", page.links);
        };
        assert_eq!((inline.line, inline.target.as_str()), (3, "a.rs#x"));
        assert_eq!(&text[inline.span.clone().unwrap()], "a.rs#x");
        assert_eq!(inline.code, ["run"]);
        assert_eq!(automatic.span, None);
        assert_eq!(page.code_spans, [(3, "run".to_owned())]);
    }

    #[test]
    fn includes_are_found_in_code_blocks() {
        let page = Page::parse("```rust\n{{#include ../a.rs:part}}\n```\n");
        assert_eq!(page.includes, [(2, "../a.rs:part".to_owned())]);
    }
}
