//! SASS as `nvdisasm -c` and `cuobjdump -sass` write it.

use std::collections::{HashMap, HashSet};

use super::{Instructions, MAX_INSTRUCTIONS, squeezed};

/// The instructions of a kernel.
pub(super) fn instructions(listing: &str, symbol: &str) -> Option<Instructions> {
    let mut sections = sections(listing).filter(|section| section.symbol == Some(symbol));
    let section = sections.next()?;
    let mut lines = Vec::new();
    let mut cut = false;
    for line in section.lines {
        if let Some(parsed) = parse(line) {
            if lines.len() == MAX_INSTRUCTIONS {
                cut = true;
                break;
            }
            lines.push(parsed);
        }
    }
    drop_padding(&mut lines);
    Some(Instructions { lines: named_anew(&lines, symbol), cut })
}

/// The listing without the functions whose symbols `unwanted` says yes to.
pub(super) fn without(listing: &str, unwanted: impl Fn(&str) -> bool) -> String {
    let mut kept = String::with_capacity(listing.len());
    for section in sections(listing) {
        if section.symbol.is_none_or(|symbol| !unwanted(symbol)) {
            for line in section.lines {
                kept.push_str(line);
                kept.push('\n');
            }
        }
    }
    kept
}

/// Lines from one function's head to the next one's.
struct Section<'a> {
    symbol: Option<&'a str>,
    lines: Vec<&'a str>,
}

fn sections(listing: &str) -> impl Iterator<Item = Section<'_>> {
    let mut lines = listing.lines().peekable();
    std::iter::from_fn(move || {
        let first = lines.next()?;
        let mut section = Section { symbol: head(first), lines: vec![first] };
        while let Some(line) = lines.next_if(|line| !is_head(line)) {
            section.lines.push(line);
        }
        Some(section)
    })
}

fn is_head(line: &str) -> bool {
    line.starts_with("//-----") || line.trim_start().starts_with("Function :")
}

/// `//------- .text.NAME ------` or `Function : NAME`.
fn head(line: &str) -> Option<&str> {
    if let Some(name) = line.trim_start().strip_prefix("Function :") {
        return Some(name.trim());
    }
    let text = line.strip_prefix("//-----")?.trim_matches('-').trim();
    text.strip_prefix(".text.").map(str::trim)
}

/// A line of a function that matters.
enum Line<'a> {
    Label(&'a str),
    Instruction {
        /// Where it stands, as written.
        address: &'a str,
        text: String,
    },
}

/// `/*0010*/  @P0 EXIT ;  /* 0x… */`, or `.L_x_1:`; nothing else matters.
fn parse(line: &str) -> Option<Line<'_>> {
    let line = line.trim();
    if let Some(label) = line.strip_suffix(':') {
        // Names of sections and functions are labels too, which say nothing.
        return label.starts_with(".L_").then_some(Line::Label(label));
    }
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let is_address = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit());
    let text = rest.split("/*").next().unwrap_or_default().trim();
    let text = text.trim_end_matches(';').trim_end();
    (is_address && !text.is_empty()).then(|| Line::Instruction { address, text: squeezed(text) })
}

/// Behind its last branch a function is filled with no-operations, to the end of the block of
/// memory that it stands in; marks of its end stand among them.
fn drop_padding(lines: &mut Vec<Line<'_>>) {
    let is_padding = |line: &Line<'_>| match line {
        Line::Instruction { text, .. } => text == "NOP",
        Line::Label(_) => true,
    };
    while lines.last().is_some_and(is_padding) {
        lines.pop();
    }
}

/// Labels counted from the start, and the function called `kernel`.
fn named_anew(lines: &[Line<'_>], symbol: &str) -> Vec<String> {
    let used: HashSet<String> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Instruction { text, .. } => target(text).map(place_of),
            Line::Label(_) => None,
        })
        .collect();
    // What nothing goes to is a mark of the compiler's.
    let mut names: HashMap<String, String> = HashMap::new();
    for line in lines {
        let place = match line {
            Line::Label(label) => (*label).to_owned(),
            Line::Instruction { address, .. } => canonical(address),
        };
        if used.contains(&place) {
            let name = format!("L{}", names.len() + 1);
            names.entry(place).or_insert(name);
        }
    }
    let mut out = Vec::with_capacity(lines.len());
    for line in lines {
        match line {
            Line::Label(label) => {
                out.extend(names.get(*label).map(|name| format!("{name}:")));
            }
            Line::Instruction { address, text } => {
                out.extend(names.get(&canonical(address)).map(|name| format!("{name}:")));
                out.push(replaced(text, &names, symbol));
            }
        }
    }
    out
}

/// `` `(.L_x_1) `` or a bare address, of an instruction that goes somewhere.
fn target(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.split_once("`(") {
        return rest.split(')').next();
    }
    let opcode = super::opcode(text)?;
    let goes = ["BRA", "BSSY", "CALL", "BRX", "JMP", "WARPSYNC", "BREAK", "SSY", "PBK", "SYNC"];
    let is_branch = goes.iter().any(|name| opcode.split('.').next() == Some(*name));
    text.rsplit([' ', ',']).next().filter(|last| is_branch && last.starts_with("0x"))
}

/// `00a0` and `0xa0` are the same place.
fn canonical(address: &str) -> String {
    let digits = address.trim_start_matches("0x").trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

/// The place that a target names.
fn place_of(target: &str) -> String {
    if target.starts_with("0x") { canonical(target) } else { target.to_owned() }
}

fn replaced(text: &str, names: &HashMap<String, String>, symbol: &str) -> String {
    let Some(target) = target(text) else { return text.replace(symbol, "kernel") };
    let Some(name) = names.get(&place_of(target)) else { return text.replace(symbol, "kernel") };
    let text = text.replace(&format!("`({target})"), name);
    match text.strip_suffix(target) {
        Some(head) if target.starts_with("0x") => format!("{head}{name}"),
        _ => text.replace(symbol, "kernel"),
    }
}
