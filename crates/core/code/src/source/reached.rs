//! Removal of everything that device code does not reach. The main function is [`reached_code`].
//!
//! Files written for nvcc have types, aliases, constants and classes for their host code. These may
//! use functions that a compiler of device code lacks. Here a declaration is kept if it is for the
//! device, or if a kept declaration in any file mentions a name that it declares. Names are
//! compared as words, so too much may be kept. Macros are followed by the words in their
//! definitions.
//!
//! Like [`without_host_code`](super::without_host_code), this is only used for sources that do not
//! compile otherwise.

use std::collections::{BTreeSet, HashMap};

use super::host::{
    Declared, DeclaredKind, DeviceCode, MAX_NAMES, Walk, blank, definition, is_qualifier,
    macros_with, name_after,
};
use super::includes::included_header;
use super::lexer::{Token, TokenKind, tokenize};

/// Replacement for `const` before a number that device code reads: a macro of the same length, so
/// that columns are unchanged. The compiler's prelude defines it as `constexpr`.
pub const DEVICE_CONSTANT: &str = "WG_CX";

/// Folders of headers whose functions are for the host, and the namespace of their names.
const HOST_LIBRARIES: [(&str, &str); 1] = [("thrust/", "thrust")];

/// Keywords, which are never names of declarations in a source.
const KEYWORDS: [&str; 24] = [
    "auto",
    "bool",
    "char",
    "class",
    "const",
    "constexpr",
    "double",
    "enum",
    "extern",
    "float",
    "inline",
    "int",
    "long",
    "short",
    "signed",
    "static",
    "struct",
    "template",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "void",
];

/// A file, its code without directives, and its declarations.
struct File<'a> {
    text: &'a str,
    all: Vec<Token<'a>>,
    code: Vec<Token<'a>>,
    declared: Vec<Declared>,
}

/// Returns the files of a source with only the code that device code reaches. Returns `None` if
/// there is no device code, or if braces do not match. The entry of an unchanged file is `None`.
pub fn reached_code(files: &[&str]) -> Option<Vec<Option<DeviceCode>>> {
    let files = files.iter().map(|text| read(text)).collect::<Option<Vec<_>>>()?;
    let (kept, named) = reach(&files);
    let is_empty = kept.iter().flatten().all(|kept| !kept);
    if is_empty {
        return None;
    }
    Some(files.iter().zip(&kept).map(|(file, kept)| without(file, kept, &named)).collect())
}

fn read(text: &str) -> Option<File<'_>> {
    let all = tokenize(text);
    let code: Vec<Token<'_>> =
        all.iter().copied().filter(|token| token.kind != TokenKind::Directive).collect();
    let qualifiers = macros_with(&all, is_qualifier);
    let mut walk = Walk::new(&code, &qualifiers);
    walk.scope(0)?;
    let declared = walk.all;
    Some(File { text, all, code, declared })
}

/// Marks the declarations that are kept, by file. Returns the words that they refer to, directly or
/// through others.
fn reach<'a>(files: &[File<'a>]) -> (Vec<Vec<bool>>, BTreeSet<&'a str>) {
    let mut declares: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    let mut macros: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut pending: Vec<&str> = Vec::new();
    let mut kept: Vec<Vec<bool>> =
        files.iter().map(|file| vec![false; file.declared.len()]).collect();
    for (at, file) in files.iter().enumerate() {
        for (index, declared) in file.declared.iter().enumerate() {
            let tokens = &file.code[declared.first..=declared.last];
            if declared.kind == DeclaredKind::Device || opened(tokens).is_some() {
                kept[at][index] = true;
                // The namespace of a library is kept only if something else mentions it.
                pending.extend(
                    words(tokens).filter(|word| !is_library(word) || opened(tokens).is_none()),
                );
            } else if declared.kind != DeclaredKind::Host {
                for name in names(tokens) {
                    declares.entry(name).or_default().push((at, index));
                }
            }
        }
        for (name, body) in file.all.iter().filter_map(definition) {
            macros.entry(name).or_default().extend(words(&tokenize(body)));
        }
    }
    let mut seen = BTreeSet::new();
    while let Some(word) = pending.pop() {
        if !seen.insert(word) {
            continue;
        }
        pending.extend(macros.get(word).into_iter().flatten());
        for &(at, index) in declares.get(word).into_iter().flatten() {
            if !std::mem::replace(&mut kept[at][index], true) {
                let declared = files[at].declared[index];
                pending.extend(words(&files[at].code[declared.first..=declared.last]));
            }
        }
    }
    (kept, seen)
}

