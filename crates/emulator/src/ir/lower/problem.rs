//! Why something cannot be lowered.

/// A reason, and whose fault it is.
#[derive(Debug)]
pub(crate) struct Problem {
    /// What is wrong, for people.
    pub(crate) text: String,
    /// Whether it is PTX that a GPU takes and the emulator lacks; else no device takes it.
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

/// What a GPU can do, and the emulator cannot.
pub(super) fn gap(text: impl Into<String>) -> Problem {
    Problem { text: text.into(), gap: true }
}
