//! Descriptions of tensors in responses.

use std::time::UNIX_EPOCH;

use uuid::Uuid;

use warpgauge_executor::Executor;
use warpgauge_shared_tensors::{
    ExportedTensor, HandleKind, HeldTensor, SharedTensor, TensorHandle, TensorHolders,
    TensorLocation, strides,
};
use warpgauge_tensor::Dtype;

pub(super) fn tensor(held: &HeldTensor, message: &str) -> SharedTensor {
    let HeldTensor { id, tensor, created_at, expires_in, leases, .. } = held;
    let since = created_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    SharedTensor {
        tensor_id: id.to_string(),
        shape: tensor.shape.clone(),
        dtype: torch_name(tensor.dtype),
        device: tensor.place.to_string(),
        sample_rate: tensor.sample_rate,
        message: message.to_owned(),
        element_type: tensor.dtype,
        element_size: tensor.dtype.size() as u32,
        numel: tensor.bytes / tensor.dtype.size() as u64,
        nbytes: tensor.bytes,
        held_bytes: tensor.place.occupied(tensor.bytes),
        kind: kind(tensor.place),
        name: tensor.name.clone(),
        original_filename: tensor.name.clone(),
        created_at: since.as_secs_f64(),
        expires_in_s: expires_in.map(|left| left.as_secs_f64()),
        leases: *leases,
    }
}

pub(super) fn handle(
    holders: &dyn TensorHolders,
    held: &HeldTensor,
    lease: Uuid,
    exported: ExportedTensor,
    device_uuid: Option<String>,
) -> TensorHandle {
    let tensor = &held.tensor;
    let ExportedTensor { handle, event, path, allocation_bytes, address } = exported;
    let on_device = matches!(tensor.place, TensorLocation::Device(_));
    let text = |path: &std::path::Path| path.display().to_string();
    let emulator = holders.emulator().filter(|_| on_device);
    TensorHandle {
        tensor_id: held.id.to_string(),
        kind: kind(tensor.place),
        ipc_handle: handle.map(|bytes| warpgauge_tensor::base64(&bytes)),
        event_handle: event.map(|bytes| warpgauge_tensor::base64(&bytes)),
        shared_memory: path.as_deref().map(text),
        // Each tensor has separate memory and begins at offset 0.
        offset: 0,
        nbytes: tensor.bytes,
        allocation_bytes,
        shape: tensor.shape.clone(),
        strides: strides(&tensor.shape),
        dtype: torch_name(tensor.dtype),
        element_type: tensor.dtype,
        device: tensor.place.to_string(),
        device_uuid,
        data_ptr: address,
        element_size: tensor.dtype.size() as u32,
        numel: tensor.bytes / tensor.dtype.size() as u64,
        sample_rate: tensor.sample_rate,
        emulator_library: emulator.map(text),
        emulator_ipc_dir: emulator.map(|_| text(holders.run_dir())),
        lease_id: lease.to_string(),
        lease_s: holders.registry().limits().lease.as_secs_f64(),
    }
}

fn kind(place: TensorLocation) -> HandleKind {
    match place {
        TensorLocation::Host => HandleKind::SharedMemory,
        TensorLocation::Device(_) => HandleKind::CudaIpc,
    }
}

/// Returns the UUID of a tensor's device.
pub(super) fn device_uuid(executor: &dyn Executor, place: TensorLocation) -> Option<String> {
    let TensorLocation::Device(ordinal) = place else { return None };
    let devices = executor.offer().devices;
    devices.into_iter().find(|one| one.info.ordinal == ordinal).map(|one| one.info.uuid)
}

/// Returns PyTorch's name for an element type.
fn torch_name(dtype: Dtype) -> String {
    match dtype {
        Dtype::Float8E4m3 => "torch.float8_e4m3fn".to_owned(),
        // PyTorch has no four-bit integer types, so these elements are passed as bytes.
        Dtype::Int4x2 | Dtype::Uint4x2 => "torch.uint8".to_owned(),
        other => format!("torch.{other}"),
    }
}
