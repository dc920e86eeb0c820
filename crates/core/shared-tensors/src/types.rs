//! Wire types of requests and answers about shared tensors. Fields of the GPU Tensor Server keep
//! their names. The main type is [`SharedTensor`].

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use warpgauge_tensor::{Blob, Dtype};

/// Value of `cuda_device` for a tensor in the memory of the host.
pub const CPU: i32 = -1;

/// Request of `POST /tensors/from-array`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayRequest {
    /// CUDA ordinal; -1: the host's memory.
    #[serde(default)]
    pub cuda_device: i32,
    /// Samples each second, if it is sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// The elements: little-endian, packed in C order, base64.
    #[schemars(with = "String")]
    pub data_b64: Blob,
    /// Element type, also as `torch.float32`.
    #[serde(default, deserialize_with = "with_or_without_torch")]
    pub dtype: Dtype,
    /// Shape; absent: one dimension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// A name of the caller's own, which nothing is found by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds without use after which it is removed; absent: `tensors.ttl_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<f64>,
    /// Whether the caller's tensors that were not used for longest, and that no process has open, may be
    /// removed where there is no room for this one.
    #[serde(default)]
    pub evict: bool,
}

fn with_or_without_torch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dtype, D::Error> {
    let name = String::deserialize(deserializer)?;
    let bare = name.strip_prefix("torch.").unwrap_or(&name);
    let known = serde::de::value::StrDeserializer::<D::Error>::new(bare);
    Dtype::deserialize(known)
}

/// A tensor that is held.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SharedTensor {
    /// Identifies the tensor.
    pub tensor_id: String,
    /// Shape, C order.
    pub shape: Vec<u64>,
    /// Element type as PyTorch writes it, e.g. `torch.float32`.
    pub dtype: String,
    /// `cuda:0`, or `cpu` for the host's memory.
    pub device: String,
    /// Samples each second, if it is sound.
    #[schemars(extend("nullable" = true))]
    pub sample_rate: Option<u32>,
    /// What became of the request, for people.
    pub message: String,
    /// Element type.
    pub element_type: Dtype,
    /// Bytes of an element.
    pub element_size: u32,
    /// Elements.
    pub numel: u64,
    /// Bytes of the elements.
    pub nbytes: u64,
    /// Bytes that it occupies, which is what quotas count.
    pub held_bytes: u64,
    /// How others open it.
    pub kind: HandleKind,
    /// A name of the uploader's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The same, by the name that it has at the GPU Tensor Server; null without one.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub original_filename: Option<String>,
    /// When it was uploaded, seconds since the Unix epoch.
    pub created_at: f64,
    /// Seconds until it is removed, if no process uses it. Absent for a tensor that is not removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<f64>,
    /// Those who have it open.
    pub leases: u32,
}

/// Answer of `GET /tensors`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TensorList {
    /// The caller's tensors, the oldest first.
    pub tensors: Vec<SharedTensor>,
    /// How many they are.
    pub count: usize,
    /// Bytes that the caller's tensors occupy, those included that were deleted and are open still.
    pub held_bytes: u64,
}

/// Answer of `DELETE /tensors/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TensorDeleted {
    /// The tensor that there is no more.
    pub tensor_id: String,
    /// What became of it, for people.
    pub message: String,
    /// Those who have it open; its memory stays until the last of them has given it back.
    pub leases: u32,
}

/// How a tensor is opened by another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandleKind {
    /// Device memory, by `cuIpcOpenMemHandle`.
    CudaIpc,
    /// The host's memory, by mapping a file.
    SharedMemory,
}

/// Answer of `GET /tensors/{id}/handle`: all that another process needs to map the tensor. Whoever has
/// it may read and write the tensor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TensorHandle {
    /// Identifies the tensor.
    pub tensor_id: String,
    /// How it is opened.
    pub kind: HandleKind,
    /// The 64 bytes of a CUDA IPC handle, base64; null in the host's memory.
    #[schemars(extend("nullable" = true))]
    pub ipc_handle: Option<String>,
    /// The 64 bytes of a CUDA IPC handle of an event, base64, by which those who have the tensor open wait
    /// for each other: recorded after work on the tensor, waited for before. The server never waits for it.
    /// Null in the host's memory, and where the driver has no such events.
    #[schemars(extend("nullable" = true))]
    pub event_handle: Option<String>,
    /// The file to map; null in device memory.
    #[schemars(extend("nullable" = true))]
    pub shared_memory: Option<String>,
    /// Where the elements begin in what is opened, bytes.
    pub offset: u64,
    /// Bytes of the elements.
    pub nbytes: u64,
    /// Bytes of what is opened.
    pub allocation_bytes: u64,
    /// Shape.
    pub shape: Vec<u64>,
    /// From one element to the next in each dimension, elements.
    pub strides: Vec<u64>,
    /// Element type as PyTorch writes it.
    pub dtype: String,
    /// Element type.
    pub element_type: Dtype,
    /// `cuda:0` or `cpu`.
    pub device: String,
    /// UUID of the device, `GPU-…`; null in the host's memory. Its number may be another one elsewhere.
    #[schemars(extend("nullable" = true))]
    pub device_uuid: Option<String>,
    /// Address in the process that holds the tensor, and no other; 0 in the host's memory.
    pub data_ptr: u64,
    /// Bytes of an element.
    pub element_size: u32,
    /// Elements.
    pub numel: u64,
    /// Samples each second, if it is sound.
    #[schemars(extend("nullable" = true))]
    pub sample_rate: Option<u32>,
    /// The library that stands for the driver, on an emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_library: Option<String>,
    /// Its `WARPGAUGE_EMULATOR_IPC_DIR`, on an emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_ipc_dir: Option<String>,
    /// The lease that came with the handle: `PUT /tensor-leases/{lease_id}` before it ends prolongs it,
    /// `DELETE` gives it back.
    pub lease_id: String,
    /// Seconds for which the lease holds.
    pub lease_s: f64,
}

/// Answer about a lease.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaseReply {
    /// The lease.
    pub lease_id: String,
    /// Its tensor.
    pub tensor_id: String,
    /// Seconds for which it holds from now on; 0: it was given back.
    pub lease_s: f64,
}

/// Returns the distance between neighbours in each dimension of a packed tensor in C order, in
/// elements.
pub fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1u64; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(shape[at]);
    }
    strides
}
