//! Guesses the launch of a kernel from its computation of indices. The main type is [`Launch`].

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::infer::body::{Body, Known};
use crate::infer::entries::Kernel;
use crate::infer::kinds::size_of;
use crate::infer::launched::Launched;
use crate::infer::launched::MAX_SHARED;
use crate::infer::lexer::{closing, integer, is_name};

/// A grid and a block, with reasons.
#[derive(Debug, Clone, Default)]
pub(crate) struct Launch {
    /// Extents of the grid, as expressions of a contract.
    pub grid: [Option<String>; 3],
    pub block: [u64; 3],
    pub shared_bytes: u64,
    /// Reasons for the launch.
    pub notes: Vec<String>,
}

const AXES: [&str; 3] = ["x", "y", "z"];

impl Launch {
    /// Returns the launch in the form of a contract.
    pub(crate) fn json(&self) -> Value {
        let mut grid = Map::new();
        let mut block = Map::new();
        for (axis, name) in AXES.into_iter().enumerate() {
            if let Some(extent) = &self.grid[axis] {
                let number = extent.parse::<u64>().map(Value::from);
                grid.insert(
                    name.to_owned(),
                    number.unwrap_or_else(|_| Value::from(extent.clone())),
                );
            }
            if self.block[axis] > 1 || axis == 0 {
                block.insert(name.to_owned(), json!(self.block[axis]));
            }
        }
        if grid.is_empty() {
            grid.insert("x".to_owned(), json!(1));
        }
        let mut whole = json!({"grid": grid, "block": block});
        if self.shared_bytes > 0 {
            whole["shared_memory_bytes"] = json!(self.shared_bytes);
        }
        whole
    }
}

/// Maximum number of threads of a grid that is copied from the file, so that a first run ends soon,
/// even on a CPU.
const MAX_GIVEN_THREADS: u64 = 1 << 21;

/// Maximum number of blocks along an axis of a grid that is copied from the file.
const MAX_GIVEN_BLOCKS: u64 = 65_535;

/// Information about a kernel that its own code does not contain.
pub(crate) struct Setting<'s, 'a> {
    /// Tokens of the whole source.
    pub tokens: &'s [&'a str],
    /// Names and values of the integer parameters, in order.
    pub integers: &'s [(&'a str, u64)],
    pub constants: &'s BTreeMap<&'a str, u64>,
    /// Launch parameters that the file determines.
    pub given: &'s Launched,
    /// Whether the integer parameters have the values that the file passes.
    pub as_given: bool,
    /// Whether the caller asks for the block of `given`.
    pub asks_block: bool,
    /// Grid that the caller asks for.
    pub grid: Option<[u64; 3]>,
    /// Names of the parameters that are arrays of pointers.
    pub arrays: &'s [&'a str],
}

/// Guesses the block, and then the grid.
pub(crate) fn launch<'a>(
    kernel: &Kernel<'a>,
    body: &Body<'a>,
    setting: &Setting<'_, 'a>,
) -> Launch {
    let Setting { tokens, constants, .. } = *setting;
    let given = setting.given.block;
    let block = given.unwrap_or_else(|| block(kernel, tokens, body, constants));
    let mut launch = Launch { block, ..Launch::default() };
    let [x, y, z] = launch.block;
    let reason = match given {
        Some(_) if setting.asks_block => ", as asked",
        Some(_) => ", as the file launches it",
        None => "",
    };
    launch.notes.push(format!("a block of {x} x {y} x {z} threads{reason}"));
    let mut taken = Vec::new();
    for axis in [1, 2, 0] {
        if !body.tokens.contains(&block_index(axis)) {
            continue;
        }
        let extent = along(axis, body, setting, &launch, &mut taken);
        launch.grid[axis] = Some(extent);
    }
    let mut known = Known { integers: constants.clone(), block, ..Known::default() };
    known.integers.extend(setting.integers.iter().copied());
    known.grid = extents(&launch, &known);
    if let Some(grid) = setting.grid.or_else(|| given_grid(setting, block))
        && grid != known.grid
    {
        for (extent, blocks) in launch.grid.iter_mut().zip(grid) {
            *extent = (blocks > 1 || extent.is_some()).then(|| blocks.to_string());
        }
        let [x, y, z] = grid;
        let whose = if setting.grid.is_some() { "as asked" } else { "as the file launches it" };
        launch.notes.push(format!("a grid of {x} x {y} x {z} blocks, {whose}"));
    }
    let given = setting.given.shared.filter(|_| setting.as_given);
    let bytes = || shared(body, launch.block.iter().product(), &known);
    launch.shared_bytes = given.unwrap_or_else(bytes);
    launch
}

