//! Bodies in JSON, YAML and MessagePack to typed requests.

use serde::de::DeserializeOwned;

/// Format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// RFC 8259.
    Json,
    /// YAML 1.2.
    Yaml,
    /// MessagePack, structures as maps.
    MsgPack,
}

/// A body that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Stable code.
    pub code: &'static str,
    /// Where in the document; empty: the whole of it.
    pub path: String,
    /// What was expected and what came.
    pub message: String,
    /// Line in the text, from 1.
    pub line: Option<u64>,
    /// Column in the line, from 1.
    pub column: Option<u64>,
    /// Offset in a binary body, in bytes, from 0.
    pub offset: Option<u64>,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

fn error(path: String, message: String) -> ParseError {
    ParseError {
        code: "invalid_value",
        path,
        message,
        line: None,
        column: None,
        offset: None,
    }
}

/// Parses a whole body.
pub fn parse<T: DeserializeOwned>(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError> {
    match format {
        BodyFormat::Json => {
            let mut de = serde_json::Deserializer::from_slice(bytes);
            serde_path_to_error::deserialize(&mut de)
                .map_err(|e| error(e.path().to_string(), e.inner().to_string()))
        }
        BodyFormat::Yaml => {
            serde_saphyr::from_slice(bytes).map_err(|e| error(String::new(), e.to_string()))
        }
        BodyFormat::MsgPack => {
            rmp_serde::from_slice(bytes).map_err(|e| error(String::new(), e.to_string()))
        }
    }
}
