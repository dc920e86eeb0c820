//! Elements of a drawing. The main type is [`SvgElement`].

use std::fmt::{self, Display, Formatter, Write as _};

use crate::xml;

/// The maximum length of a text in a drawing, in characters. The names of templates have no limit,
/// and a line of a drawing has space for little more than this.
const MAX_TEXT: usize = 120;
/// The maximum length of a title and of a description, in characters. They have more space than the
/// texts in the drawing.
const MAX_TITLE: usize = 400;

/// A position in a drawing: the distances to the right and down from its upper left corner, in
/// pixels.
pub type Point = [f64; 2];

/// The part of a text that is at the text's point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Middle,
    End,
}

/// An element with its children. Style sheets of the drawing or of the page refer to its class. An
/// empty class is omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvgElement {
    tag: &'static str,
    attributes: String,
    content: String,
}

impl SvgElement {
    fn new(tag: &'static str, class: &str) -> Self {
        let mut attributes = String::new();
        if !class.is_empty() {
            let _ = write!(attributes, " class=\"{}\"", xml::escape(class));
        }
        Self { tag, attributes, content: String::new() }
    }

    /// Adds a numeric attribute, rounded to one decimal place.
    fn number(mut self, name: &str, value: f64) -> Self {
        let _ = write!(self.attributes, " {name}=\"{value:.1}\"");
        self
    }

    /// Creates a straight line.
    pub fn line(class: &str, from: Point, to: Point) -> Self {
        let line = Self::new("line", class);
        line.number("x1", from[0]).number("y1", from[1]).number("x2", to[0]).number("y2", to[1])
    }

    /// Creates a rectangle from its upper left corner and its size.
    pub fn rectangle(class: &str, corner: Point, [width, height]: [f64; 2]) -> Self {
        let rectangle = Self::new("rect", class).number("x", corner[0]).number("y", corner[1]);
        rectangle.number("width", width).number("height", height)
    }

    /// Creates a circle.
    pub fn circle(class: &str, centre: Point, radius: f64) -> Self {
        Self::new("circle", class)
            .number("cx", centre[0])
            .number("cy", centre[1])
            .number("r", radius)
    }

    /// Creates a path. `data` is in SVG notation.
    pub fn path(class: &str, data: &str) -> Self {
        let mut path = Self::new("path", class);
        let _ = write!(path.attributes, " d=\"{}\"", xml::escape(data));
        path
    }

    /// Creates one line of text that starts at a point.
    pub fn text(class: &str, at: Point, text: &str) -> Self {
        let mut element = Self::new("text", class).number("x", at[0]).number("y", at[1]);
        element.content = shown(text, MAX_TEXT);
        element
    }

    /// Creates an empty group.
    pub fn group(class: &str) -> Self {
        Self::new("g", class)
    }

    /// Sets the part of the text that is placed at its point.
    pub fn anchored(mut self, anchor: Anchor) -> Self {
        self.attributes.push_str(match anchor {
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        });
        self
    }

    /// Adds a title, which browsers show when the pointer is over the element.
    pub fn titled(mut self, title: &str) -> Self {
        let _ = write!(self.content, "<title>{}</title>", described(title));
        self
    }

    /// Adds an element inside this one.
    pub fn with(mut self, child: SvgElement) -> Self {
        let _ = write!(self.content, "{child}");
        self
    }
}

impl Display for SvgElement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { tag, attributes, content } = self;
        match content.is_empty() {
            true => write!(f, "<{tag}{attributes}/>"),
            false => write!(f, "<{tag}{attributes}>{content}</{tag}>"),
        }
    }
}

/// Shortens a text to at most `most` characters. A shortened text ends in `…`.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Prepares text for a title or a description.
pub(crate) fn described(text: &str) -> String {
    shown(text, MAX_TITLE)
}

/// Prepares text for an element. Shortens it, escapes markup, and replaces control characters and
/// characters that change the writing direction.
fn shown(text: &str, most: usize) -> String {
    let shown = shortened(text, most).chars().map(plain).collect::<String>();
    xml::escape(&shown)
}

fn plain(c: char) -> char {
    match c {
        // Characters that change the writing direction could make a name look like another one.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '\u{fffd}'
        }
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_as_svg_has_them() {
        let line = SvgElement::line("a b", [1.0, 2.25], [3.0, 4.0]);
        assert_eq!(
            line.to_string(),
            "<line class=\"a b\" x1=\"1.0\" y1=\"2.2\" x2=\"3.0\" y2=\"4.0\"/>"
        );
        let group =
            SvgElement::group("").titled("t").with(SvgElement::circle("c", [0.0, 1.0], 2.5));
        assert_eq!(
            group.to_string(),
            "<g><title>t</title><circle class=\"c\" cx=\"0.0\" cy=\"1.0\" r=\"2.5\"/></g>"
        );
        let text = SvgElement::text("", [1.0, 2.0], "a").anchored(Anchor::End);
        assert_eq!(text.to_string(), "<text x=\"1.0\" y=\"2.0\" text-anchor=\"end\">a</text>");
    }

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(
            shown("a<b>&\"'\u{0}\u{202e}", MAX_TEXT),
            "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}"
        );
        let quoted = SvgElement::path("\"/><script>", "\"/><script>").to_string();
        assert!(!quoted.contains("<script"), "{quoted}");
    }

    #[test]
    fn texts_are_bounded() {
        assert_eq!(shortened("abcd", 4), "abcd");
        assert_eq!(shortened("äbcde", 4), "äbc…");
        assert_eq!(shown(&"x".repeat(1000), MAX_TEXT).chars().count(), MAX_TEXT);
        assert_eq!(described(&"x".repeat(1000)).chars().count(), MAX_TITLE);
    }
}
