//! Shared tensors: wire types, file formats (WAV, `.npy`, `.safetensors`), and the
//! [`TensorRegistry`]. The registry records the owner, the lifetime and the leases of each tensor.
//! Separate processes hold the content; the service reaches them through [`TensorHolders`]. The
//! crate uses no device and no network.

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
