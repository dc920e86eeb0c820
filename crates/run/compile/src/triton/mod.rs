//! Compiles Triton kernels: Python source to an image.
//!
//! [`job`] contains the request and its checks, [`options`] the options of Triton that a caller may
//! give, [`image`] the checks of the answer, [`parameters`] the values of the kernel's parameters,
//! and [`map`] the tensor maps of the Tensor Memory Accelerator. The answer is a message
//! (`protocol/triton.rs`). `spares.rs` keeps children that have already imported Triton.

mod choices;
mod image;
mod job;
mod map;
mod options;
mod parameters;

pub(crate) use choices::{Choices, Untold};
pub(crate) use job::TritonJob;
