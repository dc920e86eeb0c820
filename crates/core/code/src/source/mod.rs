//! What can be read off CUDA C++ source without a compiler: its kernels, their parameter names, and what
//! of it is host code.

mod host;
mod kernels;
mod lexer;

pub use host::{DeviceCode, without_host_code};
pub use kernels::{SourceKernel, find_kernels};
pub use lexer::{Token, TokenKind, tokenize, tokens};
