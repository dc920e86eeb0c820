//! What a kernel's code does with its parameters: which it writes, and how far it reaches.
//!
//! Upper ends of integers are followed from guards, loops and definitions to the parameters and the
//! launch, as intervals whose lower end is zero unless the value is exact. Control flow is not looked at:
//! a guard anywhere is believed everywhere. That is a guess, and what comes of it is called one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::lexer::{closing, is_name};
use crate::upper::Reader;

/// Deepest chain of definitions that is followed.
pub(crate) const MAX_DEPTH: usize = 12;

/// Most steps of one walk: definitions may refer to each other in every way.
pub(crate) const MAX_STEPS: usize = 20_000;

/// A kernel's code, and where its names get their values.
#[derive(Debug, Default)]
pub(crate) struct Body<'a> {
    pub tokens: &'a [&'a str],
    /// What a local name is set to.
    pub definitions: BTreeMap<&'a str, Vec<Range<usize>>>,
    /// What a name is compared with, and whether it may be equal.
    pub bounds: BTreeMap<&'a str, Vec<(Range<usize>, bool)>>,
    /// Names that are elements of a pointer: the pointer, and the offset's expression.
    aliases: BTreeMap<&'a str, (&'a str, Range<usize>)>,
    /// Names that loops count.
    pub loops: BTreeSet<&'a str>,
}

/// What is known of quantities: the launch, and the parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known<'a> {
    /// Integers of known value: parameters and constants.
    pub integers: BTreeMap<&'a str, u64>,
    /// Largest element of arrays of integers.
    pub contents: BTreeMap<&'a str, u64>,
    pub grid: [u64; 3],
    pub block: [u64; 3],
}

/// An upper end; `exact`: it is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Upper {
    pub value: u64,
    pub exact: bool,
}

/// How a kernel uses a pointer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub read: bool,
    pub written: bool,
    pub atomic: bool,
    /// Elements that it reaches, where that is known of all its uses.
    pub elements: Option<u64>,
}

impl<'a> Body<'a> {
    pub(crate) fn new(tokens: &'a [&'a str], pointers: &[&'a str]) -> Self {
        let mut body = Self { tokens, ..Self::default() };
        for (at, token) in tokens.iter().enumerate() {
            match *token {
                "=" => body.definition(at, pointers),
                "<" | "<=" => body.bound(at, *token == "<="),
                ">" | ">=" => body.bound_from_right(at),
                "for" => body.counted(at),
                _ => {}
            }
        }
        body
    }

