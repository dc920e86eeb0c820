//! Kernels of a CUDA C++ source, found by their declarations. The main type is [`SourceKernel`].
//!
//! Macros are not expanded, so a kernel declared through a macro is not found here. The compiled
//! image still contains its name, but the names of its parameters are unknown.

use super::lexer::{Token, TokenKind, tokenize};

/// Maximum number of kernels returned.
const MAX_KERNELS: usize = 1024;

/// A kernel as the source declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceKernel {
    /// Name with its namespaces, e.g. `ns::scale`; unnamed namespaces are omitted.
    pub name: String,
    /// Whether the kernel has C linkage, so that its symbol contains no types.
    pub extern_c: bool,
    /// Whether the kernel is a template, which exists only through its instances.
    pub template: bool,
    /// Whether the kernel is invisible outside the file. The compiler drops it unless it is
    /// requested by name.
    pub internal: bool,
    /// Name of each parameter, if it is written literally.
    pub params: Vec<Option<String>>,
}

impl SourceKernel {
    /// Returns the last component of the name.
    pub fn base_name(&self) -> &str {
        self.name.rsplit("::").next().unwrap_or(&self.name)
    }
}

/// Returns the kernels that `source` declares at namespace level, each once.
pub fn find_kernels(source: &str) -> Vec<SourceKernel> {
    let tokens: Vec<Token<'_>> =
        tokenize(source).into_iter().filter(|t| t.kind != TokenKind::Directive).collect();
    let mut finder = Finder { tokens: &tokens, at: 0, scopes: Vec::new(), kernels: Vec::new() };
    finder.run();
    finder.kernels
}

/// Kind of the construct that an open brace belongs to.
enum Scope {
    Namespace(Vec<String>),
    UnnamedNamespace,
    ExternC,
    Other,
}

struct Finder<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    scopes: Vec<Scope>,
    kernels: Vec<SourceKernel>,
}

