//! The tree.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::DocumentError;
use crate::read::Reader;

/// What a tree was filled from. It decides what the types make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    /// JSON: a number as a key is written as a text.
    Json,
    /// YAML: a scalar without a tag is whatever type is asked for.
    Yaml,
    /// MessagePack: types that have a text and a compact form come in the compact one.
    MsgPack,
}

/// Line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineColumn {
    /// The line in the text.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// A value of a document, with all that is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'de> {
    pub(crate) value: Value<'de>,
    pub(crate) place: Option<LineColumn>,
}

/// What a [`Document`] holds.
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
    /// In the order of the document; a key may stand in it twice.
    Map(Vec<(Document<'de>, Document<'de>)>),
    /// A scalar of YAML that is no text.
    Scalar(Box<Scalar<'de>>),
}

/// A scalar of YAML, which is a text where a type asks for one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar<'de> {
    /// What it is where no type is asked for.
    pub(crate) value: Value<'de>,
    /// How it is written.
    pub(crate) text: &'de str,
    /// First and last byte (exclusive) in the document.
    pub(crate) span: (usize, usize),
}

impl<'de> Document<'de> {
    pub(crate) fn new(value: Value<'de>) -> Self {
        Self { value, place: None }
    }

    /// The typed value that the tree holds.
    ///
    /// # Errors
    /// The tree is not what the type expects.
    pub fn read<T: DeserializeOwned>(self, format: DocumentFormat) -> Result<T, DocumentError> {
        T::deserialize(Reader::new(self, format))
    }

    /// The text of a key, if it is one.
    pub(crate) fn text(&self) -> Option<Cow<'de, str>> {
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
                // A number of serde_json without arbitrary precision is one of three.
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
