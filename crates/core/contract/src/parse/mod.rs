//! Parses bodies in JSON, YAML and MessagePack into typed requests. Errors contain the path and the
//! position. The main function is [`parse`].

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use warpgauge_document::{Document, DocumentError, DocumentFormat, MAX_YAML_DEPTH, path_text};

use super::ContractError;
use super::compatible::{Adapter, Compatible};

use warpgauge_model::{FailureCode, nearest};

mod json;
mod locate;
mod msgpack;
mod yaml;

/// Maximum nesting depth of a body. The contract itself has a depth of 9.
const MAX_DEPTH: usize = MAX_YAML_DEPTH;

/// Maximum number of values (list elements, fields) in a body. A value may take some hundred times
/// its length in memory. Therefore the number of values is bounded in addition to the length of the
/// body.
const MAX_VALUES: usize = 250_000;

/// Maximum length of an error's message or path, bytes. Both may quote the body.
const MAX_ERROR_TEXT: usize = 2000;

/// Format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON, as RFC 8259 defines it.
    Json,
    /// YAML 1.2 (and 1.1's booleans and merge keys).
    Yaml,
    /// MessagePack, with structures as maps.
    MsgPack,
}

impl fmt::Display for BodyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyFormat::Json => "JSON",
            BodyFormat::Yaml => "YAML",
            BodyFormat::MsgPack => "MessagePack",
        })
    }
}

/// A body that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Stable code: `malformed_json`, `malformed_yaml`, `malformed_msgpack`, `truncated_body`,
    /// `too_deep`, `too_large`, `unknown_field`, `missing_field`, `duplicate_field`, `wrong_type`,
    /// `invalid_value`.
    pub code: FailureCode,
    /// Path in the document, e.g. `kernel.io.args[0].tensor_spec.dtype`; empty for the whole
    /// document.
    pub path: String,
    /// The expected and the actual value.
    pub message: String,
    /// Line in the text, from 1.
    pub line: Option<u64>,
    /// Column in the line, from 1, in bytes (JSON) or characters (YAML).
    pub column: Option<u64>,
    /// Offset in a binary body, bytes from 0.
    pub offset: Option<u64>,
}

impl ParseError {
    fn new(code: FailureCode, message: impl Into<String>) -> Self {
        let message = shortened(message.into());
        Self { code, path: String::new(), message, line: None, column: None, offset: None }
    }

    /// Adds a path in the parsers' syntax: `.` is the document itself, and `?` a key that could not
    /// be read.
    fn at_path(mut self, path: &str) -> Self {
        // The path would consist of a hundred brackets, which do not help a reader.
        if self.code != FailureCode::TooDeep {
            self.path = shortened(path.trim_end_matches('?').trim_end_matches('.').to_owned());
        }
        self
    }

