//! Triton: a package of Python that compiles kernels, and the interpreter that can import it.
//!
//! [`find`] says where it is looked for, [`ask`] what an interpreter is asked, [`own`] how our own
//! environment remembers its interpreter.

mod ask;
mod find;
mod own;
#[cfg(test)]
mod testing;
mod types;

pub(super) use find::find;
pub use find::{PYTHON_VARIABLE, TRITON_VERSIONS};
pub use types::{NoTriton, NoTritonCode, TritonInstall};
