//! Finds the source line of each instruction in a listing. The main function is [`linked`].

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeLanguage, is_probe, ptx, sass, squeezed};

/// Maximum number of instructions that [`linked`] returns. Later instructions are omitted.
pub const MAX_LINKED: usize = 16_384;

/// Maximum length of a symbol or a file name, characters. Longer names are truncated.
const MAX_NAME: usize = 1024;

/// Instruction of a kernel, with the source line from which it was generated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkedInstruction {
    /// Instruction, without its address and encoding.
    pub text: String,
    /// Symbol of the kernel that contains the instruction.
    pub symbol: String,
    /// Name of the source file. Absent if the compiler records none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the file, from 1. For an inlined function, it is the line in the function's body.
    /// Absent if the compiler records none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Instructions of a listing, and whether some are omitted because of the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkedInstructions {
    pub instructions: Vec<LinkedInstruction>,
    /// Byte offset of each instruction in a listing of PTX. Empty for SASS.
    pub offsets: Vec<usize>,
    pub cut: bool,
}

/// Returns the instructions of the submitted kernels in a listing, with their source lines: at most
/// [`MAX_LINKED`]. Device functions of PTX that are not inlined are included.
///
/// In PTX, `.loc` gives the lines and `.file` gives the files. In SASS, the comments that `nvdisasm
/// --print-line-info-inline` writes give both.
pub fn linked(listing: &str, language: CodeLanguage) -> LinkedInstructions {
    let mut found = LinkedInstructions::default();
    match language {
        CodeLanguage::Ptx => of_ptx(listing, &mut found),
        CodeLanguage::Sass => of_sass(listing, &mut found),
    }
    found
}

impl LinkedInstructions {
    /// Adds an instruction unless the limit is reached. Returns whether the instruction was added.
    fn add(&mut self, text: String, symbol: &str, place: Option<(&str, u32)>) -> bool {
        self.cut = self.instructions.len() >= MAX_LINKED;
        if self.cut {
            return false;
        }
        let file = place.map(|(file, _)| short(file)).filter(|file| !file.is_empty());
        let line = place.map(|(_, line)| line).filter(|line| *line > 0);
        self.instructions.push(LinkedInstruction { text, symbol: short(symbol), file, line });
        true
    }
}

fn short(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

fn of_ptx(listing: &str, found: &mut LinkedInstructions) {
    let files = files(listing);
    for function in ptx::functions(listing).filter(|one| !is_probe(one.symbol)) {
        let mut place = None;
        // A statement may extend over several lines, as calls do.
        let mut statement = Statement::default();
        let mut start = function.at;
        for whole in function.body.split_inclusive('\n') {
            let mut at = start;
            start += whole.len();
            let line = whole.split("//").next().unwrap_or_default();
            if let Some(rest) = line.trim_start().strip_prefix(".loc") {
                place = location(rest, &files);
                continue;
            }
            let mut parts = line.split(';').peekable();
            while let Some(part) = parts.next() {
                statement.extend(part, at);
                at += part.len() + 1;
                if parts.peek().is_none() {
                    break;
                }
                let ended = std::mem::take(&mut statement);
                let text = squeezed(instruction_of(&ended.text));
                if text.is_empty() {
                    continue;
                }
                if !found.add(text, function.symbol, place) {
                    return;
                }
                found.offsets.push(ended.at());
            }
        }
    }
}

/// Text of a statement, in pieces from several lines.
#[derive(Default)]
struct Statement {
    text: String,
    /// For each piece: its offset in the text, and in the listing.
    pieces: Vec<(usize, usize)>,
}

impl Statement {
    /// Adds a piece that is at this offset of the listing.
    fn extend(&mut self, piece: &str, at: usize) {
        if !piece.trim().is_empty() {
            self.pieces.push((self.text.len(), at));
            self.text.push_str(piece);
            self.text.push(' ');
        }
    }

    /// Returns the offset of the statement's instruction in the listing.
    fn at(&self) -> usize {
        let own = self.text.len() - instruction_of(&self.text).len();
        let piece = self.pieces.iter().rev().find(|(start, _)| *start <= own);
        piece.map_or(0, |(start, at)| at + own - start)
    }
}

/// Parses the operands of `.loc`: the number of a file, a line and a column.
fn location<'a>(operands: &str, files: &HashMap<u32, &'a str>) -> Option<(&'a str, u32)> {
    let mut numbers = operands.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let mut next = || numbers.next()?.parse::<u32>().ok();
    let (file, line) = (next(), next()?);
    Some((file.and_then(|file| files.get(&file).copied()).unwrap_or_default(), line))
}

