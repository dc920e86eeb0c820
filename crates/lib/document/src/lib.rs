//! Reads typed values from JSON, YAML and MessagePack by way of one tree.
//!
//! A parser of each format fills a [`Document`], and every type is read from such a tree by one deserializer. So the
//! compiler generates the code that reads a type once, and not once for each format: that code was two fifths of the
//! program. A tree borrows long texts from the input. It takes some 50 bytes for each value, so callers bound the
//! number of values.
//!
//! - [`Document::parse`]: fills a tree; on failure the error of the parser, and the path to the place of it
//! - [`Document::read`]: a typed value, or an error with its path
//! - [`from_json`], [`from_msgpack`]: both steps, for documents that the program itself wrote

#![forbid(unsafe_code)]

mod choice;
mod document;
mod error;
mod parse;
mod read;
mod yaml;

use serde::de::DeserializeOwned;

pub use document::{Document, DocumentFormat, LineColumn};
pub use error::{DocumentError, PathSegment, path_text};
pub use parse::Unparsed;
pub use yaml::MAX_YAML_DEPTH;

/// Deepest nesting of MessagePack, which the stack of a thread has room for. A value of a request that came as JSON
/// nests 128 levels.
const MAX_MSGPACK_DEPTH: usize = 384;

/// A typed value from JSON.
///
/// # Errors
/// The text is not JSON, or not what the type expects.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    json(bytes, u64::MAX)?.read(DocumentFormat::Json)
}

/// As [`from_json`], for what another program wrote: with at most so many values.
///
/// # Errors
/// As [`from_json`], and where there are more values.
pub fn from_json_within<T: DeserializeOwned>(
    max_values: u64,
    bytes: &[u8],
) -> Result<T, DocumentError> {
    json(bytes, max_values)?.read(DocumentFormat::Json)
}

/// A typed value from JSON that was parsed before.
///
/// # Errors
/// The value is not what the type expects.
pub fn from_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, DocumentError> {
    Document::from(value).read(DocumentFormat::Json)
}

/// A typed value from MessagePack.
///
/// # Errors
/// The bytes are not MessagePack, or not what the type expects.
pub fn from_msgpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    msgpack(bytes, u64::MAX)?.read(DocumentFormat::MsgPack)
}

/// As [`from_msgpack`], for what another process wrote: with at most so many values.
///
/// # Errors
/// As [`from_msgpack`], and where there are more values.
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
