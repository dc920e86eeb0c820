//! C types of kernel parameters.

use serde::{Deserialize, Serialize};

/// C type of a kernel parameter, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CType {
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// `__half`.
    F16,
    /// `__nv_bfloat16`.
    Bf16,
    /// `signed char`, `int8_t`.
    I8,
    /// `short`.
    I16,
    /// `int`.
    I32,
    /// `long`, `long long`.
    I64,
    /// `unsigned char`.
    U8,
    /// `unsigned short`.
    U16,
    /// `unsigned int`.
    U32,
    /// `unsigned long`, `unsigned long long`, `size_t`.
    U64,
    /// `bool`.
    Bool,
    /// A pointer; `pointee` is its element type.
    Pointer {
        /// Element type, if known.
        pointee: Option<Box<CType>>,
        is_const: bool,
    },
    /// A structure or another type passed by value: its name, if known.
    Aggregate(String),
    /// The name of an enumeration. Its integer type is unknown.
    Enumeration(String),
    /// Integer bits of a known size and unknown signedness (PTX `.u32`/`.b32`).
    Integer,
    /// A type with only a known size (machine code without names).
    Unknown,
}
