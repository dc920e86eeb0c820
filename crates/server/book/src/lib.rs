//! The documents in `docs/` as a book. A server can so provide the documents of its version without
//! a network.
//!
//! docs/SUMMARY.md lists the pages, in the format of mdBook. [`page`] renders a page as HTML
//! without scripts.

#![forbid(unsafe_code)]

mod frame;
mod markdown;

/// The Markdown of a page, and its place in the book.
struct Source {
    /// Heading of the part to which the page belongs.
    part: &'static str,
    title: &'static str,
    /// Path of the Markdown file, relative to `docs/`.
    file: &'static str,
    text: &'static str,
}

impl Source {
    /// Returns the path of the page in the book.
    fn path(&self) -> &'static str {
        self.file.strip_suffix(".md").unwrap_or(self.file)
    }
}

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Returns the paths of the pages relative to the address of the book, in reading order. The first
/// is the front page of the book.
pub fn paths() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(Source::path)
}

/// Returns the HTML of a page. `root` is the path under which the book is served, such as `/book`.
pub fn page(root: &str, path: &str) -> Option<String> {
    let index = PAGES.iter().position(|page| page.path() == path)?;
    let body = markdown::html(&PAGES[index], root);
    Some(frame::framed(root, index, &body))
}

/// Returns the index of the page that is rendered from this file. The path is relative to `docs/`.
fn index_of(file: &str) -> Option<usize> {
    PAGES.iter().position(|page| page.file == file)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// Returns the documents of all pages.
    fn rendered() -> Vec<(&'static str, String)> {
        paths().map(|path| (path, page("/book", path).unwrap())).collect()
    }

    #[test]
    fn every_page_is_well_formed_and_every_link_within_the_book_leads_to_a_heading() {
        let pages = rendered();
        assert!(pages.len() > 20, "{} pages", pages.len());
        let mut ids: HashMap<&str, HashSet<String>> = HashMap::new();
        let mut links = Vec::new();
        for (path, html) in &pages {
            let xml = html.strip_prefix("<!DOCTYPE html>\n").unwrap();
            let document =
                roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{path}: {error}"));
            for node in document.descendants() {
                if let Some(id) = node.attribute("id") {
                    let is_new = ids.entry(path).or_default().insert(id.to_owned());
                    assert!(is_new, "{path} has two elements {id}");
                }
                if let Some(link) = node.attribute("href") {
                    links.push((*path, link.to_owned()));
                }
                assert!(node.attribute("style").is_none(), "{path}: a style that a policy blocks");
            }
        }
        for (path, link) in links {
            let Some(inner) = link.strip_prefix("/book/") else {
                let is_out = link.starts_with("https://") || link.starts_with("http://");
                assert!(is_out || link == "/" || link == "/docs", "{path}: {link}");
                continue;
            };
            let (target, heading) = inner.split_once('#').unwrap_or((inner, ""));
            let found = ids.get(target).unwrap_or_else(|| panic!("{path}: no page {link}"));
            assert!(heading.is_empty() || found.contains(heading), "{path}: no heading {link}");
        }
    }

    #[test]
    fn a_page_that_the_summary_does_not_list_is_none() {
        assert!(page("/book", "../README").is_none());
        assert!(page("/book", "").is_none());
    }
}