/// Returns the grid with which the file launches the kernel, if the integer parameters have the
/// file's values and the grid is small enough.
fn given_grid(setting: &Setting<'_, '_>, block: [u64; 3]) -> Option<[u64; 3]> {
    let grid = setting.given.grid.filter(|_| setting.as_given)?;
    let threads = grid.iter().chain(&block).fold(1_u64, |all, one| all.saturating_mul(*one));
    let fits = threads <= MAX_GIVEN_THREADS && grid.iter().all(|one| *one <= MAX_GIVEN_BLOCKS);
    fits.then_some(grid)
}

fn block_index(axis: usize) -> &'static str {
    ["blockIdx.x", "blockIdx.y", "blockIdx.z"][axis]
}

fn thread_index(axis: usize) -> &'static str {
    ["threadIdx.x", "threadIdx.y", "threadIdx.z"][axis]
}

/// Returns the threads of a block: an extent from the code, or a common value.
fn block(
    kernel: &Kernel<'_>,
    tokens: &[&str],
    body: &Body<'_>,
    constants: &BTreeMap<&str, u64>,
) -> [u64; 3] {
    let uses = |axis: usize| body.tokens.contains(&thread_index(axis));
    let used = |name: &&str| body.tokens.contains(name);
    let named = |parts: &[&str], most: u64| {
        parts.iter().find_map(|part| {
            let fits = |(name, value): &(&&str, &u64)| {
                let upper = name.to_ascii_uppercase();
                // Constants for the size of a filter, or for the rows per thread, are not block
                // sizes.
                let other = ["MASK", "FILTER", "KERNEL", "ROWS", "RADIUS", "GRID"];
                upper.contains(part)
                    && (*part == "ROWS" || !other.iter().any(|other| upper.contains(other)))
                    && (2..=most).contains(*value)
                    && used(name)
            };
            constants.iter().find(fits).map(|(_, value)| *value)
        })
    };
    if uses(2) {
        return [8, 8, 4];
    }
    if uses(1) {
        let rows = named(&["ROWS"], 32);
        let side = named(
            &["TILE", "BLOCK_DIM", "BLOCKDIM", "BLOCK_SIZE", "BLOCKSIZE", "BLOCK", "BS", "WIDTH"],
            32,
        )
        .or_else(|| shared_extent(body, constants, 32))
        .unwrap_or(16);
        return [side, rows.unwrap_or(side), 1];
    }
    if !uses(0) {
        return [1, 1, 1];
    }
    let bound = kernel.launch_bound.clone().and_then(|range| {
        let known = Known { integers: constants.clone(), ..Known::default() };
        let whole = Body::new(tokens, &[]);
        whole.upper(range, &known).map(|upper| upper.value)
    });
    let bound = bound.filter(|threads| (1..=1024).contains(threads));
    let threads = bound
        .or_else(|| folded(body, constants))
        .or_else(|| named(&["BLOCK", "THREADS", "TILE", "TPB", "BDIM"], 1024))
        .or_else(|| shared_extent(body, constants, 1024))
        .unwrap_or(256);
    [threads, 1, 1]
}

/// Returns the number of threads in a row that the kernel maps to a square, as with `threadIdx.x /
/// 32` and `threadIdx.x % 32`.
fn folded(body: &Body<'_>, constants: &BTreeMap<&str, u64>) -> Option<u64> {
    let by = |operator: &str| {
        let windows = body.tokens.windows(3);
        let found = windows.filter(|window| window[..2] == ["threadIdx.x", operator]);
        found.map(|window| window[2]).collect::<Vec<_>>()
    };
    let side = by("/").into_iter().find(|side| by("%").contains(side))?;
    // A literal is ignored, since every kernel may divide by the warp size.
    let value = constants.get(side).copied().filter(|_| is_name(side))?;
    (2..=32).contains(&value).then_some(value * value)
}

/// Returns the first extent of the first array in shared memory.
fn shared_extent(body: &Body<'_>, constants: &BTreeMap<&str, u64>, most: u64) -> Option<u64> {
    let at = body.tokens.iter().position(|token| *token == "__shared__")?;
    let open = at + body.tokens[at..].iter().take(8).position(|token| *token == "[")?;
    let extent = body.tokens.get(open + 1)?;
    if body.tokens.get(open + 2) != Some(&"]") {
        return None;
    }
    let value = integer(extent).or_else(|| constants.get(extent).copied())?;
    // An extent below the warp size is not a row of threads.
    let least = if most > 32 { 32 } else { 2 };
    (least..=most).contains(&value).then_some(value)
}

