//! Compares the parser with another parser that shares no code with it.
//!
//! `research/oracle` wrote `tests/ptx/outlines.txt` with the crate `ptx-syntax`. For every fixture
//! it lists functions, parameters, and the number and a checksum of the instructions. This parser
//! must produce the same text. To regenerate the file after a change of the fixtures:
//!
//! ```sh
//! cd crates/emulator
//! cargo run --manifest-path research/oracle/Cargo.toml -- tests/ptx/*.ptx > tests/ptx/outlines.txt
//! ```

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Func, FuncKind, Instr, StmtKind, Var, parse};

/// Returns the outline of a function: kind, name, results, parameters, number of instructions, and
/// the checksum of the instructions.
fn outline(func: &Func<'_>, lines: &[String]) -> String {
    let kind = if func.kind == FuncKind::Entry { "entry" } else { "func" };
    let list = |vars: &[Var<'_>]| vars.iter().map(param).collect::<Vec<_>>().join(" ");
    let (rets, params) = (list(&func.rets), list(&func.params));
    let (count, sum) = (lines.len(), checksum(lines));
    format!("{kind} {} ({rets}) ({params}) {count} {sum:016x}", func.name)
}

/// Returns type and size in bytes of a parameter.
fn param(var: &Var<'_>) -> String {
    format!("{:?}:{}", var.ty, var.bytes).to_lowercase()
}

/// Returns guard, opcode with modifiers, and number of operands.
fn line(instr: &Instr<'_>) -> String {
    let guard = match instr.guard {
        None => "",
        Some((_, true)) => "@!",
        Some((_, false)) => "@",
    };
    let mods: String = instr.mods.iter().map(|m| format!(".{m}")).collect();
    format!("{guard}{}{mods} {}", instr.op, instr.operands.len())
}

/// Returns the FNV-1a hash of the lines, each with its line feed.
fn checksum(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the instructions of a function with a body.
fn instructions(func: &Func<'_>) -> Option<Vec<String>> {
    let body = func.body.as_ref()?.iter();
    let instrs = body.filter_map(|s| if let StmtKind::Instr(i) = &s.kind { Some(i) } else { None });
    Some(instrs.map(line).collect())
}

/// Returns the expected lines for each file.
fn wanted(text: &str) -> HashMap<&str, Vec<&str>> {
    let mut out: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut file = "";
    for line in text.lines() {
        match line.strip_prefix("file ") {
            Some(name) => file = name,
            None => out.entry(file).or_default().push(line),
        }
    }
    out
}

#[test]
fn every_fixture_reads_as_it_does_to_an_independent_parser() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ptx");
    let text = std::fs::read_to_string(folder.join("outlines.txt")).unwrap();
    let wanted = wanted(&text);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "ptx") {
            continue;
        }
        count += 1;
        let name = path.file_stem().unwrap().to_str().unwrap();
        let wanted = wanted.get(name).unwrap_or_else(|| panic!("{name} is not outlined"));
        let text = std::fs::read_to_string(&path).unwrap();
        let unit = parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found: Vec<(String, Vec<String>)> = unit
            .funcs
            .iter()
            .filter_map(|func| {
                let lines = instructions(func)?;
                Some((outline(func, &lines), lines))
            })
            .collect();
        assert_eq!(found.len(), wanted.len(), "{name}: functions with bodies");
        for ((found, lines), wanted) in found.iter().zip(wanted) {
            let full = lines.join("\n");
            assert_eq!(found, wanted, "{name}: compare with `--full` of the oracle:\n{full}");
        }
    }
    assert!(count > 30, "{count} fixtures");
}
