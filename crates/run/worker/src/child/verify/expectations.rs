//! Expected outputs of a launch, and the evidence against a launch that was found to be wrong.

use std::fmt::Display;
use std::path::Path;

use crate::child::failure::{Failed, JobResult};
use crate::child::memory::buffers::bytes_of;
use crate::child::memory::content::Seed;
use crate::child::timing::inputs::Shown;
use crate::protocol::{Blame, BufferSpec, Checks};
use warpgauge_device::{MappedFile, Staging};
use warpgauge_model::FailureCode;
use warpgauge_validate::Filling;

/// Expected outputs, each with the index of its buffer.
pub(crate) type Expectations = Vec<(usize, Expected)>;

/// Returns the expected elements, each with the index of the buffer.
pub(crate) fn elements(expected: &Expectations) -> Vec<(usize, &[u8])> {
    expected.iter().map(|(buffer, expected)| (*buffer, expected.bytes())).collect()
}

/// Expected content of an output buffer.
pub(crate) enum Expected {
    File(ExpectedFile),
    /// Computed by a reference. The reference's output had this filling before.
    Computed(Staging, Filling),
    /// Content of a file, with the parts that do not matter cleared.
    Cleared(Vec<u8>),
}

impl Expected {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Expected::File(file) => file.bytes(),
            Expected::Computed(content, _) => content.bytes(),
            Expected::Cleared(bytes) => bytes,
        }
    }
}

/// Expected content in a file that also contains the expected content for other inputs.
pub(crate) struct ExpectedFile {
    file: MappedFile,
    /// Offset of the content for these inputs, bytes.
    start: usize,
    bytes: usize,
}

impl ExpectedFile {
    /// Opens the file of expected content of the buffer `spec`, at the content for these inputs.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or has no content for these inputs.
    pub(crate) fn open(
        path: &Path,
        spec: &BufferSpec,
        (checks, shown): (&Checks, Shown),
    ) -> JobResult<Self> {
        let unreadable = |why: &dyn Display| {
            let text = format!("cannot read the expected content of {}: {why}", spec.name);
            Failed::new(FailureCode::ExpectedUnreadable, text, Blame::Environment)
        };
        let set = match shown.seed {
            Seed::Contract => Some(0),
            Seed::Drawn(seed) => {
                checks.drawn.iter().position(|&drawn| drawn == seed).map(|at| at + 1)
            }
            Seed::Secret(_) => None,
        };
        let set = set.ok_or_else(|| unreadable(&"no content was computed for these inputs"))?;
        let bytes = bytes_of(spec)?;
        let file = MappedFile::open(path, bytes * (1 + checks.drawn.len() as u64));
        let file = file.map_err(|error| unreadable(&error))?;
        Ok(Self { file, start: set * bytes as usize, bytes: bytes as usize })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.file.bytes()[self.start..][..self.bytes]
    }
}

/// The inputs of a launch, and the references' outputs for them. They are in host memory that no
/// kernel can access, because the candidate may run again before they are used.
pub(crate) struct Evidence {
    pub shown: Shown,
    /// Outputs that references computed, by buffer; content from files is not included.
    pub computed: Vec<(usize, Vec<u8>)>,
}

impl Evidence {
    /// No evidence against any launch.
    pub(crate) const NONE: Self = Self { shown: Shown::CANONICAL, computed: Vec::new() };

    /// Returns the evidence against a launch with these inputs.
    pub(crate) fn new(shown: Shown, expected: &Expectations) -> Self {
        let computed = expected.iter().filter_map(|(buffer, expected)| match expected {
            Expected::File(_) | Expected::Cleared(_) => None,
            Expected::Computed(content, _) => Some((*buffer, content.bytes().to_vec())),
        });
        Self { shown, computed: computed.collect() }
    }
}
