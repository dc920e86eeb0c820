//! Removal of host code from a CUDA C++ file. The main function is [`without_host_code`].
//!
//! Files written for nvcc contain host functions beside their kernels. A compiler of device code
//! alone rejects these functions, or does not know the functions that they call. Device code cannot
//! use host functions, so the kernels have the same meaning without them.
//!
//! Declarations are classified by their words, and macros are not expanded. In rare cases this
//! removes too much or too little, and the rest does not compile. The function is therefore only
//! used for sources that do not compile unchanged.

use std::collections::BTreeSet;

use super::lexer::{Token, TokenKind, tokenize};

/// Maximum number of names in [`DeviceCode::left_out`].
pub(super) const MAX_NAMES: usize = 16;

/// A source without its host code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// The source, with removed code as white space, so that lines and columns are unchanged.
    pub text: String,
    /// Removed functions and variables, in source order; at most sixteen.
    pub left_out: Vec<String>,
    /// Number of removed declarations.
    pub count: usize,
}

/// Removes host functions and variables at namespace level. Returns `None` if there are none, or if
/// braces do not match.
pub fn without_host_code(source: &str) -> Option<DeviceCode> {
    let tokens = tokenize(source);
    let qualifiers = macros_with(&tokens, is_qualifier);
    let code: Vec<Token<'_>> =
        tokens.into_iter().filter(|token| token.kind != TokenKind::Directive).collect();
    let mut walk = Walk::new(&code, &qualifiers);
    walk.scope(0)?;
    if walk.host.is_empty() {
        return None;
    }
    walk.leave_out_types();
    let mut text = source.as_bytes().to_vec();
    walk.host
        .iter()
        .flat_map(|host| &code[host.first..=host.last])
        .for_each(|token| blank(&mut text, token));
    // Only whole tokens were replaced by spaces, so the text is still UTF-8.
    let text = String::from_utf8(text).ok()?;
    let left_out = walk.host.iter().take(MAX_NAMES).map(|host| host.name.clone()).collect();
    Some(DeviceCode { text, left_out, count: walk.host.len() })
}

/// Replaces a token by white space; lines and columns are unchanged.
pub(super) fn blank(text: &mut [u8], token: &Token<'_>) {
    for byte in &mut text[token.at..token.at + token.text.len()] {
        if *byte != b'\n' && *byte != b'\r' {
            *byte = b' ';
        }
    }
}

/// Returns whether a word assigns its declaration to the device, or leaves the choice to the
/// compiler.
pub(super) fn is_qualifier(word: &str) -> bool {
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

/// Returns the macros whose definition contains a word that `qualifies`.
pub(super) fn macros_with<'a>(
    tokens: &[Token<'a>],
    qualifies: fn(&str) -> bool,
) -> BTreeSet<&'a str> {
    let qualified = tokens.iter().filter_map(definition).filter(|(name, body)| {
        !name.is_empty() && tokenize(body).iter().any(|token| qualifies(token.text))
    });
    qualified.map(|(name, _)| name).collect()
}

/// Returns the name of a macro and its definition with the parameters, if the token defines one.
pub(super) fn definition<'a>(token: &Token<'a>) -> Option<(&'a str, &'a str)> {
    if token.kind != TokenKind::Directive {
        return None;
    }
    let rest = token.text.strip_prefix('#')?.trim_start().strip_prefix("define")?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(rest.split_at(end))
}

/// Returns the index after the bracket that matches the one at `at`, or `None` if none matches.
fn after_pair(tokens: &[Token<'_>], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match tokens.get(at)?.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// A host declaration: its tokens and its name.
struct Host {
    first: usize,
    last: usize,
    name: String,
}

/// Maximum depth of nested namespaces.
const MAX_DEPTH: usize = 64;

/// A declaration at namespace level: its tokens and its kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) kind: DeclaredKind,
}

/// Kind of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredKind {
    /// The declaration contains a device qualifier, in its head or within its braces.
    Device,
    /// A function or a variable of the host.
    Host,
    /// A constant with a value that is neither a pointer nor an array.
    Constant,
    /// A type, an alias, a variable or another declaration that the device may use.
    Other,
}

pub(super) struct Walk<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    qualifiers: &'t BTreeSet<&'a str>,
    host: Vec<Host>,
    /// Classes with functions that contain nothing for the device.
    types: Vec<Host>,
    /// All declarations, in source order.
    pub(super) all: Vec<Declared>,
}

