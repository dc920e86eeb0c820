//! Comparison of the instructions of two kernels. The main type is [`CodeDiff`].

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use super::{Instructions, opcode};

/// Maximum length of a unified diff, in bytes.
const MAX_UNIFIED_BYTES: usize = 64 << 10;

/// Maximum number of opcodes that are listed, those with the largest differences.
const MAX_OPCODES: usize = 48;

/// Unchanged lines around each difference.
const CONTEXT: usize = 3;

/// Differences between the code of two kernels. Names and addresses are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeDiff {
    /// Language of the compared listings.
    pub language: CodeLanguage,
    /// Whether the instructions are the same.
    pub identical: bool,
    /// Number of instructions of the reference.
    pub reference_instructions: u64,
    /// Number of instructions of the candidate.
    pub candidate_instructions: u64,
    /// Number of lines that are only in the candidate.
    pub added: u64,
    /// Number of lines that are only in the reference.
    pub removed: u64,
    /// Unified diff, with three lines of context. Labels are renumbered, and the kernel is called
    /// `kernel`.
    pub unified: String,
    /// Whether the diff is truncated, because the kernels or their differences are long.
    pub truncated: bool,
    /// Opcodes with different numbers of uses, the largest differences first. Of equal differences, those with more
    /// uses are first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opcodes: Vec<OpcodeCount>,
}

/// Language of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CodeLanguage {
    /// SASS: machine code as text.
    Sass,
    /// PTX: the input of the assembler.
    Ptx,
}

/// Number of uses of an opcode in each kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpcodeCount {
    /// Opcode with its modifiers.
    pub opcode: String,
    /// Number of uses in the reference.
    pub reference: u64,
    /// Number of uses in the candidate.
    pub candidate: u64,
}

/// Compares the instructions of a candidate with those of a reference.
pub fn diff(
    language: CodeLanguage,
    reference: &Instructions,
    candidate: &Instructions,
) -> CodeDiff {
    let joined =
        |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (old, new) = (joined(&reference.lines), joined(&candidate.lines));
    let compared = TextDiff::from_lines(&old, &new);
    let count = |tag| compared.iter_all_changes().filter(|change| change.tag() == tag).count();
    let mut unified = compared
        .unified_diff()
        .context_radius(CONTEXT)
        .header("reference", "candidate")
        .to_string();
    let mut truncated = reference.cut || candidate.cut;
    if unified.len() > MAX_UNIFIED_BYTES {
        let end = unified[..floor(&unified, MAX_UNIFIED_BYTES)].rfind('\n').map_or(0, |at| at + 1);
        unified.truncate(end);
        truncated = true;
    }
    let (mut opcodes, cut) = opcodes(reference, candidate);
    truncated |= cut;
    opcodes.truncate(MAX_OPCODES);
    CodeDiff {
        language,
        identical: old == new && !reference.cut && !candidate.cut,
        reference_instructions: instructions(reference),
        candidate_instructions: instructions(candidate),
        added: count(ChangeTag::Insert) as u64,
        removed: count(ChangeTag::Delete) as u64,
        unified,
        truncated,
        opcodes,
    }
}

fn instructions(of: &Instructions) -> u64 {
    of.lines.iter().filter(|line| opcode(line).is_some()).count() as u64
}

fn opcodes(reference: &Instructions, candidate: &Instructions) -> (Vec<OpcodeCount>, bool) {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for name in reference.lines.iter().filter_map(|line| opcode(line)) {
        counts.entry(name).or_default().0 += 1;
    }
    for name in candidate.lines.iter().filter_map(|line| opcode(line)) {
        counts.entry(name).or_default().1 += 1;
    }
    let mut different: Vec<OpcodeCount> = counts
        .into_iter()
        .filter(|(_, (reference, candidate))| reference != candidate)
        .map(|(opcode, (reference, candidate))| OpcodeCount {
            opcode: opcode.to_owned(),
            reference,
            candidate,
        })
        .collect();
    different.sort_by_key(|count| {
        let difference = count.reference.abs_diff(count.candidate);
        Reverse((difference, count.reference.max(count.candidate)))
    });
    let cut = different.len() > MAX_OPCODES;
    (different, cut)
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
