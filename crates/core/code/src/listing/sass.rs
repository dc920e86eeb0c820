//! SASS listings of `nvdisasm -c` and `cuobjdump -sass`.

use std::collections::{HashMap, HashSet};

use super::{Instructions, MAX_INSTRUCTIONS, squeezed};

/// Returns the instructions of a kernel.
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

/// Returns the listing without the functions whose symbols satisfy `unwanted`.
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

/// Iterates over the functions of a listing: each symbol with its lines.
pub(super) fn functions(listing: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    sections(listing).filter_map(|section| Some((section.symbol?, section.lines)))
}

/// Returns the text of the instruction on a line, if there is one.
pub(super) fn instruction(line: &str) -> Option<String> {
    match parse(line)? {
        Line::Instruction { text, .. } => Some(text),
        Line::Label(_) => None,
    }
}

/// Lines from the head of one function to the head of the next.
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

/// Parses `//------- .text.NAME ------` or `Function : NAME`.
fn head(line: &str) -> Option<&str> {
    if let Some(name) = line.trim_start().strip_prefix("Function :") {
        return Some(name.trim());
    }
    let text = line.strip_prefix("//-----")?.trim_matches('-').trim();
    text.strip_prefix(".text.").map(str::trim)
}

/// A relevant line of a function.
enum Line<'a> {
    Label(&'a str),
    Instruction {
        /// Address of the instruction, as written.
        address: &'a str,
        text: String,
    },
}

/// Parses `/*0010*/  @P0 EXIT ;  /* 0x… */` or `.L_x_1:`; other lines are irrelevant.
fn parse(line: &str) -> Option<Line<'_>> {
    let line = line.trim();
    if let Some(label) = line.strip_suffix(':') {
        // Names of sections and functions also look like labels, but are irrelevant.
        return label.starts_with(".L_").then_some(Line::Label(label));
    }
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let is_address = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit());
    let text = rest.split("/*").next().unwrap_or_default().trim();
    let text = text.trim_end_matches(';').trim_end();
    (is_address && !text.is_empty()).then(|| Line::Instruction { address, text: squeezed(text) })
}

/// Drops the padding after the last branch: NOP instructions up to the end of the memory block, and
/// labels among them.
fn drop_padding(lines: &mut Vec<Line<'_>>) {
    let is_padding = |line: &Line<'_>| match line {
        Line::Instruction { text, .. } => text == "NOP",
        Line::Label(_) => true,
    };
    while lines.last().is_some_and(is_padding) {
        lines.pop();
    }
}

/// Renumbers the labels from the start, and renames the function to `kernel`.
fn named_anew(lines: &[Line<'_>], symbol: &str) -> Vec<String> {
    let used: HashSet<String> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Instruction { text, .. } => target(text).map(place_of),
            Line::Label(_) => None,
        })
        .collect();
    // A label that no jump refers to is only a marker of the compiler.
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

/// Returns the target of a jump: `` `(.L_x_1) `` or a bare address.
fn target(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.split_once("`(") {
        return rest.split(')').next();
    }
    let opcode = super::opcode(text)?;
    let goes = ["BRA", "BSSY", "CALL", "BRX", "JMP", "WARPSYNC", "BREAK", "SSY", "PBK", "SYNC"];
    let is_branch = goes.iter().any(|name| opcode.split('.').next() == Some(*name));
    text.rsplit([' ', ',']).next().filter(|last| is_branch && last.starts_with("0x"))
}

/// Normalises an address: `00a0` and `0xa0` are equal.
fn canonical(address: &str) -> String {
    let digits = address.trim_start_matches("0x").trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

/// Returns the label or the normalised address of a target.
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
