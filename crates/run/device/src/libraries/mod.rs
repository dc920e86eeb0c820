//! NVIDIA's libraries of ready-made functions, cuSPARSE and cuBLAS, which are opened at their first
//! use.
//!
//! Their functions are declared here and looked up by name, like those of the driver. Nothing is
//! linked, and a missing library is an error with a reason. The libraries contain the CUDA runtime,
//! which uses the current context. Their launches are therefore in this program's streams, between
//! its events. Memory that they allocate for themselves is kept until the process ends.

mod call;
mod cublas;
mod cusparse;
mod find;
mod function;
mod open;
mod parts;

pub use call::{Libraries, LibraryCall};
pub use find::{is_file_of, major_version, remedy, sonames};
pub use function::TypedLibraryFunction;
