//! Shared tensors: the operations of the GPU Tensor Server.

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

/// The operations on shared tensors over a service.
pub(crate) struct Tensors {
    pub(crate) service: Arc<dyn TensorService>,
}

#[OpenApi]
impl Tensors {
    /// Upload a tensor
    ///
    /// A WAV file (32-bit floats from -1 to 1 come of it, a row for each of several channels), a `.npy`
    /// file or a `.safetensors` file. Its content is held in the memory of a device, or of the host, by a
    /// process of its own, for the caller's key.
    #[oai(path = "/tensors", method = "post", operation_id = "upload_tensor", tag = "Tag::Tensors")]
    async fn upload_tensor(
        &self,
        caller: Data<&Caller>,
        /// The file, as field `wav_file` of a form, and where it is to be.
        request: FormUpload,
    ) -> Result<JsonReply<SharedTensor>, OperationError<UploadErrors>> {
        let FormUpload { upload, share } = request;
        let held = self.service.put_tensor(upload, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&held)?)
    }

    /// Upload an array
    ///
    /// As `/tensors`, with the elements in JSON.
    #[oai(
        path = "/tensors/from-array",
        method = "post",
        operation_id = "tensor_from_array",
        tag = "Tag::Tensors"
    )]
    async fn tensor_from_array(
        &self,
        caller: Data<&Caller>,
        /// Elements, their type and their shape.
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
    /// The caller's own, the oldest first.
    #[oai(path = "/tensors", method = "get", operation_id = "tensors", tag = "Tag::Tensors")]
    async fn tensors(
        &self,
        caller: Data<&Caller>,
    ) -> Result<JsonReply<TensorList>, OperationError<KeyErrors>> {
        Ok(JsonReply::new(&self.service.tensors(&caller).await?)?)
    }

    /// Get a tensor
    ///
    /// What is known of it. One that expired, was evicted or whose process died is answered with 410 for a
    /// while; one that was deleted, or is another key's, with 404.
    #[oai(path = "/tensors/:id", method = "get", operation_id = "tensor", tag = "Tag::Tensors")]
    async fn tensor(
        &self,
        caller: Data<&Caller>,
        /// The tensor's id.
        id: Path<String>,
    ) -> Result<JsonReply<SharedTensor>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.tensor(&id, &caller).await?)?)
    }

    /// Delete a tensor
    ///
    /// Its id is gone at once; its memory stays until no process has it open.
    #[oai(
        path = "/tensors/:id",
        method = "delete",
        operation_id = "delete_tensor",
        tag = "Tag::Tensors"
    )]
    async fn delete_tensor(
        &self,
        caller: Data<&Caller>,
        /// The tensor's id.
        id: Path<String>,
    ) -> Result<JsonReply<TensorDeleted>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.delete_tensor(&id, &caller).await?)?)
    }

    /// Get a tensor's content
    ///
    /// As it is at this moment, with what others changed in it.
    #[oai(
        path = "/tensors/:id/data",
        method = "get",
        operation_id = "tensor_data",
        tag = "Tag::Tensors"
    )]
    async fn tensor_data(
        &self,
        caller: Data<&Caller>,
        /// The tensor's id.
        id: Path<String>,
        /// Which file: `npy`, `safetensors`, or `raw` for the elements alone.
        format: Query<Option<TensorFormat>>,
    ) -> Result<TensorFileReply, OperationError<TensorErrors>> {
        let format = format.0.unwrap_or_default().into();
        Ok(TensorFileReply(self.service.tensor_content(&id, format, &caller).await?))
    }

    /// Open a tensor
    ///
    /// What another process on this machine needs to map the tensor's memory, and a lease of it. That
    /// process may read and write; so the key needs a right for this (`server.handle_keys`).
    #[oai(
        path = "/tensors/:id/handle",
        method = "get",
        operation_id = "open_tensor",
        tag = "Tag::Tensors"
    )]
    async fn open_tensor(
        &self,
        caller: Data<&Caller>,
        /// The tensor's id.
        id: Path<String>,
    ) -> Result<JsonReply<TensorHandle>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.open_tensor(&id, &caller).await?)?)
    }

    /// Prolong a lease
    ///
    /// The heartbeat of a process that has a tensor open. A lease without one ends, and with the last lease of a
    /// deleted tensor its memory goes.
    #[oai(
        path = "/tensor-leases/:id",
        method = "put",
        operation_id = "renew_tensor_lease",
        tag = "Tag::Tensors"
    )]
    async fn renew_lease(
        &self,
        caller: Data<&Caller>,
        /// The lease's id, which came with the handle.
        id: Path<String>,
    ) -> Result<JsonReply<LeaseReply>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.renew_lease(&id, &caller).await?)?)
    }

    /// Give a lease back
    ///
    /// When the tensor's memory is not mapped any more.
    #[oai(
        path = "/tensor-leases/:id",
        method = "delete",
        operation_id = "release_tensor_lease",
        tag = "Tag::Tensors"
    )]
    async fn release_lease(
        &self,
        caller: Data<&Caller>,
        /// The lease's id, which came with the handle.
        id: Path<String>,
    ) -> Result<JsonReply<LeaseReply>, OperationError<TensorErrors>> {
        Ok(JsonReply::new(&self.service.release_lease(&id, &caller).await?)?)
    }
}
