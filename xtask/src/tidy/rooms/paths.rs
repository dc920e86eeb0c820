//! Finds the paths in a file's text that refer to its crate: `crate::…`, `super::…` and `self::…`,
//! in imports and elsewhere ([`used`]).
//!
//! The text is split into tokens but not parsed as Rust. That is sufficient, because these words
//! begin only paths and visibilities.

/// A path from the root of the crate, and the line in which it occurs.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    /// Names of the modules, and a name in the last module; `*` means all names.
    pub segments: Vec<String>,
    /// Number of the line in which the path begins, from 1.
    pub line: usize,
}

/// A word or a punctuation mark, and the line in which it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Returns the paths in the text of module `home` that refer to its crate. `#[cfg(test)]` items are
/// ignored, because tests may use any module.
pub fn used(text: &str, home: &[&str]) -> Vec<Path> {
    let tokens = without_tests(tokens(text));
    let mut reader = Reader { tokens: &tokens, at: 0, paths: Vec::new() };
    // The open inline modules. For each, the number of open braces around it.
    let mut inner: Vec<(&str, usize)> = Vec::new();
    let mut braces = 0;
    while let Some(token) = reader.tokens.get(reader.at).copied() {
        let before = reader.at.checked_sub(1).map_or("", |at| tokens[at].text);
        match token.text {
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if inner.last().is_some_and(|(_, around)| *around == braces) {
                    inner.pop();
                }
            }
            "mod" if reader.text(2) == "{" => inner.push((reader.text(1), braces)),
            // The path in `pub(in crate::exec)` does not use the module that it names.
            "crate" | "self" | "super" if before != "::" && before != "in" => {
                let module: Vec<&str> =
                    home.iter().copied().chain(inner.iter().map(|(name, _)| *name)).collect();
                reader.path(&module);
                continue;
            }
            _ => {}
        }
        reader.at += 1;
    }
    reader.paths
}

/// Returns the modules that the text declares only for tests: `#[cfg(test)] mod name;`.
pub fn test_modules(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let starts = (0..tokens.len()).filter(|at| is_test_attribute(&tokens[*at..]));
    let module = |at: usize| match &tokens[at + CFG_TEST.len()..] {
        [word, name, end, ..] if word.text == "mod" && end.text == ";" => {
            Some(name.text.to_owned())
        }
        _ => None,
    };
    starts.filter_map(module).collect()
}

/// Returns the words and punctuation marks of a text, without test items.
pub fn words(text: &str) -> Vec<&str> {
    without_tests(tokens(text)).into_iter().map(|token| token.text).collect()
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    paths: Vec<Path>,
}

impl<'a> Reader<'_, 'a> {
    /// Returns the text of the token that is `ahead` positions further; empty after the end of the
    /// text.
    fn text(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    /// Reads the path that begins at the current token, relative to `module`.
    fn path(&mut self, module: &[&str]) {
        let mut start: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
        let first = self.text(0);
        match first {
            "crate" => start.clear(),
            "super" => drop(start.pop()),
            _ => {}
        }
        self.at += 1;
        if self.text(0) != "::" {
            return;
        }
        self.at += 1;
        self.rest(start);
    }

    /// Reads the rest of a path after `::`: either a name and what follows it, or a group.
    fn rest(&mut self, mut segments: Vec<String>) {
        loop {
            let Some(token) = self.tokens.get(self.at).copied() else { return };
            match token.text {
                "{" => return self.group(&segments),
                // These generic arguments belong to a function: `path::<T>()`.
                "<" => break,
                "super" => drop(segments.pop()),
                "self" => {}
                name => segments.push(name.to_owned()),
            }
            self.at += 1;
            if self.text(0) != "::" {
                break;
            }
            self.at += 1;
        }
        let line = self.tokens[self.at.min(self.tokens.len()) - 1].line;
        self.paths.push(Path { segments, line });
    }

    fn group(&mut self, segments: &[String]) {
        self.at += 1;
        while !matches!(self.text(0), "}" | "") {
            if self.text(0) == "," {
                self.at += 1;
            } else if self.text(0) == "as" {
                self.at += 2;
            } else {
                self.rest(segments.to_vec());
            }
        }
        self.at += 1;
    }
}

