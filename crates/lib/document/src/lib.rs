//! Reads typed values from JSON, YAML and MessagePack through a common tree.
//!
//! The parser of each format builds a [`Document`], and a single deserialiser reads every type from
//! this tree. The compiler therefore generates the code that reads a type once, rather than once
//! per format. That code used to make up two fifths of the program. The tree borrows long texts
//! from the input. It uses about 50 bytes per value, so callers limit the number of values.
//!
//! - [`Document::parse`] builds a tree, or returns the parser's error and its path
//! - [`Document::read`] returns a typed value, or an error and its path
//! - [`from_json`] and [`from_msgpack`] do both, for documents that the program wrote itself

#![forbid(unsafe_code)]

mod choice;
mod document;
mod edit;
mod error;
mod parse;
mod read;
mod yaml;

use serde::de::DeserializeOwned;

pub use document::{Document, DocumentFormat, LineColumn};
pub use error::{DocumentError, PathSegment, path_text};
pub use parse::Unparsed;
pub use yaml::MAX_YAML_DEPTH;

/// The deepest nesting of MessagePack for which the stack of a thread is large enough. A value from
/// a JSON request has at most 128 levels.
const MAX_MSGPACK_DEPTH: usize = 384;

/// Reads a typed value from JSON.
///
/// # Errors
/// The text is not JSON, or does not match the type.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    json(bytes, u64::MAX)?.read(DocumentFormat::Json)
}

/// Reads a typed value from JSON like [`from_json`], but accepts at most `max_values` values. It is
/// for input from other programs.
///
/// # Errors The errors of [`from_json`], or too many values.
pub fn from_json_within<T: DeserializeOwned>(
    max_values: u64,
    bytes: &[u8],
) -> Result<T, DocumentError> {
    json(bytes, max_values)?.read(DocumentFormat::Json)
}

/// Reads a typed value from parsed JSON.
///
/// # Errors
/// The value does not match the type.
pub fn from_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, DocumentError> {
    Document::from(value).read(DocumentFormat::Json)
}

/// Reads a typed value from MessagePack.
///
/// # Errors
/// The bytes are not MessagePack, or do not match the type.
pub fn from_msgpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    msgpack(bytes, u64::MAX)?.read(DocumentFormat::MsgPack)
}

/// Reads a typed value from MessagePack like [`from_msgpack`], but accepts at most `max_values`
/// values. It is for input from other processes.
///
/// # Errors The errors of [`from_msgpack`], or too many values.
pub fn from_msgpack_within<T: DeserializeOwned>(
    max_values: u64,
    bytes: &[u8],
) -> Result<T, DocumentError> {
    msgpack(bytes, max_values)?.read(DocumentFormat::MsgPack)
}

fn json(bytes: &[u8], max_values: u64) -> Result<Document<'_>, DocumentError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let document = Document::parse_within(max_values, &mut deserializer)
        .map_err(|unparsed| unparsed.into_error())?;
    deserializer.end().map_err(DocumentError::new)?;
    Ok(document)
}

fn msgpack(bytes: &[u8], max_values: u64) -> Result<Document<'_>, DocumentError> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(MAX_MSGPACK_DEPTH);
    Document::parse_within(max_values, &mut deserializer).map_err(|unparsed| unparsed.into_error())
}

#[cfg(test)]
mod tests;