/// Returns the instruction in a statement, without the labels and braces before it. Directives are
/// no instructions: the result is empty.
fn instruction_of(statement: &str) -> &str {
    let mut text = statement;
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '}'));
        let label = text.find(|c: char| !ptx::is_of_a_name(c)).filter(|end| *end > 0);
        match label.and_then(|end| text[end..].strip_prefix(':')) {
            // `a::b` is a modifier.
            Some(rest) if !rest.starts_with(':') => text = rest,
            _ => break,
        }
    }
    if text.starts_with('.') { "" } else { text }
}

/// Returns the names of files by their numbers, from directives such as `.file 1 "kernel.cu"`.
fn files(listing: &str) -> HashMap<u32, &str> {
    let directives = listing.lines().filter_map(|line| line.trim_start().strip_prefix(".file"));
    let parsed = directives.filter_map(|rest| {
        let (number, rest) = rest.trim_start().split_once(char::is_whitespace)?;
        Some((number.parse().ok()?, rest.split('"').nth(1)?))
    });
    parsed.take(MAX_LINKED).collect()
}

fn of_sass(listing: &str, found: &mut LinkedInstructions) {
    for (symbol, lines) in sass::functions(listing).filter(|(symbol, _)| !is_probe(symbol)) {
        let mut place = None;
        let mut is_inner = true;
        let end = found.instructions.len();
        for line in lines {
            if let Some(rest) = line.trim_start().strip_prefix("//## File \"") {
                // Of an inlined function, the lines of its callers follow.
                if is_inner {
                    place = commented(rest);
                }
                is_inner = false;
                continue;
            }
            is_inner = true;
            let Some(text) = sass::instruction(line) else { continue };
            if !found.add(text, symbol, place) {
                return;
            }
        }
        // The `NOP` instructions at the end of a function are padding.
        let is_padding = |one: &LinkedInstruction| one.text == "NOP";
        while found.instructions.len() > end && found.instructions.last().is_some_and(is_padding) {
            found.instructions.pop();
        }
    }
}