impl<'t, 'a> Walk<'t, 'a> {
    pub(super) fn new(tokens: &'t [Token<'a>], qualifiers: &'t BTreeSet<&'a str>) -> Self {
        Self { tokens, at: 0, qualifiers, host: Vec::new(), types: Vec::new(), all: Vec::new() }
    }

    fn text(&self, at: usize) -> Option<&'a str> {
        self.tokens.get(at).map(|token| token.text)
    }

    /// Reads the declarations of a namespace, up to its brace or the end. Returns `None` if
    /// brackets do not match.
    pub(super) fn scope(&mut self, depth: usize) -> Option<()> {
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

    /// Returns the opening brace of a namespace or linkage block that begins at the current token.
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

    /// Reads one declaration, up to its `;` or the end of its body.
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
                    let is_body = seen.is_function() && !seen.assigned;
                    let brace = self.at;
                    let last = self.pair()?;
                    if is_body {
                        self.judge(first, (brace, last), &seen);
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
        self.judge(first, (self.at, self.at), &seen);
        self.at += 1;
        Some(())
    }

    /// Returns the word before the next bracket.
    fn named_before(&self) -> Option<&'a str> {
        let before = self.tokens.get(self.at.checked_sub(1)?)?;
        (before.kind == TokenKind::Word).then_some(before.text)
    }

    /// Moves past the bracket that matches the current one, and returns its index.
    fn pair(&mut self) -> Option<usize> {
        self.at = after_pair(self.tokens, self.at)?;
        Some(self.at - 1)
    }

    /// Moves past the parameters of a template.
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

    /// Records a declaration. `end` is the index of the last token before the body of a function,
    /// and `last` that of its last token.
    fn judge(&mut self, first: usize, (end, last): (usize, usize), seen: &Seen<'_>) {
        let tokens = &self.tokens[first..=last];
        let for_device =
            |token: &Token<'_>| is_qualifier(token.text) || self.qualifiers.contains(token.text);
        let mut declarator = tokens.iter().take_while(|token| token.text != "=");
        let is_plain = !declarator.any(|token| matches!(token.text, "*" | "&" | "extern"));
        // A device lambda in a host function is for kernels that the function instantiates, so the
        // body does not count.
        let is_for_device = seen.device || self.tokens[first..=end].iter().any(for_device);
        let host = seen.host_name();
        let kind = if is_for_device {
            DeclaredKind::Device
        } else if host.is_some() {
            DeclaredKind::Host
        } else if seen.constant && seen.assigned && !seen.bracket && !seen.braced && is_plain {
            DeclaredKind::Constant
        } else {
            DeclaredKind::Other
        };
        self.all.push(Declared { first, last, kind });
        if let Some(name) = host {
            self.host.push(Host { first, last, name: name.to_owned() });
        } else if seen.braced
            && !is_for_device
            && let Some(name) = with_functions(tokens)
        {
            self.types.push(Host { first, last, name: name.to_owned() });
        }
    }

    /// Removes the classes that the remaining code does not mention.
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

/// Returns the name of a class with functions.
fn with_functions<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let keyword = tokens.iter().position(|token| matches!(token.text, "struct" | "class"))?;
    let name = name_after(tokens, keyword)?;
    let body = tokens.iter().position(|token| token.text == "{").unwrap_or(0);
    tokens[body..].iter().any(|token| token.text == "(").then_some(name)
}

/// Returns the name of a type after its keyword, past attributes such as `__align__(8)`.
pub(super) fn name_after<'a>(tokens: &[Token<'a>], keyword: usize) -> Option<&'a str> {
    let mut at = keyword + 1;
    loop {
        let token = tokens.get(at)?;
        match token.text {
            "alignas" | "__align__" | "__attribute__" | "__declspec" => at += 1,
            "(" | "[" => at = after_pair(tokens, at)?,
            _ => return (token.kind == TokenKind::Word).then_some(token.text),
        }
    }
}

/// Words of a declaration outside all brackets.
#[derive(Default)]
struct Seen<'a> {
    first: Option<&'a str>,
    /// The last word that is not a qualifier: the name of a variable, or of its type.
    last: Option<&'a str>,
    /// The word before the first parenthesis.
    called: Option<&'a str>,
    parenthesis: bool,
    bracket: bool,
    braced: bool,
    assigned: bool,
    /// Whether the declaration belongs to the device, and whether it is declared constant.
    device: bool,
    constant: bool,
    /// Whether the declaration declares neither a function nor a variable.
    other: bool,
    /// Whether the declaration has the form `struct X …`, which may define a type or declare a
    /// variable.
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
            // None of these words is the name of a function.
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

    /// Returns the name of the declaration if it belongs to the host.
    fn host_name(&self) -> Option<&'a str> {
        if self.device || self.other || self.first.is_none() {
            return None;
        }
        if self.parenthesis && !self.assigned {
            return self.called.or(self.first);
        }
        // The declaration defines a type, perhaps with variables.
        if self.elaborated && (self.braced || !self.assigned) {
            return None;
        }
        // Constant numbers are also available on the device; constant arrays are not.
        if self.constant && !self.bracket {
            return None;
        }
        // `X;` is assumed to be a macro.
        (self.last != self.first || self.assigned).then_some(self.last.or(self.first)).flatten()
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
