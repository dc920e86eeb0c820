//! Why a PTX text cannot be loaded.

/// A PTX text that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {reason}{}", at(.instruction))]
pub struct LoadError {
    /// Line in the PTX text, from 1; 0 where no single line is to blame.
    pub line: u32,
    /// The instruction or directive, cut to a reasonable length; empty where there is none.
    pub instruction: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it is something that a GPU takes and the emulator lacks; else no device takes it.
    pub gap: bool,
}

impl LoadError {
    /// What no device takes.
    pub(crate) fn invalid(line: u32, instruction: String, reason: String) -> Self {
        Self { line, instruction, reason, gap: false }
    }

    /// What the emulator lacks.
    pub(crate) fn gap(line: u32, instruction: String, reason: String) -> Self {
        Self { line, instruction, reason, gap: true }
    }

    /// Longest reason and longest instruction, in characters: both quote names from the text.
    const LONGEST: [usize; 2] = [400, 160];

    /// With reason and instruction of a bounded length.
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
