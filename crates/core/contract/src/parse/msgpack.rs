//! MessagePack bodies.
//!
//! A first pass over the markers finds the end of the document or the first error, without
//! recursion. The second pass builds the value.

use serde::de::DeserializeOwned;
use warpgauge_document::{Document, DocumentFormat, path_text};

use super::{Adapt, MAX_DEPTH, ParseError, data_error, data_error_code, too_many_values};

use warpgauge_model::FailureCode;

pub(super) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    max_values: usize,
    adapt: Adapt<'_>,
) -> Result<T, ParseError> {
    let mut deserializer = deserializer(bytes, max_values)?;
    let mut document = Document::parse(&mut deserializer)
        .map_err(|unparsed| describe(&unparsed.error).at_path(&path_text(&unparsed.path)))?;
    adapt(&mut document)
        .and_then(|()| document.read(DocumentFormat::MsgPack))
        .map_err(|error| data_error(&error))
}

/// Parses a body without a tree of values, because a tree of millions of numbers would take too
/// much memory.
pub(super) fn parse_directly<T: DeserializeOwned>(
    bytes: &[u8],
    max_values: usize,
) -> Result<T, ParseError> {
    serde_path_to_error::deserialize(&mut deserializer(bytes, max_values)?)
        .map_err(|error| describe(error.inner()).at_path(&error.path().to_string()))
}

type Deserializer<'a> = rmp_serde::Deserializer<rmp_serde::decode::ReadRefReader<'a, [u8]>>;

fn deserializer(bytes: &[u8], max_values: usize) -> Result<Deserializer<'_>, ParseError> {
    let end = scan(bytes, max_values)?;
    if end < bytes.len() {
        let message = format!("{} bytes follow the MessagePack document", bytes.len() - end);
        return Err(at_offset(ParseError::new(FailureCode::MalformedMsgpack, message), end));
    }
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    // The library counts each option as a level.
    deserializer.set_max_depth(4 * MAX_DEPTH);
    Ok(deserializer)
}

fn describe(error: &rmp_serde::decode::Error) -> ParseError {
    use rmp_serde::decode::Error;
    match error {
        Error::Syntax(message) | Error::Uncategorized(message) => {
            ParseError::new(data_error_code(message), message.as_str())
        }
        Error::TypeMismatch(marker) => ParseError::new(
            FailureCode::WrongType,
            format!(
                "invalid type: the MessagePack value begins with the byte 0x{:02x}",
                marker.to_u8()
            ),
        ),
        Error::OutOfRange => {
            ParseError::new(FailureCode::InvalidValue, "the number does not fit in the field")
        }
        Error::LengthMismatch(expected) => ParseError::new(
            FailureCode::WrongType,
            format!("wrong number of elements, expected {expected}"),
        ),
        Error::DepthLimitExceeded => too_deep(),
        other => ParseError::new(FailureCode::MalformedMsgpack, other.to_string()),
    }
}

fn too_deep() -> ParseError {
    ParseError::new(FailureCode::TooDeep, format!("the body nests deeper than {MAX_DEPTH} levels"))
}

fn at_offset(mut error: ParseError, offset: usize) -> ParseError {
    error.offset = Some(offset as u64);
    error
}

/// Content after a marker: `skip` bytes of its value, then `children` values.
struct Item {
    skip: u64,
    children: u64,
}

/// Returns the offset of the end of the first value, after checking all markers in it.
fn scan(bytes: &[u8], max_values: usize) -> Result<usize, ParseError> {
    let (mut position, mut values) = (0, 0);
    // Remaining values at each open level.
    let mut open = vec![1u64];
    while let Some(pending) = open.last_mut() {
        if *pending == 0 {
            open.pop();
            continue;
        }
        *pending -= 1;
        let start = position;
        values += 1;
        if values > max_values {
            return Err(at_offset(too_many_values(max_values), start));
        }
        let item = item(bytes, &mut position).map_err(|error| at_offset(error, start))?;
        let left = (bytes.len() - position) as u64;
        // Every child takes at least a byte.
        if item.skip > left || item.children > left {
            let message = format!(
                "the MessagePack body ends too early: {} bytes announced, {left} left",
                item.skip.max(item.children)
            );
            return Err(at_offset(ParseError::new(FailureCode::TruncatedBody, message), start));
        }
        let content = position..position + item.skip as usize;
        let is_text = matches!(bytes[start], 0xa0..=0xbf | 0xd9..=0xdb);
        if is_text && std::str::from_utf8(&bytes[content.clone()]).is_err() {
            let error = ParseError::new(FailureCode::MalformedMsgpack, "a string is not UTF-8");
            return Err(at_offset(error, start));
        }
        position = content.end;
        if item.children > 0 {
            if open.len() > MAX_DEPTH {
                return Err(at_offset(too_deep(), start));
            }
            open.push(item.children);
        }
    }
    Ok(position)
}

/// Reads a marker and its length field.
fn item(bytes: &[u8], position: &mut usize) -> Result<Item, ParseError> {
    let marker = number(bytes, position, 1)? as u8;
    let skip = |skip| Ok(Item { skip, children: 0 });
    let mut length = |width| number(bytes, position, width);
    match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => skip(0),
        0x80..=0x8f => Ok(Item { skip: 0, children: u64::from(marker & 0x0f) * 2 }),
        0x90..=0x9f => Ok(Item { skip: 0, children: u64::from(marker & 0x0f) }),
        0xa0..=0xbf => skip(u64::from(marker & 0x1f)),
        0xc4 | 0xd9 => skip(length(1)?),
        0xc5 | 0xda => skip(length(2)?),
        0xc6 | 0xdb => skip(length(4)?),
        0xc7 => skip(length(1)? + 1),
        0xc8 => skip(length(2)? + 1),
        0xc9 => skip(length(4)? + 1),
        0xcc | 0xd0 => skip(1),
        0xcd | 0xd1 => skip(2),
        0xca | 0xce | 0xd2 => skip(4),
        0xcb | 0xcf | 0xd3 => skip(8),
        0xd4..=0xd8 => skip(1 + (1 << (marker - 0xd4))),
        0xdc => Ok(Item { skip: 0, children: length(2)? }),
        0xdd => Ok(Item { skip: 0, children: length(4)? }),
        0xde => Ok(Item { skip: 0, children: length(2)? * 2 }),
        0xdf => Ok(Item { skip: 0, children: length(4)? * 2 }),
        0xc1 => Err(ParseError::new(
            FailureCode::MalformedMsgpack,
            "byte 0xc1 is not a MessagePack marker; is the body JSON or compressed?",
        )),
    }
}

/// Reads a big-endian number of `width` bytes.
fn number(bytes: &[u8], position: &mut usize, width: usize) -> Result<u64, ParseError> {
    let Some(raw) = bytes.get(*position..*position + width) else {
        let message = "the MessagePack body ends too early; it may have been cut off";
        return Err(ParseError::new(FailureCode::TruncatedBody, message));
    };
    *position += width;
    Ok(raw.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}
