//! Handlers of the operations on shared tensors, which have the fields of the GPU Tensor Server:
//! [`Tensors`].

use std::sync::Arc;

use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};

use super::file::{TensorFileReply, TensorFormat};
use super::upload::{ArrayUpload, FormUpload};
use crate::error::operation::{KeyErrors, OperationError, TensorErrors, UploadErrors};
use crate::request::parsed_body::ParsedBody;
use crate::response::reply::JsonReply;
use crate::routes::tags::Tag;
use warpgauge_service::{Caller, TensorOptions, TensorService, TensorSource, TensorUpload};
use warpgauge_shared_tensors::{
    ArrayRequest, LeaseReply, SharedTensor, TensorDeleted, TensorHandle, TensorList,
};

/// Operations on shared tensors.
pub(crate) struct Tensors {
    pub(crate) service: Arc<dyn TensorService>,
}

#[OpenApi]
impl Tensors {
    /// Upload a tensor
    ///
    /// Stores a WAV, `.npy` or `.safetensors` file as a tensor of the caller's key, in the memory
    /// of a device or of the host. A separate process holds the memory. A WAV file becomes 32-bit
    /// floats from -1 to 1; if it has several channels, the tensor has a row for each. Returns the
    /// tensor's id and properties.
    #[oai(path = "/tensors", method = "post", operation_id = "upload_tensor", tag = "Tag::Tensors")]
    async fn upload_tensor(
        &self,
        caller: Data<&Caller>,
        /// File, as the field `wav_file` of a form, with the device and further settings.
        request: FormUpload,
    ) -> Result<JsonReply<SharedTensor>, OperationError<UploadErrors>> {
        let FormUpload { upload, share } = request;
        let held = self.service.put_tensor(upload, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&held)?)
    }

    /// Upload an array
    ///
    /// Stores elements that are given in JSON as a tensor, in the same way as `POST /tensors`.
    #[oai(
        path = "/tensors/from-array",
        method = "post",
        operation_id = "tensor_from_array",
        tag = "Tag::Tensors"
    )]
    async fn tensor_from_array(
        &self,
        caller: Data<&Caller>,
        /// Elements with their type and shape.
        request: ArrayUpload,
    ) -> Result<JsonReply<SharedTensor>, OperationError<UploadErrors>> {
        let ParsedBody { value, share, .. } = request.0;
        let ArrayRequest { cuda_device, sample_rate, data_b64, dtype, shape, name, ttl_s, evict } =
            value;
        let upload = TensorUpload {
            source: TensorSource::Array { data_b64, dtype, shape },
            options: TensorOptions { cuda_device, sample_rate, name, ttl_s, evict },
        };
        let held = self.service.put_tensor(upload, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&held)?)
    }

    /// List tensors
    ///
    /// Returns the caller's tensors, oldest first.
    #[oai(path = "/tensors", method = "get", operation_id = "tensors", tag = "Tag::Tensors")]
    async fn tensors(
        &self,
        caller: Data<&Caller>,
    ) -> Result<JsonReply<TensorList>, OperationError<KeyErrors>> {
        Ok(JsonReply::new(&self.service.tensors(&caller).await?)?)
    }

    /// Get a tensor
    ///
    /// Returns the tensor's properties. If a tensor has expired, was evicted, or lost the process
    /// that held it, the error is 410 for some time. For a deleted tensor, or a tensor of another
    /// key, the error is 404.
    #[oai(path = "/tensors/:id", method = "get", operation_id = "tensor", tag = "Tag::Tensors")]
    async fn tensor(
        &self,
        caller: Data<&Caller>,
        /// Id of the tensor.
        id: Path<String>,
    ) -> Result<JsonReply<SharedTensor>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.tensor(&id, &caller).await?)?)
    }

    /// Delete a tensor
    ///
    /// Deletes the tensor. Its id becomes invalid at once. The memory is freed when no process has
    /// the tensor open.
    #[oai(
        path = "/tensors/:id",
        method = "delete",
        operation_id = "delete_tensor",
        tag = "Tag::Tensors"
    )]
    async fn delete_tensor(
        &self,
        caller: Data<&Caller>,
        /// Id of the tensor.
        id: Path<String>,
    ) -> Result<JsonReply<TensorDeleted>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.delete_tensor(&id, &caller).await?)?)
    }

    /// Get a tensor's content
    ///
    /// Returns the current content, including changes by other processes.
    #[oai(
        path = "/tensors/:id/data",
        method = "get",
        operation_id = "tensor_data",
        tag = "Tag::Tensors"
    )]
    async fn tensor_data(
        &self,
        caller: Data<&Caller>,
        /// Id of the tensor.
        id: Path<String>,
        /// Format of the file: `npy`, `safetensors`, or `raw` for the elements alone.
        format: Query<Option<TensorFormat>>,
    ) -> Result<TensorFileReply, OperationError<TensorErrors>> {
        let format = format.0.unwrap_or_default().into();
        Ok(TensorFileReply(self.service.tensor_content(&id, format, &caller).await?))
    }

    /// Open a tensor
    ///
    /// Returns a lease of the tensor, and a handle with which another process on this machine maps its memory. That
    /// process may read and write, so the key needs a separate permission (`server.handle_keys`).
    #[oai(
        path = "/tensors/:id/handle",
        method = "get",
        operation_id = "open_tensor",
        tag = "Tag::Tensors"
    )]
    async fn open_tensor(
        &self,
        caller: Data<&Caller>,
        /// Id of the tensor.
        id: Path<String>,
    ) -> Result<JsonReply<TensorHandle>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.open_tensor(&id, &caller).await?)?)
    }

    /// Prolong a lease
    ///
    /// Renews the lease. A process that has a tensor open must call this operation regularly, or
    /// its lease expires. The memory of a deleted tensor is freed when its last lease ends.
    #[oai(
        path = "/tensor-leases/:id",
        method = "put",
        operation_id = "renew_tensor_lease",
        tag = "Tag::Tensors"
    )]
    async fn renew_lease(
        &self,
        caller: Data<&Caller>,
        /// Id of the lease, which was returned with the handle.
        id: Path<String>,
    ) -> Result<JsonReply<LeaseReply>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.renew_lease(&id, &caller).await?)?)
    }

    /// Release a lease
    ///
    /// Ends the lease. The process must have unmapped the tensor's memory.
    #[oai(
        path = "/tensor-leases/:id",
        method = "delete",
        operation_id = "release_tensor_lease",
        tag = "Tag::Tensors"
    )]
    async fn release_lease(
        &self,
        caller: Data<&Caller>,
        /// Id of the lease, which was returned with the handle.
        id: Path<String>,
    ) -> Result<JsonReply<LeaseReply>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.release_lease(&id, &caller).await?)?)
    }
}
