//! Reads the launch parameters of kernels (`kernel<<<grid, block>>>(…)`) from a source. The main
//! function is [`launched`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::infer::body::{Body, Known};
use crate::infer::kinds::size_of;
use crate::infer::lexer::{integer, is_name, read};

/// Maximum number of tokens between `<<<` and `>>>`, and in a definition.
const MAX_TOKENS: usize = 256;

/// Maximum length of a chain of definitions from one name to another.
const MAX_DEPTH: usize = 4;

/// Maximum number of definitions of one name that are examined.
const MAX_DEFINITIONS: usize = 4;

/// Maximum number of searches for definitions. Each search reads the whole source.
const MAX_SEARCHES: u32 = 64;

/// Maximum number of launches of a kernel that are examined.
const MAX_LAUNCHES: usize = 16;

/// Maximum number of threads of a block.
const MAX_THREADS: u64 = 1024;

/// Maximum dynamic shared memory of a block of compute capability 9.0, in bytes.
pub(crate) const MAX_SHARED: u64 = 227 << 10;

/// A number that a source passes to a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Passed {
    Integer(u64),
    Float(f64),
}

/// Launch parameters of a kernel that the source determines.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Launched {
    /// Block of the first launch whose block is known. Kernels are often written for a specific
    /// block size.
    pub block: Option<[u64; 3]>,
    /// Grid of that launch.
    pub grid: Option<[u64; 3]>,
    /// Dynamic shared memory of that launch, in bytes.
    pub shared: Option<u64>,
    /// Numbers that the first launch passes, by parameter.
    pub passed: Vec<Option<Passed>>,
}

/// Reads the launches of the kernel `kernel`, which has `parameters` parameters.
pub(crate) fn launched(
    kernel: &str,
    parameters: usize,
    tokens: &[&str],
    constants: &BTreeMap<&str, u64>,
) -> Launched {
    let scope = Scope { tokens, constants, searches: Cell::new(MAX_SEARCHES) };
    let launches = (0..tokens.len()).filter(|at| tokens[*at] == "<<<");
    let of_kernel = launches.filter(|at| scope.launched_at(*at) == Some(kernel));
    let of_kernel = of_kernel.take(MAX_LAUNCHES).collect::<Vec<_>>();
    let mut found = of_kernel.iter().find_map(|at| scope.fixed_at(*at)).unwrap_or_default();
    found.passed =
        of_kernel.iter().find_map(|at| scope.passed_at(*at, parameters)).unwrap_or_default();
    found
}

