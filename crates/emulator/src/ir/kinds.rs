//! The kinds of computations that operations perform.

/// Binary operations on integers of 16, 32 or 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum I2 {
    Add,
    Sub,
    Mul,
    MulHiS,
    MulHiU,
    Mul24S,
    Mul24U,
    Mul24HiS,
    Mul24HiU,
    DivS,
    DivU,
    RemS,
    RemU,
    MinS,
    MinU,
    MaxS,
    MaxU,
    And,
    Or,
    Xor,
    Shl,
    ShrS,
    ShrU,
    AddSat,
    SubSat,
    MinRelu,
    MaxRelu,
    BmskClamp,
    BmskWrap,
    SzextSClamp,
    SzextSWrap,
    SzextUClamp,
    SzextUWrap,
    MinS16x2,
    MinU16x2,
    MaxS16x2,
    MaxU16x2,
    Add16x2,
}

/// Unary operations on integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum I1 {
    Not,
    Cnot,
    Neg,
    Abs,
    Popc,
    Clz,
    Brev,
    BfindS,
    BfindU,
    BfindShiftS,
    BfindShiftU,
}

/// Operations on three 32- or 64-bit integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum I3 {
    Mad,
    MadHiS,
    MadHiU,
    MadHiSatS,
    Mad24S,
    Mad24U,
    Mad24HiS,
    Mad24HiU,
    SadS,
    SadU,
    BfeS,
    BfeU,
    /// A bit-field insertion; its fourth operand is the field `s` of the instruction.
    Bfi,
    /// A logical operation on three operands, whose truth table is the field `imm`.
    Lop3,
    Prmt,
    PrmtF4e,
    PrmtB4e,
    PrmtRc8,
    PrmtEcl,
    PrmtEcr,
    PrmtRc16,
    ShfLClamp,
    ShfLWrap,
    ShfRClamp,
    ShfRWrap,
    /// The absolute differences of the bytes. `Absdiff4Add` adds them to the third operand.
    Absdiff4,
    Absdiff4Add,
    Dp4aSS,
    Dp4aSU,
    Dp4aUS,
    Dp4aUU,
    Dp2aLoSS,
    Dp2aLoSU,
    Dp2aLoUS,
    Dp2aLoUU,
    Dp2aHiSS,
    Dp2aHiSU,
    Dp2aHiUS,
    Dp2aHiUU,
    Fns,
}

/// Comparisons of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    LtS,
    LeS,
    GtS,
    GeS,
    LtU,
    LeU,
    GtU,
    GeU,
}

/// Comparisons of floating-point numbers. Those whose names end in `u` are also true for NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FCmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// Binary operations on floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum F2 {
    Add,
    Sub,
    Mul,
    Div,
    DivApprox,
    Min,
    Max,
    MinNan,
    MaxNan,
    MinXorAbs,
    MaxXorAbs,
    MinNanXorAbs,
    MaxNanXorAbs,
    Copysign,
}

/// Unary operations on floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum F1 {
    Neg,
    Abs,
    Sqrt,
    Rcp,
    SqrtApprox,
    RcpApprox,
    RsqrtApprox,
    Sin,
    Cos,
    Ex2,
    Lg2,
    Tanh,
}

/// Special registers of PTX, such as `%tid.x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sreg {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    DynamicSmem,
    TotalSmem,
    AggrSmem,
    /// Registers for the reserved shared memory: its start, the start of the part for cooperative
    /// groups, its end, and its size.
    ReservedBegin,
    ReservedGroups,
    ReservedEnd,
    ReservedBytes,
    /// The high and the low half of the address of the memory for the grid barrier of a cooperative
    /// launch.
    WorkspaceHigh,
    WorkspaceLow,
    Zero,
    One,
}

/// Arithmetic with a carry flag: `e` is the flag out, `s` the flag in. A subtraction adds the
/// complement, so its flag is the inverse of a borrow. The compiler's division of 128-bit integers
/// depends on that: it reads the flag with `addc` after `sub.cc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carry {
    Add,
    /// A subtraction that reads no flag.
    Sub,
    Subc,
    MadLo,
    MadHiS,
    MadHiU,
}

/// The computation of an atomic operation (read, modify, write).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rmw {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    MinS,
    MinU,
    MaxS,
    MaxU,
    AddF32,
    AddF64,
    AddF16,
    AddBf16,
    AddF16x2,
    AddBf16x2,
}

impl Rmw {
    /// Returns whether the operation has a form that does not return the old value.
    pub(crate) fn reduces(self) -> bool {
        !matches!(self, Self::Exch | Self::Cas)
    }
}

/// Exchange pattern of `shfl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shfl {
    Up,
    Down,
    Bfly,
    Idx,
}

/// The result that a `vote` instruction computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

/// Operation of `redux`, a reduction over the lanes of a warp. `S` means signed, and `U` unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redux {
    Add,
    MinS,
    MaxS,
    MinU,
    MaxU,
    And,
    Or,
    Xor,
}

/// Action of a barrier in addition to waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bar {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

/// Functions that the device runtime provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    Vprintf,
    AssertFail,
    Malloc,
    Free,
}

/// Kinds of `mbarrier` operations on the 64-bit object in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mbar {
    Init,
    Inval,
    Arrive,
    ArriveDrop,
    TestWait,
    TestWaitParity,
    TryWait,
    TryWaitParity,
    PendingCount,
    AsyncArrive,
}

/// Classes of numbers that `testp` distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Testp {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}
