//! Shared tensors to which requests refer by name. The service copies their content into a request
//! when the request arrives. So a job that waits or is retried keeps this content, even if the
//! tensor changes. Some copies stay on the device ([`super::on_device`]).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use tokio::sync::mpsc;

use super::on_device::Copies;
use super::pin::Pin;
use super::{SharedTensors, of_held, parsed, unknown};
use crate::error::{self, ServiceError};
use crate::settings::ProcessRole;
use crate::turns::in_turn;
use warpgauge_contract::{
    CopiedTensor, MAX_TENSORS, NamedTensor, NamesTensors, SweepRequest, TensorNames, TensorOrigin,
    TensorUsed,
};
use warpgauge_model::{FailureCode, Requirements};
use warpgauge_shared_tensors::{HeldTensor, TensorHolders};
use warpgauge_tensor::Blob;
use warpgauge_turns::PoolPermit;

/// Number of pieces of a tensor that are in memory between its holder and the disk.
const PIECES: usize = 1;

/// Maximum length of a text about a tensor that a caller sends, bytes.
const MAX_TEXT_BYTES: usize = 256;

/// A permit to copy tensors; `None` for a request that refers to no tensor.
pub(crate) type CopyTurn = Option<PoolPermit>;

impl SharedTensors {
    /// Returns the request with the content of its named tensors, and the permit that it took.
    /// `left` is the number of bytes that may still be copied for the request. Matrices count
    /// against the same number.
    ///
    /// # Errors
    ///
    /// A tensor does not exist, or does not fit the field that refers to it.
    pub(crate) async fn with_tensors<R: NamesTensors + Send>(
        &self,
        mut request: R,
        owner: &str,
        left: &mut u64,
        copies: Copies,
    ) -> Result<(R, CopyTurn), ServiceError> {
        said_by_caller(request.tensors_used_mut())?;
        let names = request.tensor_names();
        let turn = self.copy_turn(&names, owner).await?;
        if turn.is_none() {
            return Ok((request, turn));
        }
        let mut staying = None;
        for (name, NamedTensor { path, places }) in names {
            let at = |error| named(&path, error);
            let order = request.runs_on_device(&name, places);
            let stays =
                order.filter(|_| copies == Copies::MayStay).map(|order| (order, &mut staying));
            let tensor = self.copied(&name, &path, places, owner, left, stays).await.map_err(at)?;
            request.put_tensor(&name, &tensor).map_err(|error| error::invalid(vec![error]))?;
            request.tensors_used_mut().push(tensor.used);
        }
        Ok((request, turn))
    }

    /// Returns a sweep with the content of the tensors to which its points refer.
    pub(crate) async fn sweep_with_tensors(
        &self,
        mut request: SweepRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<(SweepRequest, CopyTurn), ServiceError> {
        if !request.tensors.is_empty() {
            let message = "is set by the service: leave it out";
            return Err(super::invalid("tensors", FailureCode::InvalidValue, message));
        }
        let limits = self.contract_limits.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let names = warpgauge_executor::tensors_of_sweep(&limits, &request)?;
            Ok::<_, ServiceError>((names, request))
        });
        let looked = looking.await.map_err(|error| error::internal("planning a sweep", &error))?;
        let names;
        (names, request) = looked?;
        let turn = self.copy_turn(&names, owner).await?;
        if turn.is_none() {
            return Ok((request, turn));
        }
        let mut kept = BTreeMap::new();
        for (name, NamedTensor { path, .. }) in names {
            let tensor = self.copied(&name, &path, 1, owner, left, None).await;
            kept.insert(name, tensor.map_err(|error| named(&path, error))?);
        }
        request.tensors = kept;
        Ok((request, turn))
    }

    /// Waits for a permit if there are tensors to copy. Commands hold no tensors; if a command's
    /// contract refers to one, the validation rejects it later.
    async fn copy_turn(&self, names: &TensorNames, owner: &str) -> Result<CopyTurn, ServiceError> {
        if names.is_empty() || matches!(self.role, ProcessRole::Command) {
            return Ok(None);
        }
        if let Some(NamedTensor { path, .. }) = names.values().nth(MAX_TENSORS) {
            let message = format!(
                "the request names {} shared tensors; at most {MAX_TENSORS} are allowed",
                names.len()
            );
            return Err(super::invalid(path, FailureCode::TooLarge, message));
        }
        in_turn(&self.turns, owner).await.map(Some)
    }

    /// Copies a tensor that is used in `places` places. `stays` is set if the copy may stay on its
    /// device. It then contains the requirements on that device, and the device of earlier copies.
    async fn copied(
        &self,
        id: &str,
        path: &str,
        places: u64,
        owner: &str,
        left: &mut u64,
        stays: Option<(&Requirements, &mut Option<u32>)>,
    ) -> Result<CopiedTensor, ServiceError> {
        let pinned = self.holders.registry().pin(parsed(id)?, owner, Instant::now());
        let (lease, held) = pinned.map_err(|why| unknown(id, why))?;
        let _pin = Pin::of(&self.holders, owner, lease);
        let tensor = &held.tensor;
        let bytes = tensor.bytes.saturating_mul(places);
        if bytes > *left {
            let message = format!(
                "the shared tensor has {} bytes and is named {places} times; the tensors and arrays that a \
                 request names may have {} bytes together (limits.max_decoded_bytes), and {left} are left",
                tensor.bytes, self.contract_limits.max_decoded_bytes
            );
            return Err(super::invalid(path, FailureCode::TooMuchData, message));
        }
        let stayed = match stays {
            Some((order, staying)) => self.copies.copied(&held, order, staying).await,
            None => None,
        };
        let (content, blake3, device) = match stayed {
            Some(content) => (content, None, Some(tensor.place.to_string())),
            None => {
                let (content, blake3) = copy(self.holders.as_ref(), &held).await?;
                (content, Some(blake3), None)
            }
        };
        *left -= bytes;
        let used = TensorUsed {
            tensor_id: held.id.to_string(),
            origin: TensorOrigin::Shared,
            blake3,
            device,
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
        };
        Ok(CopiedTensor { used, content })
    }
}

