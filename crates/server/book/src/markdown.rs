//! Converts Markdown to HTML. Headings get anchors, and links to other documents become links to
//! their pages.

use std::collections::HashMap;

use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

use super::{PAGES, Source, index_of};

/// Attributes that align table cells, and the classes that replace them.
const ALIGNMENTS: [(&str, &str); 3] = [
    (r#" style="text-align: left""#, ""),
    (r#" style="text-align: right""#, r#" class="right""#),
    (r#" style="text-align: center""#, r#" class="center""#),
];

/// Returns the HTML of a page's content. HTML in the Markdown is shown as text, except for
/// comments, which are removed.
pub(super) fn html(page: &Source, root: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events: Vec<Event<'_>> = Parser::new_ext(page.text, options).collect();
    let mut anchors = Anchors::default();
    let mut out = Vec::with_capacity(events.len());
    let mut links = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let id = anchors.of(&heading_text(&events[index + 1..]));
                out.push(heading(*level, id));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, .. }) => {
                let url = target(page, root, *link_type, dest_url);
                links.push(url.is_some());
                if let Some(url) = url {
                    let id = CowStr::from("");
                    out.push(Event::Start(Tag::Link {
                        link_type: *link_type,
                        dest_url: url.into(),
                        title: title.clone(),
                        id,
                    }));
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    out.push(event.clone());
                }
            }
            // The program does not contain the pictures; their descriptions stand for them.
            Event::Start(Tag::Image { .. }) => out.push(Event::Start(Tag::Emphasis)),
            Event::End(TagEnd::Image) => out.push(Event::End(TagEnd::Emphasis)),
            Event::Html(text) | Event::InlineHtml(text) => {
                if !text.trim_start().starts_with("<!--") {
                    out.push(Event::Text(text.clone()));
                }
            }
            Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
            other => out.push(other.clone()),
        }
    }
    let mut text = String::with_capacity(page.text.len() * 3 / 2);
    html::push_html(&mut text, out.into_iter());
    // The server's content security policy for pages forbids style attributes.
    ALIGNMENTS.iter().fold(text, |text, (style, class)| text.replace(style, class))
}

fn heading(level: HeadingLevel, id: String) -> Event<'static> {
    Event::Start(Tag::Heading {
        level,
        id: Some(id.into()),
        classes: Vec::new(),
        attrs: Vec::new(),
    })
}

/// Returns the text of the heading at the beginning of these events.
fn heading_text(events: &[Event<'_>]) -> String {
    let content =
        events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = content.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        _ => None,
    });
    texts.collect()
}

/// The anchors of the headings on a page.
#[derive(Default)]
struct Anchors {
    /// For each anchor, the number of headings so far.
    seen: HashMap<String, usize>,
}

impl Anchors {
    /// Returns the anchor of a heading in the form that GitHub uses: lower case, hyphens for
    /// spaces, no punctuation. If a heading is repeated, a number is added from the second
    /// occurrence on.
    fn of(&mut self, heading: &str) -> String {
        let kept = heading.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        });
        let anchor = kept.collect::<String>().to_lowercase();
        let count = self.seen.entry(anchor.clone()).or_default();
        *count += 1;
        match *count {
            1 => anchor,
            more => format!("{anchor}-{}", more - 1),
        }
    }
}

/// Returns the target of a link; `None` for files of the repository that are not pages of the book.
fn target(page: &Source, root: &str, kind: LinkType, url: &str) -> Option<String> {
    if kind == LinkType::Email || url.starts_with("https://") || url.starts_with("http://") {
        return Some(url.to_owned());
    }
    let (file, heading) = match url.split_once('#') {
        Some((file, heading)) => (file, format!("#{heading}")),
        None => (url, String::new()),
    };
    let index =
        if file.is_empty() { index_of(page.file) } else { index_of(&joined(page.file, file)?) };
    let path = PAGES[index?].path();
    Some(format!("{root}/{path}{heading}"))
}

/// Returns the path of `link` relative to the folder of `from`, without `.` and `..`. Returns
/// `None` if it leads outside `docs/`.
fn joined(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_documents_lead_to_their_pages_and_links_to_other_files_are_text() {
        let text = "[a](gate.md#ci) [b](../src/main.rs) [c](https://example.org/x) [d](#here)\n\n# Here\n\n# Here\n";
        let page = Source { part: "", title: "", file: "cli.md", text };
        let html = html(&page, "/book");
        assert!(
            html.contains(r##"<a href="/book/gate#ci">a</a> b <a href="https://example.org/x">"##),
            "{html}"
        );
        assert!(html.contains(r##"<a href="/book/cli#here">d</a>"##), "{html}");
        assert!(
            html.contains(r#"<h1 id="here">"#) && html.contains(r#"<h1 id="here-1">"#),
            "{html}"
        );
    }

    #[test]
    fn html_is_text_and_comments_are_left_out() {
        let text = "<!-- made:begin -->\n\na <b>c</b>\n\n<script>alert(1)</script>\n";
        let page = Source { part: "", title: "", file: "cli.md", text };
        let html = html(&page, "/book");
        assert!(
            !html.contains("<script") && !html.contains("<b>") && !html.contains("made"),
            "{html}"
        );
        assert!(html.contains("&lt;b&gt;") && html.contains("&lt;script&gt;"), "{html}");
    }

    #[test]
    fn pictures_are_their_descriptions() {
        let text = "![a <b> page](pictures/x.png)\n";
        let page = Source { part: "", title: "", file: "cli.md", text };
        assert_eq!(html(&page, "/book"), "<p><em>a &lt;b&gt; page</em></p>\n");
    }

    #[test]
    fn paths_do_not_leave_the_documents() {
        assert_eq!(joined("contributing/style.md", "../gate.md").as_deref(), Some("gate.md"));
        assert_eq!(joined("gate.md", "../README.md"), None);
    }
}
