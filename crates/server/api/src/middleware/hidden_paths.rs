//! Hides the path of the data directory in answers to callers ([`HiddenPaths`]). The log and
//! administrators can see it.

use std::path::PathBuf;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;

/// Text that replaces the data directory in answers.
const SHOWN: &str = "DATA_DIR";

/// The data directory, which answers must not contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenPaths {
    directory: Option<String>,
}

impl HiddenPaths {
    pub(crate) fn new(data_dir: Option<PathBuf>) -> Self {
        let named = |path: PathBuf| path.to_str().map(str::to_owned);
        // Every path begins with the root directory, so the root directory is not replaced.
        Self { directory: data_dir.and_then(named).filter(|path| path.len() > 1) }
    }

    /// Returns a JSON text in which the directory's path is replaced.
    pub(crate) fn hidden_in_text(&self, text: Bytes) -> Bytes {
        let Some(directory) = &self.directory else { return text };
        let quoted = Value::from(directory.as_str()).to_string();
        let quoted = quoted.trim_matches('"');
        match std::str::from_utf8(&text) {
            Ok(read) if read.contains(quoted) => read.replace(quoted, SHOWN).into(),
            _ => text,
        }
    }

    /// Returns a value in whose texts the directory's path is replaced.
    pub(crate) fn hidden_in<T: Serialize + DeserializeOwned>(
        &self,
        value: T,
    ) -> Result<T, ApiError> {
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "an answer cannot be read again");
            ApiError::internal("places", "the answer cannot be written")
        };
        let text = serde_json::to_vec(&value).map_err(|error| failed(&error))?;
        warpgauge_document::from_json(&self.hidden_in_text(text.into()))
            .map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_in_no_text() {
        let places = HiddenPaths::new(Some("/var/\"a\"/data".into()));
        let value = serde_json::json!({"error": "cannot write /var/\"a\"/data/run/x", "n": 1.5});
        let hidden = places.hidden_in(value.clone()).unwrap();
        assert_eq!(hidden["error"], "cannot write DATA_DIR/run/x");
        assert_eq!(hidden["n"], 1.5);
        for nowhere in [None, Some("/".into())] {
            assert_eq!(HiddenPaths::new(nowhere).hidden_in(value.clone()).unwrap(), value);
        }
    }
}
