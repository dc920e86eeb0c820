//! JSON bodies.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use warpgauge_document::{Document, DocumentError, DocumentFormat, path_text};

use super::locate::{Part, locate};
use super::{Adapt, ParseError, data_error, data_error_code, too_many_values};

use warpgauge_model::FailureCode;

pub(super) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    max_values: usize,
    adapt: Adapt<'_>,
) -> Result<T, ParseError> {
    let mut document = document(bytes, max_values)?;
    adapt(&mut document)
        .and_then(|()| document.read(DocumentFormat::Json))
        .map_err(|error| mistake(&error, bytes))
}

fn document(bytes: &[u8], max_values: usize) -> Result<Document<'_>, ParseError> {
    check_number_of_values(bytes, max_values)?;
    // The parser itself rejects nesting deeper than 128 levels.
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let document = Document::parse(&mut deserializer)
        .map_err(|unparsed| describe(&unparsed.error).at_path(&path_text(&unparsed.path)))?;
    deserializer.end().map_err(|error| describe(&error))?;
    Ok(document)
}

/// Parses a body without a tree of values, because a tree of millions of numbers would take too
/// much memory.
pub(super) fn parse_directly<T: DeserializeOwned>(
    bytes: &[u8],
    max_values: usize,
) -> Result<T, ParseError> {
    check_number_of_values(bytes, max_values)?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| describe(error.inner()).at_path(&error.path().to_string()))?;
    deserializer.end().map_err(|error| describe(&error))?;
    Ok(value)
}

fn check_number_of_values(bytes: &[u8], max_values: usize) -> Result<(), ParseError> {
    // Base64 has no separators, so the quick count suffices for nearly every body.
    match separator_bytes(bytes) > max_values && separators(bytes) > max_values {
        true => Err(too_many_values(max_values)),
        false => Ok(()),
    }
}

/// Returns the error of a value that does not match its type, with its position.
fn mistake(error: &DocumentError, bytes: &[u8]) -> ParseError {
    let described = data_error(error);
    let part = match described.code {
        FailureCode::UnknownField => Part::Key,
        FailureCode::DuplicateField => Part::SecondKey,
        _ => Part::Value,
    };
    let (line, column) = locate(bytes, &error.path(), part);
    described.at_line(line, column)
}

/// Counts commas and opening brackets anywhere.
fn separator_bytes(bytes: &[u8]) -> usize {
    let is_separator = |&byte: &u8| u8::from((byte == b',') | (byte == b'[') | (byte == b'{'));
    // Sums of at most 255 fit a byte, which keeps the vector lanes narrow.
    let in_piece = |piece: &[u8]| usize::from(piece.iter().map(is_separator).sum::<u8>());
    bytes.chunks(usize::from(u8::MAX)).map(in_piece).sum()
}

/// Counts commas and opening brackets outside strings: at least the number of values minus one.
fn separators(bytes: &[u8]) -> usize {
    let (mut count, mut position) = (0, 0);
    while let Some(&byte) = bytes.get(position) {
        position += 1;
        match byte {
            b'"' => position = end_of_string(bytes, position),
            b',' | b'[' | b'{' => count += 1,
            _ => (),
        }
    }
    count
}

/// Returns the offset after the closing quote of the string whose content starts at `position`.
pub(super) fn end_of_string(bytes: &[u8], mut position: usize) -> usize {
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'"' => return position + 1,
            // The character after a backslash is part of the string.
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    // A text that ends in a backslash is not JSON.
    bytes.len()
}

fn describe(error: &serde_json::Error) -> ParseError {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let whole = error.to_string();
    let message = whole.strip_suffix(&place).unwrap_or(&whole);
    let described = match error.classify() {
        Category::Eof => ParseError::new(
            FailureCode::TruncatedBody,
            format!("the JSON body ends too early ({message}); it may have been cut off"),
        ),
        Category::Data => ParseError::new(data_error_code(message), message),
        Category::Syntax | Category::Io if message.starts_with("recursion limit") => {
            ParseError::new(FailureCode::TooDeep, "the body nests deeper than 128 levels")
        }
        Category::Syntax | Category::Io => {
            ParseError::new(FailureCode::MalformedJson, format!("not JSON: {message}"))
        }
    };
    described.at_line(error.line() as u64, error.column() as u64)
}
