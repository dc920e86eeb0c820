//! Host code of a CUDA C++ file, and what is left without it.
//!
//! Files written for nvcc hold functions of the host beside their kernels. A compiler of device code
//! alone refuses them, or does not know what they call. Nothing that runs on the device can use them, so
//! the kernels mean the same without them.
//!
//! Declarations are told apart by their words; macros are not expanded. Where that is not enough, too
//! much or too little goes, and the rest does not compile: so this is for sources that do not compile as
//! they are.

use std::collections::BTreeSet;

use super::lexer::{Token, TokenKind, tokenize};

/// Names that are told of what was left out, at most.
const MAX_NAMES: usize = 16;

/// A source without its host code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// The source; what was left out is white space, so that lines and columns are the same.
    pub text: String,
    /// Functions and variables that were left out, in their order: the first sixteen.
    pub left_out: Vec<String>,
    /// How many there were.
    pub count: usize,
}

/// Leaves out functions and variables of the host at namespace level. `None`: there are none, or braces
/// do not pair.
pub fn without_host_code(source: &str) -> Option<DeviceCode> {
    let tokens = tokenize(source);
    let qualifiers = qualifying_macros(&tokens);
    let code: Vec<Token<'_>> =
        tokens.into_iter().filter(|token| token.kind != TokenKind::Directive).collect();
    let mut walk =
        Walk { tokens: &code, at: 0, qualifiers: &qualifiers, host: Vec::new(), types: Vec::new() };
    walk.scope(0)?;
    if walk.host.is_empty() {
        return None;
    }
    walk.leave_out_types();
    let mut text = source.as_bytes().to_vec();
    let mut left_out = Vec::new();
    for host in &walk.host {
        for token in &code[host.first..=host.last] {
            let end = token.at + token.text.len();
            for byte in &mut text[token.at..end] {
                if *byte != b'\n' && *byte != b'\r' {
                    *byte = b' ';
                }
            }
        }
        if left_out.len() < MAX_NAMES {
            left_out.push(host.name.clone());
        }
    }
    // Whole tokens became spaces, so this is UTF-8 as before.
    let text = String::from_utf8(text).ok()?;
    Some(DeviceCode { text, left_out, count: walk.host.len() })
}

/// Words that put what they stand before on the device, or leave the choice to the compiler.
fn is_qualifier(word: &str) -> bool {
    matches!(
        word,
        "__device__"
            | "__global__"
            | "__constant__"
            | "__shared__"
            | "__managed__"
            | "__grid_constant__"
            | "constexpr"
            | "consteval"
    )
}

/// Macros that stand for such a word.
fn qualifying_macros<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    let directives = tokens.iter().filter(|token| token.kind == TokenKind::Directive);
    let defined = directives.filter_map(|token| {
        let rest = token.text.strip_prefix('#')?.trim_start().strip_prefix("define")?.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, body) = rest.split_at(end);
        let qualifies = tokenize(body).iter().any(|token| is_qualifier(token.text));
        (qualifies && !name.is_empty()).then_some(name)
    });
    defined.collect()
}

/// A declaration of the host: its tokens, and a name for it.
struct Host {
    first: usize,
    last: usize,
    name: String,
}

/// Deepest nesting of namespaces.
const MAX_DEPTH: usize = 64;

struct Walk<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    qualifiers: &'t BTreeSet<&'a str>,
    host: Vec<Host>,
    /// Classes that have functions, none of them for the device.
    types: Vec<Host>,
}

