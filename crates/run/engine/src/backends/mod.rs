//! Implementations of [`KernelBackend`](crate::backend::KernelBackend): one for each family of
//! kernels.

pub(crate) mod device;
#[cfg(feature = "example-kernel")]
pub(crate) mod example;
pub(crate) mod library;
pub(crate) mod program;
pub(crate) mod torch;
