//! What can be read off CUDA C++ source without a compiler: its kernels and their parameter names.

mod kernels;
mod lexer;

pub(crate) use kernels::{SourceKernel, find_kernels};
pub(crate) use lexer::{Token, TokenKind, tokenize};
