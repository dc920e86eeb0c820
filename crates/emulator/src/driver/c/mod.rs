//! The C boundary: types, codes and the wrapper of exported functions, as in `cuda.h`.

pub mod abi;
pub mod code;
pub mod entry;
pub mod json;
