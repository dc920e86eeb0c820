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
    /// CUDA ordinal of the device that holds the tensor; -1 for the host's memory.
    #[serde(default)]
    pub cuda_device: i32,
    /// Sample rate of audio data, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// Elements in base64: little-endian, packed in C order.
    #[schemars(with = "String")]
    pub data_b64: Blob,
    /// Element type. PyTorch's names, such as `torch.float32`, are also accepted.
    #[serde(default, deserialize_with = "with_or_without_torch")]
    pub dtype: Dtype,
    /// Shape. Default: one dimension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Name, for display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time without use after which the tensor is removed, seconds. Default: `tensors.ttl_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<f64>,
    /// Whether the caller's least recently used tensors may be removed if there is not enough space
    /// for this one. Tensors that a process has open are not removed.
    #[serde(default)]
    pub evict: bool,
}

fn with_or_without_torch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dtype, D::Error> {
    let name = String::deserialize(deserializer)?;
    let bare = name.strip_prefix("torch.").unwrap_or(&name);
    let known = serde::de::value::StrDeserializer::<D::Error>::new(bare);
    Dtype::deserialize(known)
}

/// Shared tensor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SharedTensor {
    /// Id of the tensor.
    pub tensor_id: String,
    /// Shape, in C order.
    pub shape: Vec<u64>,
    /// PyTorch's name of the element type, e.g. `torch.float32`.
    pub dtype: String,
    /// Memory that holds the tensor: `cuda:0` for the GPU with ordinal 0, or `cpu` for the host's memory.
    pub device: String,
    /// Sample rate of audio data, Hz.
    #[schemars(extend("nullable" = true))]
    pub sample_rate: Option<u32>,
    /// Human-readable result of the request.
    pub message: String,
    /// Element type.
    pub element_type: Dtype,
    /// Size of an element, bytes.
    pub element_size: u32,
    /// Number of elements.
    pub numel: u64,
    /// Size of the elements, bytes.
    pub nbytes: u64,
    /// Size of the allocated memory, bytes. It counts towards the quota.
    pub held_bytes: u64,
    /// Method by which other processes open the tensor.
    pub kind: HandleKind,
    /// Name that the caller gave, for display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Copy of `name` under the field name of the GPU Tensor Server. Null without a name.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub original_filename: Option<String>,
    /// Time of the upload, seconds since the Unix epoch.
    pub created_at: f64,
    /// Time until the tensor is removed, if no process uses it, seconds. Absent if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<f64>,
    /// Number of leases: processes that have the tensor open.
    pub leases: u32,
}

/// Shared tensors of the caller.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TensorList {
    /// Tensors of the caller, oldest first.
    pub tensors: Vec<SharedTensor>,
    /// Number of tensors.
    pub count: usize,
    /// Size of the memory of all tensors, bytes. It includes deleted tensors that a process still has open.
    pub held_bytes: u64,
}

/// Result of deleting a tensor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TensorDeleted {
    /// Id of the deleted tensor.
    pub tensor_id: String,
    /// Human-readable result of the request.
    pub message: String,
    /// Number of leases. The memory remains until the last of them ends.
    pub leases: u32,
}

/// Method by which another process opens a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandleKind {
    /// Device memory, opened by `cuIpcOpenMemHandle`.
    CudaIpc,
    /// Host memory, opened by mapping a file.
    SharedMemory,
}

/// Handle with which another process opens a tensor, with a lease. That process can read and write the tensor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TensorHandle {
    /// Id of the tensor.
    pub tensor_id: String,
    /// Method by which the tensor is opened.
    pub kind: HandleKind,
    /// CUDA IPC handle, 64 bytes in base64. Null for host memory.
    #[schemars(extend("nullable" = true))]
    pub ipc_handle: Option<String>,
    /// CUDA IPC handle of an event, 64 bytes in base64, for synchronisation between processes that have the tensor
    /// open. A process waits for the event before its work on the tensor, and records it after the work. The server
    /// never waits for it. Null for host memory, and if the driver does not support such events.
    #[schemars(extend("nullable" = true))]
    pub event_handle: Option<String>,
    /// Path of the file to map. Null for device memory.
    #[schemars(extend("nullable" = true))]
    pub shared_memory: Option<String>,
    /// Offset of the elements in the opened memory, bytes.
    pub offset: u64,
    /// Size of the elements, bytes.
    pub nbytes: u64,
    /// Size of the opened memory, bytes.
    pub allocation_bytes: u64,
    /// Shape, in C order.
    pub shape: Vec<u64>,
    /// Distance between neighbouring elements in each dimension, elements.
    pub strides: Vec<u64>,
    /// PyTorch's name of the element type.
    pub dtype: String,
    /// Element type.
    pub element_type: Dtype,
    /// Memory that holds the tensor: `cuda:0` for the GPU with ordinal 0, or `cpu` for the host's memory.
    pub device: String,
    /// UUID of the device, `GPU-…`. Null for host memory. The device may have a different ordinal in another process.
    #[schemars(extend("nullable" = true))]
    pub device_uuid: Option<String>,
    /// Address in the process that holds the tensor; 0 for host memory. It is not valid in any other process.
    pub data_ptr: u64,
    /// Size of an element, bytes.
    pub element_size: u32,
    /// Number of elements.
    pub numel: u64,
    /// Sample rate of audio data, Hz.
    #[schemars(extend("nullable" = true))]
    pub sample_rate: Option<u32>,
    /// Path of the library that replaces the driver. Present only on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_library: Option<String>,
    /// Value of `WARPGAUGE_EMULATOR_IPC_DIR` of the process that holds the tensor. Present only on
    /// the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_ipc_dir: Option<String>,
    /// Id of the lease. `PUT /tensor-leases/{lease_id}` renews the lease before it expires, and `DELETE` ends it.
    pub lease_id: String,
    /// Time for which the lease is valid, seconds.
    pub lease_s: f64,
}

/// State of a lease.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaseReply {
    /// Id of the lease.
    pub lease_id: String,
    /// Id of the tensor.
    pub tensor_id: String,
    /// Remaining time for which the lease is valid, seconds. It is 0 if the lease has ended.
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
