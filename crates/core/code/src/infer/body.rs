//! Analysis of the code of a kernel: which parameters it writes, and how many elements it reaches.
//! The main type is [`Body`].
//!
//! Upper bounds of integers are derived from guards, loops and definitions, down to the parameters
//! and the launch. They are intervals from zero, unless the value is exact. Control flow is
//! ignored: a guard anywhere is assumed to hold everywhere. The result is therefore a guess, and is
//! reported as one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::infer::kinds::size_of;
use crate::infer::lexer::{closing, is_name};
use crate::infer::upper::Reader;

/// Maximum length of a chain of definitions that is followed.
pub(crate) const MAX_DEPTH: usize = 12;

/// Maximum number of steps of one search, since definitions may be cyclic.
pub(crate) const MAX_STEPS: usize = 20_000;

/// The code of a kernel, with the expressions that define and bound its local names.
#[derive(Debug, Default)]
pub(crate) struct Body<'a> {
    pub tokens: &'a [&'a str],
    /// Expressions assigned to each local name.
    pub definitions: BTreeMap<&'a str, Vec<Range<usize>>>,
    /// Expressions that each name is compared with, and whether equality is allowed.
    pub bounds: BTreeMap<&'a str, Vec<(Range<usize>, bool)>>,
    /// Local pointers that point into the memory of another pointer, by name.
    aliases: BTreeMap<&'a str, Alias<'a>>,
    /// Amounts added to pointers in place; `None` for an addition within a loop.
    advances: BTreeMap<&'a str, Vec<Option<Range<usize>>>>,
    /// Counters of loops.
    pub loops: BTreeSet<&'a str>,
    /// Token ranges of loops.
    spans: Vec<Range<usize>>,
}

/// A local pointer that points into the memory of another pointer.
#[derive(Debug)]
struct Alias<'a> {
    base: &'a str,
    /// Position of the base in the definition.
    begins_at: usize,
    /// Expression of the offset, in elements of the base.
    offset: Range<usize>,
    /// Size of the elements, in bytes, if it is known.
    bytes: Option<u64>,
}

/// Quantities with known values: the extents of the launch, and the parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known<'a> {
    /// Integers of known value: parameters and constants.
    pub integers: BTreeMap<&'a str, u64>,
    /// Largest element of each array of integers.
    pub contents: BTreeMap<&'a str, u64>,
    pub grid: [u64; 3],
    pub block: [u64; 3],
}

/// Upper bound of an integer expression, or its value if `exact` is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Upper {
    pub value: u64,
    pub exact: bool,
}

/// Use of a pointer by a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub read: bool,
    pub written: bool,
    pub atomic: bool,
    /// Number of elements that the kernel reaches, if it is known for all uses.
    pub elements: Option<u64>,
}

impl<'a> Body<'a> {
    pub(crate) fn new(tokens: &'a [&'a str], pointers: &[&'a str]) -> Self {
        let mut body = Self { tokens, ..Self::default() };
        for (at, token) in tokens.iter().enumerate() {
            match *token {
                "=" => body.definition(at, pointers),
                "+=" => body.advance(at, pointers),
                "<" | "<=" => body.bound(at, *token == "<="),
                ">" | ">=" => body.bound_from_right(at),
                "for" | "while" => body.counted(at),
                _ => {}
            }
        }
        body
    }

