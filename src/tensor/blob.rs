//! Base64 payloads of any size.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A base64 payload as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    text: Arc<str>,
}

impl Blob {
    /// Wraps base64 text.
    pub fn from_base64(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into() }
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self { text: text.into() })
    }
}
