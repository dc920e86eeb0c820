//! Finds constexpr functions without an execution space, which nvcc compiles for the device with
//! `--expt-relaxed-constexpr`. The main function is [`with_relaxed_constexpr`].

use super::host::macros_with;
use super::lexer::{Token, TokenKind, tokenize};

/// Replacement for `constexpr` before such a function: a macro of the same length, so that columns are unchanged. The
/// compiler's prelude defines it.
pub const RELAXED_CONSTEXPR: &str = "WG_CONSTX";

/// Maximum number of tokens of a declaration that are examined on either side of its `constexpr`.
const MOST_TOKENS: usize = 512;

/// Returns whether a word gives a function its execution space.
fn is_space(word: &str) -> bool {
    matches!(word, "__host__" | "__device__" | "__global__")
}

/// Replaces `constexpr` before functions without an execution space with [`RELAXED_CONSTEXPR`]. Returns `None` if there
/// are none.
pub fn with_relaxed_constexpr(source: &str) -> Option<String> {
    let all = tokenize(source);
    let macros = macros_with(&all, is_space);
    let has_space = |token: &Token<'_>| is_space(token.text) || macros.contains(token.text);
    let code: Vec<Token<'_>> =
        all.iter().copied().filter(|token| token.kind != TokenKind::Directive).collect();
    let mut text = source.to_owned();
    let mut found = false;
    for (at, token) in code.iter().enumerate() {
        let is_branch = at > 0 && code[at - 1].text == "if";
        if token.text != "constexpr" || is_branch {
            continue;
        }
        let before = code[..at].iter().rev().take(MOST_TOKENS);
        if before.take_while(|token| !ends_declaration(token.text)).any(has_space) {
            continue;
        }
        let rest = &code[at + 1..code.len().min(at + 1 + MOST_TOKENS)];
        let Some(declarator) = declarator(rest) else { continue };
        if !declarator.iter().any(has_space) {
            text.replace_range(token.at..token.at + token.text.len(), RELAXED_CONSTEXPR);
            found = true;
        }
    }
    found.then_some(text)
}

/// Returns whether a token cannot precede `constexpr` within the same declaration.
fn ends_declaration(text: &str) -> bool {
    matches!(text, ";" | "{" | "}" | ":")
}

/// Returns the tokens before the parameters of a function with a body, or `None` if these tokens
/// declare something else.
fn declarator<'t, 'a>(code: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let mut at = 0;
    let mut angles = 0usize;
    let open = loop {
        match code.get(at)?.text {
            "<" => angles += 1,
            ">" => angles = angles.saturating_sub(1),
            "(" if angles > 0 => {
                at = closed(code, at)?;
                continue;
            }
            "operator" => {
                // The operator's characters, including `()`, are before the parameters.
                at += 1;
                if code.get(at)?.text == "(" {
                    at += 2;
                }
                while code.get(at)?.text != "(" {
                    at += 1;
                }
                continue;
            }
            "(" => break at,
            "=" | ";" | "{" | "}" if angles == 0 => return None,
            _ => {}
        }
        at += 1;
    };
    let mut after = closed(code, open)?;
    // Skips tokens that may be between the parameters and the body.
    loop {
        match code.get(after)?.text {
            "{" | ":" => return Some(&code[..open]),
            "const" | "noexcept" | "override" | "final" | "&" => after += 1,
            "(" => after = closed(code, after)?,
            "-" => {
                while !matches!(code.get(after)?.text, "{" | ";") {
                    after += 1;
                }
            }
            _ => return None,
        }
    }
}

/// Returns the index after the bracket that matches the one at `open`.
fn closed(code: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in code.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_functions_without_a_space_get_both() {
        let source = "constexpr int f(int x) { return x; }
template <typename T, int N = (1 < 2)> constexpr T g(T x) { return x; }
struct S { constexpr S(int v) : a(v) {} constexpr int twice() const noexcept { return a; }
  constexpr auto half() const -> int { return a / 2; }
  constexpr bool operator()(int x) const { return x; } constexpr S operator+(S o) { return o; } int a; };
static constexpr inline int h() { return 1; }";
        let relaxed = with_relaxed_constexpr(source).unwrap();
        assert!(!relaxed.contains("constexpr"), "{relaxed}");
        assert_eq!(relaxed.len(), source.len());
        assert_eq!(relaxed.replace(RELAXED_CONSTEXPR, "constexpr"), source);
    }

    #[test]
    fn everything_else_keeps_its_word() {
        for source in [
            "constexpr int N = f(3);",
            "constexpr float table[] = {1, 2};",
            "constexpr S s{f(1)};",
            "__device__ constexpr int f() { return 1; }",
            "constexpr __host__ __device__ int f() { return 1; }",
            "#define HD __host__ __device__\nHD constexpr int f() { return 1; }",
            "__global__ void k() { if constexpr (sizeof(int) == 4) { } constexpr int n(3); }",
            "template <int N> constexpr bool is_small = (N < 3);",
            "// constexpr int f() { }\nconst char* s = \"constexpr int f() {}\";",
            "constexpr int f(",
        ] {
            assert_eq!(with_relaxed_constexpr(source), None, "{source}");
        }
    }
}
