//! The error of a PTX text that cannot be loaded. The main type is [`LoadError`].

/// The reason why a PTX text cannot be loaded, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {reason}{}", at(.instruction))]
pub struct LoadError {
    /// Line in the PTX text, counted from 1. 0 if the error does not concern a single line.
    pub line: u32,
    /// The instruction or directive, truncated to a limited length. Empty if the error does not
    /// concern one.
    pub instruction: String,
    pub reason: String,
    /// Whether GPUs accept the code but the emulator does not support it. Otherwise no device
    /// accepts it.
    pub gap: bool,
}

impl LoadError {
    /// Creates the error for code that no device accepts.
    pub(crate) fn invalid(line: u32, instruction: String, reason: String) -> Self {
        Self { line, instruction, reason, gap: false }
    }

    /// Creates the error for code that the emulator does not support.
    pub(crate) fn gap(line: u32, instruction: String, reason: String) -> Self {
        Self { line, instruction, reason, gap: true }
    }

    /// Maximum length of the reason and of the instruction, characters. Both quote names from the
    /// text.
    const LONGEST: [usize; 2] = [400, 160];

    /// Truncates the reason and the instruction to their maximum lengths.
    pub(crate) fn cut(mut self) -> Self {
        for (text, longest) in
            [&mut self.reason, &mut self.instruction].into_iter().zip(Self::LONGEST)
        {
            if let Some((end, _)) = text.char_indices().nth(longest) {
                text.truncate(end);
                text.push('…');
            }
        }
        self
    }
}

fn at(instruction: &str) -> String {
    if instruction.is_empty() { String::new() } else { format!(": `{instruction}`") }
}
