//! Sparse matrices: reading, generation, conversion between formats, and multiplication on the CPU.
//!
//! [`Csr`] is the form from which all other formats are made, and to which they can be converted
//! back. Values are binary64 here, even if a device gets another type. Indices have 32 bits, as in
//! kernels.
//!
//! - [`market`] reads Matrix Market files on all cores within limits, and writes them.
//! - [`file`] reads files of either format, which the first bytes determine.
//! - [`generate`] generates matrices with the same bits on every machine.
//! - [`formats`] has CSC, COO, ELL and BSR, [`spasm`] 4 × 4 templates and their file format.
//! - [`product`] computes the expected result of a kernel and the error allowed for it.
//!
//! The crate does no I/O, except through the readers and writers of callers, through
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
