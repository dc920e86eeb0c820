//! Types of the registry. The main types are [`NewTensor`] and [`HeldTensor`].

use std::time::{Duration, SystemTime};

use uuid::Uuid;
use warpgauge_tensor::Dtype;

/// Allocation unit of device memory, in bytes; a tensor occupies whole pages.
pub const DEVICE_PAGE: u64 = 2 << 20;

/// Place of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorLocation {
    /// Memory of the host.
    Host,
    /// Device with this CUDA ordinal.
    Device(u32),
}

impl TensorLocation {
    /// Returns the number of bytes that a tensor of `bytes` bytes occupies there.
    pub fn occupied(self, bytes: u64) -> u64 {
        match self {
            Self::Host => bytes,
            Self::Device(_) => bytes.checked_next_multiple_of(DEVICE_PAGE).unwrap_or(u64::MAX),
        }
    }
}

impl std::fmt::Display for TensorLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.write_str("cpu"),
            Self::Device(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// Limits of the registry. For sizes and counts, 0 means no limit.
#[derive(Debug, Clone, Copy)]
pub struct RegistryLimits {
    /// Most bytes that the tensors of one owner occupy.
    pub max_bytes_per_owner: u64,
    /// Most tensors of one owner.
    pub max_count_per_owner: u64,
    /// Most bytes that all tensors occupy.
    pub max_bytes: u64,
    /// Time without use after which a tensor is removed.
    pub ttl: Option<Duration>,
    /// Duration of a lease.
    pub lease: Duration,
}

/// Description of a tensor to hold.
#[derive(Debug, Clone)]
pub struct NewTensor {
    pub owner: String,
    pub place: TensorLocation,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Size of its elements, in bytes.
    pub bytes: u64,
    /// Samples per second, for sound.
    pub sample_rate: Option<u32>,
    /// Name given by the uploader.
    pub name: Option<String>,
    /// Time without use after which it is removed, if not the default.
    pub ttl: Option<Duration>,
    /// Whether other tensors of the owner may be evicted for it.
    pub evict: bool,
}

/// A tensor in the registry.
#[derive(Debug, Clone)]
pub struct HeldTensor {
    pub id: Uuid,
    /// Description of the tensor.
    pub tensor: NewTensor,
    /// Generation of the holder process. Successive processes of a place have increasing
    /// generations.
    pub generation: u64,
    /// Time of the upload.
    pub created_at: SystemTime,
    /// Time until it is removed, if it is not used.
    pub expires_in: Option<Duration>,
    pub leases: u32,
}

/// Memory that is no longer needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreedMemory {
    pub place: TensorLocation,
    /// Generation of the holder process.
    pub generation: u64,
    /// Id of the tensor.
    pub id: Uuid,
}

/// Reasons for the removal of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneReason {
    /// Its holder process died.
    HolderDied,
    /// It was not used in time.
    Expired,
    /// It was removed to make room for another tensor.
    Evicted,
}

/// Reasons why an owner cannot get a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorLookupError {
    /// The tensor never existed, was deleted, or belongs to another owner.
    Never,
    /// The tensor was removed.
    Gone(GoneReason),
    /// The tensor has the most leases allowed.
    TooManyLeases,
}

/// Message that there is no room, with the limit and its current use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota(pub String);
