//! Blocks with which a source launches its kernels (`kernel<<<grid, block>>>`). The main function is [`launched_block`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::infer::body::{Body, Known};
use crate::infer::lexer::{integer, is_name, read};

/// Most tokens between `<<<` and `>>>`, and in a definition.
const MAX_TOKENS: usize = 256;

/// Most definitions that lead from one name to another.
const MAX_DEPTH: usize = 4;

/// Most definitions of one name that are looked at.
const MAX_DEFINITIONS: usize = 4;

/// Most searches for definitions: each reads the whole source.
const MAX_SEARCHES: u32 = 64;

/// Most launches of a kernel that are looked at.
const MAX_LAUNCHES: usize = 16;

/// Most threads of a block.
const MAX_THREADS: u64 = 1024;

/// Returns the block of the first launch of a kernel whose block the source fixes. Kernels are often written for it.
pub(crate) fn launched_block(
    kernel: &str,
    tokens: &[&str],
    constants: &BTreeMap<&str, u64>,
) -> Option<[u64; 3]> {
    let scope = Scope { tokens, constants, searches: Cell::new(MAX_SEARCHES) };
    let launches = (0..tokens.len()).filter(|at| tokens[*at] == "<<<");
    let of_kernel = launches.filter(|at| scope.launched_at(*at) == Some(kernel));
    of_kernel.take(MAX_LAUNCHES).find_map(|at| {
        let arguments = scope.list(at + 1, ">>>")?;
        let block = scope.extents(arguments.get(1)?.clone(), 0)?;
        let fits = block.iter().all(|extent| (1..=MAX_THREADS).contains(extent))
            && block.iter().product::<u64>() <= MAX_THREADS;
        fits.then_some(block)
    })
}

struct Scope<'s> {
    tokens: &'s [&'s str],
    constants: &'s BTreeMap<&'s str, u64>,
    /// Number of searches that are left.
    searches: Cell<u32>,
}

