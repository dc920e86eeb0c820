//! The C boundary: types, codes and the wrapper of exported functions, as `cuda.h` has them.

pub mod abi;
pub mod code;
pub mod entry;
pub mod json;
