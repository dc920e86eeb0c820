//! Stores an uploaded tensor: reads it, reserves memory, and sends it to a holder process.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::{SharedTensors, invalid, views};
use crate::error::{self, ServiceError};
use crate::submission::Caller;
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::{
    CPU, FileElements, FreedMemory, HeldTensor, HolderError, NewTensor, Quota, SharedTensor,
    TensorFileError, TensorHolders, TensorLocation,
};
use warpgauge_tensor::TensorData;
use warpgauge_tensor::{Blob, Dtype, encoding, shape};

/// Maximum length of a tensor's name, characters.
const MAX_NAME: usize = 255;

/// Maximum time to live that an upload may request, seconds.
const MAX_TTL_S: f64 = 31_536_000.0;

/// Suggested waiting time before a retry if the quota is used up, because a caller must first
/// delete a tensor.
const ROOM_RETRY: Duration = Duration::from_secs(60);

/// Settings for storing a tensor.
#[derive(Debug, Clone, Default)]
pub struct TensorOptions {
    /// CUDA ordinal; -1 for host memory.
    pub cuda_device: i32,
    /// Samples per second, if the file does not contain it.
    pub sample_rate: Option<u32>,
    /// Name for display; it is not used for look-ups.
    pub name: Option<String>,
    /// Seconds without use after which the tensor expires.
    pub ttl_s: Option<f64>,
    /// Whether the caller's other tensors may be evicted to make room.
    pub evict: bool,
}

/// Source of a tensor's content.
pub enum TensorSource {
    /// A WAV, `.npy` or `.safetensors` file.
    File {
        file: File,
        /// Name of the tensor, if the file contains several.
        tensor: Option<String>,
    },
    /// Elements in the request.
    Array {
        /// Little-endian elements, packed in C order.
        data_b64: Blob,
        dtype: Dtype,
        /// Shape; `None` for one dimension.
        shape: Option<Vec<u64>>,
    },
}

pub struct TensorUpload {
    pub source: TensorSource,
    /// Settings for storing the tensor.
    pub options: TensorOptions,
}

pub(super) async fn put(
    tensors: &SharedTensors,
    upload: TensorUpload,
    caller: &Caller,
) -> Result<SharedTensor, ServiceError> {
    let TensorUpload { source, options } = upload;
    // These problems are reported before the file is read.
    let place = place(tensors.holders.as_ref(), options.cuda_device)?;
    options.ttl_s.map(time_to_live).transpose()?;
    let max_bytes = tensors.max_upload_bytes;
    let reading = tokio::task::spawn_blocking(move || elements(source, max_bytes));
    let elements = reading.await.map_err(|error| error::internal("reading a tensor", &error))??;
    let holders = Arc::clone(&tensors.holders);
    let new = new(holders.as_ref(), &caller.owner, &options, &elements)?;
    // The task continues even if the caller leaves, because a tensor and its entry in the registry
    // must exist together or not at all.
    let holding = tokio::spawn(async move { hold(holders.as_ref(), new, elements).await });
    let held = holding.await.map_err(|error| error::internal("holding a tensor", &error))??;
    let fallback = match (place, options.cuda_device) {
        (TensorLocation::Host, 0..) => "; this machine has no CUDA device",
        _ => "",
    };
    Ok(views::tensor(&held, &format!("Tensor loaded successfully on {place}{fallback}")))
}

/// Describes a tensor with these elements, for the registry.
pub(super) fn new(
    holders: &dyn TensorHolders,
    owner: &str,
    options: &TensorOptions,
    elements: &FileElements,
) -> Result<NewTensor, ServiceError> {
    Ok(NewTensor {
        owner: owner.to_owned(),
        place: place(holders, options.cuda_device)?,
        dtype: elements.dtype,
        shape: elements.shape.clone(),
        bytes: elements.bytes,
        sample_rate: elements.sample_rate.or(options.sample_rate),
        name: options.name.as_deref().and_then(file_name),
        ttl: options.ttl_s.map(time_to_live).transpose()?,
        evict: options.evict,
    })
}

/// Returns the location that `cuda_device` selects.
pub(super) fn place(
    holders: &dyn TensorHolders,
    cuda_device: i32,
) -> Result<TensorLocation, ServiceError> {
    if cuda_device == CPU {
        return Ok(TensorLocation::Host);
    }
    let devices = holders.devices();
    let wanted = u32::try_from(cuda_device).ok();
    match wanted {
        // If there is no device, the number can only refer to host memory.
        Some(_) if devices.is_empty() => Ok(TensorLocation::Host),
        Some(ordinal) if devices.contains(&ordinal) => Ok(TensorLocation::Device(ordinal)),
        _ => {
            let known: Vec<String> = devices.iter().map(u32::to_string).collect();
            let text = format!(
                "Invalid CUDA device {cuda_device}; the devices are {}, and -1 means host memory",
                known.join(", ")
            );
            Err(invalid("cuda_device", FailureCode::InvalidDevice, text))
        }
    }
}