/// Copies the current elements to a file, and returns their hash. Only a few pieces are in memory
/// at the same time.
async fn copy(
    holders: &dyn TensorHolders,
    held: &HeldTensor,
) -> Result<(Blob, String), ServiceError> {
    let bytes = held.tensor.bytes;
    let (to, mut from) = mpsc::channel::<Vec<u8>>(PIECES);
    let writing = tokio::task::spawn_blocking(move || {
        let mut hasher = blake3::Hasher::new();
        let blob = Blob::written(bytes, |out: &mut dyn Write| {
            while let Some(piece) = from.blocking_recv() {
                hasher.update(&piece);
                out.write_all(&piece)?;
            }
            Ok(())
        })?;
        Ok::<_, io::Error>((blob, hasher.finalize().to_hex().to_string()))
    });
    let mut offset = 0;
    while offset < bytes {
        let read = holders.read(held, offset).await;
        let piece = read.map_err(|error| of_held(&held.id.to_string(), error))?;
        offset += piece.len() as u64;
        if to.send(piece).await.is_err() {
            // The writer failed early; its error is reported below.
            break;
        }
    }
    drop(to);
    let written = writing.await.map_err(|error| error::internal("copying a tensor", &error))?;
    written.map_err(|error| {
        ServiceError::unavailable(format!(
            "cannot write the copy of a shared tensor to a temporary file: {error}"
        ))
    })
}

/// Marks the tensors in an incoming request as unverified statements of the caller, and limits
/// their size.
fn said_by_caller(tensors: &mut [TensorUsed]) -> Result<(), ServiceError> {
    let short = |used: &TensorUsed| {
        let texts = [Some(&used.tensor_id), used.blake3.as_ref(), used.device.as_ref()];
        let longest = texts.into_iter().flatten().map(String::len).max();
        longest.unwrap_or_default().max(used.shape.len()) <= MAX_TEXT_BYTES
    };
    if tensors.len() > MAX_TENSORS || !tensors.iter().all(short) {
        let message = format!(
            "lists more than {MAX_TENSORS} shared tensors, or contains a text of more than {MAX_TEXT_BYTES} \
             bytes"
        );
        return Err(super::invalid("tensors", FailureCode::InvalidValue, message));
    }
    for used in tensors {
        used.origin = TensorOrigin::Given;
    }
    Ok(())
}

/// Adds to an error the path of the field that refers to the tensor.
fn named(path: &str, error: ServiceError) -> ServiceError {
    match error {
        error @ (ServiceError::NoSuchTensor(_)
        | ServiceError::TensorGone { .. }
        | ServiceError::QuotaExceeded { .. }) => {
            ServiceError::Named { path: path.to_owned(), error: Box::new(error) }
        }
        other => other,
    }
}
