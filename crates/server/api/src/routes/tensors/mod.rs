//! Operations on shared tensors.
//!
//! - `file`: the content of a tensor
//! - `operations`: the handlers
//! - `upload`: uploads of tensors

pub(crate) mod file;
pub(crate) mod operations;
pub(crate) mod upload;
