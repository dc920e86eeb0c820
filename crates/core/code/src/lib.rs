//! Analysis of code without a compiler.
//!
//! [`source`] reads CUDA C++: the kernels, their parameters, and the host code. [`infer`] guesses a
//! contract from it. [`listing`] reads listings of machine code and PTX, and compares them. The
//! crate does no I/O.

#![forbid(unsafe_code)]

pub mod infer;
pub mod listing;
pub mod source;