/// Returns the extent of the grid along an axis.
fn along<'a>(
    axis: usize,
    body: &Body<'a>,
    setting: &Setting<'_, 'a>,
    launch: &Launch,
    taken: &mut Vec<&'a str>,
) -> String {
    let Setting { integers, constants, .. } = *setting;
    let threads = launch.block[axis];
    let mut known = Known { integers: constants.clone(), ..Known::default() };
    known.integers.extend(integers.iter().copied());
    known.block = launch.block;
    let made = body.set_from(block_index(axis));
    for (name, expression) in &made {
        let by_threads = expression.contains(&thread_index(axis));
        let each = body.per_block(name, axis, &known).unwrap_or(threads);
        for (guarded, scale) in derived(name, body) {
            let Some((bound, _)) = body.bounds.get(guarded).and_then(|all| all.first()) else {
                continue;
            };
            let bound = written_out(body, &body.tokens[bound.clone()], integers);
            let Some(extent) = expression_of(&bound, integers, constants) else { continue };
            let names = integers.iter().filter(|(name, _)| bound.contains(name));
            taken.extend(names.map(|(name, _)| *name));
            let extent = if scale > 1 { format!("({extent}) * {scale}") } else { extent };
            return if scale > 1 {
                format!("ceil_div({extent}, {threads})")
            } else if by_threads || each > 1 {
                format!("ceil_div({extent}, {each})")
            } else {
                extent
            };
        }
    }
    // Uses one block for each pointer of an array.
    let plain = made.iter().filter(|(_, expression)| **expression == [block_index(axis)]);
    let indexes = plain.map(|(name, _)| *name).chain([block_index(axis)]).collect::<Vec<_>>();
    let by_pointers = body.tokens.windows(4).any(|window| match window {
        [array, "[", index, "]"] => setting.arrays.contains(array) && indexes.contains(index),
        _ => false,
    });
    if by_pointers {
        return crate::infer::pointers::SOME.to_string();
    }
    // Without a guard, uses an extent that no other axis and no loop uses.
    let by_threads = made.iter().any(|(_, expression)| expression.contains(&thread_index(axis)))
        || made.is_empty()
            && body.tokens.windows(3).any(|w| w[0] == block_index(axis) && w[1] == "*");
    let in_loops = |name: &str| {
        let bounds = body.loops.iter().filter_map(|counter| body.bounds.get(counter));
        bounds.flatten().any(|(range, _)| body.tokens[range.clone()].contains(&name))
    };
    let wanted: &[&str] = match axis {
        0 => &["width", "w", "cols", "nx", "n"],
        1 => &["height", "h", "rows", "ny", "m"],
        _ => &["depth", "nz", "batch", "channels", "c"],
    };
    let free = integers.iter().filter(|(name, value)| *value > 1 && !taken.contains(name));
    let free = free.collect::<Vec<_>>();
    let by_name = || {
        free.iter().find(|(name, _)| wanted.contains(&crate::infer::names::plain(name).as_str()))
    };
    let outside_loops = || free.iter().find(|(name, _)| !in_loops(name));
    let chosen = if by_threads {
        by_name().or_else(outside_loops)
    } else {
        outside_loops().or_else(by_name)
    };
    let tile = tile(axis, body, &made, constants);
    match chosen.or_else(|| free.first()) {
        Some((name, _)) => {
            taken.push(name);
            match tile {
                _ if by_threads => format!("ceil_div({name}, {threads})"),
                Some(tile) => format!("ceil_div({name}, {tile})"),
                None => (*name).to_owned(),
            }
        }
        None => "16".to_owned(),
    }
}

/// Returns the number of elements per block along an axis, if the block index is multiplied by a
/// constant.
fn tile(
    axis: usize,
    body: &Body<'_>,
    made: &[(&str, &[&str])],
    constants: &BTreeMap<&str, u64>,
) -> Option<u64> {
    let plain = made.iter().filter(|(_, expression)| **expression == [block_index(axis)]);
    let names = plain.map(|(name, _)| *name).chain([block_index(axis)]).collect::<Vec<_>>();
    body.tokens.windows(3).find_map(|window| {
        let by = match window {
            [name, "*", by] if names.contains(name) => by,
            [by, "*", name] if names.contains(name) => by,
            _ => return None,
        };
        integer(by).or_else(|| constants.get(by).copied()).filter(|by| *by > 1)
    })
}

