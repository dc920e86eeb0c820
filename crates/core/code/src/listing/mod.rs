//! Listings of machine code and of PTX, reduced to a kernel's instructions without names and
//! addresses. The main type is [`Instructions`].
//!
//! `nvdisasm` and `cuobjdump` write SASS, NVRTC writes PTX. [`instructions`] reads one kernel of
//! either into lines that do not depend on its position or name. [`diff()`] compares two such
//! kernels. [`linked()`] keeps the source line of each instruction. The module does no I/O.

mod diff;
mod linked;
mod ptx;
mod sass;

pub use diff::{CodeDiff, CodeLanguage, OpcodeCount, diff};
pub use linked::{LinkedInstruction, LinkedInstructions, MAX_LINKED, linked};

/// Maximum number of instructions of a kernel that are read. Later instructions are omitted, and
/// [`Instructions::cut`] is set.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// The instructions of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Instructions and labels, one per line.
    pub lines: Vec<String>,
    /// Whether instructions were omitted.
    pub cut: bool,
}

/// Returns the instructions of the kernel with that symbol, or `None` if the listing does not
/// contain it.
pub fn instructions(listing: &str, language: CodeLanguage, symbol: &str) -> Option<Instructions> {
    match language {
        CodeLanguage::Sass => sass::instructions(listing, symbol),
        CodeLanguage::Ptx => ptx::instructions(listing, symbol),
    }
}

/// Name of the kernel template that the compiler's module appends to sources, to query types.
pub const PROBE: &str = "__warpgauge_signature";

/// Returns whether a symbol belongs to an instance of [`PROBE`], not to a submitted kernel.
pub fn is_probe(symbol: &str) -> bool {
    symbol.contains(PROBE)
}

/// Returns a SASS listing without the kernels whose symbols satisfy `is_hidden`.
pub fn without_kernels(listing: &str, is_hidden: impl Fn(&str) -> bool) -> String {
    sass::without(listing, is_hidden)
}

/// Returns a SASS listing without the comments that name source lines, since they contain file
/// paths of this machine.
pub fn without_places(listing: &str) -> String {
    let lines = listing.lines().filter(|line| !line.trim_start().starts_with("//##"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the opcode of an instruction with its modifiers, or `None` for a label or a directive.
fn opcode(line: &str) -> Option<&str> {
    if line.ends_with(':') {
        return None;
    }
    let mut words = line.split([' ', '\t', ';']).filter(|word| !word.is_empty());
    let first = words.next()?;
    if first.starts_with(['.', '{', '}']) {
        return None;
    }
    // The first word is a predicate.
    if first.starts_with('@') { words.next() } else { Some(first) }
}

/// Replaces each run of white space with a space, and trims the ends.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
