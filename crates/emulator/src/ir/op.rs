//! Operations of the intermediate representation.
//!
//! An operation defines a computation and its width. Its registers are in the fields of
//! [`Inst`](super::Inst). Registers of 32 bits hold narrow integers zero-extended.

use super::kinds::{
    Bar, Builtin, Carry, Cmp, F1, F2, FCmp, I1, I2, I3, Mbar, Redux, Rmw, Shfl, Sreg, Testp, Vote,
};
use crate::arith::soft::Round;
use crate::ptx::{Space, Type};

/// Rounding, flushing and clamping of a floating-point operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mode {
    pub(crate) round: Round,
    /// Whether subnormal inputs and results become zeros.
    pub(crate) ftz: bool,
    /// Whether the result is clamped to [0, 1]. NaN becomes 0.
    pub(crate) sat: bool,
    /// Whether negative results become zero (`.relu`). NaN stays NaN.
    pub(crate) relu: bool,
}

/// A floating-point format of a value in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fp {
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
}

/// Description of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// Bytes per element: 1, 2, 4 or 8.
    pub(crate) width: u8,
    /// Number of elements: 1, 2, 4 or 8. If there is more than one, their registers are in the list
    /// at `s`.
    pub(crate) count: u8,
    /// Whether a loaded narrow value is sign-extended.
    pub(crate) sext: bool,
    /// Whether the data registers have 64 bits.
    pub(crate) wide: bool,
    /// Whether the base register has 64 bits.
    pub(crate) base64: bool,
    /// Whether the access is volatile, relaxed, acquire or release. A loop around it may wait for
    /// another thread.
    pub(crate) strong: bool,
    /// Whether the access is atomic in the memory model: relaxed or stronger, not merely volatile.
    pub(crate) atomic: bool,
    /// Whether a sign-extended value is written to a 16-bit register.
    pub(crate) to16: bool,
}

/// An operation of the intermediate representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Nop,
    Mov32,
    Mov64,
    MovP,
    /// Moves a special register to a 32-bit register.
    Sreg(Sreg),
    /// Moves a special register to a 64-bit register.
    Sreg64(Sreg),
    /// Computes the local-memory address of byte `imm` of the frame.
    FrameAddr,
    I16(I2),
    I32(I2),
    I64(I2),
    I16x1(I1),
    I32x1(I1),
    I64x1(I1),
    I16x3(I3),
    I32x3(I3),
    I64x3(I3),
    /// Computes the 64-bit product of two 32-bit factors. If `add` is set, adds a 64-bit addend.
    MulWide {
        signed: bool,
        add: bool,
    },
    /// Computes the 32-bit product of two 16-bit factors. If `add` is set, adds a 32-bit addend.
    MulWide16 {
        signed: bool,
        add: bool,
    },
    Carry32(Carry),
    Carry64(Carry),
    Cmp16(Cmp),
    Cmp32(Cmp),
    Cmp64(Cmp),
    FCmp {
        fp: Fp,
        cmp: FCmp,
        ftz: bool,
    },
    AndP,
    OrP,
    XorP,
    NotP,
    Sel32,
    Sel64,
    /// Selects `c >= 0 ? a : b` on 32 or 64 bits. `c` is an s32, or an f32 if `float` is set.
    Slct {
        wide: bool,
        float: bool,
        ftz: bool,
    },
    F1 {
        fp: Fp,
        op: F1,
        mode: Mode,
    },
    F2 {
        fp: Fp,
        op: F2,
        mode: Mode,
    },
    Fma {
        fp: Fp,
        mode: Mode,
    },
    /// Tests whether a number belongs to a class.
    Testp {
        fp: Fp,
        class: Testp,
    },
    Cvt(Cvt),
    /// Converts two f32 values (`a` high, `b` low) to a packed pair.
    CvtPack {
        to: Type,
        mode: Mode,
        satfinite: bool,
    },
    /// Converts a packed pair of 8-bit floats to f16x2.
    CvtUnpack {
        from: Type,
        relu: bool,
    },
    Pack64,
    Unpack64,
    /// Loads the kernel parameter at byte `imm`.
    LdParam {
        width: u8,
        sext: bool,
        wide: bool,
        to16: bool,
    },
    Ld(Access),
    St(Access),
    Tex(Tex),
    Surf(Surf),
    Atom {
        rmw: Rmw,
        access: Access,
        result: bool,
    },
    /// Converts a local or shared address to a generic one, or back.
    Cvta {
        space: Space,
        to: bool,
        wide: bool,
    },
    Isspacep(Space),
    CpAsync {
        bytes: u8,
        src_size: bool,
    },
    /// Closes the group of the copies issued so far.
    CpCommit,
    /// Waits until at most `imm` groups are pending. If `all` is set, waits until no copies are
    /// pending.
    CpWait {
        all: bool,
    },
    Ldmatrix {
        count: u8,
        trans: bool,
        space: Space,
    },
    Stmatrix {
        count: u8,
        trans: bool,
        space: Space,
    },
    Mma(Mma),
    Wmma(Wmma),
    Shfl(Shfl),
    Vote(Vote),
    Match {
        all: bool,
        wide: bool,
    },
    Redux(Redux),
    Activemask,
    Elect,
    SyncWarp,
    Bar(Bar),
    Mbar(Mbar),
    Fence,
    Nanosleep,
    Alloca,
    StackSave,
    StackRestore,
    /// Branches to the instruction at index `imm`.
    Bra,
    /// Branches to one of the targets in the list at `imm`.
    BrxIdx,
    /// Calls the function of call site `imm`.
    Call,
    CallIndirect,
    Builtin(Builtin),
    Ret,
    Exit,
    Trap,
}

