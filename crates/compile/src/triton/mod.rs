//! Triton: Python in, an image out.
//!
//! [`job`] says what is compiled and for what, [`options`] which of Triton's options a caller may give,
//! [`answer`] what comes back, [`image`] what is believed of it, [`parameters`] what the kernel's
//! parameters get, [`map`] how the copy engine reads a tensor, and [`spares`] keeps children that have imported Triton already.

mod answer;
mod choices;
mod image;
mod job;
mod map;
mod options;
mod parameters;
mod spares;

pub use answer::{Configuration, Tunable};
pub(crate) use answer::{TritonAnswer, TritonBuilt};
pub(crate) use choices::{Choices, Untold};
pub(crate) use job::TritonJob;
pub(crate) use spares::Spares;
