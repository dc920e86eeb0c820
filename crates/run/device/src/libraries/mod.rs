//! NVIDIA's libraries of ready-made functions: cuSPARSE and cuBLAS, opened when they are first
//! called.
//!
//! Their functions are declared here and looked up by name, like those of the driver: nothing is
//! linked, and a missing library is an error with a reason. The libraries contain the CUDA runtime,
//! which works in the current context, so their launches are in this program's streams, between its
//! events. Memory that they allocate for themselves stays until the process ends.

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
