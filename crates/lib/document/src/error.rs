//! Errors that contain the path to the invalid value. The main type is [`DocumentError`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Unexpected};

use crate::LineColumn;

/// A step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    /// The value of a field, or the content of an enum variant.
    Field(String),
    /// An element of a list, numbered from 0.
    Element(usize),
    /// A field whose name is not text.
    Unnamed,
}

impl PathSegment {
    /// Returns the step to the value of a key with this text.
    pub(crate) fn named(text: Option<Cow<'_, str>>) -> Self {
        text.map_or(Self::Unnamed, |text| Self::Field(text.into_owned()))
    }
}

/// An error about a value that does not match a type.
#[derive(Debug)]
pub struct DocumentError(Box<Content>);

#[derive(Debug)]
struct Content {
    message: String,
    /// The steps of the path, innermost first.
    path: Vec<PathSegment>,
    place: Option<LineColumn>,
}

impl DocumentError {
    /// Creates an error about the value at this path, which starts with the outermost step.
    pub fn at_path(message: impl fmt::Display, path: &[PathSegment]) -> Self {
        Self::new(message).with_path(path.iter().rev().cloned().collect())
    }

    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(Box::new(Content { message: message.to_string(), path: Vec::new(), place: None }))
    }

    pub(crate) fn with_path(mut self, path: Vec<PathSegment>) -> Self {
        self.0.path = path;
        self
    }

    /// Adds the step from the enclosing value to the path.
    pub(crate) fn under(mut self, segment: PathSegment) -> Self {
        self.0.path.push(segment);
        self
    }

    /// Adds a location if the error does not have one yet.
    pub(crate) fn at(mut self, place: Option<LineColumn>) -> Self {
        self.0.place = self.0.place.or(place);
        self
    }

    /// Returns a description of the expected and the found value, without the path and the
    /// location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the steps from the whole document to the value.
    pub fn path(&self) -> Vec<PathSegment> {
        self.0.path.iter().rev().cloned().collect()
    }

    /// Returns the location of the value, if the parser of the format reports it.
    pub fn place(&self) -> Option<LineColumn> {
        self.0.place
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = path_text(&self.path());
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for DocumentError {}

impl de::Error for DocumentError {
    #[inline(never)]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message)
    }

    #[inline(never)]
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format_args!(
            "invalid type: {}, expected {}",
            Found(unexpected),
            wanted(expected)
        ))
    }

    #[inline(never)]
    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format_args!(
            "invalid value: {}, expected {}",
            Found(unexpected),
            wanted(expected)
        ))
    }
}

/// Describes an expected value in terms of documents instead of Rust types.
fn wanted(expected: &dyn de::Expected) -> String {
    let text = expected.to_string();
    let words = match text.as_str() {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "u128" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "unit" | "unit struct" => "null",
        "a sequence" => "a list",
        "a map" => "a mapping",
        "string or map" => "a text or a mapping",
        other if other.starts_with("struct ") => "a mapping",
        other if other.starts_with("enum ") => "one of its names",
        _ => return text,
    };
    words.to_owned()
}

/// A value that was found, described in terms of documents.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            // Without an exponent, the number could have 300 digits.
            Unexpected::Float(value) => write!(f, "floating point `{value:?}`"),
            other => other.fmt(f),
        }
    }
}

/// Formats a path in JavaScript notation, e.g. `kernel.io.args[0].tensor_spec`. The path of the
/// whole document is empty.
pub fn path_text(path: &[PathSegment]) -> String {
    let mut text = String::new();
    for segment in path {
        let name = match segment {
            PathSegment::Element(index) => {
                text.push_str(&format!("[{index}]"));
                continue;
            }
            PathSegment::Field(name) => name,
            PathSegment::Unnamed => "?",
        };
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(name);
    }
    text
}
