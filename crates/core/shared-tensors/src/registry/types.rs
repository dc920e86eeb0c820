//! What the books are told and tell.

use std::time::{Duration, SystemTime};

use uuid::Uuid;
use warpgauge_tensor::Dtype;

/// What the driver allocates device memory in; a tensor has whole pages to itself.
pub const DEVICE_PAGE: u64 = 2 << 20;

/// Where a tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorLocation {
    /// The host's memory.
    Host,
    /// The device of this CUDA ordinal.
    Device(u32),
}

impl TensorLocation {
    /// What a tensor of so many bytes occupies there.
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

/// Bounds; 0: none of that kind.
#[derive(Debug, Clone, Copy)]
pub struct RegistryLimits {
    /// Bytes that the tensors of one owner occupy.
    pub max_bytes_per_owner: u64,
    /// Tensors of one owner.
    pub max_count_per_owner: u64,
    /// Bytes that all tensors occupy.
    pub max_bytes: u64,
    /// Time without use after which a tensor goes.
    pub ttl: Option<Duration>,
    /// How long a lease holds.
    pub lease: Duration,
}

/// A tensor that is to be held.
#[derive(Debug, Clone)]
pub struct NewTensor {
    /// Whose it is.
    pub owner: String,
    /// Where.
    pub place: TensorLocation,
    /// Element type.
    pub dtype: Dtype,
    /// Shape.
    pub shape: Vec<u64>,
    /// Bytes of its elements.
    pub bytes: u64,
    /// Samples each second.
    pub sample_rate: Option<u32>,
    /// The uploader's name for it.
    pub name: Option<String>,
    /// Time without use after which it goes, if not the usual one.
    pub ttl: Option<Duration>,
    /// Whether others of the owner may go for it.
    pub evict: bool,
}

/// A tensor that is held.
#[derive(Debug, Clone)]
pub struct HeldTensor {
    /// Its id.
    pub id: Uuid,
    /// What it is.
    pub tensor: NewTensor,
    /// Of which of the place's processes, one after the other.
    pub generation: u64,
    /// When it was uploaded.
    pub created_at: SystemTime,
    /// Time until it goes, if nobody uses it.
    pub expires_in: Option<Duration>,
    /// Those who have it open.
    pub leases: u32,
}

/// Memory that nobody has a right to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreedMemory {
    /// Where.
    pub place: TensorLocation,
    /// In which process.
    pub generation: u64,
    /// Which.
    pub id: Uuid,
}

/// Why a tensor that there was is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneReason {
    /// Its process died.
    HolderDied,
    /// Nobody used it in time.
    Expired,
    /// It made room for another.
    Evicted,
}

/// Why there is no such tensor for this owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorLookupError {
    /// There is none, or it is another's, or it was deleted.
    Never,
    /// There was one.
    Gone(GoneReason),
    /// As many have it open as may.
    TooManyLeases,
}

/// There is no room: which bound, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota(pub String);
