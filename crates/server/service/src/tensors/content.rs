//! Downloads of tensors. The content is streamed in the pieces that the holder process returns. The
//! main type is [`TensorContent`].

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::{invalid, of_held, parsed, unknown};
use crate::error::ServiceError;
use crate::submission::Caller;
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::{HeldTensor, TensorHolders, TransferFormat};

/// A tensor as a file.
pub struct TensorContent {
    pub id: String,
    pub format: TransferFormat,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// Content of the file. It ends with an error if the tensor is deleted in the meantime.
    pub stream: BoxStream<'static, io::Result<Bytes>>,
}

pub(super) async fn content(
    holders: &Arc<dyn TensorHolders>,
    id: &str,
    format: TransferFormat,
    caller: &Caller,
) -> Result<TensorContent, ServiceError> {
    let used = holders.registry().used(parsed(id)?, &caller.owner, Instant::now());
    let held = used.map_err(|why| unknown(id, why))?;
    let tensor = &held.tensor;
    let head = format
        .head(tensor.dtype, &tensor.shape, tensor.bytes)
        .map_err(|error| invalid("format", FailureCode::DtypeMismatch, error.to_string()))?;
    let bytes = head.len() as u64 + tensor.bytes;
    // The first read precedes the answer. So a tensor that cannot be read leads to an error, not to
    // a truncated answer.
    let first = holders.read(&held, 0).await.map_err(|error| of_held(id, error))?;
    let offset = first.len() as u64;
    let beginning = stream::iter([Ok(Bytes::from(head)), Ok(Bytes::from(first))]);
    let stream = beginning.chain(rest(Arc::clone(holders), held, offset)).boxed();
    Ok(TensorContent { id: id.to_owned(), format, bytes, stream })
}

/// Streams the content from `offset` on.
fn rest(
    holders: Arc<dyn TensorHolders>,
    held: HeldTensor,
    offset: u64,
) -> impl futures_util::Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold((holders, held, offset), |(holders, held, offset)| async move {
        if offset >= held.tensor.bytes {
            return Ok(None);
        }
        let piece = holders.read(&held, offset).await.map_err(io::Error::other)?;
        let next = offset + piece.len() as u64;
        Ok(Some((Bytes::from(piece), (holders, held, next))))
    })
}