/// Returns `name` and the names that are assigned from it, each with the number of threads that
/// share one value of the name.
fn derived<'a>(name: &'a str, body: &Body<'a>) -> Vec<(&'a str, u64)> {
    let mut found = vec![(name, 1)];
    for (other, expression) in body.set_from(name) {
        let scale = match expression {
            [first, "/", by] if *first == name => integer(by).or((*by == "warpSize").then_some(32)),
            [first, ">>", by] if *first == name => {
                integer(by).filter(|by| *by < 32).map(|by| 1 << by)
            }
            _ => None,
        };
        if let Some(scale) = scale
            && other != name
        {
            found.push((other, scale));
        }
    }
    found
}

/// Replaces local names in an expression by their definitions, if each has only one.
fn written_out<'a>(
    body: &Body<'a>,
    tokens: &[&'a str],
    integers: &[(&'a str, u64)],
) -> Vec<&'a str> {
    let mut now = tokens.to_vec();
    for _ in 0..4 {
        let mut next = Vec::new();
        for token in &now {
            let local = !integers.iter().any(|(name, _)| name == token);
            match body.definitions.get(token).map(Vec::as_slice) {
                Some([one]) if local && !body.loops.contains(token) => {
                    next.push("(");
                    next.extend_from_slice(&body.tokens[one.clone()]);
                    next.push(")");
                }
                _ => next.push(token),
            }
        }
        if next == now || next.len() > 64 {
            break;
        }
        now = next;
    }
    while now.first() == Some(&"(") && closing(&now, 0) == Some(now.len() - 1) {
        now = now[1..now.len() - 1].to_vec();
    }
    now
}

/// Converts C tokens to an expression of a contract. Returns `None` if there is no equivalent.
fn expression_of(
    tokens: &[&str],
    integers: &[(&str, u64)],
    constants: &BTreeMap<&str, u64>,
) -> Option<String> {
    let mut text = String::new();
    let mut names = 0;
    for token in tokens {
        let piece = match *token {
            "+" | "-" | "*" | "/" | "%" => format!(" {token} "),
            "(" | ")" => (*token).to_owned(),
            _ if integer(token).is_some() => integer(token)?.to_string(),
            _ if integers.iter().any(|(name, _)| name == token) => {
                names += 1;
                (*token).to_owned()
            }
            _ if is_name(token) => constants.get(token)?.to_string(),
            _ => return None,
        };
        text.push_str(&piece);
    }
    (names > 0 && text.len() < 200).then_some(text)
}

/// Returns the bytes of dynamic shared memory: zero, unless the code declares an array without an
/// extent.
fn shared(body: &Body<'_>, threads: u64, known: &Known<'_>) -> u64 {
    let Some((name, c_type)) = dynamic_array(body.tokens) else { return 0 };
    let bytes = size_of(c_type).unwrap_or(4);
    let reached = body.used(name, bytes, known).elements;
    let reached = reached.map_or(0, |elements| elements.saturating_mul(bytes));
    // Scans and reductions use at most two elements of eight bytes per thread.
    let least = (threads * 16).max(2048);
    reached.next_multiple_of(16).clamp(least, MAX_SHARED.max(least))
}

/// Returns name and element type of the array in dynamic shared memory.
pub(crate) fn dynamic_array<'a>(tokens: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let at = tokens.windows(2).position(|window| window == ["extern", "__shared__"])?;
    let open = at + tokens[at..].iter().take(16).position(|token| *token == "[")?;
    Some((tokens[open.checked_sub(1)?], tokens[open.checked_sub(2)?]))
}

/// Returns the extents of a launch for the values of the parameters.
pub(crate) fn extents(launch: &Launch, known: &Known<'_>) -> [u64; 3] {
    std::array::from_fn(|axis| {
        let Some(text) = &launch.grid[axis] else { return 1 };
        evaluate(text, launch.block[axis], known).clamp(1, 1 << 31)
    })
}

/// Evaluates `E`, `(E) * S` or `ceil_div(E, B)`, where `E` is also valid C.
fn evaluate(text: &str, block: u64, known: &Known<'_>) -> u64 {
    let inner = text.strip_prefix("ceil_div(").and_then(|rest| rest.rsplit_once(", "));
    let (expression, by) = match inner {
        Some((expression, by)) => (expression, by.trim_end_matches(')').parse().unwrap_or(block)),
        None => (text, 1),
    };
    let source = crate::infer::lexer::read(expression);
    let body = Body::new(&source.tokens, &[]);
    let value = body.upper(0..source.tokens.len(), known).map_or(1, |upper| upper.value);
    value.div_ceil(by.max(1))
}