impl Scope<'_> {
    /// Returns the name of the kernel in front of `<<<`, without namespaces and template arguments.
    fn launched_at(&self, at: usize) -> Option<&str> {
        let mut before = at.checked_sub(1)?;
        if self.tokens[before] == ">" {
            let mut arguments = self.tokens[..before].iter().rev().take(MAX_TOKENS);
            before = before.checked_sub(arguments.position(|token| *token == "<")? + 2)?;
        }
        Some(self.tokens[before]).filter(|name| is_name(name))
    }

    /// Splits a list at its commas, from `begin` to the first `end` that is not within parentheses.
    fn list(&self, begin: usize, end: &str) -> Option<Vec<Range<usize>>> {
        let (mut items, mut from, mut depth) = (Vec::new(), begin, 0u32);
        for (at, token) in self.tokens.iter().enumerate().skip(begin).take(MAX_TOKENS) {
            match *token {
                token if depth == 0 && token == end => {
                    items.push(from..at);
                    return Some(items);
                }
                "," if depth == 0 => {
                    items.push(from..at);
                    from = at + 1;
                }
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => depth = depth.checked_sub(1)?,
                ";" => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the extents that an expression means: a number, `dim3(…)`, or a variable with either.
    fn extents(&self, range: Range<usize>, depth: usize) -> Option<[u64; 3]> {
        if depth > MAX_DEPTH {
            return None;
        }
        match &self.tokens[range.clone()] {
            ["dim3", open @ ("(" | "{"), .., ")" | "}"] => self.of_dim3(range.start + 1, open),
            [name] if is_name(name) && !self.constants.contains_key(name) => {
                self.search()?;
                let made = (0..self.tokens.len().saturating_sub(1)).rev().filter(|at| {
                    self.tokens[*at] == *name && matches!(self.tokens[at + 1], "(" | "{" | "=")
                });
                made.take(MAX_DEFINITIONS).find_map(|at| match self.tokens[at + 1] {
                    "=" => {
                        let value = self.list(at + 2, ";").and_then(|all| all.first().cloned());
                        let value = value.or_else(|| self.declared(at + 2))?;
                        self.extents(value, depth + 1)
                    }
                    open => self.is_dim3(at).then(|| self.of_dim3(at + 1, open)).flatten(),
                })
            }
            _ => Some([self.value(range, depth)?, 1, 1]),
        }
    }

    /// Uses up one search, if any is left.
    fn search(&self) -> Option<()> {
        self.searches.set(self.searches.get().checked_sub(1)?);
        Some(())
    }

    /// Returns the value of a variable that another declaration follows.
    fn declared(&self, begin: usize) -> Option<Range<usize>> {
        let end = self.tokens[begin..].iter().take(MAX_TOKENS).position(|token| *token == ",")?;
        Some(begin..begin + end)
    }

    /// Whether the name at `at` is declared as a `dim3`.
    fn is_dim3(&self, at: usize) -> bool {
        let before = self.tokens[..at].iter().rev().take(MAX_TOKENS);
        before.take_while(|token| !matches!(**token, ";" | "}")).any(|token| *token == "dim3")
    }

    fn of_dim3(&self, open: usize, kind: &str) -> Option<[u64; 3]> {
        let items = self.list(open + 1, if kind == "{" { "}" } else { ")" })?;
        let mut extents = [1; 3];
        for (extent, item) in extents.iter_mut().zip(items) {
            *extent = self.value(item, 0)?;
        }
        Some(extents)
    }

    /// Evaluates an expression of integers and names whose values the source fixes.
    fn value(&self, range: Range<usize>, depth: usize) -> Option<u64> {
        let mut text = String::new();
        for token in &self.tokens[range] {
            match *token {
                "(" | ")" | "+" | "-" | "*" | "/" | "%" | "<<" | ">>" => text.push_str(token),
                _ if integer(token).is_some() => text.push_str(token),
                _ if is_name(token) => text.push_str(&self.named(token, depth)?.to_string()),
                _ => return None,
            }
            text.push(' ');
        }
        let source = read(&text);
        let body = Body::new(&source.tokens, &[]);
        body.upper(0..source.tokens.len(), &Known::default()).map(|upper| upper.value)
    }

    fn named(&self, name: &str, depth: usize) -> Option<u64> {
        if let Some(value) = self.constants.get(name) {
            return Some(*value);
        }
        if depth >= MAX_DEPTH {
            return None;
        }
        self.search()?;
        let at = self.tokens.windows(2).rposition(|pair| pair == [name, "="])?;
        let value = self.list(at + 2, ";")?.first()?.clone();
        self.value(value, depth + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(source: &str) -> Option<[u64; 3]> {
        let source = read(source);
        launched_block("k", &source.tokens, &source.constants)
    }

    #[test]
    fn blocks_are_numbers_constants_variables_and_dim3() {
        for (source, expected) in [
            ("k<<<(n + 127) / 128, 128>>>(x);", [128, 1, 1]),
            ("#define B 64\nk<<<g, B * 2, 0, s>>>(x);", [128, 1, 1]),
            ("int t = 32; int threads = t * 4; ns::k<float><<<g, threads>>>(x);", [128, 1, 1]),
            ("#define T 16\ndim3 grid(8, n / T), block(T, T); k<<<grid, block>>>();", [16, 16, 1]),
            ("dim3 b{32, 4}; k<<<1, b>>>();", [32, 4, 1]),
            ("auto b = dim3(8, 8, 4); k<<<1, b>>>();", [8, 8, 4]),
            ("k<<<dim3(1), dim3(32, 2)>>>(); k<<<1, 7>>>();", [32, 2, 1]),
            ("other<<<1, 64>>>(); k<<<1, n>>>(); k<<<1, 96>>>();", [96, 1, 1]),
        ] {
            assert_eq!(block(source), Some(expected), "{source}");
        }
    }

    #[test]
    fn hostile_sources_take_no_time() {
        let began = std::time::Instant::now();
        let many = |part: &str| part.repeat(40_000);
        for source in [
            many("k<<<1, n>>>();"),
            many("n = n * n * n;") + "k<<<1, n>>>();",
            many("k<float><<<1, "),
            many("dim3 n(n, n);") + &many("k<<<1, n>>>();"),
            many("> <<< 1"),
        ] {
            assert_eq!(block(&source), None);
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn what_the_source_does_not_fix_is_no_block() {
        for source in [
            "k<<<1, n>>>();",
            "k<<<1, 2048>>>();",
            "k<<<1>>>();",
            "k<<<1, 0>>>();",
            "int a = a; k<<<1, a>>>();",
            "k<<<1, dim3(w, 2)>>>();",
            "k<<<1, 32;",
            "<<<1, 32>>>();",
            "void k() {}",
        ] {
            assert_eq!(block(source), None, "{source}");
        }
    }
}
