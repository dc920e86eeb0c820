//! Triton kernels of a module, and their launches in its host code. The main type is [`Module`].

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Line, closing, is_name, items, lines, text_of};

/// Functions that read and write memory, by the last part of their name.
const READS: [&str; 2] = ["load", "gather"];
const WRITES: [&str; 2] = ["store", "scatter"];

/// Maximum length of a chain of assignments that is followed.
const MAX_DEPTH: usize = 12;

/// Maximum number of tokens that all searches in a module examine.
const MAX_STEPS: usize = 20_000_000;

/// Maximum numbers of kernels of a module, parameters of a kernel, and tokens of a decorator.
const MAX_KERNELS: usize = 200;
const MAX_PARAMETERS: usize = 200;
const MAX_DECORATOR: usize = 4_000;

/// A parameter of a kernel.
#[derive(Debug)]
pub(super) struct Parameter<'a> {
    pub name: &'a str,
    pub is_constant: bool,
    /// Tokens of the parameter's default value.
    pub default: Option<Vec<&'a str>>,
}

/// A function that Triton compiles.
#[derive(Debug)]
pub(super) struct Kernel<'a> {
    pub name: &'a str,
    pub parameters: Vec<Parameter<'a>>,
    /// Constants that decorators choose.
    pub chosen: BTreeSet<&'a str>,
    pub body: Vec<Vec<&'a str>>,
    /// Parameters of the top-level function that defines it, if it is nested in one.
    pub around: Vec<Parameter<'a>>,
}

/// A launch in host code: `kernel[grid](arguments)`.
#[derive(Debug, Default)]
pub(super) struct HostLaunch<'a> {
    pub grid: Vec<&'a str>,
    /// Expression of each parameter and option, by name.
    pub arguments: BTreeMap<&'a str, Vec<&'a str>>,
    /// Assignments before the launch, in the function around it and in the module: targets and
    /// expression.
    pub assignments: Vec<(Vec<&'a str>, Vec<&'a str>)>,
}

/// A module with Triton kernels.
#[derive(Debug)]
pub(super) struct Module<'a> {
    pub kernels: Vec<Kernel<'a>>,
    lines: Vec<Line<'a>>,
    /// Accesses of the kernels that were examined. The entry of a kernel that is being examined is
    /// empty, since it may call itself.
    known: RefCell<BTreeMap<&'a str, BTreeMap<&'a str, Access>>>,
    /// Number of tokens that searches may still examine.
    steps: Cell<usize>,
}

/// How a kernel uses a parameter that is a pointer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Access {
    pub reads: bool,
    pub writes: bool,
    /// Whether the kernel adds to the content or changes it with another atomic operation.
    pub is_atomic: bool,
    /// Whether an address depends on the program's index.
    pub by_program: bool,
    /// Whether a value that is read becomes a part of another address.
    pub is_index: bool,
}

impl<'a> Module<'a> {
    pub(super) fn of(source: &'a str) -> Self {
        let lines = lines(source);
        let tuned = tuned(&lines);
        let applied = applied(&lines);
        let (mut kernels, mut decorators) = (Vec::new(), Vec::new());
        // Line at which the last kernel ends. Functions before this line are not kernels.
        let mut end = 0;
        let mut around = None;
        for (at, line) in lines.iter().enumerate() {
            if at < end {
                continue;
            }
            if line.indent == 0 {
                around = (line.tokens.first() == Some(&"def")).then_some(at);
            }
            match line.tokens[..] {
                ["@", ..] => {
                    decorators.push(&line.tokens[1..line.tokens.len().min(MAX_DECORATOR)]);
                }
                ["def", name, "(", ..]
                    if (decorators.iter().any(|one| is_jit(one)) || applied.contains_key(name))
                        && kernels.len() < MAX_KERNELS =>
                {
                    let own =
                        decorators.iter().filter(|one| chooses(one)).flat_map(|one| keys(one));
                    let later = applied.get(name).into_iter().flatten();
                    let chosen = own.chain(later.copied()).chain(tuned.iter().copied());
                    let body = body(&lines[at..]);
                    end = at + 1 + body.len();
                    kernels.push(Kernel {
                        name,
                        parameters: parameters(&line.tokens),
                        around: around
                            .filter(|_| line.indent > 0)
                            .map(|outer| parameters(&lines[outer].tokens))
                            .unwrap_or_default(),
                        chosen: chosen.collect(),
                        body,
                    });
                    decorators.clear();
                }
                _ => decorators.clear(),
            }
        }
        for kernel in &mut kernels {
            let constants = kernel.parameters.iter().filter(|parameter| parameter.is_constant);
            let constants = constants.map(|parameter| parameter.name).collect::<BTreeSet<_>>();
            kernel.chosen.retain(|name| constants.contains(name));
        }
        Self { kernels, lines, known: RefCell::default(), steps: Cell::new(MAX_STEPS) }
    }

