//! The reason why code cannot be lowered.

/// The reason why code cannot be lowered. It distinguishes invalid PTX from PTX that the emulator
/// does not support.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The reason, in plain language.
    pub(crate) text: String,
    /// Whether GPUs accept the PTX but the emulator does not support it. Otherwise no device
    /// accepts it.
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

/// Returns the problem of PTX that GPUs accept but the emulator does not support.
pub(super) fn gap(text: impl Into<String>) -> Problem {
    Problem { text: text.into(), gap: true }
}
