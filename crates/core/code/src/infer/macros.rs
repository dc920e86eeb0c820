//! Expansion of the macros of a source, which often contain loops over all elements and vector
//! accesses. Conditional directives are ignored, and the last definition of a macro applies. The
//! main type is [`Macros`].

use std::collections::BTreeMap;

use crate::infer::lexer::{MAX_TOKENS, closing, is_name, lex};

/// Maximum number of tokens of a macro body that is expanded, and of its parameters.
const MAX_BODY: usize = 512;
const MAX_PARAMETERS: usize = 32;

/// Maximum depth of nested expansions.
const MAX_DEPTH: usize = 12;

/// Maximum number of tokens processed during expansion.
const MAX_STEPS: usize = 4 * MAX_TOKENS;

#[derive(Debug)]
struct Macro<'a> {
    /// Names of the macro's parameters, if it has a parameter list.
    parameters: Option<Vec<&'a str>>,
    body: Vec<&'a str>,
}

#[derive(Debug, Default)]
pub(crate) struct Macros<'a> {
    all: BTreeMap<&'a str, Macro<'a>>,
}

impl<'a> Macros<'a> {
    /// Adds the macro of a directive, if it defines one that can be expanded.
    pub(crate) fn define(&mut self, directive: &'a str) {
        let Some(rest) = directive[1..].trim_start().strip_prefix("define") else { return };
        let rest = rest.trim_start();
        let end = rest
            .find(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if !is_name(name) {
            return;
        }
        let mut tokens = Vec::new();
        lex(rest, &mut tokens, &mut |_| {});
        tokens.retain(|token| *token != "\\");
        let (parameters, body) = if rest.starts_with('(') {
            let Some(close) = closing(&tokens, 0) else { return };
            let names = tokens[1..close].iter().filter(|token| is_name(token)).copied();
            (Some(names.collect::<Vec<_>>()), tokens[close + 1..].to_vec())
        } else {
            (None, tokens)
        };
        let plain = body.len() <= MAX_BODY
            && parameters.as_ref().is_none_or(|names| names.len() <= MAX_PARAMETERS)
            && !body.iter().any(|token| matches!(*token, "#" | "\"\""));
        if plain {
            self.all.insert(name, Macro { parameters, body });
        } else {
            self.all.remove(name);
        }
    }

    /// Returns the tokens with all macros expanded, or unchanged if the expansion is too long.
    pub(crate) fn written_out(&self, tokens: Vec<&'a str>) -> Vec<&'a str> {
        if self.all.is_empty() {
            return tokens;
        }
        let mut writer = Writer { macros: self, out: Vec::new(), steps: 0, active: Vec::new() };
        if writer.write(&tokens) { writer.out } else { tokens }
    }
}

struct Writer<'m, 'a> {
    macros: &'m Macros<'a>,
    out: Vec<&'a str>,
    steps: usize,
    /// Macros being expanded, which are not expanded again.
    active: Vec<&'a str>,
}

impl<'a> Writer<'_, 'a> {
    /// Appends tokens with their macros expanded. Returns false if a limit is exceeded.
    fn write(&mut self, tokens: &[&'a str]) -> bool {
        let mut at = 0;
        while at < tokens.len() {
            self.steps += 1;
            if self.steps > MAX_STEPS || self.out.len() > MAX_TOKENS {
                return false;
            }
            let name = tokens[at];
            at += 1;
            let known = self
                .macros
                .all
                .get(name)
                .filter(|_| self.active.len() < MAX_DEPTH && !self.active.contains(&name));
            let Some(found) = known else {
                self.out.push(name);
                continue;
            };
            let body = match &found.parameters {
                None => found.body.clone(),
                Some(parameters) => {
                    let close =
                        (tokens.get(at) == Some(&"(")).then(|| closing(tokens, at)).flatten();
                    let Some(close) = close else {
                        self.out.push(name);
                        continue;
                    };
                    let given = arguments(&tokens[at + 1..close]);
                    at = close + 1;
                    self.steps += close - at.min(close);
                    match filled(&found.body, parameters, &given) {
                        Some(body) => body,
                        None => return false,
                    }
                }
            };
            self.active.push(name);
            let fits = self.write(&body);
            self.active.pop();
            if !fits {
                return false;
            }
        }
        true
    }
}

/// Returns the arguments between the parentheses of a call.
fn arguments<'t, 'a>(tokens: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 0 => {
                found.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&tokens[start..]);
    found
}

/// Returns the body of a macro with arguments in place of parameters, or `None` if it becomes too
/// long.
fn filled<'a>(
    body: &[&'a str],
    parameters: &[&'a str],
    given: &[&[&'a str]],
) -> Option<Vec<&'a str>> {
    let mut found = Vec::new();
    for token in body {
        match parameters.iter().position(|parameter| parameter == token) {
            Some(index) => found.extend_from_slice(given.get(index).copied().unwrap_or_default()),
            None => found.push(token),
        }
        if found.len() > MAX_TOKENS {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use crate::infer::lexer::read;

    fn text(source: &str) -> String {
        read(source).tokens.join(" ")
    }

    #[test]
    fn macros_are_written_out_with_their_arguments() {
        let source = "#define LOOP(i, n) \\\n  for (int i = 0; i < (n); ++i)\n#define V(x) (reinterpret_cast<float4*>(&(x))[0])\n\
                      #define R (W / 2)\n#define W 5\nLOOP(k, f(a, b)) V(y[k]) = R;";
        assert_eq!(
            text(source),
            "for ( int k = 0 ; k < ( f ( a , b ) ) ; ++ k ) ( reinterpret_cast < float4 * > ( & ( y [ k ] ) ) [ 0 ] ) = ( W / 2 ) ;"
        );
        assert_eq!(text("#define f(x) f(x) + g\n#define g(x) h\nf(1) g;"), "f ( 1 ) + g g ;");
        assert_eq!(text("#define K(n) void n##_k()\nK(a);"), "K ( a ) ;");
    }

    /// The cost of a text that doubles with each macro is bounded.
    #[test]
    fn what_grows_without_end_stays_as_it_is() {
        let mut source = String::from("#define a0 x x\n");
        for at in 1..60 {
            source.push_str(&format!("#define a{at}(y) a{0}(y a{0}(y)) a{0}(y)\n", at - 1));
        }
        source.push_str("a59(z)");
        assert!(read(&source).tokens.len() < 1000);
        let empty = (1..60).fold(String::from("#define b0\n"), |text, at| {
            text + &format!("#define b{at} b{0} b{0} b{0} b{0}\n", at - 1)
        });
        assert!(read(&(empty + "b59")).tokens.len() < 1000);
    }
}
