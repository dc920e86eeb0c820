//! Finds the compilers and related tools, and installs missing ones.

mod cupti;
mod discover;
mod files;
pub(crate) mod headers;
pub(crate) mod host;
mod install;
mod torch;
mod triton;
mod types;

pub use discover::{TOOLCHAIN_VARIABLE, ToolchainSearch, discover};
pub(crate) use discover::{library_dirs, toolkit_roots};
pub use install::{InstallError, InstallRequest, install};
pub use torch::{NoTorch, TORCH_VERSIONS, TorchInstall};
pub use triton::{NoTriton, NoTritonCode, PYTHON_VARIABLE, TRITON_VERSIONS, TritonInstall};
pub use types::{NvccInstall, NvrtcInstall, PartOrigin, Toolchain, ToolkitProgram};
