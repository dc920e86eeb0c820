//! The variables that PTX declares.
//!
//! Directives and modifiers begin with a dot wherever they stand, with or without a space before them:
//! `.visible.global.u32 x;` declares as `.visible .global .u32 x;` does.

use super::{HARMLESS_IMPORTS, Variables};

/// Instructions that name a state space after their opcode: `ld.global.f32`, `cvta.const.u64`.
const OPCODES: [&str; 21] = [
    "applypriority",
    "atom",
    "cp",
    "createpolicy",
    "cvta",
    "discard",
    "fence",
    "fetch",
    "isspacep",
    "ld",
    "ldu",
    "mbarrier",
    "multimem",
    "prefetch",
    "prefetchu",
    "red",
    "st",
    "suld",
    "sust",
    "tensormap",
    "wmma",
];

/// Why nothing is certain of a text that could hide a declaration.
const NOT_UNDERSTOOD: &str = "the image declares variables in a form that is not understood";

/// Finds declarations in module scope: `.global .align 4 .b8 name[16] = {…};`.
pub(crate) fn variables(text: &str) -> Variables {
    match declarations(&tokens(text)) {
        Ok(found) => found,
        Err(reason) => Variables::unprovable(reason),
    }
}

fn declarations(tokens: &[&str]) -> Result<Variables, String> {
    let mut found = Variables::default();
    let (mut depth, mut start, mut has_value) = (0usize, 0, false);
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                // A body ends without a semicolon, an initialiser with one.
                if depth == 0 && !has_value {
                    start = index + 1;
                }
            }
            "=" if depth == 0 => has_value = true,
            ";" if depth == 0 => {
                declaration(&tokens[start..index], &mut found)?;
                (start, has_value) = (index + 1, false);
            }
            // No initialiser names a state space.
            ".global" | ".const" if depth > 0 && !follows_opcode(&tokens[..index]) => {
                return Err("the image declares variables inside functions".to_owned());
            }
            // What follows could be any of the words above; and a text that goes on to another line was
            // meant to end on its own.
            "." => return Err(NOT_UNDERSTOOD.to_owned()),
            text if text.starts_with('"') && text.contains('\n') => {
                return Err(NOT_UNDERSTOOD.to_owned());
            }
            _ => {}
        }
    }
    // What was taken for the inside of something may have been outside.
    if depth > 0 || has_value { Err(NOT_UNDERSTOOD.to_owned()) } else { Ok(found) }
}

/// Looks at one statement of module scope. Directives without a semicolon (`.version`, `.target`,
/// `.address_size`, `.file`) may stand in front.
fn declaration(statement: &[&str], found: &mut Variables) -> Result<(), String> {
    let has = |word| statement.contains(&word);
    if has(".extern") && has(".func") {
        let name = imported_function(statement);
        let harmless = HARMLESS_IMPORTS.contains(&name);
        return if harmless { Ok(()) } else { Err(format!("the image uses {name}")) };
    }
    let mut spaces = statement.iter().enumerate();
    let Some((at, space)) = spaces.find(|(_, word)| [".global", ".const"].contains(word)) else {
        return Ok(());
    };
    if has(".extern") {
        return Err("the image uses a variable of another".to_owned());
    }
    let not_understood = || Err(NOT_UNDERSTOOD.to_owned());
    if spaces.any(|(_, word)| [".global", ".const"].contains(word)) {
        return not_understood();
    }
    let end = statement.iter().position(|word| ["[", "="].contains(word));
    let declared = &statement[at + 1..end.unwrap_or(statement.len()).max(at + 1)];
    let names = declared.iter().filter(|word| !word.starts_with('.') && !is_number(word));
    match *names.collect::<Vec<_>>() {
        [name] if is_identifier(name) => {
            let list = if *space == ".const" { &mut found.constants } else { &mut found.names };
            list.push((*name).to_owned());
            Ok(())
        }
        _ => not_understood(),
    }
}

/// Whether the tokens end with an opcode and modifiers of it: then a state space is one more. Any name may
/// look like an opcode, so an instruction must begin there.
fn follows_opcode(before: &[&str]) -> bool {
    let opcode = before.iter().rposition(|token| !token.starts_with('.'));
    opcode.is_some_and(|at| OPCODES.contains(&before[at]) && is_start(&before[..at]))
}

/// Whether an instruction may begin after these tokens: after another, at the begin of a block, after a
/// label, a guard (`@p`, `@!p`) or the numbers of `.loc`.
fn is_start(before: &[&str]) -> bool {
    match before {
        [.., "@", _] | [.., "@", "!", _] => true,
        [.., last] => [";", "{", "}", ":"].contains(last) || is_number(last),
        [] => false,
    }
}