pub(super) fn time_to_live(seconds: f64) -> Result<Duration, ServiceError> {
    if seconds > 0.0 && seconds <= MAX_TTL_S {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let text = format!("{seconds} s; it must be more than 0 and at most {MAX_TTL_S}");
    Err(invalid("ttl_s", FailureCode::OutOfRange, text))
}

/// Returns the last component of a file's path (RFC 7578, 4.2), truncated if it is long.
fn file_name(given: &str) -> Option<String> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.chars().filter(|letter| !warpgauge_model::is_hidden(*letter)).take(MAX_NAME);
    Some(plain.collect::<String>()).filter(|name| !name.is_empty())
}

/// Reads the elements of an upload. The call blocks.
fn elements(source: TensorSource, max_bytes: u64) -> Result<FileElements, ServiceError> {
    match source {
        TensorSource::File { file, tensor } => {
            let read = warpgauge_shared_tensors::read(file, tensor.as_deref(), max_bytes);
            read.map_err(|error| match error {
                TensorFileError::Invalid { code, message } => invalid("wav_file", code, message),
                error @ TensorFileError::Io(_) => ServiceError::unavailable(error.to_string()),
            })
        }
        TensorSource::Array { data_b64, dtype, shape } => {
            of_array(data_b64, dtype, shape, max_bytes)
        }
    }
}

fn of_array(
    data_b64: Blob,
    dtype: Dtype,
    extents: Option<Vec<u64>>,
    max_bytes: u64,
) -> Result<FileElements, ServiceError> {
    let malformed = |error: &dyn std::error::Error| {
        invalid("data_b64", FailureCode::InvalidBase64, error.to_string())
    };
    let extents = match extents {
        Some(extents) => extents,
        None => {
            let bytes = data_b64.decoded_len().map_err(|error| malformed(&error))?;
            // If the size is not a multiple of the element size, a check below reports it.
            vec![bytes.div_ceil(dtype.size() as u64)]
        }
    };
    let bytes = shape::bytes(&extents, dtype)
        .map_err(|error| invalid("shape", FailureCode::InvalidShape, error.to_string()))?;
    if bytes > max_bytes {
        let text = format!("the tensor has {bytes} bytes; at most {max_bytes} are allowed");
        return Err(invalid("shape", FailureCode::TooMuchData, text));
    }
    let file = tempfile::tempfile().map_err(no_file)?;
    let data = TensorData::raw(data_b64);
    encoding::decode_to_file(&data, dtype, &extents, &file).map_err(|error| {
        match error.is_environment() {
            true => ServiceError::unavailable(error.to_string()),
            false => invalid("data_b64", FailureCode::SizeMismatch, error.to_string()),
        }
    })?;
    let (file, shape) = (Arc::new(file), extents);
    Ok(FileElements { file, offset: 0, bytes, dtype, shape, sample_rate: None })
}

fn no_file(error: io::Error) -> ServiceError {
    ServiceError::unavailable(format!("cannot write a tensor to a temporary file: {error}"))
}

/// Reserved memory. Dropping it cancels the reservation, unless a tensor uses the memory.
pub(super) struct Reserved<'a> {
    holders: &'a dyn TensorHolders,
    pub(super) id: Uuid,
}

impl<'a> Reserved<'a> {
    /// Reserves memory for a tensor. If the options allow it, other tensors are evicted.
    pub(super) async fn new(holders: &'a dyn TensorHolders, new: NewTensor) -> Result<Self, Quota> {
        let (room, evicted) = holders.registry().reserve(new, Instant::now());
        holders.free(evicted).await;
        Ok(Self { holders, id: room? })
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        // This has no effect on a tensor that is already stored.
        self.holders.registry().cancel(self.id);
    }
}

/// Reserves memory, sends the elements to a holder process, and adds the tensor to the registry.
pub(super) async fn hold(
    holders: &dyn TensorHolders,
    new: NewTensor,
    elements: FileElements,
) -> Result<HeldTensor, ServiceError> {
    let place = new.place;
    let room = Reserved::new(holders, new).await;
    let reserved = room.map_err(|Quota(used)| ServiceError::QuotaExceeded {
        message: format!("{used}; delete a tensor, or upload with `evict`"),
        retry_after: ROOM_RETRY,
    })?;
    let id = reserved.id;
    let generation = holders.create(place, id, elements.bytes).await.map_err(not_held)?;
    let at = FreedMemory { place, generation, id };
    let FileElements { file, offset, bytes, .. } = &elements;
    if let Err(error) = holders.fill(at, file, *offset, *bytes).await {
        holders.free(vec![at]).await;
        return Err(not_held(error));
    }
    let held = holders.registry().commit(id, generation, Instant::now());
    drop(reserved);
    held.ok_or_else(|| {
        let reason = "it ended after the last byte".to_owned();
        not_held(HolderError::Died { place, reason })
    })
}

/// Returns the error for a tensor that cannot be stored. No part of the tensor remains.
fn not_held(error: HolderError) -> ServiceError {
    ServiceError::unavailable(format!("{error}; nothing was stored; send it again"))
}
