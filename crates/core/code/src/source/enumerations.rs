//! Names of the enumerations that a source declares. The main function is [`enumerations`].

use super::lexer::{Token, TokenKind, tokens};

/// Maximum number of names that are returned.
const MAX_NAMES: usize = 4096;

/// Returns the names of enumerations, without their namespaces: those after `enum`, and those that
/// a `typedef` declares.
pub fn enumerations(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut all = tokens(source).filter(|token| token.kind != TokenKind::Directive).peekable();
    let mut is_typedef = false;
    while let Some(token) = all.next() {
        if names.len() >= MAX_NAMES {
            break;
        }
        if token.text != "enum" || token.kind != TokenKind::Word {
            is_typedef = token.text == "typedef";
            continue;
        }
        while all.peek().is_some_and(|next| matches!(next.text, "class" | "struct")) {
            all.next();
        }
        if let Some(name) = all.next_if(is_name) {
            names.push(name.text.to_owned());
        }
        if !is_typedef {
            continue;
        }
        is_typedef = false;
        // The aliases are between the last brace and the semicolon.
        let mut depth = 0_u32;
        for next in all.by_ref() {
            match next.text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => break,
                _ if depth == 0 && is_name(&next) => names.push(next.text.to_owned()),
                _ => {}
            }
        }
    }
    names
}

fn is_name(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_have_names() {
        let source = "enum Plain { A, B }; enum class Scoped : int { C }; namespace n { enum Inner { D }; }\n\
            typedef enum { E = 1, F } anonymous_t; typedef enum Tag { G } alias_t; // enum Comment {}\n\
            struct S { enum { H } member; }; #define X enum Macro\nenum { I }; typedef int other_t;";
        let source = source.replace("; #define", ";\n#define");
        assert_eq!(
            enumerations(&source),
            ["Plain", "Scoped", "Inner", "anonymous_t", "Tag", "alias_t"]
        );
        for odd in ["enum", "typedef enum", "typedef enum {", "enum class", ""] {
            assert!(enumerations(odd).is_empty(), "{odd}");
        }
    }
}
