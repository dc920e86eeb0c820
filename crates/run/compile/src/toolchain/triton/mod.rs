//! Triton, a Python package that compiles kernels, and the interpreter that can import it.
//!
//! [`find`] contains the search, [`ask`] the query of an interpreter, and [`own`] the record of the
//! interpreter for packages that this program installed.

mod ask;
mod find;
mod own;
#[cfg(test)]
pub(super) mod testing;
mod types;

pub(super) use ask::{Answer, PINNED, ask, distribution, install, quoted, roots, run_blocking};
pub use find::{PYTHON_VARIABLE, TRITON_VERSIONS};
pub(super) use find::{find, find_in, find_package, located_on_path};
pub(super) use own::remember;
pub use types::{NoTriton, NoTritonCode, TritonInstall};
pub(super) use types::{Package, TRITON};