const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    tokens.len() >= CFG_TEST.len() && tokens.iter().zip(CFG_TEST).all(|(it, want)| it.text == want)
}

/// Removes every `#[cfg(test)]` item, up to its `;` or its closing brace.
fn without_tests(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if !is_test_attribute(&tokens[at..]) {
            kept.push(tokens[at]);
            at += 1;
            continue;
        }
        let mut depth = 0usize;
        while at < tokens.len() {
            let text = tokens[at].text;
            at += 1;
            match text {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(text, ";" | "}") {
                break;
            }
        }
    }
    kept
}

/// Returns the words and punctuation marks of a text, without comments and literals.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (len, kept) = token_at(rest, c);
        if kept {
            out.push(Token { text: &rest[..len], line });
        }
        line += rest[..len].matches('\n').count();
        at += len;
    }
    out
}

/// Returns the length of the element that begins with `c`, and whether it is a token.
fn token_at(rest: &str, c: char) -> (usize, bool) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (comment(rest), false);
    }
    if let Some(len) = raw_string(rest) {
        return (len, false);
    }
    if c == '"' {
        return (string(rest), false);
    }
    if c == '\'' {
        return (quote(rest), false);
    }
    if c == '_' || c.is_alphanumeric() {
        let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
        return (end.unwrap_or(rest.len()), true);
    }
    if rest.starts_with("::") {
        return (2, true);
    }
    (c.len_utf8(), !c.is_whitespace())
}

/// Returns the length of a block comment, which may contain nested comments.
fn comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest[at..].starts_with("*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length of a raw string, or `None` if the text does not begin with one.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    Some(body.find(&end).map_or(rest.len(), |at| begin + at + end.len()))
}

/// Returns the length of a string literal.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character literal, or of the quote of a lifetime.
fn quote(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        // The escaped character may be a quote.
        (Some((_, '\\')), Some(_)) => chars.find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let paths = used(text, &["a", "b"]);
        paths.iter().map(|path| format!("{}:{}", path.line, path.segments.join("::"))).collect()
    }

    #[test]
    fn imports_are_taken_apart() {
        assert_eq!(
            paths("use crate::x::Y;\nuse super::z::{self, P, q::{R as S, *}};\n"),
            ["1:x::Y", "2:a::z", "2:a::z::P", "2:a::z::q::R", "2:a::z::q::*"]
        );
        assert_eq!(paths("use {self::c::D, super::super::e::F};"), ["1:a::b::c::D", "1:e::F"]);
        assert_eq!(
            paths("use std::fmt;\npub(super) fn f(self) {}\npub(in crate::a) struct X;"),
            [""; 0]
        );
    }

    #[test]
    fn paths_in_code_count_too() {
        let text =
            "fn f(x: &'static crate::m::T) -> char {\n    let c = '\\'';\n    super::g::<u8>(c)\n}";
        assert_eq!(paths(text), ["1:m::T", "3:a::g"]);
        assert_eq!(paths("macro_rules! m { () => { $crate::n::f() } }"), ["1:n::f"]);
        assert_eq!(
            paths("mod c { fn f() { super::d::g() } }\nuse super::h;"),
            ["1:a::b::d::g", "2:a::h"]
        );
    }

    #[test]
    fn text_that_is_no_code_is_skipped() {
        let text = "// crate::a::B\n/* /* */ crate::a::B */\nf(\"\\\"crate::a::B\", r#\"\"crate::a::B\"#);\n'{'; crate::c::D;";
        assert_eq!(paths(text), ["4:c::D"]);
        assert_eq!(paths("//! Grüße\nlet s = \"ä\"; let c = 'ß'; /* ü */ crate::c::D"), ["2:c::D"]);
    }

    #[test]
    fn tests_may_use_what_they_like() {
        let text = "#[cfg(test)]\nmod tests {\n    use crate::x::Y;\n}\nuse crate::z::W;\n#[cfg(test)]\nuse crate::v::U;\n#[cfg(test)]\nmod more;";
        assert_eq!(paths(text), ["5:z::W"]);
        assert_eq!(test_modules(text), ["more"]);
    }
}