    fn at_line(mut self, line: u64, column: u64) -> Self {
        if line > 0 {
            (self.line, self.column) = (Some(line), Some(column.max(1)));
        }
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, " (line {line}, column {column})")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " (byte {offset})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

/// Maximum number of values in a body of number arrays. Each takes 8 bytes in memory.
const MAX_ARRAY_VALUES: usize = 1 << 28;

/// Parses a body as [`parse`] does, but accepts up to [`MAX_ARRAY_VALUES`] values. It is meant for types whose lists
/// take little more memory than their text.
pub fn parse_arrays<T: DeserializeOwned>(
    format: BodyFormat,
    bytes: &[u8],
) -> Result<T, ParseError> {
    check_content(format, bytes)?;
    match format {
        BodyFormat::Json => json::parse_directly(bytes, MAX_ARRAY_VALUES),
        // The YAML parser's own tree of values has the usual limit.
        BodyFormat::Yaml => yaml::parse(bytes, &mut |_| Ok(())),
        BodyFormat::MsgPack => msgpack::parse_directly(bytes, MAX_ARRAY_VALUES),
    }
}

/// Parses a whole body. Memory beyond the result is small and bounded: long strings are borrowed
/// from `bytes`, and the number of values and their nesting are limited. YAML aliases cannot
/// multiply a document.
pub fn parse<T: DeserializeOwned>(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError> {
    parse_adapted(format, bytes, &mut |_| Ok(()))
}

/// Parses a request that may be written for the CUDA Evaluation Server. Unknown fields are ignored and missing
/// fields get the defaults of that server. The request has a warning for each.
pub fn parse_compatible<T: Compatible>(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError> {
    let mut adapter = Adapter::default();
    let mut request: T =
        parse_adapted(format, bytes, &mut |document| T::adapt(document, &mut adapter))?;
    request.set_warnings(adapter.into_warnings());
    Ok(request)
}

/// Reads a request from parsed JSON as [`parse_compatible`] does from a body.
///
/// # Errors The value is not a valid request, or an unknown name is close to a known one.
pub fn compatible_from_value<T: Compatible>(value: Value) -> Result<T, DocumentError> {
    let mut adapter = Adapter::default();
    let mut document = Document::from(value);
    T::adapt(&mut document, &mut adapter)?;
    let mut request: T = document.read(DocumentFormat::Json)?;
    request.set_warnings(adapter.into_warnings());
    Ok(request)
}

/// Changes a tree before it is read.
type Adapt<'a> = &'a mut dyn FnMut(&mut Document<'_>) -> Result<(), DocumentError>;

fn parse_adapted<T: DeserializeOwned>(
    format: BodyFormat,
    bytes: &[u8],
    adapt: Adapt<'_>,
) -> Result<T, ParseError> {
    check_content(format, bytes)?;
    match format {
        BodyFormat::Json => json::parse(bytes, MAX_VALUES, adapt),
        BodyFormat::Yaml => yaml::parse(bytes, adapt),
        BodyFormat::MsgPack => msgpack::parse(bytes, MAX_VALUES, adapt),
    }
}

fn check_content(format: BodyFormat, bytes: &[u8]) -> Result<(), ParseError> {
    match bytes.iter().all(u8::is_ascii_whitespace) {
        true => {
            Err(ParseError::new(FailureCode::TruncatedBody, format!("the {format} body is empty")))
        }
        false => Ok(()),
    }
}

/// Converts parsed JSON to a typed request.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, ContractError> {
    warpgauge_document::from_value(value).map_err(|error| {
        let ParseError { path, code, message, .. } = data_error(&error);
        ContractError { path, code, message }
    })
}

/// Returns the error of a value that does not match its type.
fn data_error(error: &DocumentError) -> ParseError {
    let code = data_error_code(error.message());
    let message = match code {
        FailureCode::UnknownField | FailureCode::InvalidValue => with_suggestion(error.message()),
        _ => error.message().to_owned(),
    };
    ParseError::new(code, message).at_path(&path_text(&error.path()))
}

/// Adds the nearest expected name to serde's message about an unknown name: "unknown field `a`, expected one of `b`,
/// `c`".
pub fn with_suggestion(message: &str) -> String {
    let mut parts = message.split('`');
    let (kind, unknown) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // Names in backticks alternate with the text between them.
    let expected = parts.skip(1).step_by(2);
    let rest = message.strip_prefix(kind).and_then(|rest| rest.get(unknown.len() + 2..));
    match (kind, nearest(unknown, expected), rest) {
        ("unknown field " | "unknown variant ", Some(near), Some(rest))
            if rest.starts_with(", expected") =>
        {
            format!("{kind}`{unknown}` (did you mean `{near}`?){rest}")
        }
        _ => message.to_owned(),
    }
}

fn too_many_values(most: usize) -> ParseError {
    let message = format!(
        "the body has more than {most} values; send large arrays as base64 in \
         `tensor_spec.data`"
    );
    ParseError::new(FailureCode::TooLarge, message)
}

/// Returns the code of a deserialisation error, from serde's fixed messages.
fn data_error_code(message: &str) -> FailureCode {
    const CODES: [(&str, FailureCode); 6] = [
        ("unknown field", FailureCode::UnknownField),
        ("missing field", FailureCode::MissingField),
        ("duplicate field", FailureCode::DuplicateField),
        ("invalid type", FailureCode::WrongType),
        ("invalid length", FailureCode::WrongType),
        ("unknown variant", FailureCode::InvalidValue),
    ];
    CODES
        .into_iter()
        .find(|(words, _)| message.starts_with(words))
        .map_or(FailureCode::InvalidValue, |(_, code)| code)
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_ERROR_TEXT {
        let cut = (0..=MAX_ERROR_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