    /// Returns the end of the expression that begins at `start`.
    pub(crate) fn end(&self, start: usize) -> usize {
        let mut at = start;
        while at < self.tokens.len() {
            match self.tokens[at] {
                "(" | "[" => match closing(self.tokens, at) {
                    Some(close) => at = close,
                    None => return self.tokens.len(),
                },
                "reinterpret_cast" | "static_cast" | "const_cast" => {
                    let close = self.tokens[at..].iter().take(16).position(|token| *token == ">");
                    at += close.unwrap_or(0);
                }
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
        // The range of a conditional expression includes both of its branches.
        let range = at + 1..self.end(at + 1);
        let declared_pointer = at >= 2 && matches!(self.tokens[at - 2], "*" | "__restrict__")
            || at >= 3 && matches!(self.tokens[at - 3..at - 1], ["*", "const"]);
        let base = range.clone().find(|at| {
            pointers.contains(&self.tokens[*at]) || self.aliases.contains_key(self.tokens[*at])
        });
        // `auto p = reinterpret_cast<float4*>(x)` is a pointer of the cast's type. With an index
        // after the cast it is an element.
        let is_auto = at >= 2 && self.tokens[at - 2] == "auto";
        let is_element = self.tokens.get(range.end.wrapping_sub(1)) == Some(&"]");
        let cast = base.filter(|_| declared_pointer || is_auto && !is_element).and_then(|base| {
            let text = &self.tokens[range.start..base];
            let star = text.iter().rposition(|token| *token == "*")?;
            text[star..].iter().any(|token| matches!(*token, ">" | ")")).then_some(())?;
            Some(range.start + star)
        });
        match base {
            Some(base) if declared_pointer || cast.is_some() || pointers.contains(&name) => {
                let star = cast.or_else(|| {
                    (at.saturating_sub(4)..at).rev().find(|at| self.tokens[*at] == "*")
                });
                let bytes = star.and_then(|star| size_of(self.tokens[star.checked_sub(1)?]));
                let mut after = base + 1;
                while after < range.end && self.tokens[after] == ")" {
                    after += 1;
                }
                let offset = match self.tokens.get(after) {
                    Some(&("+" | "[")) => after..range.end,
                    _ => range.end..range.end,
                };
                let alias = Alias { base: self.tokens[base], begins_at: base, offset, bytes };
                self.aliases.entry(name).or_insert(alias);
            }
            _ => self.definitions.entry(name).or_default().push(range),
        }
    }

    /// Records the amount that `pointer += expression` adds to a pointer.
    fn advance(&mut self, at: usize, pointers: &[&'a str]) {
        let Some(name) = at.checked_sub(1).map(|before| self.tokens[before]) else { return };
        let whole =
            !matches!(at.checked_sub(2).map(|before| self.tokens[before]), Some("." | "->" | "*"));
        if whole && (pointers.contains(&name) || self.aliases.contains_key(name)) {
            let range = at + 1..self.end(at + 1);
            let once = !self.is_repeated(at);
            self.advances.entry(name).or_default().push(once.then_some(range));
        }
    }

    /// Returns whether the token at `at` is within a loop.
    fn is_repeated(&self, at: usize) -> bool {
        self.spans.iter().any(|span| span.contains(&at))
    }

    /// Records the bounds in `name < expression` and `name + something < expression`.
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

    /// Records the bounds in `if (name >= expression) return` and `expression > name`.
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
        // The loop ends with its braces, or with its only statement.
        let end = match self.tokens.get(close + 1) {
            Some(&"{") => closing(self.tokens, close + 1).unwrap_or(self.tokens.len()),
            _ => self.tokens[close..]
                .iter()
                .position(|token| *token == ";")
                .map_or(self.tokens.len(), |length| close + length),
        };
        self.spans.push(at..end);
        if self.tokens[at] != "for" {
            return;
        }
        let head = &self.tokens[at + 1..close];
        if let Some(set) = head.iter().position(|token| *token == "=")
            && is_name(head[set - 1])
        {
            self.loops.insert(head[set - 1]);
        }
    }

    /// Returns whether a name derives from the geometry of the launch.
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

    /// Returns the names assigned from an expression that contains this token, with those
    /// expressions.
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

    /// Returns the difference of a name between neighbouring blocks along an axis, if it derives
    /// from the block index.
    pub(crate) fn per_block(&self, name: &str, axis: usize, known: &Known<'_>) -> Option<u64> {
        let index = ["blockIdx.x", "blockIdx.y", "blockIdx.z"][axis];
        let ranges = self.definitions.get(name)?;
        let range =
            ranges.iter().find(|range| self.tokens[(*range).clone()].contains(&index))?.clone();
        let value = |blocks: u64| {
            let mut known = Known { grid: [1; 3], ..known.clone() };
            known.grid[axis] = blocks;
            self.upper(range.clone(), &known).map(|upper| upper.value)
        };
        // Differences of upper bounds are exact if the expression is linear, as indices are.
        let (one, two, three) = (value(1)?, value(2)?, value(3)?);
        let step = two.checked_sub(one)?;
        (step > 0 && three.checked_sub(two) == Some(step)).then_some(step)
    }

    /// Returns how the kernel uses a pointer to elements of `bytes` bytes.
    pub(crate) fn used(&self, pointer: &str, bytes: u64, known: &Known<'_>) -> Use {
        let mut used = Use::default();
        let mut furthest = Some(0_u64);
        for at in 0..self.tokens.len() {
            let token = self.tokens[at];
            let through = self.aliases.get(token).filter(|alias| self.root(alias.base) == pointer);
            if token != pointer && through.is_none() || self.defines_alias(at) {
                continue;
            }
            if self.advances.contains_key(token) && self.tokens.get(at + 1) == Some(&"+=") {
                continue;
            }
            // Skips a member with the same name.
            if at > 0 && matches!(self.tokens[at - 1], "." | "->") {
                continue;
            }
            // Skips the declaration of an array whose extent the launch gives.
            if self.tokens[at + 1..].starts_with(&["[", "]"]) {
                continue;
            }
            let moved = self.advances.contains_key(token) || through.is_some();
            let offset = moved.then(|| self.offset(token, known));
            let own = through.and_then(|alias| alias.bytes).unwrap_or(bytes).max(1);
            let reach = self.access(at, own, known, &mut used);
            // Converts the index of the last element to elements of the pointer's type.
            let reach = match own == bytes {
                true => reach,
                false => reach.map(|reach| {
                    (reach + 1).saturating_mul(own).div_ceil(bytes.max(1)).saturating_sub(1)
                }),
            };
            let whole = match (offset, reach) {
                (None, reach) => reach,
                (Some(offset), reach) => offset.zip(reach).map(|(offset, reach)| offset + reach),
            };
            furthest = furthest.zip(whole).map(|(furthest, whole)| furthest.max(whole + 1));
        }
        used.elements = furthest.filter(|elements| *elements > 0);
        used
    }

    /// Returns whether the name at `at` only defines an alias.
    fn defines_alias(&self, at: usize) -> bool {
        let inside = self.aliases.values().any(|alias| alias.begins_at == at);
        inside
            || self.aliases.contains_key(self.tokens[at]) && self.tokens.get(at + 1) == Some(&"=")
    }

    pub(crate) fn root<'b>(&'b self, name: &'b str) -> &'b str {
        let mut name = name;
        for _ in 0..MAX_DEPTH {
            match self.aliases.get(name) {
                Some(alias) if alias.base != name => name = alias.base,
                _ => break,
            }
        }
        name
    }

    fn offset(&self, alias: &str, known: &Known<'_>) -> Option<u64> {
        let mut total = 0_u64;
        let mut name = alias;
        for _ in 0..MAX_DEPTH {
            for advance in self.advances.get(name).into_iter().flatten() {
                let advance = self.upper(advance.clone()?, known)?.value;
                total = total.checked_add(advance)?;
            }
            let Some(Alias { base, offset: range, .. }) = self.aliases.get(name) else {
                return Some(total);
            };
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

    /// Returns the largest index with which the code at `at` accesses the pointer, and updates
    /// `used`.
    fn access(&self, at: usize, bytes: u64, known: &Known<'_>, used: &mut Use) -> Option<u64> {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.tokens[at]);
        if self.is_tested(at) {
            return Some(0);
        }
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
        let lanes = (self.cast_around(at) / bytes.max(1)).max(1);
        let index = index.map(|index| (index / lanes).saturating_mul(lanes) + lanes - 1);
        let after = self.after(end + 1);
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
            // A function that receives the pointer may read and write through it, unless its name
            // says otherwise.
            _ if self.is_handed_on(at, end) => match self.callee(at) {
                Some(callee) if reads_only(callee) => used.read = true,
                Some(callee) if writes_only(callee) => used.written = true,
                _ => (used.read, used.written) = (true, true),
            },
            _ => used.read = true,
        }
        index
    }

    /// Returns the end of an access that is assigned to, after its members and the parentheses of a
    /// cast.
    fn after(&self, from: usize) -> usize {
        let mut after = from;
        let mut best = from;
        while let Some(token) = self.tokens.get(after) {
            match *token {
                "." => after += 2,
                ")" => after += 1,
                "[" => match closing(self.tokens, after) {
                    Some(close) => after = close + 1,
                    None => break,
                },
                _ => break,
            }
            let assigned = matches!(
                self.tokens.get(after),
                Some(&("=" | "+=" | "-=" | "*=" | "/=" | "|=" | "&=" | "^="))
            );
            // `if (x[i]) y = 1` also ends with a parenthesis, but continues with a name.
            if assigned || self.tokens[after - 1] != ")" && self.tokens.get(after - 1) != Some(&"]")
            {
                best = after;
            }
        }
        best
    }

    /// Returns whether the token at `at` passes an address, not an element, as an argument.
    fn is_handed_on(&self, at: usize, end: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.tokens[at]);
        let closes = matches!(self.tokens.get(end + usize::from(end == at)), Some(&("," | ")")));
        if self.tokens.get(at + 1) == Some(&"[") {
            return before(1) == "&" && matches!(self.tokens.get(end + 1), Some(&("," | ")")));
        }
        let read = before(1) == "*" || before(1) == "(" && before(2) == "*";
        closes && !read
    }

    /// Returns the function or cast whose argument is at `at`.
    fn callee(&self, at: usize) -> Option<&'a str> {
        let mut depth = 0_i32;
        for back in (0..at).rev().take(64) {
            match self.tokens[back] {
                ")" | "]" => depth += 1,
                "(" | "[" if depth > 0 => depth -= 1,
                "(" => {
                    return back
                        .checked_sub(1)
                        .map(|name| self.tokens[name])
                        .filter(|it| is_name(it));
                }
                ";" | "{" | "}" => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the size, in bytes, of the elements of the pointer type that the pointer at `at` is
    /// cast to, or 0 without a cast.
    fn cast_around(&self, at: usize) -> u64 {
        let from = at.saturating_sub(8);
        let before = &self.tokens[from..at];
        let start = before.iter().rposition(|token| matches!(*token, ";" | "{" | "}" | "="));
        let around = &before[start.map_or(0, |start| start + 1)..];
        let casts = around.windows(2).filter(|pair| pair[1] == "*");
        casts.filter_map(|pair| size_of(pair[0])).max().unwrap_or(0)
    }

    /// Returns whether a pointer is only compared or checked for null.
    fn is_tested(&self, at: usize) -> bool {
        let next = self.tokens.get(at + 1).copied().unwrap_or_default();
        matches!(next, "==" | "!=")
            || matches!(next, ")" | "&&" | "||" | "?")
                && self.callee(at).is_none_or(|callee| matches!(callee, "if" | "while"))
                && at.checked_sub(1).is_some_and(|before| self.tokens[before] != "*")
    }

    /// Returns an upper bound of an expression.
    pub(crate) fn upper(&self, range: Range<usize>, known: &Known<'_>) -> Option<Upper> {
        Reader::new(self, known, range).conditional()
    }
}

/// Returns whether a function with this name only reads through its pointer.
fn reads_only(name: &str) -> bool {
    name.starts_with("__ld") || name.contains("load") && !name.contains("store")
}

/// Returns whether a function with this name only writes through its pointer.
fn writes_only(name: &str) -> bool {
    name.starts_with("__st") || name.starts_with("store")
}
