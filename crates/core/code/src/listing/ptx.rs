//! PTX listings of NVRTC, nvcc and Triton.

use std::collections::HashSet;

use super::{Instructions, MAX_INSTRUCTIONS, squeezed};

/// Directives with information about the source, which do not affect execution.
const SAYS_NOTHING: [&str; 4] = [".loc", ".file", ".pragma", ".section"];

/// Returns the instructions of a kernel, from the lines between its braces.
pub(super) fn instructions(listing: &str, symbol: &str) -> Option<Instructions> {
    let body = body(listing, symbol)?;
    let jumped_to = jumped_to(body);
    let (mut lines, mut cut) = (Vec::new(), false);
    for line in body.lines() {
        let line = squeezed(line.split("//").next().unwrap_or_default());
        let line = line.trim_end_matches(';');
        let silent = line.is_empty() || SAYS_NOTHING.iter().any(|word| line.starts_with(word));
        // Labels of line information are not jump targets.
        let label = line.strip_suffix(':').filter(|label| label.starts_with('$'));
        if silent || label.is_some_and(|label| !jumped_to.contains(label)) {
            continue;
        }
        if lines.len() == MAX_INSTRUCTIONS {
            cut = true;
            break;
        }
        lines.push(labels_of_the_function(&without_name(line, symbol)));
    }
    Some(Instructions { lines, cut })
}

/// Returns the text from the first brace after the kernel's parameters to the matching one.
fn body<'a>(listing: &'a str, symbol: &str) -> Option<&'a str> {
    kernels(listing).find(|(name, _)| *name == symbol).map(|(_, body)| body)
}

/// A function of a module.
pub(super) struct Function<'a> {
    pub symbol: &'a str,
    /// Whether the function is a kernel.
    pub is_kernel: bool,
    /// Text between the braces of the body.
    pub body: &'a str,
    /// Byte offset of the body in the module.
    pub at: usize,
}

/// Iterates over the kernels of a module: each symbol, and the text between the braces of its body.
/// The iteration ends at a function whose body is incomplete.
fn kernels(listing: &str) -> impl Iterator<Item = (&str, &str)> {
    functions(listing).filter(|one| one.is_kernel).map(|one| (one.symbol, one.body))
}

/// Iterates over the kernels and device functions of a module that have a body. The iteration ends
/// at a body that is incomplete.
pub(super) fn functions(listing: &str) -> impl Iterator<Item = Function<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let (is_kernel, header) = directive(listing, from)?;
            let after = &listing[header..];
            let open = after.find(['{', ';'])?;
            from = header + open + 1;
            if after[open..].starts_with(';') {
                // A declaration has no body.
                continue;
            }
            let end = from + closing(listing.get(from..)?)?;
            let function = Function {
                symbol: name_in(&after[..open]),
                is_kernel,
                body: &listing[from..end],
                at: from,
            };
            from = end;
            return Some(function);
        }
    })
}

/// Finds the next `.entry` or `.func`. Returns whether it is `.entry`, and the offset after it. Names
/// of files and comments may contain the same words.
fn directive(listing: &str, from: usize) -> Option<(bool, usize)> {
    let mut start = from;
    for line in listing.get(from..)?.split_inclusive('\n') {
        let code = line.split("//").next().unwrap_or_default();
        let is_file = code.trim_start().starts_with(".file");
        for (at, _) in code.match_indices('.').filter(|_| !is_file) {
            let before = code[..at].chars().next_back();
            let begins = before.is_none_or(|c| c.is_whitespace() || matches!(c, ';' | '}'));
            for (word, is_kernel) in [("entry", true), ("func", false)] {
                let Some(after) = code[at + 1..].strip_prefix(word) else { continue };
                let ends = after.chars().next().is_none_or(|c| c.is_whitespace() || c == '(');
                if begins && ends {
                    return Some((is_kernel, start + code.len() - after.len()));
                }
            }
        }
        start += line.len();
    }
    None
}

/// Returns the offset of the brace that closes a body, in the text after its opening brace.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// Returns the name in the header of a function, which follows the result of a device function.
fn name_in(header: &str) -> &str {
    let header = header.trim_start();
    let result = header.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let name = result.map_or(header, |(_, rest)| rest.trim_start());
    name.split(|c: char| c == '(' || c.is_whitespace()).next().unwrap_or_default()
}

/// Returns the labels that instructions refer to.
fn jumped_to(body: &str) -> HashSet<&str> {
    let code = body.lines().map(|line| line.split("//").next().unwrap_or_default());
    let instructions = code.filter(|line| !line.trim_end().ends_with(':'));
    let words = instructions.flat_map(|line| line.split(|c: char| !is_of_a_name(c)));
    words.filter(|word| word.starts_with('$')).collect()
}

pub(super) fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// Replaces the kernel's name, also in the names of its parameters. Only whole names are replaced,
/// since a kernel may have the name of an instruction.
fn without_name(line: &str, symbol: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(symbol).filter(|_| !symbol.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + symbol.len()..]);
        let starts = before.ends_with(|c: char| !is_of_a_name(c) && c != '.');
        let ends = !after.starts_with(|c: char| is_of_a_name(c) || c == '.');
        out.push_str(before);
        out.push_str(if starts && (ends || after.starts_with("_param_")) {
            "kernel"
        } else {
            symbol
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Removes the function's number from labels: `$L__BB3_7` is label 7 of the fourth function.
fn labels_of_the_function(line: &str) -> String {
    let mut parts = line.split("$L__BB");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str("$L");
        out.push_str(&part[digits..]);
    }
    out
}
