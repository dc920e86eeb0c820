//! Shared tensors: wire types, and the files that tensors come from (WAV, `.npy`, `.safetensors`) and
//! become. No device, no web.

#![forbid(unsafe_code)]

mod file;
mod format;
mod npy;
mod safetensors;
mod types;
mod wav;

pub use file::{Elements, FileError, read};
pub use format::DataFormat;
pub use types::{
    ArrayRequest, CPU, HandleKind, LeaseReply, SharedTensor, TensorDeleted, TensorHandle,
    TensorList, strides,
};
