//! Triton: a package of Python that compiles kernels, and the interpreter that can import it.
//!
//! [`find`] says where it is looked for, [`ask`] what an interpreter is asked, [`own`] how our own
//! environment remembers its interpreter.

mod ask;
mod find;
mod own;
#[cfg(test)]
pub(super) mod testing;
mod types;

pub(super) use ask::{PINNED, ask, quoted, run_blocking};
pub(super) use find::{OWN, find, find_in, located_on_path};
pub use find::{PYTHON_VARIABLE, TRITON_VERSIONS};
pub(super) use own::remember;
pub use types::{NoTriton, NoTritonCode, TritonInstall};
