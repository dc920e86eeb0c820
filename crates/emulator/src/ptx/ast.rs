//! The syntax tree of a module.

use super::{Space, Type};

/// A parsed PTX module.
#[derive(Debug, Default)]
pub(crate) struct Unit<'a> {
    /// PTX version: major × 10 + minor.
    pub(crate) version: u32,
    /// Number of the target architecture, for example 80.
    pub(crate) target: u32,
    /// Source files of the module, with the number of each.
    pub(crate) files: Vec<(u32, String)>,
    /// Variables of module scope.
    pub(crate) vars: Vec<Var<'a>>,
    pub(crate) funcs: Vec<Func<'a>>,
}

/// A declared variable or parameter.
#[derive(Debug, Clone)]
pub(crate) struct Var<'a> {
    pub(crate) name: &'a str,
    pub(crate) space: Space,
    pub(crate) ty: Type,
    /// Alignment in bytes, at least that of the type.
    pub(crate) align: u32,
    /// Size in bytes; 0 if the variable is an array without a size.
    pub(crate) bytes: u64,
    /// Whether the variable is declared `.extern`, or is an array without a size and initialiser.
    pub(crate) external: bool,
    /// Whether the variable is declared `.attribute(.managed)`, so that the host can access it too.
    pub(crate) managed: bool,
    pub(crate) init: Option<Init<'a>>,
    pub(crate) line: u32,
}

/// An initialiser: a list of elements without nesting, each with its offset.
#[derive(Debug, Clone)]
pub(crate) struct Init<'a> {
    pub(crate) items: Vec<InitItem<'a>>,
}

/// One element of an initialiser: its offset in bytes and its value.
pub(crate) type InitItem<'a> = (u64, InitValue<'a>);

/// The value of an element of an initialiser.
#[derive(Debug, Clone)]
pub(crate) enum InitValue<'a> {
    /// The bits of a number of the variable's type.
    Bits(u64),
    /// The address of a variable or function.
    Symbol(Symbol<'a>),
}

/// A name of a variable or function, plus a constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) offset: i64,
}

/// Kind of a PTX function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FuncKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a device function.
    Func,
}

/// A definition or declaration of a function.
#[derive(Debug)]
pub(crate) struct Func<'a> {
    pub(crate) kind: FuncKind,
    pub(crate) name: &'a str,
    pub(crate) rets: Vec<Var<'a>>,
    pub(crate) params: Vec<Var<'a>>,
    /// Maximum number of threads per block: the product of the values of `.maxntid` or `.reqntid`.
    pub(crate) max_threads: Option<u32>,
    pub(crate) line: u32,
    /// The statements of a definition; `None` for a declaration.
    pub(crate) body: Option<Vec<Stmt<'a>>>,
}

/// A statement, with its line in the PTX.
#[derive(Debug)]
pub(crate) struct Stmt<'a> {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind<'a>,
}

/// A statement of a function body.
#[derive(Debug)]
pub(crate) enum StmtKind<'a> {
    /// `{`, the start of a block.
    Open,
    /// `}`, the end of a block.
    Close,
    Label(&'a str),
    /// A declaration of registers: a single name, or a prefix and a count.
    Reg {
        ty: Type,
        vector: u32,
        names: Vec<(&'a str, Option<u32>)>,
    },
    Var(Var<'a>),
    /// `.loc`, a source position: file number and line.
    Loc {
        file: u32,
        line: u32,
    },
    /// `name: .branchtargets a, b;` or `.calltargets`, a table of targets.
    Targets {
        name: &'a str,
        labels: Vec<&'a str>,
    },
    Prototype(Prototype<'a>),
    Instr(Instr<'a>),
}

/// `name: .callprototype (…) _ (…);`, the signature for an indirect call.
#[derive(Debug)]
pub(crate) struct Prototype<'a> {
    pub(crate) name: &'a str,
    pub(crate) rets: Vec<Var<'a>>,
    pub(crate) params: Vec<Var<'a>>,
}

/// A PTX instruction: guard, opcode and operands.
#[derive(Debug)]
pub(crate) struct Instr<'a> {
    /// Register of the guard, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    /// The first part of the opcode.
    pub(crate) op: &'a str,
    /// The other parts of the opcode, without the dots.
    pub(crate) mods: Vec<&'a str>,
    pub(crate) operands: Vec<Operand<'a>>,
    /// Source text of the instruction, for messages.
    pub(crate) text: &'a str,
    /// Byte offset of the instruction in the text of the module.
    pub(crate) at: usize,
}

/// An operand of an instruction.
#[derive(Debug, Clone)]
pub(crate) enum Operand<'a> {
    /// A register, a variable, a function or a label.
    Name(&'a str),
    /// A part of a name, for example `%tid.x`.
    Part(&'a str, &'a str),
    /// A name of a variable, plus a constant.
    Symbol(Symbol<'a>),
    /// An integer constant. An i128 holds all values of `.s64` and `.u64`.
    Int(i128),
    /// `0f…`, the bits of an f32.
    F32(u32),
    /// `0d…` or a decimal fraction: the bits of an f64.
    F64(u64),
    /// `{a, b}`, a vector.
    Vector(Vec<Operand<'a>>),
    /// `[a]`, `[a+8]` or `[8]`, an address.
    Address { base: Option<&'a str>, offset: i64 },
    /// `[object, {x, y}]`: a texture or a surface, and coordinates.
    Texel { object: &'a str, coordinates: Vec<Operand<'a>> },
    /// `(a, b)`, a list of arguments or results of a call.
    List(Vec<Operand<'a>>),
    /// `!p`, a negated predicate.
    Not(&'a str),
    /// `d|p`, a pair of destinations.
    Pair(&'a str, &'a str),
    /// `_`, a destination whose value is discarded.
    Sink,
}
