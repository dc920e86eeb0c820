//! The tree of values of a document. The main type is [`Document`].

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::DocumentError;
use crate::read::Reader;

/// The format of the input, which determines how types are read from the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    /// JSON, in which a numeric key is written as text.
    Json,
    /// YAML, in which a scalar without a tag takes the requested type.
    Yaml,
    /// MessagePack, in which types that have both a text form and a compact form use the compact
    /// one.
    MsgPack,
}

/// A line and a column, numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineColumn {
    /// The line in the text, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
}

/// A value of a document, including all values inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'de> {
    pub(crate) value: Value<'de>,
    pub(crate) place: Option<LineColumn>,
}

/// The content of a [`Document`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'de> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Cow<'de, str>),
    Bytes(Cow<'de, [u8]>),
    List(Vec<Document<'de>>),
    /// The entries of a map in document order. A key may occur more than once.
    Map(Vec<(Document<'de>, Document<'de>)>),
    /// A YAML scalar whose inferred type is not text.
    Scalar(Box<Scalar<'de>>),
}

/// A YAML scalar, which may also be read as text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar<'de> {
    /// The value for types that do not request text.
    pub(crate) value: Value<'de>,
    /// The text of the scalar in the document.
    pub(crate) text: &'de str,
    /// The offset of the first byte in the document, and the offset after the last byte.
    pub(crate) span: (usize, usize),
}

impl<'de> Document<'de> {
    pub(crate) fn new(value: Value<'de>) -> Self {
        Self { value, place: None }
    }

    /// Reads a typed value from the tree.
    ///
    /// # Errors
    /// The tree does not match the type.
    pub fn read<T: DeserializeOwned>(self, format: DocumentFormat) -> Result<T, DocumentError> {
        T::deserialize(Reader::new(self, format))
    }

    /// Returns the value as text, if it is text or a scalar.
    pub fn text(&self) -> Option<Cow<'de, str>> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Scalar(scalar) => Some(Cow::Borrowed(scalar.text)),
            _ => None,
        }
    }
}

impl From<Json> for Document<'_> {
    fn from(value: Json) -> Self {
        Self::new(match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Value::Unsigned(value),
                (_, Some(value)) => Value::Signed(value),
                // Without arbitrary precision, a serde_json number is a u64, an i64 or an f64.
                _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(Cow::Owned(text)),
            Json::Array(list) => Value::List(list.into_iter().map(Self::from).collect()),
            Json::Object(fields) => {
                let text = |name| Self::new(Value::Text(Cow::Owned(name)));
                let field = |(name, value)| (text(name), Self::from(value));
                Value::Map(fields.into_iter().map(field).collect())
            }
        })
    }
}
