//! Analysis of CUDA C++ source without a compiler: its kernels, their parameter names, and its host
//! code. The main functions are [`find_kernels`] and [`without_host_code`].

mod host;
mod kernels;
mod lexer;

pub use host::{DeviceCode, without_host_code};
pub use kernels::{SourceKernel, find_kernels};
pub use lexer::{Token, TokenKind, tokenize, tokens};
