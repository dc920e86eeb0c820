//! The CUDA toolchain: where its parts are, and how to bring what is missing.

mod discover;
mod types;

pub use discover::{ToolchainSearch, discover};
pub use types::{NvccInstall, NvrtcInstall, Source, Tool, Toolchain};
