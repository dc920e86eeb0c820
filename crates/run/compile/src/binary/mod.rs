//! Reads machine code and PTX without a GPU: kernels, parameters, resources, architecture.

mod code;
mod cubin;
mod eiattr;
mod fatbin;
mod ptx;
mod variables;

pub(crate) use code::{same_code, same_image};
pub(crate) use cubin::{Cubin, RawKernel, RawParam, read_cubin};
pub(crate) use fatbin::{FatbinEntry, FatbinKind, read_fatbin};
pub(crate) use ptx::{Ptx, PtxKernel, PtxParam, cuda_version_of, read_ptx};
pub use variables::ImageVariable;
pub(crate) use variables::variables_of;
