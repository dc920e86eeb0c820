//! What can be wrong with a configuration, and where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where the value of a setting came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The embedded `default.toml`.
    Default,
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(&'static str),
    /// A command-line flag.
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

/// Why there is no configuration. All of these are the operator's to put right.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("could not read the configuration file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is larger than any configuration.
    #[error(
        "the configuration file {} is larger than {limit} bytes; is it the right file?",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest accepted, bytes.
        limit: u64,
    },
    /// The file is not TOML.
    #[error("{}:{line}: not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// The file has a key that no setting has.
    #[error(
        "{origin}: unknown setting `{key}`{}; known: {}",
        suggest(.suggestion),
        known.join(", ")
    )]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// The key, with its table.
        key: String,
        /// The known key that looks most like it.
        suggestion: Option<String>,
        /// Keys that may stand there.
        known: Vec<String>,
    },
    /// A value is of the wrong type or out of range.
    #[error("{origin}: `{key}` must be {expected}; got {got}")]
    Value {
        /// Where.
        origin: Origin,
        /// The setting.
        key: String,
        /// What it may be.
        expected: String,
        /// What came.
        got: String,
    },
    /// No directory for data is given and none can be derived.
    #[error(
        "no data directory: neither XDG_DATA_HOME nor HOME names one; set WARPGAUGE_DATA_DIR or \
         `storage.data_dir`"
    )]
    NoDataDir,
}

fn suggest(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|s| format!(" (did you mean `{s}`?)")).unwrap_or_default()
}
