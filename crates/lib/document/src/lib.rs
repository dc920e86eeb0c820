//! Reads typed values from JSON, YAML and MessagePack through a common tree.
//!
//! The parser of each format fills a [`Document`], and one deserialiser reads every type from the
//! tree. The compiler therefore generates the code that reads a type once, not once per format;
//! that code used to be two fifths of the program. A tree borrows long texts from the input. It
//! takes some 50 bytes per value, so callers bound the number of values.
//!
//! - [`Document::parse`] fills a tree, or returns the error of the parser with its path
//! - [`Document::read`] returns a typed value, or an error with its path
//! - [`from_json`] and [`from_msgpack`] do both, for documents that the program itself wrote

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

/// Deepest nesting of MessagePack that fits the stack of a thread. A value from a JSON request has
/// at most 128 levels.
const MAX_MSGPACK_DEPTH: usize = 384;

/// Reads a typed value from JSON.
///
/// # Errors
/// The text is not JSON, or does not match the type.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    json(bytes, u64::MAX)?.read(DocumentFormat::Json)
}

/// Reads like [`from_json`], but at most `max_values` values, for input of another program.
///
/// # Errors
/// As [`from_json`], or there are more values.
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

/// Reads like [`from_msgpack`], but at most `max_values` values, for input of another process.
///
/// # Errors
/// As [`from_msgpack`], or there are more values.
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
