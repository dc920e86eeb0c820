//! Operations that multiply sparse matrices by vectors.
//!
//! - `matrix_file`: answers that contain a matrix as a file
//! - `operations`: the handlers
//! - `upload`: uploads of matrices

pub(crate) mod matrix_file;
pub(crate) mod operations;
pub(crate) mod upload;
