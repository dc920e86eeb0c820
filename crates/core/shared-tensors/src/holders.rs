//! The processes that hold shared tensors, as the service sees them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warpgauge_model::FailureCode;

use super::registry::{FreedMemory, HeldTensor, RegistryLimits, TensorLocation, TensorRegistry};

/// Most bytes of a tensor that one read gives.
pub const CHUNK_BYTES: usize = 4 << 20;

/// What a process that holds tensors answers.
pub type HolderFuture<'a, T> = BoxFuture<'a, Result<T, HolderError>>;

/// What the processes of a server are started with.
#[derive(Debug, Clone)]
pub struct HolderSettings {
    /// Devices there are, by CUDA ordinal.
    pub devices: Vec<u32>,
    /// Whether they are emulated.
    pub emulated: bool,
    /// The library that stands for the driver of emulated devices, if the configuration names one.
    pub emulator: Option<PathBuf>,
    /// A directory of this server alone.
    pub run_dir: PathBuf,
    /// A directory in which files are memory; no other user may enter it.
    pub shared_dir: PathBuf,
    /// Bounds.
    pub limits: RegistryLimits,
}

/// The processes that hold shared tensors: one for each device, and one for the host's memory.
pub trait TensorHolders: Send + Sync + 'static {
    /// Whose tensors there are.
    fn registry(&self) -> &TensorRegistry;

    /// Devices there are, by CUDA ordinal.
    fn devices(&self) -> &[u32];

    /// Where processes of devices may write; the emulated device has shared memory there.
    fn run_dir(&self) -> &Path;

    /// The library that stands for the driver, if the devices are emulated.
    fn emulator(&self) -> Option<&Path>;

    /// Allocates room for a tensor, all zeros; gives the generation of the process that has it.
    fn create(&self, place: TensorLocation, id: Uuid, bytes: u64) -> HolderFuture<'_, u64>;

    /// Copies a tensor to new memory beside it, as `id`.
    fn copy<'a>(&'a self, held: &'a HeldTensor, id: Uuid) -> HolderFuture<'a, ()>;

    /// Copies so many bytes of a file, from `from` on, to the beginning of a tensor.
    fn fill<'a>(
        &'a self,
        at: FreedMemory,
        file: &'a Arc<File>,
        from: u64,
        bytes: u64,
    ) -> HolderFuture<'a, ()>;

    /// Reads the bytes from `offset` on, at most [`CHUNK_BYTES`].
    fn read<'a>(&'a self, held: &'a HeldTensor, offset: u64) -> HolderFuture<'a, Vec<u8>>;

    /// What other processes open a tensor with; `event`: with an event that belongs to it.
    fn export<'a>(&'a self, held: &'a HeldTensor, event: bool) -> HolderFuture<'a, ExportedTensor>;

    /// Gives memory back.
    fn free(&self, freed: Vec<FreedMemory>) -> BoxFuture<'_, ()>;

    /// The same, without waiting for it, on any thread.
    fn free_later(&self, freed: Vec<FreedMemory>);

    /// Ends all processes, and with them all tensors.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// What leads another process to a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedTensor {
    /// A CUDA IPC handle of the whole allocation.
    pub handle: Option<Vec<u8>>,
    /// A CUDA IPC handle of its event, where that was asked for.
    pub event: Option<Vec<u8>>,
    /// The file that is the host's memory.
    pub path: Option<PathBuf>,
    /// Bytes of the allocation.
    pub allocation_bytes: u64,
    /// Its address in the holder; 0 for a file.
    pub address: u64,
}

/// Why a holder did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HolderError {
    /// It cannot be started.
    #[error("the process that holds tensors on {place} cannot be started: {reason}")]
    Start {
        /// Where.
        place: TensorLocation,
        /// Why.
        reason: String,
    },
    /// It died, and with it all that it held.
    #[error("the process that held the tensors on {place} has died ({reason}), and they with it")]
    Died {
        /// Where.
        place: TensorLocation,
        /// How it was noticed.
        reason: String,
    },
    /// It goes on, without that.
    #[error("{message}")]
    Refused {
        /// Stable code.
        code: FailureCode,
        /// Why.
        message: String,
    },
}
