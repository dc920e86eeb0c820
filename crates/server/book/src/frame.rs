//! Frame of a page: table of contents, links to the previous and the next page, and style.

use std::fmt::Write as _;

use warpgauge_svg::xml::escape;

use super::{PAGES, Source};
use warpgauge_page::style::TOKENS;

const STYLE: &str = include_str!("book.css");

/// Returns the complete HTML document of the page with this index.
pub(super) fn framed(root: &str, index: usize, body: &str) -> String {
    let page = &PAGES[index];
    let title = escape(page.title);
    let contents = contents(root, index);
    let neighbours = neighbours(root, index);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{title} · warpgauge</title><style>{TOKENS}{STYLE}</style></head><body>\
         <header><a href=\"/\">warpgauge</a> <a href=\"/docs\">API</a></header>\
         <div class=\"book\"><nav aria-label=\"Contents\"><details open=\"open\"><summary>Contents</summary>\
         {contents}</details></nav><main>{body}{neighbours}</main></div></body></html>\n"
    )
}

/// Returns the table of contents: all pages, grouped by part.
fn contents(root: &str, current: usize) -> String {
    let mut html = String::new();
    let mut part = None;
    for (index, page) in PAGES.iter().enumerate() {
        if part != Some(page.part) {
            html.push_str(if part.is_some() { "</ul>" } else { "" });
            let _ = write!(html, "<h2>{}</h2><ul>", escape(page.part));
            part = Some(page.part);
        }
        let mark = if index == current { " aria-current=\"page\"" } else { "" };
        let _ = write!(html, "<li>{}</li>", link(root, page, mark));
    }
    html.push_str("</ul>");
    html
}

/// Returns the links to the previous and the next page.
fn neighbours(root: &str, index: usize) -> String {
    let before = index.checked_sub(1).and_then(|before| PAGES.get(before));
    let links = [(before, "rel=\"prev\""), (PAGES.get(index + 1), "rel=\"next\"")];
    let links =
        links.into_iter().filter_map(|(page, rel)| Some(link(root, page?, &format!(" {rel}"))));
    format!("<footer>{}</footer>", links.collect::<Vec<_>>().join(" "))
}

fn link(root: &str, page: &Source, attributes: &str) -> String {
    format!("<a href=\"{root}/{}\"{attributes}>{}</a>", page.path(), escape(page.title))
}
