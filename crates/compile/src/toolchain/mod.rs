//! The CUDA toolchain: where its parts are, and how to bring what is missing.

mod cupti;
mod discover;
mod install;
mod types;

pub use discover::{TOOLCHAIN_VARIABLE, ToolchainSearch, discover};
pub use install::{InstallError, InstallRequest, install};
pub use types::{NvccInstall, NvrtcInstall, Source, Tool, Toolchain};