    /// End of the expression that begins at `start`.
    pub(crate) fn end(&self, start: usize) -> usize {
        let mut at = start;
        while at < self.tokens.len() {
            match self.tokens[at] {
                "(" | "[" => match closing(self.tokens, at) {
                    Some(close) => at = close,
                    None => return self.tokens.len(),
                },
                ";" | ")" | "]" | "{" | "}" | "," | "&&" | "||" | "<" | ">" | "<=" | ">="
                | "==" | "!=" => {
                    return at;
                }
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn definition(&mut self, at: usize, pointers: &[&'a str]) {
        let Some(name) = at.checked_sub(1).map(|before| self.tokens[before]) else { return };
        if !is_name(name) {
            return;
        }
        // The value of a condition stands for both of its branches.
        let range = at + 1..self.end(at + 1);
        let declared_pointer = at >= 2 && matches!(self.tokens[at - 2], "*" | "__restrict__");
        let base = range.clone().find(|at| {
            pointers.contains(&self.tokens[*at]) || self.aliases.contains_key(self.tokens[*at])
        });
        match base {
            Some(base) if declared_pointer || pointers.contains(&name) => {
                self.aliases.entry(name).or_insert((self.tokens[base], base + 1..range.end));
            }
            _ => self.definitions.entry(name).or_default().push(range),
        }
    }

    /// `name < expression`, or `name + something < expression`.
    fn bound(&mut self, at: usize, inclusive: bool) {
        let mut start = at;
        while start > 0
            && !matches!(
                self.tokens[start - 1],
                "(" | ";" | "{" | "&&" | "||" | "," | "?" | "=" | "!" | "return"
            )
        {
            start -= 1;
        }
        if let Some(name) = self.tokens[start..at].iter().find(|token| is_name(token)) {
            let range = at + 1..self.end(at + 1);
            self.bounds.entry(name).or_default().push((range, inclusive));
        }
    }

    /// `if (name >= expression) return`, or `expression > name`.
    fn bound_from_right(&mut self, at: usize) {
        let after = self.tokens.get(at + 1).copied().unwrap_or_default();
        if self.tokens[at] == ">=" {
            self.bound(at, false);
        } else if is_name(after) && self.end(at + 1) == at + 2 {
            let mut start = at;
            while start > 0
                && !matches!(self.tokens[start - 1], "(" | ";" | "{" | "&&" | "||" | ",")
            {
                start -= 1;
            }
            self.bounds.entry(after).or_default().push((start..at, false));
        }
    }

    fn counted(&mut self, at: usize) {
        let Some(close) = closing(self.tokens, at + 1) else { return };
        let head = &self.tokens[at + 1..close];
        if let Some(set) = head.iter().position(|token| *token == "=")
            && is_name(head[set - 1])
        {
            self.loops.insert(head[set - 1]);
        }
    }

    /// Whether a name comes from the launch's geometry.
    pub(crate) fn is_geometric(&self, name: &str, which: &str) -> bool {
        let mut steps = 0;
        self.mentions(name, which, 0, &mut steps)
    }

    fn mentions(&self, name: &str, which: &str, depth: usize, steps: &mut usize) -> bool {
        *steps += 1;
        if name.starts_with(which) {
            return true;
        }
        if depth > MAX_DEPTH || *steps > MAX_STEPS {
            return false;
        }
        let Some(ranges) = self.definitions.get(name) else { return false };
        ranges.iter().any(|range| {
            let names =
                self.tokens[range.clone()].iter().filter(|token| is_name(token) && **token != name);
            names.into_iter().any(|token| self.mentions(token, which, depth + 1, steps))
        })
    }

    /// Names that are set from an expression with this token in it, and those expressions.
    pub(crate) fn set_from(&self, token: &str) -> Vec<(&'a str, &'a [&'a str])> {
        let mut found = Vec::new();
        for (name, ranges) in &self.definitions {
            for range in ranges {
                let expression = &self.tokens[range.clone()];
                if expression.contains(&token) {
                    found.push((*name, expression));
                }
            }
        }
        found
    }

    /// What becomes of a pointer.
    pub(crate) fn used(&self, pointer: &str, known: &Known<'_>) -> Use {
        let mut used = Use::default();
        let mut furthest = Some(0_u64);
        for at in 0..self.tokens.len() {
            let token = self.tokens[at];
            let through = self.aliases.get(token).filter(|alias| self.root(alias.0) == pointer);
            if token != pointer && through.is_none() || self.defines_alias(at) {
                continue;
            }
            let offset = through.map(|_| self.offset(token, known));
            let reach = self.access(at, known, &mut used);
            let whole = match (offset, reach) {
                (None, reach) => reach,
                (Some(offset), reach) => offset.zip(reach).map(|(offset, reach)| offset + reach),
            };
            furthest = furthest.zip(whole).map(|(furthest, whole)| furthest.max(whole + 1));
        }
        used.elements = furthest.filter(|elements| *elements > 0);
        used
    }

    /// Whether the name at `at` only makes an alias.
    fn defines_alias(&self, at: usize) -> bool {
        let inside = self.aliases.values().any(|(_, range)| range.start == at + 1);
        inside
            || self.aliases.contains_key(self.tokens[at]) && self.tokens.get(at + 1) == Some(&"=")
    }

    pub(crate) fn root<'b>(&'b self, name: &'b str) -> &'b str {
        let mut name = name;
        for _ in 0..MAX_DEPTH {
            match self.aliases.get(name) {
                Some((base, _)) if *base != name => name = base,
                _ => break,
            }
        }
        name
    }

    fn offset(&self, alias: &str, known: &Known<'_>) -> Option<u64> {
        let mut total = 0_u64;
        let mut name = alias;
        for _ in 0..MAX_DEPTH {
            let Some((base, range)) = self.aliases.get(name) else { return Some(total) };
            if !range.is_empty() {
                let skip = usize::from(matches!(self.tokens[range.start], "+" | "["));
                total =
                    total.checked_add(self.upper(range.start + skip..range.end, known)?.value)?;
            }
            if *base == name {
                return Some(total);
            }
            name = base;
        }
        None
    }

    /// The access whose pointer stands at `at`: its largest index.
    fn access(&self, at: usize, known: &Known<'_>, used: &mut Use) -> Option<u64> {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.tokens[at]);
        let (index, end) = if self.tokens.get(at + 1) == Some(&"[") {
            let close = closing(self.tokens, at + 1)?;
            (self.upper(at + 2..close, known).map(|upper| upper.value), close)
        } else if self.tokens.get(at + 1) == Some(&"+") {
            let end = self.end(at + 2);
            (self.upper(at + 2..end, known).map(|upper| upper.value), end)
        } else if before(1) == "*"
            || before(1).starts_with("atomic")
            || before(2).starts_with("atomic")
        {
            (Some(0), at)
        } else {
            (None, at)
        };
        let mut after = end + 1;
        while self.tokens.get(after) == Some(&".") {
            after += 2;
        }
        let atomic = (2..=5).any(|back| {
            let between = (1..back).all(|back| matches!(before(back), "(" | "&" | ")"));
            between && before(back).starts_with("atomic")
        });
        match self.tokens.get(after).copied().unwrap_or_default() {
            _ if atomic => {
                (used.read, used.written, used.atomic) = (true, true, true);
            }
            "=" => used.written = true,
            "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=" | "++" | "--" => {
                (used.read, used.written) = (true, true);
            }
            _ if matches!(before(1), "++" | "--") => (used.read, used.written) = (true, true),
            // Handed on as a whole: whoever gets it may do either.
            "," | ")" if end == at && before(1) != "*" => (used.read, used.written) = (true, true),
            _ => used.read = true,
        }
        index
    }

    /// Upper end of an expression.
    pub(crate) fn upper(&self, range: Range<usize>, known: &Known<'_>) -> Option<Upper> {
        Reader::new(self, known, range).conditional()
    }
}
