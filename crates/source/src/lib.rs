//! What can be read off CUDA C++ source without a compiler: its kernels and their parameter names.

#![forbid(unsafe_code)]

mod kernels;
mod lexer;

pub use kernels::{SourceKernel, find_kernels};
pub use lexer::{Token, TokenKind, tokenize, tokens};
