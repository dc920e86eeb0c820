//! What can be read off code without a compiler.
//!
//! [`source`] reads CUDA C++: its kernels, their parameters, and what of it is host code. [`infer`] works out a
//! contract from it. [`listing`] reads listings of machine code and of PTX, and compares two of them. All of it is
//! pure.

#![forbid(unsafe_code)]

pub mod infer;
pub mod listing;
pub mod source;
