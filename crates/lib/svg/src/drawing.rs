//! Drawings as SVG documents. The main type is [`Drawing`].

use std::fmt::Write as _;

use crate::element::{SvgElement, described};

/// An SVG document under construction. Its size is fixed. Later elements cover earlier ones.
#[derive(Debug)]
pub struct Drawing {
    out: String,
}

impl Drawing {
    /// Creates a drawing of this size in pixels, with a title for screen readers.
    pub fn new(size: [f64; 2], title: &str) -> Self {
        let mut drawing = Self::open(size, "");
        let _ = writeln!(drawing.out, "<title>{}</title>", described(title));
        drawing
    }

    /// Creates a drawing like [`Drawing::new`], and adds a description. The drawing must be a
    /// separate document, because the title and the description have fixed ids.
    pub fn described(size: [f64; 2], title: &str, description: &str) -> Self {
        let mut drawing = Self::open(size, " aria-labelledby=\"t d\"");
        let (title, description) = (described(title), described(description));
        let _ = writeln!(
            drawing.out,
            "<title id=\"t\">{title}</title>\n<desc id=\"d\">{description}</desc>"
        );
        drawing
    }

    fn open([width, height]: [f64; 2], labels: &str) -> Self {
        let mut out = String::with_capacity(16 << 10);
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\"{labels}>"
        );
        Self { out }
    }

    /// Adds a style sheet without changing it.
    pub fn style(&mut self, css: &'static str) {
        let _ = writeln!(self.out, "<style>{css}</style>");
    }

    /// Draws an element over the earlier ones.
    pub fn add(&mut self, element: SvgElement) {
        let _ = writeln!(self.out, "{element}");
    }

    /// Returns the complete document.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_well_formed_and_says_what_it_is() {
        let mut drawing = Drawing::described([10.0, 20.4], "a < b", "c & d");
        drawing.style("text{fill:#444}");
        drawing.add(SvgElement::text("x", [1.0, 2.0], "<script>"));
        let text = drawing.finish();
        let document = roxmltree::Document::parse(&text).expect("well-formed");
        let svg = document.root_element();
        assert_eq!(svg.attribute("viewBox"), Some("0 0 10 20"));
        let label = svg.attribute("aria-labelledby").expect("a label");
        let of =
            |id: &str| svg.children().find(|it| it.attribute("id") == Some(id)).unwrap().text();
        let texts = label.split(' ').map(of).collect::<Vec<_>>();
        assert_eq!(texts, [Some("a < b"), Some("c & d")]);
        let last = svg.children().rfind(roxmltree::Node::is_element).unwrap();
        assert_eq!((last.tag_name().name(), last.text()), ("text", Some("<script>")));
    }

    #[test]
    fn a_drawing_within_a_page_has_no_ids() {
        let text = Drawing::new([10.0, 10.0], "title").finish();
        let document = roxmltree::Document::parse(&text).expect("well-formed");
        assert!(document.descendants().all(|node| node.attribute("id").is_none()), "{text}");
        assert!(text.contains("<title>title</title>"));
    }
}
