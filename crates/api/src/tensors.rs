//! Shared tensors: the operations of the GPU Tensor Server.

use std::sync::Arc;

use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};

use super::failure::{Fails, TakesBody, TakesNothing, TakesTensor};
use super::payload::{Contract, Reply};
use super::tags::Tag;
use super::tensor_data::{TensorFile, TensorFormat};
use super::tensor_upload::FormUpload;
use warpgauge_service::{Caller, EvaluationService, TensorOptions, TensorSource, TensorUpload};
use warpgauge_tensors::{
    ArrayRequest, LeaseReply, SharedTensor, TensorDeleted, TensorHandle, TensorList,
};

/// The operations on shared tensors over a service.
pub(super) struct Tensors {
    pub(super) service: Arc<dyn EvaluationService>,
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
    ) -> Result<Reply<SharedTensor>, Fails<TakesBody>> {
        let FormUpload { upload, share } = request;
        let held = self.service.put_tensor(upload, &caller).await?;
        drop(share);
        Ok(Reply::new(&held)?)
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
        request: Contract<ArrayRequest>,
    ) -> Result<Reply<SharedTensor>, Fails<TakesBody>> {
        let Contract { value, share } = request;
        let ArrayRequest { cuda_device, sample_rate, data_b64, dtype, shape, name, ttl_s, evict } =
            value;
        let upload = TensorUpload {
            source: TensorSource::Array { data_b64, dtype, shape },
            options: TensorOptions { cuda_device, sample_rate, name, ttl_s, evict },
        };
        let held = self.service.put_tensor(upload, &caller).await?;
        drop(share);
        Ok(Reply::new(&held)?)
    }

    /// List tensors
    ///
    /// The caller's own, the oldest first.
    #[oai(path = "/tensors", method = "get", operation_id = "tensors", tag = "Tag::Tensors")]
    async fn tensors(
        &self,
        caller: Data<&Caller>,
    ) -> Result<Reply<TensorList>, Fails<TakesNothing>> {
        Ok(Reply::new(&self.service.tensors(&caller).await?)?)
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
    ) -> Result<Reply<SharedTensor>, Fails<TakesTensor>> {
        Ok(Reply::new(&self.service.tensor(&id, &caller).await?)?)
    }

    /// Delete a tensor
    ///
    /// Its id is gone at once; its memory stays until nobody has it open.
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
    ) -> Result<Reply<TensorDeleted>, Fails<TakesTensor>> {
        Ok(Reply::new(&self.service.delete_tensor(&id, &caller).await?)?)
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
    ) -> Result<TensorFile, Fails<TakesTensor>> {
        let format = format.0.unwrap_or_default().into();
        Ok(TensorFile(self.service.tensor_content(&id, format, &caller).await?))
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
    ) -> Result<Reply<TensorHandle>, Fails<TakesTensor>> {
        Ok(Reply::new(&self.service.open_tensor(&id, &caller).await?)?)
    }

    /// Prolong a lease
    ///
    /// The heartbeat of whoever has a tensor open. A lease without one ends, and with the last lease of a
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
    ) -> Result<Reply<LeaseReply>, Fails<TakesTensor>> {
        Ok(Reply::new(&self.service.renew_lease(&id, &caller).await?)?)
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
    ) -> Result<Reply<LeaseReply>, Fails<TakesTensor>> {
        Ok(Reply::new(&self.service.release_lease(&id, &caller).await?)?)
    }
}
