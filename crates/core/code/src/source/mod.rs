//! Analysis of CUDA C++ source without a compiler: its kernels, their parameter names, its host code, and the files
//! that it includes. The main functions are [`find_kernels`], [`without_host_code`], [`with_relaxed_constexpr`] and
//! [`united`].

mod encoding;
mod enumerations;
mod host;
mod includes;
mod kernels;
mod lexer;
mod reached;
mod relaxed;

pub use encoding::text_of;
pub use enumerations::enumerations;
pub use host::{DeviceCode, without_host_code};
pub use includes::{
    AmbiguousInclude, UnitedSource, included_header, united, whole, without_include,
};
pub use kernels::{SourceKernel, find_kernels};
pub use lexer::{Token, TokenKind, tokenize, tokens};
pub use reached::{DEVICE_CONSTANT, reached_code};
pub use relaxed::{RELAXED_CONSTEXPR, with_relaxed_constexpr};
