//! Triton: Python in, an image out.
//!
//! [`job`] says what is compiled and for what, [`options`] which of Triton's options a caller may give,
//! [`image`] what is believed of the answer, [`parameters`] what the kernel's parameters get, and
//! [`map`] how the copy engine reads a tensor. The answer itself is a message (`protocol/triton.rs`);
//! `spares.rs` keeps children that have imported Triton already.

mod choices;
mod image;
mod job;
mod map;
mod options;
mod parameters;

pub(crate) use choices::{Choices, Untold};
pub(crate) use job::TritonJob;