/// The last word outside parentheses: `.extern .func (.param .b32 r) name (.param .b64 a)`.
fn imported_function<'a>(statement: &[&'a str]) -> &'a str {
    let mut depth = 0usize;
    let mut name = "";
    for token in statement {
        match *token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            word if depth == 0 && is_identifier(word) => name = word,
            _ => {}
        }
    }
    name
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || "_$%".contains(first))
}

/// The words, with their dot where they have one, and everything else character by character. Comments
/// are left out, strings are one token.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if first.is_whitespace() => {
                rest = rest.trim_start();
                continue;
            }
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest[2..].find("*/").map_or("", |end| &rest[end + 4..]);
                continue;
            }
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '.' => 1 + scoped_word(&rest[1..]),
            _ => word(rest).max(first.len_utf8()),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// Length of the word that the text begins with, bytes.
fn word(text: &str) -> usize {
    let part = |character: char| character.is_ascii_alphanumeric() || "_$%".contains(character);
    text.find(|character| !part(character)).unwrap_or(text.len())
}

/// The same for a modifier, which may have parts: `shared::cluster`.
fn scoped_word(text: &str) -> usize {
    let mut length = word(text);
    while let Some(next) = text[length..].strip_prefix("::") {
        length += 2 + word(next);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = ".visible .entry k(.param .u64 p) {\n .reg .b32 %r<2>;\n .loc 1 5 2\n \
         ld.global.u32 %r1, [%rd1];\n @%p1 st .global .u32 [%rd1], %r1;\n \
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];\n \
         cvta.const.u64 %rd2, table;\n \
         wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1];\n $L__BB0_1:\n ld.const.f32 %f1, [table];\n ret; }\n";

    #[test]
    fn declarations_are_found_and_instructions_are_not() {
        let text = format!(
            ".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"a;{{ .global .u32 no;\"\n\
             // .global .u32 commented;\n/* .global .u32 too; */\n\
             .visible .global .align 4 .u32 counter;\n\
             {BODY}.global .align 8 .b8 table[16] = {{1, 2, 3}};\n\
             .const .align 4 .f32 pi = 0f40490FDB;\n\
             .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)\n;\n\
             {BODY}.global .align 1 .b8 $str[4] = {{104, 105, 10}};\n"
        );
        let found = variables(&text);
        assert_eq!(found.unprovable, None);
        assert_eq!(
            (found.names, found.constants),
            (
                vec!["counter".to_owned(), "table".to_owned(), "$str".to_owned()],
                vec!["pi".to_owned()],
            )
        );
    }

    #[test]
    fn spaces_are_not_needed() {
        let found =
            variables(".visible.global.align 4.u32 a;.global.u64 b=generic(a);.const.f32 c;");
        assert_eq!((found.names.len(), found.constants.len()), (2, 1));
        assert_eq!(found.unprovable, None);
    }

    #[test]
    fn what_is_not_certain_is_said() {
        for text in [
            ".extern .func (.param .b64 r) malloc (.param .b64 n)\n;\n",
            ".visible .entry k() { .global .u32 hidden; ret; }",
            ".visible .entry k() { .loc 1 5 2\n.global.u32 hidden; ret; }",
            ".visible .entry k() { L: .const .u32 hidden; ret; }",
            ".visible .entry k() { { .global.u32 hidden; } ret; }",
            ".extern .global .u32 elsewhere;",
            ".global .u32 a, b;",
            ".global .u32 a; .global .u32 b .global .u32 c;",
            ".global .attribute(.managed) .u32 a;",
            ".const[2] .u32 a;",
            ". global .u32 a;",
            "./**/global .u32 a;",
            ".file 1 \"a\n.global .u32 a;\n.file 2 \"b\"\n",
            ".visible .entry k() { .loc 1 1 1, function_name ld .global .u32 a; ret; }",
            ".visible .entry k(.param .attribute(=) .u64 x) { .global .u32 a; ret; }",
            ".pragma = { ; .global .u32 a;",
            ".pragma { ; .target sm_75, ld .global .u32 a; .pragma } ;",
            ".visible .entry k(.param .attribute(=) .u64 x) { ret; }",
        ] {
            assert!(variables(text).unprovable.is_some(), "{text}");
        }
        let malloc = variables(".extern .func (.param .b64 r) malloc (.param .b64 n);");
        assert!(malloc.unprovable.unwrap().contains("malloc"));
    }
}
