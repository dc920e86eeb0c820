//! Sparse matrix times vector: wire types in the shape of the Remote GPU Execution Service, and the
//! contract that a request becomes. From there on it is an evaluation like every other.

#![forbid(unsafe_code)]

mod answer;
mod contract;
mod matrix;
mod numbers;
mod parts;
mod request;

pub use answer::{SpmvResponse, SpmvResult};
pub use contract::{SpmvError, SpmvProblem, checked, contract_of};
pub use matrix::{
    MatrixList, MatrixReply, MatrixShape, MatrixSummary, UploadRequest, check_matrix_name,
};
pub use numbers::Numbers;
pub use parts::{Part, PartError};
pub use request::{DEFAULT_KERNEL, MatrixData, SpmvOptions, SpmvRequest, StoredSpmvRequest};
pub use warpgauge_sparse::Csr;
