//! Shared tensors: wire types, the files that tensors come from (WAV, `.npy`, `.safetensors`) and become, and
//! the [`TensorRegistry`]: whose a tensor is, how long it stays, and who has it open. Processes hold the content; the
//! service reaches them through [`TensorHolders`]. No device, no web.

#![forbid(unsafe_code)]

mod file;
mod format;
mod holders;
mod npy;
mod registry;
mod safetensors;
mod types;
mod wav;

pub use file::{FileElements, TensorFileError, read};
pub use format::TransferFormat;
pub use holders::{
    CHUNK_BYTES, ExportedTensor, HolderError, HolderFuture, HolderSettings, TensorHolders,
};
pub use registry::{
    DEVICE_PAGE, FreedMemory, GoneReason, HeldTensor, NewTensor, Quota, RegistryLimits,
    TensorLocation, TensorLookupError, TensorRegistry,
};
pub use types::{
    ArrayRequest, CPU, HandleKind, LeaseReply, SharedTensor, TensorDeleted, TensorHandle,
    TensorList, strides,
};
