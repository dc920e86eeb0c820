//! Sparse matrix times vector.
//!
//! - `matrix_file`: a matrix as a file
//! - `operations`: the handlers
//! - `upload`: uploads of matrices

pub(crate) mod matrix_file;
pub(crate) mod operations;
pub(crate) mod upload;
