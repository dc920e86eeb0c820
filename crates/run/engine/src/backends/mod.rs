//! What runs kernels: one backend for each family.

pub(crate) mod device;
#[cfg(feature = "example-kernel")]
pub(crate) mod example;
pub(crate) mod library;
pub(crate) mod program;
pub(crate) mod torch;
