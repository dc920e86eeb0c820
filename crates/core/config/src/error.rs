//! Errors of a configuration, and origins of its values. The main type is [`ConfigError`].

use std::fmt;
use std::path::PathBuf;

/// Origin of the value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Embedded `default.toml`.
    Default,
    /// A line of the configuration file.
    File {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    Environment(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => write!(f, "environment variable {name}"),
            Origin::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// Reason why the configuration cannot be loaded. The operator can correct every such error.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("could not read the configuration file {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is larger than a configuration can be.
    #[error(
        "the configuration file {} is larger than {limit} bytes; is it the right file?",
        path.display()
    )]
    TooLarge {
        path: PathBuf,
        /// Largest accepted size, in bytes.
        limit: u64,
    },
    /// The file is not TOML.
    #[error("{}:{line}: not valid TOML: {message}", path.display())]
    Syntax {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Message of the parser.
        message: String,
    },
    /// The file contains a key that is not a setting.
    #[error(
        "{origin}: unknown setting `{key}`{}; known: {}",
        suggest(.suggestion),
        known.join(", ")
    )]
    UnknownKey {
        origin: Origin,
        /// The key, with its table.
        key: String,
        /// The most similar known key.
        suggestion: Option<String>,
        /// Keys allowed in this table.
        known: Vec<String>,
    },
    /// A value has an incorrect type or is out of range.
    #[error("{origin}: `{key}` must be {expected}; got {got}")]
    Value {
        origin: Origin,
        /// Key of the setting.
        key: String,
        /// Description of valid values.
        expected: String,
        /// Description of the received value.
        got: String,
    },
    /// The data directory is not given and cannot be derived.
    #[error(
        "no data directory: neither XDG_DATA_HOME nor HOME names one; set WARPGAUGE_DATA_DIR or \
         `storage.data_dir`"
    )]
    NoDataDir,
}

fn suggest(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|s| format!(" (did you mean `{s}`?)")).unwrap_or_default()
}