impl<'a> Walk<'_, 'a> {
    fn text(&self, at: usize) -> Option<&'a str> {
        self.tokens.get(at).map(|token| token.text)
    }

    /// The declarations of a namespace, up to its brace or the end. `None`: something does not pair.
    fn scope(&mut self, depth: usize) -> Option<()> {
        while let Some(text) = self.text(self.at) {
            match text {
                "}" if depth > 0 => return Some(()),
                "}" => return None,
                ";" => self.at += 1,
                _ => match self.opens_scope() {
                    Some(_) if depth == MAX_DEPTH => return None,
                    Some(open) => {
                        self.at = open + 1;
                        self.scope(depth + 1)?;
                        if self.text(self.at) != Some("}") {
                            return None;
                        }
                        self.at += 1;
                    }
                    None => self.declaration()?,
                },
            }
        }
        Some(())
    }

    /// The brace of a namespace, or of a block with a linkage, that begins here.
    fn opens_scope(&self) -> Option<usize> {
        let mut at = self.at;
        if self.text(at) == Some("inline") {
            at += 1;
        }
        match self.text(at)? {
            "namespace" => {
                at += 1;
                while self
                    .tokens
                    .get(at)
                    .is_some_and(|t| t.kind == TokenKind::Word || t.text == "::")
                {
                    at += 1;
                }
            }
            "extern" if self.tokens.get(at + 1)?.kind == TokenKind::Literal => at += 2,
            _ => return None,
        }
        (self.text(at) == Some("{")).then_some(at)
    }

    /// One declaration, from here to its `;` or the end of its body.
    fn declaration(&mut self) -> Option<()> {
        let first = self.at;
        let mut seen = Seen::default();
        loop {
            let token = *self.tokens.get(self.at)?;
            match token.text {
                ";" => break,
                "}" | ")" | "]" => return None,
                "(" | "[" => {
                    seen.opened(token.text, self.named_before());
                    self.pair()?;
                    continue;
                }
                "{" => {
                    let body = seen.is_function() && !seen.assigned;
                    let last = self.pair()?;
                    if body {
                        self.judge(first, last, &seen);
                        return Some(());
                    }
                    seen.braced = true;
                    continue;
                }
                "<" if self.text(self.at.wrapping_sub(1)) == Some("template") => {
                    self.template_parameters()?;
                    continue;
                }
                "=" => seen.assigned = true,
                _ => seen.word(token, self.qualifiers),
            }
            self.at += 1;
        }
        self.judge(first, self.at, &seen);
        self.at += 1;
        Some(())
    }

    /// The word before the bracket that is next.
    fn named_before(&self) -> Option<&'a str> {
        let before = self.tokens.get(self.at.checked_sub(1)?)?;
        (before.kind == TokenKind::Word).then_some(before.text)
    }

    /// Moves behind the bracket that pairs with the one here, and returns where that is.
    fn pair(&mut self) -> Option<usize> {
        let mut depth = 0usize;
        loop {
            match self.text(self.at)? {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(self.at - 1);
            }
        }
    }

    /// Moves behind the parameters of a template.
    fn template_parameters(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.text(self.at)? {
                "<" => depth += 1,
                ">" => depth -= 1,
                "(" | "[" | "{" => {
                    self.pair()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Notes a declaration that is the host's.
    fn judge(&mut self, first: usize, last: usize, seen: &Seen<'_>) {
        if let Some(name) = seen.host_name() {
            self.host.push(Host { first, last, name: name.to_owned() });
        } else if let Some(name) = self.class(first, last, seen) {
            self.types.push(Host { first, last, name: name.to_owned() });
        }
    }

    /// Name of a class with functions, none of which is for the device.
    fn class(&self, first: usize, last: usize, seen: &Seen<'_>) -> Option<&'a str> {
        let tokens = &self.tokens[first..=last];
        let keyword = tokens.iter().position(|token| matches!(token.text, "struct" | "class"))?;
        let name = tokens.get(keyword + 1).filter(|token| token.kind == TokenKind::Word)?;
        let for_device =
            |token: &Token<'_>| is_qualifier(token.text) || self.qualifiers.contains(token.text);
        let functions = tokens.iter().any(|token| token.text == "(");
        (seen.braced && functions && !tokens.iter().any(for_device)).then_some(name.text)
    }

    /// Leaves out those classes that nothing names which stays.
    fn leave_out_types(&mut self) {
        loop {
            let mut gone = vec![false; self.tokens.len()];
            for host in &self.host {
                gone[host.first..=host.last].fill(true);
            }
            let named = |class: &Host| {
                self.tokens.iter().enumerate().any(|(at, token)| {
                    let own = (class.first..=class.last).contains(&at);
                    !own && !gone[at] && token.text == class.name
                })
            };
            let Some(place) = self.types.iter().position(|class| !named(class)) else { break };
            let class = self.types.swap_remove(place);
            self.host.push(class);
        }
        self.host.sort_by_key(|host| host.first);
    }
}

/// What was seen of a declaration outside of all brackets.
#[derive(Default)]
struct Seen<'a> {
    /// The first word.
    first: Option<&'a str>,
    /// The last word that is no qualifier: of a variable its name, or its type's.
    last: Option<&'a str>,
    /// The word before the first parenthesis.
    called: Option<&'a str>,
    parenthesis: bool,
    bracket: bool,
    braced: bool,
    assigned: bool,
    /// It belongs to the device, or says of itself that it is constant.
    device: bool,
    constant: bool,
    /// It declares no function and no variable.
    other: bool,
    /// `struct X …`, which may be a type or something of that type.
    elaborated: bool,
}

impl<'a> Seen<'a> {
    fn word(&mut self, token: Token<'a>, qualifiers: &BTreeSet<&'a str>) {
        if token.kind != TokenKind::Word {
            return;
        }
        let word = token.text;
        let begins = self.first.is_none();
        match word {
            "const" => self.constant = true,
            "using" | "typedef" | "static_assert" | "friend" | "asm" | "concept" if begins => {
                self.other = true;
            }
            "namespace" => self.other = true,
            "struct" | "class" | "union" | "enum" => self.elaborated = true,
            "template" => return,
            _ if is_qualifier(word) || qualifiers.contains(word) => self.device = true,
            _ if !self.assigned => self.last = Some(word),
            _ => {}
        }
        self.first = self.first.or(Some(word));
    }

    fn opened(&mut self, bracket: &str, before: Option<&'a str>) {
        if bracket == "[" {
            self.bracket |= !self.assigned;
        } else if !self.assigned && !self.parenthesis {
            // Neither of these declares a function.
            if matches!(before, Some("alignas" | "__align__" | "__attribute__" | "decltype")) {
                return;
            }
            self.parenthesis = true;
            self.called = before.or(self.last);
        }
    }

    fn is_function(&self) -> bool {
        self.parenthesis && !self.other
    }

    /// A name for it, where it is the host's.
    fn host_name(&self) -> Option<&'a str> {
        if self.device || self.other || self.first.is_none() {
            return None;
        }
        if self.parenthesis && !self.assigned {
            return self.called.or(self.first);
        }
        // A type that is declared, perhaps with variables of it.
        if self.elaborated && (self.braced || !self.assigned) {
            return None;
        }
        // Constant numbers are known to the device as well; constant arrays are not.
        if self.constant && !self.bracket {
            return None;
        }
        // `X;` is a macro, as far as can be seen.
        (self.last != self.first || self.assigned).then_some(self.last.or(self.first)).flatten()
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
