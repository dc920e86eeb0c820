//! Element types of tensors. The main type is [`Dtype`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Element type of a tensor. Names are numpy's and PyTorch's; short forms (`f32`, `bf16`, …) are
/// accepted on input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// IEEE 754 binary64.
    #[serde(alias = "f64", alias = "double")]
    Float64,
    /// IEEE 754 binary32.
    #[serde(alias = "f32", alias = "float")]
    #[default]
    Float32,
    /// IEEE 754 binary16.
    #[serde(alias = "f16", alias = "half")]
    Float16,
    /// Brain floating point: binary32 without its lower 16 bits.
    #[serde(alias = "bf16")]
    Bfloat16,
    /// 8-bit float, 4 exponent bits, no infinities (OCP E4M3, PyTorch `float8_e4m3fn`).
    #[serde(rename = "float8_e4m3", alias = "f8e4m3", alias = "float8_e4m3fn")]
    Float8E4m3,
    /// 8-bit float, 5 exponent bits (OCP E5M2).
    #[serde(rename = "float8_e5m2", alias = "f8e5m2")]
    Float8E5m2,
    /// Signed 8-bit integer.
    #[serde(alias = "i8")]
    Int8,
    /// Signed 16-bit integer.
    #[serde(alias = "i16")]
    Int16,
    /// Signed 32-bit integer.
    #[serde(alias = "i32")]
    Int32,
    /// Signed 64-bit integer.
    #[serde(alias = "i64")]
    Int64,
    /// Unsigned 8-bit integer.
    #[serde(alias = "u8")]
    Uint8,
    /// Unsigned 16-bit integer.
    #[serde(alias = "u16")]
    Uint16,
    /// Unsigned 32-bit integer.
    #[serde(alias = "u32")]
    Uint32,
    /// Unsigned 64-bit integer.
    #[serde(alias = "u64")]
    Uint64,
    /// One byte, 0 or 1.
    Bool,
    /// Complex number: real and imaginary part, each binary32.
    #[serde(alias = "c64", alias = "cfloat", alias = "csingle")]
    Complex64,
    /// Complex number: real and imaginary part, each binary64.
    #[serde(alias = "c128", alias = "cdouble")]
    Complex128,
    /// Scale: the power of two 2^(byte − 127); 0xFF is NaN (OCP E8M0, PyTorch and ml_dtypes
    /// `float8_e8m0fnu`). The type has neither a sign nor a zero.
    #[serde(rename = "float8_e8m0fnu", alias = "float8_e8m0", alias = "f8e8m0")]
    Float8E8m0,
    /// Two 4-bit floats in a byte, the first in the low half (OCP E2M1, PyTorch `float4_e2m1fn_x2`). A shape
    /// counts bytes.
    #[serde(rename = "float4_e2m1fn_x2", alias = "float4_e2m1x2", alias = "f4e2m1x2")]
    Float4E2m1x2,
    /// Two signed 4-bit integers in a byte, the first in the low half. A shape counts bytes.
    #[serde(alias = "i4x2")]
    Int4x2,
    /// Two unsigned 4-bit integers in a byte, the first in the low half. A shape counts bytes.
    #[serde(alias = "u4x2")]
    Uint4x2,
}

impl Dtype {
    /// Every element type, in declaration order.
    pub const ALL: [Dtype; 21] = [
        Dtype::Float64,
        Dtype::Float32,
        Dtype::Float16,
        Dtype::Bfloat16,
        Dtype::Float8E4m3,
        Dtype::Float8E5m2,
        Dtype::Int8,
        Dtype::Int16,
        Dtype::Int32,
        Dtype::Int64,
        Dtype::Uint8,
        Dtype::Uint16,
        Dtype::Uint32,
        Dtype::Uint64,
        Dtype::Bool,
        Dtype::Complex64,
        Dtype::Complex128,
        Dtype::Float8E8m0,
        Dtype::Float4E2m1x2,
        Dtype::Int4x2,
        Dtype::Uint4x2,
    ];

    /// Returns the size of one element, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Dtype::Complex128 => 16,
            Dtype::Float64 | Dtype::Int64 | Dtype::Uint64 | Dtype::Complex64 => 8,
            Dtype::Float32 | Dtype::Int32 | Dtype::Uint32 => 4,
            Dtype::Float16 | Dtype::Bfloat16 | Dtype::Int16 | Dtype::Uint16 => 2,
            Dtype::Float8E4m3
            | Dtype::Float8E5m2
            | Dtype::Float8E8m0
            | Dtype::Float4E2m1x2
            | Dtype::Int4x2
            | Dtype::Uint4x2
            | Dtype::Int8
            | Dtype::Uint8
            | Dtype::Bool => 1,
        }
    }

    /// Returns the name used on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Float64 => "float64",
            Dtype::Float32 => "float32",
            Dtype::Float16 => "float16",
            Dtype::Bfloat16 => "bfloat16",
            Dtype::Float8E4m3 => "float8_e4m3",
            Dtype::Float8E5m2 => "float8_e5m2",
            Dtype::Int8 => "int8",
            Dtype::Int16 => "int16",
            Dtype::Int32 => "int32",
            Dtype::Int64 => "int64",
            Dtype::Uint8 => "uint8",
            Dtype::Uint16 => "uint16",
            Dtype::Uint32 => "uint32",
            Dtype::Uint64 => "uint64",
            Dtype::Bool => "bool",
            Dtype::Complex64 => "complex64",
            Dtype::Complex128 => "complex128",
            Dtype::Float8E8m0 => "float8_e8m0fnu",
            Dtype::Float4E2m1x2 => "float4_e2m1fn_x2",
            Dtype::Int4x2 => "int4x2",
            Dtype::Uint4x2 => "uint4x2",
        }
    }

    /// Returns whether the numbers are floating-point; true for complex types, too.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Dtype::Float64
                | Dtype::Float32
                | Dtype::Float16
                | Dtype::Bfloat16
                | Dtype::Float8E4m3
                | Dtype::Float8E5m2
                | Dtype::Complex64
                | Dtype::Complex128
                | Dtype::Float8E8m0
                | Dtype::Float4E2m1x2
        )
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