/// A read of a texture. The object is in `a`. The layer, if any, and the coordinates are in the
/// list at `imm`, the four results in the list at `s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tex {
    /// Number of coordinates: 1 to 3.
    pub(crate) dims: u8,
    /// Whether a layer precedes the coordinates.
    pub(crate) layered: bool,
    /// Whether the coordinates are integers.
    pub(crate) integral: bool,
    /// The channel that `tld4` reads from four neighbouring texels; `None` for `tex`.
    pub(crate) gathered: Option<u8>,
}

/// A load from or a store to a surface. The object is in `a`. The layer, if any, and the
/// coordinates are in the list at `imm`, the data in the list at `s`. The first coordinate is in
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Surf {
    pub(crate) is_store: bool,
    /// Number of coordinates: 1 to 3.
    pub(crate) dims: u8,
    pub(crate) layered: bool,
    /// Size of an element in bytes, and number of elements.
    pub(crate) width: u8,
    pub(crate) count: u8,
    /// Whether the data registers have 64 bits.
    pub(crate) wide: bool,
    pub(crate) beyond: Beyond,
}

/// Behaviour of an access whose coordinate is outside the surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// The access causes a fault.
    Trap,
    /// The nearest position inside the surface is used.
    Clamp,
    /// A load returns zeros, and a store has no effect.
    Zero,
}

/// A conversion between number types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cvt {
    pub(crate) to: Type,
    pub(crate) from: Type,
    pub(crate) mode: Mode,
    /// Whether the result is rounded to an integral value (`.rni`, `.rzi`, …).
    pub(crate) integral: bool,
    /// Whether an infinite result becomes the largest finite number. NaN stays NaN, except in tf32.
    pub(crate) satfinite: bool,
}

/// An `mma.sync`: its shape and element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mma {
    pub(crate) m: u8,
    pub(crate) n: u8,
    pub(crate) k: u16,
    pub(crate) d: Elem,
    pub(crate) a: Elem,
    pub(crate) b: Elem,
    pub(crate) c: Elem,
    /// Whether integer results saturate.
    pub(crate) satfinite: bool,
}

/// Element types of matrix operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elem {
    F16,
    Bf16,
    Tf32,
    F64,
    S8,
    U8,
    S4,
    U4,
    B1Xor,
    B1And,
    E4m3,
    E5m2,
    F32,
    S32,
}

/// A `wmma` instruction, which loads or stores a fragment, or computes a product of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wmma {
    pub(crate) kind: WmmaKind,
    pub(crate) m: u8,
    pub(crate) n: u8,
    pub(crate) k: u8,
    /// Whether the matrix is stored in row-major order.
    pub(crate) row: bool,
    /// Type of the elements of A and B, or of the matrix in memory.
    pub(crate) elem: Elem,
    pub(crate) space: Space,
    pub(crate) d: Elem,
    pub(crate) c: Elem,
    pub(crate) satfinite: bool,
}

/// The kind of a `wmma` instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WmmaKind {
    LoadA,
    LoadB,
    LoadC,
    StoreD,
    Mma,
}