impl<'a> Finder<'_, 'a> {
    fn run(&mut self) {
        // Index of the first token of the declaration, after the last `;`, `{` or `}`.
        let mut start = 0;
        while let Some(text) = self.text(self.at) {
            match text {
                "{" => {
                    let scope = self.scope_opened_by(start);
                    self.scopes.push(scope);
                    start = self.at + 1;
                }
                "}" => {
                    self.scopes.pop();
                    start = self.at + 1;
                }
                ";" => start = self.at + 1,
                "__global__" if self.at_namespace_level() => self.kernel(start),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn text(&self, at: usize) -> Option<&'a str> {
        self.tokens.get(at).map(|t| t.text)
    }

    fn at_namespace_level(&self) -> bool {
        self.kernels.len() < MAX_KERNELS
            && !self.scopes.iter().any(|scope| matches!(scope, Scope::Other))
    }

    fn scope_opened_by(&self, start: usize) -> Scope {
        let head: Vec<&str> = self.tokens[start..self.at].iter().map(|t| t.text).collect();
        let head = match head.as_slice() {
            ["inline", rest @ ..] => rest,
            all => all,
        };
        match head {
            ["namespace"] => Scope::UnnamedNamespace,
            ["namespace", names @ ..] => {
                let names = names.iter().filter(|n| **n != "::" && **n != "inline");
                Scope::Namespace(names.map(|n| (*n).to_owned()).collect())
            }
            ["extern", "\"C\""] => Scope::ExternC,
            _ => Scope::Other,
        }
    }

    /// Reads the declaration around the `__global__` at `self.at`.
    fn kernel(&mut self, start: usize) {
        let head: Vec<&str> = self.tokens[start..self.at].iter().map(|t| t.text).collect();
        let Some((open, name)) = self.declarator() else { return };
        let explicit = self.text(open - 1) == Some(">");
        let first_template = head.iter().position(|t| *t == "template");
        let specialised = first_template.is_some_and(|t| {
            // `template <> …` specialises and `template __global__ …` instantiates; the kernel
            // exists in both cases.
            head.get(t + 1) != Some(&"<") || head.get(t + 2) == Some(&">")
        });
        let Some((params, close)) = self.params(open) else { return };
        let between = || self.tokens[self.at..open].iter().map(|t| t.text).chain(head.clone());
        let extern_c = head.windows(2).any(|w| w == ["extern", "\"C\""])
            || self.scopes.iter().any(|s| matches!(s, Scope::ExternC));
        let internal = between().any(|t| t == "static")
            || self.scopes.iter().any(|s| matches!(s, Scope::UnnamedNamespace));
        let mut qualified: Vec<&str> = Vec::new();
        for scope in &self.scopes {
            if let Scope::Namespace(names) = scope {
                qualified.extend(names.iter().map(String::as_str));
            }
        }
        qualified.push(name);
        let kernel = SourceKernel {
            name: qualified.join("::"),
            extern_c,
            template: first_template.is_some() && !specialised,
            internal,
            params,
        };
        self.at = close;
        if !explicit && !specialised {
            self.add(kernel);
        }
    }

    /// Merges a declaration and its definition into one kernel, with the parameter list that has
    /// more names.
    fn add(&mut self, kernel: SourceKernel) {
        let named = |k: &SourceKernel| k.params.iter().flatten().count();
        let same = |k: &&mut SourceKernel| {
            k.name == kernel.name
                && k.template == kernel.template
                && k.extern_c
                && k.params.len() == kernel.params.len()
        };
        match self.kernels.iter_mut().find(same) {
            Some(known) if named(known) >= named(&kernel) => {}
            Some(known) => known.params = kernel.params,
            None => self.kernels.push(kernel),
        }
    }

    /// Returns the index of the `(` of the parameter list after `__global__`, and the name before
    /// it.
    fn declarator(&self) -> Option<(usize, &'a str)> {
        let mut at = self.at + 1;
        let mut name = None;
        loop {
            let token = self.tokens.get(at)?;
            match token.text {
                "(" => return name.map(|name| (at, name)),
                "<" => at = self.skip(at, "<", ">")?,
                "[" => at = self.skip(at, "[", "]")?,
                ";" | "{" | "}" | ")" | "=" => return None,
                text if takes_arguments(text) => {
                    name = None;
                    if self.text(at + 1) == Some("(") {
                        at = self.skip(at + 1, "(", ")")?;
                    }
                }
                text if token.kind == TokenKind::Word => name = Some(text),
                _ => {}
            }
            at += 1;
        }
    }

    /// Returns the index of the token that closes the one at `open`.
    fn skip(&self, open: usize, opening: &str, closing: &str) -> Option<usize> {
        let mut depth = 0usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            if token.text == opening {
                depth += 1;
            } else if token.text == closing {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            } else if matches!(token.text, "{" | "}" | ";") {
                return None;
            }
        }
        None
    }

    /// Returns the names of the parameters in the list that opens at `open`, and the index of its
    /// end.
    fn params(&self, open: usize) -> Option<(Vec<Option<String>>, usize)> {
        let close = self.skip(open, "(", ")")?;
        let list = &self.tokens[open + 1..close];
        let mut params = Vec::new();
        let mut from = 0;
        let mut depth = 0i32;
        for (at, token) in list.iter().enumerate() {
            match token.text {
                "(" | "<" | "[" | "{" => depth += 1,
                ")" | ">" | "]" | "}" => depth -= 1,
                "," if depth <= 0 => {
                    params.push(param_name(&list[from..at]));
                    from = at + 1;
                }
                _ => {}
            }
        }
        let last = &list[from..];
        let empty = from == 0 && (last.is_empty() || (last.len() == 1 && last[0].text == "void"));
        if !empty {
            params.push(param_name(last));
        }
        Some((params, close))
    }
}

/// Returns whether a word is an attribute with arguments that can occur between `__global__` and
/// the name.
fn takes_arguments(word: &str) -> bool {
    matches!(
        word,
        "__launch_bounds__"
            | "__cluster_dims__"
            | "__block_size__"
            | "__maxnreg__"
            | "__attribute__"
            | "__declspec"
            | "alignas"
            | "decltype"
    )
}

/// Returns the name in a parameter declaration: its last word, if a type precedes it.
fn param_name(tokens: &[Token<'_>]) -> Option<String> {
    let end = tokens.iter().position(|t| t.text == "=" || t.text == "[").unwrap_or(tokens.len());
    let (last, before) = tokens[..end].split_last()?;
    let typed = before.last().is_some_and(|t| t.text != "::")
        && before.iter().any(|t| t.kind == TokenKind::Word && !is_qualifier(t.text));
    let plain =
        last.kind == TokenKind::Word && !is_type_word(last.text) && !is_qualifier(last.text);
    (plain && typed).then(|| last.text.to_owned())
}

fn is_qualifier(word: &str) -> bool {
    matches!(
        word,
        "const"
            | "volatile"
            | "restrict"
            | "__restrict__"
            | "__restrict"
            | "__grid_constant__"
            | "struct"
            | "class"
            | "enum"
            | "union"
            | "typename"
            | "register"
    )
}

fn is_type_word(word: &str) -> bool {
    matches!(
        word,
        "void"
            | "bool"
            | "char"
            | "short"
            | "int"
            | "long"
            | "float"
            | "double"
            | "signed"
            | "unsigned"
            | "auto"
            | "wchar_t"
    )
}

#[cfg(test)]
#[path = "kernels_tests.rs"]
mod tests;
