//! Sparse matrices: reading, generation, conversion between formats, and multiplication on the CPU.
//!
//! All other formats are made from [`Csr`] and can be converted back to it. Values are binary64
//! here, even if a device uses a different type. Indices have 32 bits, as in kernels.
//!
//! - [`market`] reads Matrix Market files on all cores and within limits, and writes them.
//! - [`file`] reads files of either format. The first bytes determine the format.
//! - [`generate`] generates matrices with the same bits on every machine.
//! - [`formats`] contains CSC, COO, ELL and BSR. [`spasm`] contains 4 × 4 templates and their file
//!   format.
//! - [`product`] computes the expected result of a kernel and the allowed error.
//!
//! The crate does no I/O, except through its callers' readers and writers, in
//! [`spmv::read_matrix_file`], and in temporary files for large arrays.

#![forbid(unsafe_code)]

mod csr;
pub mod file;
pub mod formats;
pub mod generate;
pub mod market;
pub mod packed;
pub mod product;
pub mod spasm;
pub mod spmv;

pub use csr::{Csr, CsrError, MAX_EXTENT};
pub use file::{FileKind, MatrixFileError};
pub use generate::{GeneratorError, MatrixGenerator};
pub use market::{MarketError, MarketInfo, ReadLimits};
