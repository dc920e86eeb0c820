//! Sparse matrices: read, generated, converted between formats, and multiplied on the CPU.
//!
//! [`Csr`] is the form that everything else starts from and comes back to. Values are binary64 here,
//! whatever a device gets of them; indices are 32 bits wide, because those of kernels are.
//!
//! - [`market`] reads Matrix Market files, on all cores and with bounds on everything, and writes them.
//! - [`file`] reads files of either kind, told apart by what they begin with.
//! - [`generate`] makes matrices that are equal to the bit on every machine.
//! - [`formats`] has CSC, COO, ELL and BSR, [`spasm`] 4 × 4 templates and their file.
//! - [`product`] is what a kernel's result is compared with, and how far it may be from that.
//!
//! Pure but for the readers that callers hand in.

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
