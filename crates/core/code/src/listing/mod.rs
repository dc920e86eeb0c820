//! Listings of machine code and of PTX: what a kernel's instructions are, without names and places.
//!
//! `nvdisasm` and `cuobjdump` write SASS, NVRTC writes PTX; [`instructions`] reads one kernel of
//! either into lines that are the same wherever the kernel stands and whatever it is called, and
//! [`diff`] compares two such kernels. Pure.

mod diff;
mod ptx;
mod sass;

pub use diff::{CodeDiff, CodeLanguage, OpcodeCount, diff};

/// Most instructions of one kernel that are looked at; what follows is left out, and said to be.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// One kernel's instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Instructions and labels, one each.
    pub lines: Vec<String>,
    /// Whether there were more than are looked at.
    pub cut: bool,
}

/// The instructions of the kernel of that symbol; `None` if the listing does not have it.
pub fn instructions(listing: &str, language: CodeLanguage, symbol: &str) -> Option<Instructions> {
    match language {
        CodeLanguage::Sass => sass::instructions(listing, symbol),
        CodeLanguage::Ptx => ptx::instructions(listing, symbol),
    }
}

/// A SASS listing without the kernels whose symbols `is_hidden` names.
pub fn without_kernels(listing: &str, is_hidden: impl Fn(&str) -> bool) -> String {
    sass::without(listing, is_hidden)
}

/// What an instruction does: its opcode with modifiers; `None` for a label or a directive.
fn opcode(line: &str) -> Option<&str> {
    if line.ends_with(':') {
        return None;
    }
    let mut words = line.split([' ', '\t', ';']).filter(|word| !word.is_empty());
    let first = words.next()?;
    if first.starts_with(['.', '{', '}']) {
        return None;
    }
    // A predicate stands in front.
    if first.starts_with('@') { words.next() } else { Some(first) }
}

/// Runs of blanks as one, none at the ends.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
