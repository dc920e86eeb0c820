//! PTX types and state spaces.

/// A fundamental type, as written in an instruction or a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
    E4m3x2,
    E5m2x2,
}

impl Type {
    /// Returns the type called `name`, without the dot.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "e4m3x2" => Self::E4m3x2,
            "e5m2x2" => Self::E5m2x2,
            _ => return None,
        })
    }

    /// Returns the size in memory, bytes. A predicate, which cannot be in memory, counts as 1.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::E4m3x2 | Self::E5m2x2 => 2,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
            _ => 4,
        }
    }

    /// Returns the size of the type in bits.
    pub(crate) fn bits(self) -> u32 {
        self.bytes() * 8
    }

    /// Returns whether the type is a signed integer.
    pub(crate) fn signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Returns whether the type is a single floating-point number.
    pub(crate) fn float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::Tf32 | Self::F32 | Self::F64)
    }
}

/// State space of an address or a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
    Reg,
}

impl Space {
    /// Returns the space called `name`, without the dot.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "global" => Self::Global,
            "const" => Self::Const,
            "shared" | "shared::cta" | "shared::cluster" => Self::Shared,
            "local" => Self::Local,
            "param" | "param::entry" | "param::func" => Self::Param,
            "reg" => Self::Reg,
            _ => return None,
        })
    }
}
