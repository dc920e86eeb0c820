//! Every instruction that the loader knows, and every operation that it makes of them, is in some
//! form.
//!
//! The lists are read from the sources, so that what is added there without a form fails here.

use std::collections::BTreeSet;
use std::sync::Arc;

use warpgauge_emulator::{Memory, Module};

use super::suite::{forms, module};

const OPS: &str = include_str!("../../../src/ir/op.rs");
const KINDS: &str = include_str!("../../../src/ir/kinds.rs");
const INSTRUCTIONS: &str = include_str!("../../../src/ir/lower/arith.rs");

/// Operations without a result to compare, or whose result differs on purpose.
const NOT_COMPARED: [(&str, &str); 17] = [
    ("Trap", "ends the kernel with an error"),
    ("Builtin", "needs the runtime of the device: printf, assert, malloc, free"),
    ("Sreg.WorkspaceHigh", "is for cooperative launches"),
    ("Sreg.WorkspaceLow", "is for cooperative launches"),
    ("Sreg.ReservedBegin", "lies elsewhere on a GPU: in front of the shared memory of the block"),
    ("Sreg.ReservedGroups", "likewise"),
    ("Sreg.ReservedEnd", "likewise"),
    ("Sreg.ReservedBytes", "came after the golden answers were recorded"),
    ("Builtin.Vprintf", "as above"),
    ("Builtin.AssertFail", "as above"),
    ("Builtin.Malloc", "as above"),
    ("Builtin.Free", "as above"),
    ("Sreg.GridId", "differs with every launch"),
    (
        "I3.Absdiff4",
        "came after the golden answers were recorded; equal on the H200 by other operands",
    ),
    ("I3.Absdiff4Add", "likewise"),
    ("Tex", "reads an object that the host makes: textures.rs has its results"),
    ("Surf", "likewise: surfaces.rs has its results"),
];

/// Instructions likewise, and those that the loader knows only to refuse.
const INSTRUCTIONS_NOT_COMPARED: [&str; 18] = [
    // Came after the golden answers were recorded.
    "vabsdiff4",
    // Its result has no meaning but for the caches.
    "createpolicy",
    "trap",
    "brkpt",
    "setmaxnreg",
    "wgmma",
    "tcgen05",
    "tex",
    "tld4",
    "txq",
    "suld",
    "sust",
    "sured",
    "suq",
    "mapa",
    "getctarank",
    "multimem",
    "other",
];

/// Enumerations of `kinds.rs`, with the operations that hold their values.
const HOLDERS: [(&str, &[&str]); 18] = [
    ("I2", &["I16", "I32", "I64"]),
    ("I1", &["I16x1", "I32x1", "I64x1"]),
    ("I3", &["I16x3", "I32x3", "I64x3"]),
    ("Cmp", &["Cmp16", "Cmp32", "Cmp64"]),
    ("FCmp", &["FCmp"]),
    ("F2", &["F2"]),
    ("F1", &["F1"]),
    ("Sreg", &["Sreg", "Sreg64"]),
    ("Carry", &["Carry32", "Carry64"]),
    ("Rmw", &["Atom"]),
    ("Shfl", &["Shfl"]),
    ("Vote", &["Vote"]),
    ("Redux", &["Redux"]),
    ("Bar", &["Bar"]),
    ("Builtin", &["Builtin"]),
    ("Mbar", &["Mbar"]),
    ("Testp", &["Testp"]),
    ("WmmaKind", &["Wmma"]),
];

/// Variants of an enumeration in a source text.
fn variants<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("pub(crate) enum {name} {{\n");
    let from = source.find(&begin).unwrap_or_else(|| panic!("no enum {name}")) + begin.len();
    let body = source[from..].split("\n}").next().unwrap_or("");
    let lines = body.lines().filter(|l| l.starts_with("    ") && !l.starts_with("     "));
    lines
        .map(str::trim)
        .filter(|l| l.starts_with(|c: char| c.is_ascii_uppercase()))
        .map(|l| l.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(""))
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty())
}

/// All operations of all forms, as text.
fn operations() -> BTreeSet<String> {
    let memory = Arc::new(Memory::new());
    let forms = forms::all();
    let mut out = BTreeSet::new();
    for m in module::modules(&forms) {
        let loaded = Module::load(&m.text, &memory, 0).unwrap_or_else(|e| panic!("{e}"));
        for name in loaded.functions() {
            out.extend(
                loaded.function(name).iter().flat_map(|f| f.operations().collect::<Vec<_>>()),
            );
        }
    }
    out
}

#[test]
fn every_operation_is_in_a_form() {
    let seen = operations();
    let mut missing = Vec::new();
    for op in variants(OPS, "Op") {
        if !seen.iter().any(|s| words(s).next() == Some(op)) {
            missing.push(op.to_string());
        }
    }
    for (name, holders) in HOLDERS {
        let source = if name == "WmmaKind" { OPS } else { KINDS };
        for v in variants(source, name) {
            let held = |s: &String| {
                let mut w = words(s);
                w.next().is_some_and(|head| holders.contains(&head)) && w.any(|x| x == v)
            };
            if !seen.iter().any(held) {
                missing.push(format!("{name}.{v}"));
            }
        }
    }
    let enums = KINDS.lines().filter(|l| l.starts_with("pub(crate) enum "));
    for e in enums {
        let name = words(e).nth(3).unwrap_or("");
        if !HOLDERS.iter().any(|(h, _)| *h == name) {
            missing.push(format!("enum {name} has no entry in this test"));
        }
    }
    missing.retain(|m| !NOT_COMPARED.iter().any(|(n, _)| n == m));
    assert!(
        missing.is_empty(),
        "in no form of tests/emulator/differential/suite/forms: {missing:?}"
    );
}

#[test]
fn every_instruction_is_in_a_form() {
    let forms = forms::all();
    let mut used = BTreeSet::new();
    for (i, f) in forms.iter().enumerate() {
        let text = f.ptx(&module::kernel(i));
        for statement in text.split([';', '{', '}', ':', '\n']) {
            let mut parts = statement.split_whitespace();
            let first = parts.next().unwrap_or("");
            let op = if first.starts_with('@') { parts.next().unwrap_or("") } else { first };
            used.insert(op.split('.').next().unwrap_or("").to_string());
        }
    }
    // Arms of the dispatch: `"a" | "b" => …`, also over several lines.
    let dispatch = INSTRUCTIONS.split("fn instruction").nth(1).unwrap_or("");
    let dispatch = dispatch.split("fn either").next().unwrap_or("");
    let mut known = BTreeSet::new();
    let mut pending = String::new();
    for line in dispatch.lines().map(str::trim) {
        if !line.starts_with('"') && !line.starts_with('|') {
            continue;
        }
        pending.push_str(line);
        if let Some((names, _)) = pending.clone().split_once("=>") {
            known.extend(names.split('"').skip(1).step_by(2).map(String::from));
            pending.clear();
        }
    }
    assert!(known.len() > 90, "the dispatch was not understood: {known:?}");
    known.retain(|k| !used.contains(k) && !INSTRUCTIONS_NOT_COMPARED.contains(&k.as_str()));
    assert!(known.is_empty(), "in no form of tests/emulator/differential/suite/forms: {known:?}");
}
