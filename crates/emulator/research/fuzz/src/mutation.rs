//! Changes to PTX that leave most of it valid: tokens are removed, duplicated, swapped and
//! replaced.
//!
//! Random changes of bytes rarely pass the lexer. These changes usually do, so that they reach the
//! checks of the lowering, and often the executor.

/// Numbers at the edge of the range of a type.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "15",
    "16",
    "31",
    "32",
    "33",
    "64",
    "255",
    "1024",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
];
/// Words that may follow a dot.
const SUFFIXES: [&str; 64] = [
    "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32",
    "s64", "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f64", "e4m3x2", "v2", "v4", "global",
    "shared", "local", "const", "param", "wide", "hi", "lo", "sat", "ftz", "rn", "rz", "rzi",
    "rni", "approx", "uni", "sync", "aligned", "up", "down", "idx", "bfly", "eq", "lt", "gt",
    "ltu", "add", "cas", "exch", "volatile", "relaxed", "sys", "cta", "x4", "trans", "row", "col",
    "cc", "to", "reg",
];
/// Opcodes that a mutation writes in place of a word.
const OPCODES: [&str; 60] = [
    "abs",
    "activemask",
    "add",
    "addc",
    "and",
    "atom",
    "bar",
    "bfe",
    "bfi",
    "bfind",
    "bra",
    "brev",
    "brx",
    "call",
    "clz",
    "cp",
    "cvt",
    "cvta",
    "div",
    "ex2",
    "exit",
    "fma",
    "fns",
    "isspacep",
    "ld",
    "ldmatrix",
    "lop3",
    "mad",
    "match",
    "max",
    "membar",
    "min",
    "mma",
    "mov",
    "mul",
    "nanosleep",
    "neg",
    "not",
    "or",
    "popc",
    "prmt",
    "rcp",
    "red",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shfl",
    "shl",
    "sqrt",
    "st",
    "sub",
    "testp",
    "vote",
    "wmma",
];
/// Whole statements, and beginnings of statements.
const STATEMENTS: [&str; 14] = [
    "ret;",
    "exit;",
    "trap;",
    "bar.sync 0;",
    "bar.red.popc.u32 %r1, 1, 64, %p1;",
    "shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1;",
    ".reg .b32 %r<70000>;",
    ".reg .b64 %q<9>;",
    ".local .align 16 .b8 l[65536];",
    ".shared .align 16 .b8 s[65536];",
    "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+4];",
    "atom.shared.add.u32 %r1, [%rd1], %r2;",
    "{",
    "}",
];

/// Pseudo-random number generator (xorshift). The seed determines the sequence.
pub struct Random(u64);

impl Random {
    /// Creates a generator for a seed.
    pub fn new(seed: u64) -> Self {
        // The state must not be 0, because the generator would stay there.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number below `n`, which must not be 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Kind of a token, by which a change chooses tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Number,
    Register,
    Mark,
}

fn kind(token: &str) -> Kind {
    match token.as_bytes().first() {
        Some(b) if b.is_ascii_whitespace() => Kind::Space,
        Some(b'%') => Kind::Register,
        Some(b) if b.is_ascii_digit() => Kind::Number,
        Some(b) if b.is_ascii_alphabetic() || matches!(b, b'_' | b'$') => Kind::Word,
        _ => Kind::Mark,
    }
}

/// Splits a text into words, numbers, registers, runs of white space and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let end = if word(first) {
            rest.find(|c| !word(c))
        } else if first.is_ascii_whitespace() {
            rest.find(|c: char| !c.is_ascii_whitespace())
        } else {
            Some(first.len_utf8())
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        out.push(token);
        rest = after;
    }
    out
}

/// Returns the position of a token of a kind, near a random position.
fn find(tokens: &[&str], wanted: Kind, random: &mut Random) -> Option<usize> {
    let from = random.below(tokens.len());
    let near = (from..tokens.len()).chain(0..from);
    near.take(4096).find(|at| kind(tokens[*at]) == wanted)
}

/// Returns the first and last token of the statement at `at`, which ends with a semicolon or a
/// brace.
fn statement(tokens: &[&str], at: usize) -> (usize, usize) {
    let end = |token: &&str| matches!(*token, ";" | "{" | "}");
    let from = tokens[..at].iter().rposition(|t| end(&t)).map_or(0, |n| n + 1);
    let to = tokens[at..].iter().position(|t| end(&t)).map_or(tokens.len() - 1, |n| at + n);
    (from, to)
}

/// Makes one random change to the tokens.
fn change<'a>(tokens: &mut Vec<&'a str>, random: &mut Random) {
    if tokens.is_empty() {
        tokens.push(random.of(&STATEMENTS));
        return;
    }
    let (at, other) = (random.below(tokens.len()), random.below(tokens.len()));
    match random.below(12) {
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, tokens[at]),
        2 => tokens.swap(at, other),
        3 => replace(tokens, Kind::Number, random, |_, random| random.of(&NUMBERS)),
        4 => replace(tokens, Kind::Register, random, |tokens, random| {
            find(tokens, Kind::Register, random).map_or("%r1", |n| tokens[n])
        }),
        5 => replace(tokens, Kind::Word, random, |tokens, random| {
            find(tokens, Kind::Word, random).map_or("x", |n| tokens[n])
        }),
        6 => {
            if let Some(dot) = (at..tokens.len() - 1).find(|n| tokens[*n] == ".") {
                tokens[dot + 1] = random.of(&SUFFIXES);
            }
        }
        7 => {
            if let Some(dot) = (at..tokens.len()).find(|n| tokens[*n] == ".") {
                tokens.splice(dot..dot, [".", random.of(&SUFFIXES)]);
            }
        }
        8 => replace(tokens, Kind::Word, random, |_, random| random.of(&OPCODES)),
        9 => {
            let (from, to) = statement(tokens, at);
            tokens.drain(from..=to);
        }
        10 => {
            let (from, to) = statement(tokens, at);
            let copy: Vec<&str> = tokens[from..=to].to_vec();
            let (_, to) = statement(tokens, other);
            tokens.splice(to + 1..to + 1, copy);
        }
        _ => {
            let (_, to) = statement(tokens, at);
            tokens.insert(to + 1, random.of(&STATEMENTS));
        }
    }
}

fn replace<'a>(
    tokens: &mut [&'a str],
    wanted: Kind,
    random: &mut Random,
    with: impl Fn(&[&'a str], &mut Random) -> &'a str,
) {
    if let Some(at) = find(tokens, wanted, random) {
        tokens[at] = with(tokens, random);
    }
}

/// Returns the text after one to five random changes.
pub fn mutate(text: &str, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut tokens = tokens(text);
    for _ in 0..1 + random.below(5) {
        change(&mut tokens, &mut random);
    }
    tokens.concat()
}

/// Applies [`mutate`] to a fuzzer's buffer: the first `size` bytes hold the input, and `max_size`
/// bytes may be used. Returns the new size.
pub fn in_place(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let text = String::from_utf8_lossy(&data[..size]);
    let changed = mutate(&text, seed.into());
    let new = changed.len().min(max_size).min(data.len());
    data[..new].copy_from_slice(&changed.as_bytes()[..new]);
    new
}
