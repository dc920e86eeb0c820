//! Sparse matrix-vector multiplication: wire types that are compatible with the Remote GPU
//! Execution Service, and the conversion of requests into contracts. The contracts are then
//! evaluated like any other. The main function is [`contract_of`].

mod answer;
mod contract;
mod expected;
mod file;
mod generated;
mod kernel;
mod matrix;
mod named;
mod numbers;
mod parts;
mod paths;
mod request;

pub use crate::Csr;
pub use answer::{MethodAnswer, SpmvResponse, SpmvResult};
pub use contract::{SpmvError, SpmvProblem, checked, contract_of};
pub use file::read_matrix_file;
pub use generated::{generated, is_generated};
pub use matrix::{
    MatrixInfo, MatrixList, MatrixReply, MatrixShape, MatrixSummary, UploadProgress, UploadRequest,
    UploadState, check_matrix_name,
};
pub use named::{NamedMatrix, TakesMatrices, used};
pub use numbers::Numbers;
pub use parts::{Part, PartError, takes_padding};
pub use paths::request_path;
pub use request::{
    DEFAULT_KERNEL, MatrixData, Method, Multiplier, SpmvOptions, SpmvRequest, StoredSpmvRequest,
};
