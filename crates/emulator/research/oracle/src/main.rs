//! Outlines PTX files with `ptx-syntax`, a parser that shares no code with the emulator's parser.
//!
//! `warpgauge-emulator-oracle [--full] FILE.ptx…` prints, for every function that has a body, its
//! kind and name, its parameters (type and bytes), the number of its instructions and a checksum of
//! their sequence. `--full` also prints the sequence: guard, opcode with modifiers, number of
//! operands. `crates/emulator/src/ptx/outline.rs` creates the same text with the emulator's parser.
//!
//! Version 0.5.0 does not support all of PTX; see [`UNKNOWN`] and [`known`].

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use ptx_syntax::r#type::{
    FunctionStatement, Instruction, Module, ModuleDirective, ParameterDirective,
    PragmaDirectiveKind, StatementDirective,
};
use ptx_syntax::{PtxToken, PtxUnlexer, PtxUnparser, parse_ptx};

/// Instructions that the parser rejects although they are valid PTX: `mma` of doubles. Each is
/// removed from the text before it is parsed. The outline contains it as it was written; its number
/// of operands is the number of commas outside brackets plus one.
const UNKNOWN: &str = "mma.sync.aligned.m8n8k4.row.col.f64.";
/// A prototype with a result, which the parser rejects. The outline does not contain prototypes.
const PROTOTYPE: &str = ".callprototype (";
/// Prefix of an instruction that was removed, in the pragma that replaces it.
const KEPT: &str = "outline ";

fn main() -> Result<(), Box<dyn Error>> {
    let (mut full, mut paths) = (false, Vec::new());
    for argument in std::env::args().skip(1) {
        if argument == "--full" { full = true } else { paths.push(argument) }
    }
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let name = Path::new(&path).file_stem().map(|s| s.to_string_lossy().into_owned());
        let label = path.clone();
        let outlined = ptx_syntax::run_with_large_stack(move || {
            let module = parse_ptx(&known(&text)).map_err(|e| format!("{label}: {e}"))?;
            outline(&module, full).map_err(|e| format!("{label}: {e}"))
        })?;
        print!("file {}\n{outlined}", name.unwrap_or(path));
    }
    Ok(())
}

/// Returns the text without constructs that the parser does not support. [`UNKNOWN`] instructions
/// become pragmas. The results of [`PROTOTYPE`]s, and the signs and generic addresses in initial
/// values, are removed, because the outline does not contain them.
fn known(text: &str) -> String {
    let mut out = String::new();
    for statement in text.replace("= -", "= ").split_inclusive(';') {
        if let Some((before, _)) = statement.split_once("= generic(") {
            out.push_str(&format!("{before}= 0;"));
            continue;
        }
        let result = statement.find(PROTOTYPE).map(|at| at + PROTOTYPE.len() - 1);
        match (statement.find(UNKNOWN), result) {
            (_, Some(at)) => {
                let end = statement[at..].find(')').map_or(at, |n| at + n + 1);
                out.push_str(&statement[..at]);
                out.push_str(&statement[end..]);
            }
            (Some(at), _) => {
                let (before, instruction) = statement.split_at(at);
                let (mut depth, mut operands) = (0, 1);
                for c in instruction.chars() {
                    match c {
                        '(' | '[' | '{' => depth += 1,
                        ')' | ']' | '}' => depth -= 1,
                        ',' if depth == 0 => operands += 1,
                        _ => {}
                    }
                }
                let opcode = instruction.split([' ', '\t']).next().unwrap_or_default();
                out.push_str(&format!("{before}.pragma \"{KEPT}{opcode} {operands}\";"));
            }
            _ => out.push_str(statement),
        }
    }
    out
}

/// Outlines the functions of a module that have bodies, in order.
fn outline(module: &Module, full: bool) -> Result<String, Box<dyn Error>> {
    let mut out = String::new();
    for directive in &module.directives {
        let (kind, name, rets, params, body) = match directive {
            ModuleDirective::EntryFunction { directive: f, .. } => {
                ("entry", &f.name.val, None, &f.params, &f.body)
            }
            ModuleDirective::FuncFunction { directive: f, .. } => {
                ("func", &f.name.val, f.return_param.as_ref(), &f.params, &f.body)
            }
            _ => continue,
        };
        let Some(body) = body else { continue };
        let rets = rets.into_iter().map(param).collect::<Result<Vec<_>, _>>()?;
        let params = params.iter().map(param).collect::<Result<Vec<_>, _>>()?;
        let mut lines = Vec::new();
        statements(&body.statements, &mut lines)?;
        let (rets, params, sum) = (rets.join(" "), params.join(" "), checksum(&lines));
        writeln!(out, "{kind} {name} ({rets}) ({params}) {} {sum:016x}", lines.len())?;
        if full {
            lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        }
    }
    Ok(out)
}

/// Returns type and size in bytes of a parameter.
fn param(p: &ParameterDirective) -> Result<String, Box<dyn Error>> {
    let (ty, count) = match p {
        ParameterDirective::Register { ty, .. } => (ty, 1),
        ParameterDirective::Parameter { ty, array, .. } => {
            (ty, array.iter().map(|n| n.unwrap_or(0)).product())
        }
    };
    let ty = PtxUnlexer::to_string(&ty.to_tokens())?;
    let digits: String = ty.chars().filter(char::is_ascii_digit).collect();
    let bytes = digits.parse::<u64>()? / 8 * count;
    Ok(format!("{}:{bytes}", ty.trim_start_matches('.')))
}

fn statements(list: &[FunctionStatement], out: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for statement in list {
        match statement {
            FunctionStatement::Instruction { instruction, .. } => out.push(line(instruction)?),
            FunctionStatement::Block { statements: inner, .. } => statements(inner, out)?,
            FunctionStatement::Directive {
                directive: StatementDirective::Pragma { directive, .. },
                ..
            } => {
                if let PragmaDirectiveKind::Raw(text) = &directive.kind {
                    out.extend(text.trim_matches('"').strip_prefix(KEPT).map(str::to_owned));
                }
            }
            FunctionStatement::Label { .. } | FunctionStatement::Directive { .. } => {}
        }
    }
    Ok(())
}

/// Returns the guard of an instruction, its opcode with modifiers, and its number of operands.
fn line(instruction: &Instruction) -> Result<String, Box<dyn Error>> {
    let tokens = instruction.inst.to_tokens_spaced();
    let blank = |t: &PtxToken| matches!(t, PtxToken::Space | PtxToken::Newline);
    let end = tokens.iter().position(blank).unwrap_or(tokens.len());
    let opcode = PtxUnlexer::to_string(&tokens[..end])?;
    let (mut depth, mut commas, mut any) = (0, 0, false);
    for token in tokens[end..].iter().filter(|t| !blank(t) && **t != PtxToken::Semicolon) {
        any = true;
        match token {
            PtxToken::LParen | PtxToken::LBracket | PtxToken::LBrace => depth += 1,
            PtxToken::RParen | PtxToken::RBracket | PtxToken::RBrace => depth -= 1,
            PtxToken::Comma if depth == 0 => commas += 1,
            _ => {}
        }
    }
    let operands = if any { commas + 1 } else { 0 };
    let guard = match &instruction.predicate {
        None => "",
        Some(p) if p.negated => "@!",
        Some(_) => "@",
    };
    Ok(format!("{guard}{} {operands}", opcode.trim_end_matches(';')))
}

/// Returns the FNV-1a hash of the lines, each with its line feed.
fn checksum(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