    /// Returns the kernels that no other kernel calls and that write to memory. If there are none,
    /// returns all that no other kernel calls. Those that host code launches come first.
    pub(super) fn entries(&self) -> Vec<&Kernel<'a>> {
        let called = |name: &str| {
            let others = self.kernels.iter().filter(|kernel| kernel.name != name);
            others.flat_map(|kernel| &kernel.body).flatten().any(|token| *token == name)
        };
        let own: Vec<_> = self.kernels.iter().filter(|kernel| !called(kernel.name)).collect();
        let writes =
            |kernel: &&&Kernel<'a>| self.accesses(kernel).values().any(|access| access.writes);
        let mut writing: Vec<_> = own.iter().filter(writes).copied().collect();
        writing.sort_by_cached_key(|kernel| self.call_of(kernel).is_none());
        if writing.is_empty() { own } else { writing }
    }

    /// Returns the first launch of a kernel in the host code.
    pub(super) fn launch(&self, kernel: &Kernel<'a>) -> Option<HostLaunch<'a>> {
        let (at, launch) = self.call_of(kernel)?;
        Some(HostLaunch { assignments: self.assignments_before(at), ..launch })
    }

    /// Returns the line of the first launch, and the launch without the assignments before it.
    fn call_of(&self, kernel: &Kernel<'a>) -> Option<(usize, HostLaunch<'a>)> {
        self.lines.iter().enumerate().find_map(|(at, line)| {
            let place = line.tokens.windows(2).position(|two| two == [kernel.name, "["])?;
            let grid = closing(&line.tokens, place + 1)?;
            let open = grid + 1;
            let end =
                (line.tokens.get(open) == Some(&"(")).then(|| closing(&line.tokens, open))??;
            let mut launch =
                HostLaunch { grid: line.tokens[place + 2..grid].to_vec(), ..HostLaunch::default() };
            let mut places = kernel.parameters.iter();
            for item in items(&line.tokens[open + 1..end]) {
                match item {
                    ["*", ..] => return None,
                    [name, "=", value @ ..] => {
                        launch.arguments.insert(name, value.to_vec());
                    }
                    value => {
                        launch.arguments.insert(places.next()?.name, value.to_vec());
                    }
                }
            }
            Some((at, launch))
        })
    }

    /// Returns the assignments before a line, in its function and in the module, the last first.
    fn assignments_before(&self, at: usize) -> Vec<(Vec<&'a str>, Vec<&'a str>)> {
        let mut found = Vec::new();
        let mut inside = true;
        for line in self.lines[..at].iter().rev() {
            if inside || line.indent == 0 {
                found.extend(assignment(&line.tokens));
            }
            inside &= line.tokens[0] != "def";
        }
        found
    }

    /// Returns how a kernel uses its parameters as pointers, by name. Parameters that it does not
    /// use as pointers are omitted.
    pub(super) fn accesses(&self, kernel: &Kernel<'a>) -> BTreeMap<&'a str, Access> {
        if let Some(known) = self.known.borrow().get(kernel.name) {
            return known.clone();
        }
        self.known.borrow_mut().insert(kernel.name, BTreeMap::new());
        let found = self.accesses_within(kernel);
        self.known.borrow_mut().insert(kernel.name, found.clone());
        found
    }

    fn accesses_within(&self, kernel: &Kernel<'a>) -> BTreeMap<&'a str, Access> {
        let flow = Flow::of(kernel, &self.steps);
        let mut found: BTreeMap<&str, Access> = BTreeMap::new();
        for line in &kernel.body {
            for (at, token) in line.iter().enumerate() {
                if line.get(at + 1) != Some(&"(") || !is_name(token) {
                    continue;
                }
                let end = closing(line, at + 1);
                if flow.pay(end.unwrap_or(line.len()) - at).is_none() {
                    return found;
                }
                let Some(end) = end else { continue };
                let arguments = items(&line[at + 2..end]);
                if let Some(other) = self.kernels.iter().find(|other| other.name == *token)
                    && other.name != kernel.name
                {
                    let inner = self.accesses(other);
                    for (place, argument) in arguments.iter().enumerate() {
                        let (name, value) = match argument {
                            [name, "=", value @ ..] => (*name, value),
                            value => match other.parameters.get(place) {
                                Some(parameter) => (parameter.name, *value),
                                None => continue,
                            },
                        };
                        if let Some(access) = inner.get(name)
                            && let Some(root) = flow.root(value, 0)
                        {
                            let own = found.entry(root).or_default();
                            own.merge(*access);
                            own.by_program |= flow.depends_on_program(value, 0);
                        }
                    }
                    continue;
                }
                let is_atomic = token.starts_with("atomic_");
                let reads = READS.contains(token) || is_atomic;
                let writes = WRITES.contains(token) || is_atomic;
                if !reads && !writes {
                    continue;
                }
                // `tl.load(pointer)`, or `descriptor.load(offsets)`.
                let object =
                    at.checked_sub(2).filter(|_| line[at - 1] == ".").map(|before| line[before]);
                let own = object.filter(|object| flow.knows(object)).map(|object| vec![object]);
                let first = arguments.first().map(|first| match first {
                    ["pointer", "=", value @ ..] => value.to_vec(),
                    value => value.to_vec(),
                });
                let Some(address) = own.or(first) else { continue };
                let Some(root) = flow.root(&address, 0) else { continue };
                let by_program = flow.depends_on_program(&address, 0)
                    || object.is_some_and(|object| flow.knows(object));
                let indices = flow.loaded_in(&address, root, 0);
                found.entry(root).or_default().merge(Access {
                    reads,
                    writes,
                    is_atomic,
                    by_program,
                    is_index: false,
                });
                for index in indices {
                    found.entry(index).or_default().is_index = true;
                }
            }
        }
        found
    }
}

impl Access {
    fn merge(&mut self, other: Self) {
        self.reads |= other.reads;
        self.writes |= other.writes;
        self.is_atomic |= other.is_atomic;
        self.by_program |= other.by_program;
        self.is_index |= other.is_index;
    }
}

/// Assignments of a kernel.
struct Flow<'k, 'a> {
    parameters: Vec<&'a str>,
    /// Parameters that the kernel uses as numbers: it multiplies, compares or counts with them.
    numbers: BTreeSet<&'a str>,
    values: BTreeMap<&'a str, Vec<&'k [&'a str]>>,
    /// Number of tokens that searches may still examine.
    steps: &'k Cell<usize>,
}

impl<'k, 'a> Flow<'k, 'a> {
    fn of(kernel: &'k Kernel<'a>, steps: &'k Cell<usize>) -> Self {
        let mut values: BTreeMap<&str, Vec<&[&str]>> = BTreeMap::new();
        for line in &kernel.body {
            let operator = line.iter().position(|token| matches!(*token, "=" | "+="));
            if let Some(at) = operator
                && line[..at].iter().all(|token| is_name(token) || *token == ",")
            {
                for target in line[..at].iter().filter(|token| **token != ",") {
                    values.entry(target).or_default().push(&line[at + 1..]);
                }
            }
            if let ["for", target, "in", range @ ..] = &line[..] {
                values.entry(target).or_default().push(range);
            }
        }
        let parameters: Vec<&str> = kernel.parameters.iter().map(|one| one.name).collect();
        let counted = |name: &&str| {
            let constant = kernel.parameters.iter().any(|one| one.name == *name && one.is_constant);
            constant || kernel.body.iter().any(|line| is_number_in(line, name))
        };
        let numbers = parameters.iter().copied().filter(counted).collect();
        Self { parameters, numbers, values, steps }
    }

    /// Adds to the number of examined tokens. Returns `None` if the limit is exceeded.
    fn pay(&self, tokens: usize) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(tokens + 1)?);
        Some(())
    }

    fn knows(&self, name: &str) -> bool {
        self.values.contains_key(name) || self.parameters.contains(&name)
    }

    /// Returns the parameter that an address derives from: the first pointer in the expression, or
    /// in the values assigned to its names.
    fn root(&self, expression: &[&'a str], depth: usize) -> Option<&'a str> {
        self.pay(expression.len())?;
        if depth > MAX_DEPTH {
            return None;
        }
        for (at, token) in expression.iter().enumerate() {
            if at > 0 && expression[at - 1] == "." || expression.get(at + 1) == Some(&"=") {
                continue;
            }
            if self.parameters.contains(token) && !self.numbers.contains(token) {
                return Some(token);
            }
            for value in self.values.get(token).into_iter().flatten() {
                if !value.contains(token)
                    && let Some(root) = self.root(value, depth + 1)
                    && !is_loaded(value)
                {
                    return Some(root);
                }
            }
        }
        None
    }

    /// Returns whether an expression depends on the program index.
    fn depends_on_program(&self, expression: &[&str], depth: usize) -> bool {
        depth <= MAX_DEPTH
            && self.pay(expression.len()).is_some()
            && expression.iter().any(|token| {
                *token == "program_id"
                    || self.values.get(token).into_iter().flatten().any(|value| {
                        !value.contains(token) && self.depends_on_program(value, depth + 1)
                    })
            })
    }

    /// Returns the parameters other than `root` whose content is part of an address.
    fn loaded_in(&self, expression: &[&'a str], root: &str, depth: usize) -> Vec<&'a str> {
        let mut found = Vec::new();
        if depth > MAX_DEPTH || self.pay(expression.len()).is_none() {
            return found;
        }
        for token in expression {
            for value in self.values.get(token).into_iter().flatten() {
                if value.contains(token) {
                    continue;
                }
                match loaded_address(value) {
                    Some(address) => {
                        found.extend(self.root(address, 0).filter(|from| *from != root));
                    }
                    None => found.extend(self.loaded_in(value, root, depth + 1)),
                }
            }
        }
        found
    }
}

/// Returns whether a value is the result of a load.
fn is_loaded(value: &[&str]) -> bool {
    loaded_address(value).is_some()
}

/// Returns the address of the first load in an expression.
fn loaded_address<'v, 'a>(value: &'v [&'a str]) -> Option<&'v [&'a str]> {
    let at = value.windows(2).position(|two| two == ["load", "("])?;
    let end = closing(value, at + 1)?;
    items(&value[at + 2..end]).first().copied()
}

/// Returns whether a name is a number in a line: a factor, a bound, or an argument of a function
/// that counts.
fn is_number_in(line: &[&str], name: &str) -> bool {
    line.iter().enumerate().filter(|(_, token)| **token == name).any(|(at, _)| {
        let before = at.checked_sub(1).map_or("", |before| line[before]);
        let after = line.get(at + 1).copied().unwrap_or("");
        let compares =
            |token| matches!(token, "*" | "/" | "//" | "%" | "**" | "<" | "<=" | ">" | ">=" | "-");
        let is_counted = matches!(before, "(" | ",")
            && line[..at]
                .iter()
                .rev()
                .take(8)
                .any(|token| matches!(*token, "range" | "cdiv" | "arange" | "multiple_of"));
        compares(before) || compares(after) || is_counted
    })
}

/// Returns whether a decorator is the `jit` of Triton or Gluon.
fn is_jit(decorator: &[&str]) -> bool {
    let name = decorator.iter().take_while(|token| **token != "(");
    name.last() == Some(&"jit")
}

/// Returns the functions that are passed to `jit`, with the names of the constants that decorators
/// choose for them: `kernel = triton.heuristics({"EVEN": …})(triton.jit(kernel))`.
fn applied<'a>(lines: &[Line<'a>]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let assigned = || lines.iter().filter(|line| line.tokens.get(1) == Some(&"="));
    for line in assigned() {
        for (at, _) in line.tokens.windows(2).enumerate().filter(|(_, two)| *two == ["jit", "("]) {
            if let Some(name) = line.tokens.get(at + 2).filter(|name| is_name(name)) {
                found.entry(name).or_default();
            }
        }
    }
    for line in assigned().filter(|line| line.tokens.contains(&"heuristics")) {
        if let Some(chosen) = found.get_mut(line.tokens[0]) {
            chosen.extend(keys(&line.tokens[..line.tokens.len().min(MAX_DECORATOR)]));
        }
    }
    found
}

/// Returns whether a decorator chooses values of constants.
fn chooses(decorator: &[&str]) -> bool {
    let name = decorator.iter().take_while(|token| **token != "(").last();
    matches!(name, Some(&("autotune" | "heuristics" | "libtuner")))
}

/// Returns the keys of dictionaries in a decorator. A heuristic that reads its own constant changes
/// a given value, and is omitted.
fn keys<'a>(decorator: &[&'a str]) -> Vec<&'a str> {
    let is_key = |three: &&[&str]| {
        let of_dictionary = matches!(three[0], "{" | ",") && three[2] == ":";
        of_dictionary && !decorator.windows(3).any(|other| other == ["[", three[1], "]"])
    };
    let pairs = decorator.windows(3).filter(is_key);
    pairs.filter_map(|three| text_of(three[1])).collect()
}