struct Scope<'s> {
    tokens: &'s [&'s str],
    constants: &'s BTreeMap<&'s str, u64>,
    /// Number of searches that may still be made.
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

    /// Returns the launch at `<<<`, if its block is known.
    fn fixed_at(&self, at: usize) -> Option<Launched> {
        let arguments = self.list(at + 1, ">>>")?;
        let block = self.extents(arguments.get(1)?.clone(), 0)?;
        let fits = block.iter().all(|extent| (1..=MAX_THREADS).contains(extent))
            && block.iter().product::<u64>() <= MAX_THREADS;
        fits.then(|| Launched {
            block: Some(block),
            grid: self.extents(arguments[0].clone(), 0).filter(|grid| !grid.contains(&0)),
            shared: arguments
                .get(2)
                .and_then(|bytes| self.value(bytes.clone(), 0))
                .filter(|bytes| *bytes <= MAX_SHARED),
            passed: Vec::new(),
        })
    }

    /// Returns the numbers that the launch at `<<<` passes, if its number of arguments is
    /// `parameters`.
    fn passed_at(&self, at: usize, parameters: usize) -> Option<Vec<Option<Passed>>> {
        let last = self.list(at + 1, ">>>")?.pop()?;
        let open = last.end + 1;
        if self.tokens.get(open) != Some(&"(") {
            return None;
        }
        let arguments = self.list(open + 1, ")")?;
        let numbers = arguments.iter().map(|argument| {
            let float = self.float(argument.clone(), 0).map(Passed::Float);
            float.or_else(|| self.value(argument.clone(), 0).map(Passed::Integer))
        });
        (arguments.len() == parameters).then(|| numbers.collect())
    }

    /// Returns the value of a floating-point literal or of a variable with such a value.
    fn float(&self, range: Range<usize>, depth: usize) -> Option<f64> {
        match &self.tokens[range] {
            // A negative exponent is a separate token.
            [minus @ .., mantissa, "-", exponent] if mantissa.ends_with(['e', 'E']) => {
                let value = literal(&format!("{mantissa}-{exponent}"))?;
                matches!(minus, [] | ["-"]).then_some(if minus.is_empty() { value } else { -value })
            }
            ["-", number] => literal(number).map(|value| -value),
            [name] if is_name(name) && depth < MAX_DEPTH && !self.constants.contains_key(name) => {
                self.search()?;
                let at = self.tokens.windows(2).rposition(|pair| pair == [*name, "="])?;
                let value = self.list(at + 2, ";")?.first()?.clone();
                self.float(value, depth + 1)
            }
            [number] => literal(number),
            _ => None,
        }
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

    /// Returns the extents that an expression denotes: a number, `dim3(…)`, or a variable with
    /// either.
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

    /// Counts one search. Returns `None` if none is left.
    fn search(&self) -> Option<()> {
        self.searches.set(self.searches.get().checked_sub(1)?);
        Some(())
    }

    /// Returns the value of a variable in a declaration that continues with another variable.
    fn declared(&self, begin: usize) -> Option<Range<usize>> {
        let end = self.tokens[begin..].iter().take(MAX_TOKENS).position(|token| *token == ",")?;
        Some(begin..begin + end)
    }

    /// Returns whether the name at `at` is declared as a `dim3`.
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

    /// Evaluates an expression of integers and of names whose values the source determines.
    fn value(&self, range: Range<usize>, depth: usize) -> Option<u64> {
        let mut text = String::new();
        let mut tokens = self.tokens[range].iter();
        while let Some(token) = tokens.next() {
            match *token {
                "sizeof" => match tokens.as_slice() {
                    ["(", c_type, ")", ..] => {
                        text.push_str(&size_of(c_type)?.to_string());
                        tokens.nth(2)?;
                    }
                    _ => return None,
                },
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

/// Returns the value of a floating-point literal.
fn literal(token: &str) -> Option<f64> {
    let is_number = token.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let digits = token.trim_end_matches(['f', 'F']);
    let is_float = is_number && !token.starts_with("0x") && digits.contains(['.', 'e', 'E']);
    is_float.then(|| digits.parse().ok()).flatten().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, parameters: usize) -> Launched {
        let source = read(source);
        launched("k", parameters, &source.tokens, &source.constants)
    }

    fn block(source: &str) -> Option<[u64; 3]> {
        of(source, 1).block
    }

    #[test]
    fn what_a_launch_passes_is_read() {
        let source = "#define N 1024\nint B = 256; float rate = 1e-3f; int half = N / 2;\n\
            k<<<(N + B - 1) / B, B, 2 * B * sizeof(float)>>>(d_x, half, rate, -0.5, n, 7);";
        let found = of(source, 6);
        assert_eq!(found.grid, Some([4, 1, 1]));
        assert_eq!((found.block, found.shared), (Some([256, 1, 1]), Some(2048)));
        let passed = [
            None,
            Some(Passed::Integer(512)),
            Some(Passed::Float(1e-3)),
            Some(Passed::Float(-0.5)),
            None,
            Some(Passed::Integer(7)),
        ];
        assert_eq!(found.passed, passed);
        // A launch with another number of arguments says nothing of these.
        assert_eq!(of(source, 5).passed, []);
        let open = of("k<<<n / 32, 32, m * 4>>>(x, f(y), n * 2.0f);", 3);
        assert_eq!((open.grid, open.shared), (None, None));
        assert_eq!(open.passed, [None, None, None]);
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
