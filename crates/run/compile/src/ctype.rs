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
    /// A pointer. `pointee` is the type of the elements that it points to.
    Pointer {
        /// Type of the elements. `None` if it is unknown.
        pointee: Option<Box<CType>>,
        is_const: bool,
    },
    /// A structure or another type that is passed by value, with its name if the name is known.
    Aggregate(String),
    /// An enumeration, with its name. Its integer type is unknown.
    Enumeration(String),
    /// An integer of known size and unknown signedness (PTX `.u32` or `.b32`).
    Integer,
    /// A type of which only the size is known, as in machine code without names.
    Unknown,
}