/// Returns the constants of all configurations of a module, including those that functions create.
fn tuned<'a>(lines: &[Line<'a>]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for line in lines {
        for (at, _) in line.tokens.windows(2).enumerate().filter(|(_, two)| *two == ["Config", "("])
        {
            let end = closing(&line.tokens, at + 1).unwrap_or(line.tokens.len());
            found.extend(keys(&line.tokens[at..end.min(at + MAX_DECORATOR)]));
        }
    }
    found
}

fn parameters<'a>(tokens: &[&'a str]) -> Vec<Parameter<'a>> {
    let end = closing(tokens, 2).unwrap_or(tokens.len());
    let of = |item: &&[&'a str]| {
        let (name, rest) = item.split_first().filter(|(name, _)| is_name(name))?;
        let default = rest.iter().position(|token| *token == "=");
        let annotation = &rest[..default.unwrap_or(rest.len())];
        Some(Parameter {
            name,
            is_constant: annotation.contains(&"constexpr"),
            default: default.map(|at| rest[at + 1..].to_vec()),
        })
    };
    let all = items(tokens.get(3..end).unwrap_or(&[]));
    all.iter().take(MAX_PARAMETERS).filter_map(of).collect()
}

/// Returns the lines of the function whose head is the first line.
fn body<'a>(lines: &[Line<'a>]) -> Vec<Vec<&'a str>> {
    let Some((head, rest)) = lines.split_first() else { return Vec::new() };
    let own = rest.iter().take_while(|line| line.indent > head.indent);
    own.map(|line| line.tokens.clone()).collect()
}

/// Returns the targets and the value of an assignment.
fn assignment<'a>(tokens: &[&'a str]) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
    let at = tokens.iter().position(|token| *token == "=")?;
    let targets = tokens[..at].iter().filter(|token| !matches!(**token, "," | "(" | ")"));
    let targets = targets.copied().collect::<Vec<_>>();
    targets.iter().all(|name| is_name(name)).then(|| (targets, tokens[at + 1..].to_vec()))
}
