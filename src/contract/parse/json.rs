//! JSON bodies.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::{ParseError, data_error_code};

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ParseError> {
    // The parser itself refuses nesting beyond 128.
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| describe(error.inner()).at_path(error.path()))?;
    deserializer.end().map_err(|error| describe(&error))?;
    Ok(value)
}

fn describe(error: &serde_json::Error) -> ParseError {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let whole = error.to_string();
    let message = whole.strip_suffix(&place).unwrap_or(&whole);
    let described = match error.classify() {
        Category::Eof => ParseError::new(
            "truncated_body",
            format!("the JSON body ends too early ({message}); it may have been cut off"),
        ),
        Category::Data => ParseError::new(data_error_code(message), message),
        Category::Syntax | Category::Io if message.starts_with("recursion limit") => {
            ParseError::new("too_deep", "the body nests deeper than 128 levels")
        }
        Category::Syntax | Category::Io => {
            ParseError::new("malformed_json", format!("not JSON: {message}"))
        }
    };
    described.at_line(error.line() as u64, error.column() as u64)
}
