//! Analysis of CUDA C++ source without a compiler: its kernels, their parameter names, and its host
//! code. The main functions are [`find_kernels`], [`without_host_code`] and [`with_relaxed_constexpr`].

mod host;
mod kernels;
mod lexer;
mod relaxed;

pub use host::{DeviceCode, without_host_code};
pub use kernels::{SourceKernel, find_kernels};
pub use lexer::{Token, TokenKind, tokenize, tokens};
pub use relaxed::{RELAXED_CONSTEXPR, with_relaxed_constexpr};
