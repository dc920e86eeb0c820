//! Interface of the service to the processes that hold shared tensors. The main trait is
//! [`TensorHolders`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warpgauge_model::FailureCode;

use super::registry::{FreedMemory, HeldTensor, RegistryLimits, TensorLocation, TensorRegistry};

/// Maximum number of bytes that one read of a tensor returns.
pub const CHUNK_BYTES: usize = 4 << 20;

/// Future that resolves to the answer of a holder process.
pub type HolderFuture<'a, T> = BoxFuture<'a, Result<T, HolderError>>;

/// Settings for starting the holder processes of a server.
#[derive(Debug, Clone)]
pub struct HolderSettings {
    /// CUDA ordinals of the devices.
    pub devices: Vec<u32>,
    /// Whether the devices are emulated.
    pub emulated: bool,
    /// Library that replaces the driver on emulated devices, if the configuration names one.
    pub emulator: Option<PathBuf>,
    /// Directory that only this server uses.
    pub run_dir: PathBuf,
    /// Directory in an in-memory file system. No other user may access it.
    pub shared_dir: PathBuf,
    /// Limits of the registry.
    pub limits: RegistryLimits,
}

/// The processes that hold shared tensors: one for each device, and one for the memory of the host.
pub trait TensorHolders: Send + Sync + 'static {
    /// Returns the registry of the tensors.
    fn registry(&self) -> &TensorRegistry;

    /// Returns the CUDA ordinals of the devices.
    fn devices(&self) -> &[u32];

    /// Returns the directory in which device processes may write. It contains the shared memory of
    /// the emulated device.
    fn run_dir(&self) -> &Path;

    /// Returns the library that replaces the driver, if the devices are emulated.
    fn emulator(&self) -> Option<&Path>;

    /// Allocates zeroed memory for a tensor. Returns the generation of the process that holds it.
    fn create(&self, place: TensorLocation, id: Uuid, bytes: u64) -> HolderFuture<'_, u64>;

    /// Copies a tensor to new memory in the same place, with the id `id`.
    fn copy<'a>(&'a self, held: &'a HeldTensor, id: Uuid) -> HolderFuture<'a, ()>;

    /// Copies `bytes` bytes of a file, starting at offset `from`, to the beginning of a tensor.
    fn fill<'a>(
        &'a self,
        at: FreedMemory,
        file: &'a Arc<File>,
        from: u64,
        bytes: u64,
    ) -> HolderFuture<'a, ()>;

    /// Reads at most [`CHUNK_BYTES`] bytes, starting at `offset`.
    fn read<'a>(&'a self, held: &'a HeldTensor, offset: u64) -> HolderFuture<'a, Vec<u8>>;

    /// Returns the data with which other processes open a tensor. If `event` is true, it includes
    /// an event for the tensor.
    fn export<'a>(&'a self, held: &'a HeldTensor, event: bool) -> HolderFuture<'a, ExportedTensor>;

    fn free(&self, freed: Vec<FreedMemory>) -> BoxFuture<'_, ()>;

    /// Frees memory like [`Self::free`], without waiting, from any thread.
    fn free_later(&self, freed: Vec<FreedMemory>);

    /// Ends all processes, and with them all tensors.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Data with which another process opens a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedTensor {
    /// CUDA IPC handle of the whole allocation.
    pub handle: Option<Vec<u8>>,
    /// CUDA IPC handle of the event, if requested.
    pub event: Option<Vec<u8>>,
    /// File to map, for a tensor in host memory.
    pub path: Option<PathBuf>,
    /// Size of the allocation, in bytes.
    pub allocation_bytes: u64,
    /// Address in the holder process; 0 for a file.
    pub address: u64,
}

/// Reason why a holder did not fulfil a request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HolderError {
    /// The process cannot be started.
    #[error("the process that holds tensors on {place} cannot be started: {reason}")]
    Start { place: TensorLocation, reason: String },
    /// The process died, and its tensors are lost.
    #[error(
        "the process that held the tensors on {place} has died ({reason}), and the tensors are \
         lost: create them again"
    )]
    Died {
        place: TensorLocation,
        /// Description of how the death of the process was detected.
        reason: String,
    },
    /// The process rejected the request and continues.
    #[error("{message}")]
    Refused { code: FailureCode, message: String },
}
