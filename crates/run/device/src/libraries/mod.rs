//! NVIDIA's libraries of ready functions: cuSPARSE and cuBLAS, opened when they are first called.
//!
//! Their functions are declared here and looked up by name, as those of the driver are: nothing is linked,
//! and a library that is missing is an error with a reason. The libraries bring the CUDA runtime in
//! themselves, which works in the context that is current, so their launches stand in our streams, between
//! our events. What they allocate for themselves stays until the process ends.

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
