//! Types of the registry. The main types are [`NewTensor`] and [`HeldTensor`].

use std::time::{Duration, SystemTime};

use uuid::Uuid;
use warpgauge_tensor::Dtype;

/// Allocation unit of device memory, bytes. A tensor occupies whole units.
pub const DEVICE_PAGE: u64 = 2 << 20;

/// Memory that holds a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorLocation {
    /// Memory of the host.
    Host,
    /// Device with this CUDA ordinal.
    Device(u32),
}

impl TensorLocation {
    /// Returns the number of bytes that a tensor of `bytes` bytes occupies in this memory.
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
    /// Maximum number of bytes that the tensors of one owner occupy.
    pub max_bytes_per_owner: u64,
    /// Maximum number of tensors of one owner.
    pub max_count_per_owner: u64,
    /// Maximum number of bytes that all tensors occupy.
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
    /// Size of the elements, bytes.
    pub bytes: u64,
    /// Sample rate of audio data, Hz.
    pub sample_rate: Option<u32>,
    /// Name that the uploader gave to the tensor.
    pub name: Option<String>,
    /// Time without use after which the tensor is removed. `None` means the default.
    pub ttl: Option<Duration>,
    /// Whether other tensors of the owner may be evicted to make room for this tensor.
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
    /// Time until the tensor is removed, if it is not used.
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

/// Reason for the removal of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneReason {
    /// The holder process died.
    HolderDied,
    /// The tensor was not used for too long.
    Expired,
    /// The tensor was removed to make room for another tensor.
    Evicted,
}

/// Reason why a lookup or a lease of a tensor failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorLookupError {
    /// The tensor never existed, was deleted, or belongs to another owner.
    Never,
    /// The tensor was removed.
    Gone(GoneReason),
    /// The tensor already has the maximum number of leases.
    TooManyLeases,
}

/// Error message for an exceeded quota, with the limit and the current use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota(pub String);
