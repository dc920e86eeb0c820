//! Compiles Triton kernels: Python in, an image out.
//!
//! [`job`] has the request and its checks, [`options`] the options of Triton that a caller may give,
//! [`image`] the checks of the answer, [`parameters`] the values of the kernel's parameters, and [`map`]
//! how the copy engine reads a tensor. The answer itself is a message (`protocol/triton.rs`); `spares.rs`
//! keeps children that have already imported Triton.

mod choices;
mod image;
mod job;
mod map;
mod options;
mod parameters;

pub(crate) use choices::{Choices, Untold};
pub(crate) use job::TritonJob;