/// Removes the unreached declarations of a file, and makes the remaining constant numbers available
/// to the device.
fn without(file: &File<'_>, kept: &[bool], named: &BTreeSet<&str>) -> Option<DeviceCode> {
    let mut text = file.text.as_bytes().to_vec();
    let (mut left_out, mut count) = (Vec::new(), 0);
    for (declared, kept) in file.declared.iter().zip(kept) {
        let tokens = &file.code[declared.first..=declared.last];
        let is_gone =
            opened(tokens).is_some_and(|space| is_library(space) && !named.contains(space));
        if !kept || is_gone {
            tokens.iter().for_each(|token| blank(&mut text, token));
            count += 1;
            left_out.extend(
                names(tokens).next().filter(|_| left_out.len() < MAX_NAMES).map(str::to_owned),
            );
        } else if declared.kind == DeclaredKind::Constant
            && let Some(token) = tokens.iter().find(|token| token.text == "const")
        {
            text[token.at..token.at + token.text.len()].copy_from_slice(DEVICE_CONSTANT.as_bytes());
            count += 1;
        }
    }
    for token in file.all.iter().filter(|token| token.kind == TokenKind::Directive) {
        let header = included_header(token.text).unwrap_or_default();
        let library = HOST_LIBRARIES.iter().find(|(folder, _)| header.starts_with(folder));
        if library.is_some_and(|(_, space)| !named.contains(space)) {
            blank(&mut text, token);
            count += 1;
        }
    }
    // Only whole tokens were replaced by spaces or other words, so the text is still UTF-8.
    let text = String::from_utf8(text).ok()?;
    (count > 0).then_some(DeviceCode { text, left_out, count })
}

/// Returns the first word of X in `using namespace X;`. Other tokens give `None`.
fn opened<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    match tokens {
        [using, namespace, space, ..] if using.text == "using" && namespace.text == "namespace" => {
            Some(space.text)
        }
        _ => None,
    }
}

/// Returns whether a word is the namespace of a library for the host.
fn is_library(word: &str) -> bool {
    HOST_LIBRARIES.iter().any(|(_, space)| *space == word)
}

fn words<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'a str> + use<'t, 'a> {
    let words = tokens.iter().filter(|token| token.kind == TokenKind::Word).map(|token| token.text);
    words.filter(|word| !KEYWORDS.contains(word))
}

/// Returns the names that a declaration introduces: of a type, of its enumerators, of aliases and
/// variables.
fn names<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'a str> + use<'t, 'a> {
    let keyword =
        tokens.iter().position(|token| matches!(token.text, "struct" | "class" | "union" | "enum"));
    let is_enum = keyword.is_some_and(|at| tokens[at].text == "enum");
    let of_type = keyword.filter(|_| !is_enum).and_then(|at| name_after(tokens, at));
    let (mut braces, mut others) = (0i32, 0i32);
    let declared = tokens.iter().enumerate().filter(move |(at, token)| {
        // Members belong to their type. The name of a pointer to a function is in parentheses.
        let is_outside = if is_enum { braces <= 1 } else { braces == 0 && others <= 1 };
        match token.text {
            "{" => braces += 1,
            "}" => braces -= 1,
            "(" | "[" => others += 1,
            ")" | "]" => others -= 1,
            _ => {}
        }
        let next = tokens.get(at + 1).map_or(";", |next| next.text);
        let ends = matches!(next, ";" | "=" | "," | "[" | "{" | "(" | ")" | "}" | ":");
        token.kind == TokenKind::Word && ends && is_outside
    });
    let declared = declared.map(|(_, token)| token.text).filter(|word| !KEYWORDS.contains(word));
    of_type.into_iter().chain(declared)
}

#[cfg(test)]
#[path = "reached_tests.rs"]
mod tests;
