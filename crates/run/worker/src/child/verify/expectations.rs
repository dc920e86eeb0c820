//! What is expected of a launch, and what spoke against one that was found wrong.

use crate::child::timing::inputs::Shown;
use warpgauge_device::{MappedFile, Staging};
use warpgauge_validate::Filling;

/// What is expected, by buffer.
pub(crate) type Expectations = Vec<(usize, Expected)>;

/// The elements that are expected, by buffer.
pub(crate) fn elements(expected: &Expectations) -> Vec<(usize, &[u8])> {
    expected.iter().map(|(buffer, expected)| (*buffer, expected.bytes())).collect()
}

/// Expected content of a buffer.
pub(crate) enum Expected {
    File(MappedFile),
    /// By a reference, whose output held this filling before.
    Computed(Staging, Filling),
}

impl Expected {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Expected::File(file) => file.bytes(),
            Expected::Computed(content, _) => content.bytes(),
        }
    }
}

/// The inputs of a launch, and what the references left for them: in memory that no kernel reaches, since
/// the candidate may run once more before it is looked at.
pub(crate) struct Evidence {
    pub shown: Shown,
    /// By buffer; nothing of what was expected from files.
    pub computed: Vec<(usize, Vec<u8>)>,
}

impl Evidence {
    /// Nothing spoke against any.
    pub(crate) const NONE: Self = Self { shown: Shown::CANONICAL, computed: Vec::new() };

    /// Of a launch with these inputs.
    pub(crate) fn new(shown: Shown, expected: &Expectations) -> Self {
        let computed = expected.iter().filter_map(|(buffer, expected)| match expected {
            Expected::File(_) => None,
            Expected::Computed(content, _) => Some((*buffer, content.bytes().to_vec())),
        });
        Self { shown, computed: computed.collect() }
    }
}
