//! The reason for which code cannot be lowered.

/// A reason, and whether the PTX or the emulator causes it.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Description for people.
    pub(crate) text: String,
    /// Whether a GPU accepts the PTX but the emulator does not support it. Otherwise no device accepts
    /// it.
    pub(crate) gap: bool,
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self { text, gap: false }
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// Returns the problem of PTX which a GPU accepts and the emulator does not support.
pub(super) fn gap(text: impl Into<String>) -> Problem {
    Problem { text: text.into(), gap: true }
}
