//! Instructions and the code of a kernel.

use super::Op;

/// Bit that marks a register number as an index into the constants.
pub(crate) const K: u32 = 1 << 31;
/// Value of [`Inst::guard`] for an instruction without a guard.
pub(crate) const NO_GUARD: u32 = u32::MAX;

/// Bytes of shared memory per block that the system reserves, since compute capability 8.0.
pub(crate) const RESERVED_SHARED: u32 = 1 << 10;

/// A 32-bit register: one value for each of 32 lanes.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row32(pub(crate) [u32; 32]);

/// A 64-bit register: one value for each of 32 lanes.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row64(pub(crate) [u64; 32]);

/// One instruction. Its operation determines which fields are registers, and of which register
/// file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// The predicate register times 2, plus 1 if the guard is negated; or [`NO_GUARD`].
    pub(crate) guard: u32,
    /// Registers that receive the results.
    pub(crate) d: u32,
    pub(crate) e: u32,
    /// Registers of the operands.
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    pub(crate) s: u32,
    /// A constant: an offset, a branch target or the index of a list.
    pub(crate) imm: i64,
}

/// A register file, by the width of its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Registers of 32 bits, for values of 32 bits or less.
    W32,
    /// Registers of 64 bits.
    W64,
    /// Predicate registers of one bit.
    P,
}

/// Role of an instruction's field in register allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The field is not a register.
    None,
    /// The field is a register that the instruction writes.
    Def(Class),
    /// The field is a register that the instruction reads.
    Use(Class),
}

/// Source position of an instruction: file number and line, or 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SourceLine {
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// Constants of a kernel, each with the same value in all lanes.
#[derive(Debug, Default)]
pub(crate) struct Consts {
    pub(crate) k32: Vec<Row32>,
    pub(crate) k64: Vec<Row64>,
}

/// One function of a kernel's code.
#[derive(Debug, Clone, Default)]
pub(crate) struct FuncInfo {
    pub(crate) name: String,
    /// Index of the function's first instruction.
    pub(crate) entry: u32,
    /// Number of registers in each register file.
    pub(crate) n32: u32,
    pub(crate) n64: u32,
    pub(crate) np: u32,
    /// Local memory per frame, bytes; a multiple of 16.
    pub(crate) local: u32,
    /// For each parameter and result: its offset in local memory (a multiple of 4) and its size,
    /// bytes.
    pub(crate) params: Vec<(u32, u32)>,
    pub(crate) rets: Vec<(u32, u32)>,
}

/// A call: the function, and the local offsets of arguments and results in the caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallSite {
    /// Index of the function. An indirect call does not use it.
    pub(crate) func: u32,
    pub(crate) args: Vec<(u32, u32)>,
    pub(crate) rets: Vec<(u32, u32)>,
}

/// The code of a kernel and of all functions that it may call.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) insts: Vec<Inst>,
    /// For each instruction: the line in the PTX and the source line. The first instruction of a PTX
    /// instruction also has the byte offset of the latter in the PTX.
    pub(crate) lines: Vec<(u32, SourceLine, Option<u32>)>,
    pub(crate) consts: Consts,
    /// The functions of the code; the kernel comes first.
    pub(crate) funcs: Vec<FuncInfo>,
    pub(crate) calls: Vec<CallSite>,
    /// Registers of vectors and fragments, and targets of branch tables.
    pub(crate) lists: Vec<Vec<u32>>,
    pub(crate) shared_static: u32,
    /// Size of the shared memory after that of the block, for data of the compiler's headers,
    /// bytes: [`RESERVED_SHARED`] if the kernel reads its address, otherwise 0.
    pub(crate) shared_reserved: u32,
    /// Addresses and sizes of the module's constant variables.
    pub(crate) constants: Vec<(u64, u64)>,
}