/// Parses the rest of a comment such as `//## File "kernel.cu", line 12`.
fn commented(rest: &str) -> Option<(&str, u32)> {
    let (file, rest) = rest.split_once("\", line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((file, rest[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &LinkedInstructions) -> Vec<(&str, &str, Option<&str>, Option<u32>)> {
        let parts = found.instructions.iter();
        parts.map(|one| (&*one.symbol, &*one.text, one.file.as_deref(), one.line)).collect()
    }

    #[test]
    fn instructions_of_ptx_have_the_line_of_the_last_directive() {
        let ptx = "\
            .visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\t.reg .b32 %r<2>;\n\
            \tmov.u32 %r1, 0; // before any line\n\t.loc 1 3 5\n\tadd.s32 \t%r1, %r1, 1;\n\
            \t.loc\t2 40 1, function_name $L__info_string0, inlined_at 1 5 9\n$L__BB0_2:\n\tret;\n}\n\
            .visible .entry other(){\n\tret;\n}\n\
            \t.file\t1 \"/tmp/a b.cu\"\n\t.file 2 \"h.cuh\", 17, 9\n";
        let found = linked(ptx, CodeLanguage::Ptx);
        let a = Some("/tmp/a b.cu");
        assert_eq!(
            lines(&found),
            [
                ("k", "mov.u32 %r1, 0", None, None),
                ("k", "add.s32 %r1, %r1, 1", a, Some(3)),
                ("k", "ret", Some("h.cuh"), Some(40)),
                ("other", "ret", None, None),
            ]
        );
        assert!(!found.cut);
        assert!(found.offsets.iter().zip(&found.instructions).all(|(at, one)| {
            one.text.split(' ').next().is_some_and(|word| ptx[*at..].starts_with(word))
        }));
    }

    #[test]
    fn names_of_files_and_comments_begin_no_function() {
        let ptx = ".file 1 \"/src/a.func/b.entry.cu\"\n// .func x {\n.visible .entry k()\n{\nret;\n}\n\
            .func_like 1; .visible\t.func f() { exit; }\n";
        let found = linked(ptx, CodeLanguage::Ptx);
        let texts: Vec<_> = lines(&found).into_iter().map(|(of, text, _, _)| (of, text)).collect();
        assert_eq!(texts, [("k", "ret"), ("f", "exit")]);
    }

    #[test]
    fn functions_that_are_not_inlined_are_listed_and_have_offsets() {
        let ptx = ".extern .func (.param .b32 r) vprintf(.param .b64 a);\n\
            .func  (.param .b32 func_retval0) twice(.param .b32 x)\n{\nret;\n}\n\
            .func none() .noreturn { trap; }\n\
            .entry k(){ mov.u32 %r1, 0; L: // c;\n  @%p1\n bra L;\n// x\n\tret ;}\n";
        let found = linked(ptx, CodeLanguage::Ptx);
        let texts: Vec<_> = lines(&found).into_iter().map(|(of, text, _, _)| (of, text)).collect();
        assert_eq!(
            texts,
            [
                ("twice", "ret"),
                ("none", "trap"),
                ("k", "mov.u32 %r1, 0"),
                ("k", "@%p1 bra L"),
                ("k", "ret"),
            ]
        );
        let at = |text: &str| ptx.find(text).unwrap();
        let expected = [at("ret;"), at("trap"), at("mov.u32"), at("@%p1"), at("ret ;")].to_vec();
        assert_eq!(found.offsets, expected);
    }

    #[test]
    fn statements_of_ptx_are_found_in_any_layout() {
        let ptx = ".entry _Z21__warpgauge_signatureIPFvvEEvv(){ ret; }\n.entry k(){ .reg .b32 %r<2>; mov.u32 %r1, 0;\n\
            .loc\t1 7 1\n{  cvt.rn.f16.f32 %rs1, %f1;}\n{ // callseq 0, 0\n.param .b64 param0;\n\
            st.param.b64 [param0], %rd1;\ncall.uni (retval0),\nvprintf,\n(\nparam0\n);\n}\n\
            $L__BB0_2: @%p1 bra $L__BB0_2;\ncp.async.bulk.shared::cluster.global [%r1], [%rd1], 16, [%r2];\n\
            ld.v2.f32 {%f1, %f2}, [%rd1];\n.pragma \"nounroll\";\n}";
        let found = linked(ptx, CodeLanguage::Ptx);
        let texts: Vec<_> =
            lines(&found).into_iter().map(|(_, text, _, line)| (text, line)).collect();
        assert_eq!(
            texts,
            [
                ("mov.u32 %r1, 0", None),
                ("cvt.rn.f16.f32 %rs1, %f1", Some(7)),
                ("st.param.b64 [param0], %rd1", Some(7)),
                ("call.uni (retval0), vprintf, ( param0 )", Some(7)),
                ("@%p1 bra $L__BB0_2", Some(7)),
                ("cp.async.bulk.shared::cluster.global [%r1], [%rd1], 16, [%r2]", Some(7)),
                ("ld.v2.f32 {%f1, %f2}, [%rd1]", Some(7)),
            ]
        );
    }

    #[test]
    fn instructions_of_sass_have_the_line_of_the_last_comment() {
        let sass = "\
            //--------------------- .text.k   --------------------------\n\t.section .text.k\nk:\n\
            .text.k:\n\t//## File \"/tmp/k.cu\", line 12 inlined at \"/tmp/k.cu\", line 5\n\
            \t//## File \"/tmp/k.cu\", line 5\n\
            \x20       /*0000*/                   LDC R1, c[0x0][0x28] ;    /* 0x00 */\n.L_x_1:\n\
            \t//## File \"/tmp/k.cu\", line x\n        /*0010*/     @P0 EXIT ;\n\
            \x20       /*0020*/               NOP;\n.L_x_3:\n";
        let found = linked(sass, CodeLanguage::Sass);
        let expected = [
            ("k", "LDC R1, c[0x0][0x28]", Some("/tmp/k.cu"), Some(12)),
            ("k", "@P0 EXIT", None, None),
        ];
        assert_eq!(lines(&found), expected);
        let without = super::super::without_places(sass);
        assert!(!without.contains("/tmp") && without.contains("LDC R1"), "{without}");
    }

    #[test]
    fn listings_are_cut_at_the_limit() {
        let body = "\tret;\n".repeat(MAX_LINKED + 1);
        let found = linked(&format!(".entry k(){{\n{body}}}\n"), CodeLanguage::Ptx);
        assert_eq!((found.instructions.len(), found.cut), (MAX_LINKED, true));
        let whole = linked(".entry k(){\n\tret;\n}\n", CodeLanguage::Ptx);
        assert_eq!((whole.instructions.len(), whole.cut), (1, false));
        for hostile in ["", ".entry", ".entry k(", ".entry k(){", "//## File \"", ".loc 1"] {
            assert_eq!(linked(hostile, CodeLanguage::Ptx), LinkedInstructions::default());
            assert_eq!(linked(hostile, CodeLanguage::Sass), LinkedInstructions::default());
        }
    }
}
