//! Shared tensors of the service without devices: one, whose id is known.

use futures_util::{FutureExt, StreamExt};
use warpgauge_service::{
    Caller, ServiceError, ServiceFuture, TensorContent, TensorService, TensorUpload,
};
use warpgauge_shared_tensors::{
    LeaseReply, SharedTensor, TensorDeleted, TensorHandle, TensorList, TransferFormat,
};

/// The id of the tensor, and of its lease.
const ID: &str = "0197f000-0000-7000-8000-000000000001";

const TENSOR: &str = include_str!("../../../openapi/examples/tensor.json");

const HANDLE: &str = include_str!("../../../openapi/examples/tensor_handle.json");

fn tensor() -> SharedTensor {
    serde_json::from_str(TENSOR).expect("a tensor")
}

fn found(id: &str) -> Result<(), ServiceError> {
    match id == ID {
        true => Ok(()),
        false => Err(ServiceError::NoSuchTensor(id.to_owned())),
    }
}

fn lease(id: &str, lease_s: f64) -> Result<LeaseReply, ServiceError> {
    match id == ID {
        true => Ok(LeaseReply { lease_id: id.to_owned(), tensor_id: ID.to_owned(), lease_s }),
        false => Err(ServiceError::NoSuchLease(id.to_owned())),
    }
}

/// See the module.
pub struct FakeTensors;

impl TensorService for FakeTensors {
    fn put_tensor<'a>(&'a self, _: TensorUpload, _: &'a Caller) -> ServiceFuture<'a, SharedTensor> {
        async { Ok(tensor()) }.boxed()
    }

    fn tensors<'a>(&'a self, _: &'a Caller) -> ServiceFuture<'a, TensorList> {
        let tensors = vec![tensor()];
        async { Ok(TensorList { count: 1, tensors, held_bytes: 2 << 20 }) }.boxed()
    }

    fn tensor<'a>(&'a self, id: &'a str, _: &'a Caller) -> ServiceFuture<'a, SharedTensor> {
        async move { found(id).map(|()| tensor()) }.boxed()
    }

    fn tensor_content<'a>(
        &'a self,
        id: &'a str,
        format: TransferFormat,
        _: &'a Caller,
    ) -> ServiceFuture<'a, TensorContent> {
        async move {
            found(id)?;
            let stream = futures_util::stream::iter([Ok(vec![0; 16].into())]).boxed();
            Ok(TensorContent { id: id.to_owned(), format, bytes: 16, stream })
        }
        .boxed()
    }

    fn open_tensor<'a>(&'a self, id: &'a str, _: &'a Caller) -> ServiceFuture<'a, TensorHandle> {
        async move {
            found(id)?;
            Ok(serde_json::from_str(HANDLE).expect("a handle"))
        }
        .boxed()
    }

    fn delete_tensor<'a>(&'a self, id: &'a str, _: &'a Caller) -> ServiceFuture<'a, TensorDeleted> {
        async move {
            found(id)?;
            let message = "Tensor deleted".to_owned();
            Ok(TensorDeleted { tensor_id: id.to_owned(), message, leases: 0 })
        }
        .boxed()
    }

    fn renew_lease<'a>(&'a self, id: &'a str, _: &'a Caller) -> ServiceFuture<'a, LeaseReply> {
        async move { lease(id, 60.0) }.boxed()
    }

    fn release_lease<'a>(&'a self, id: &'a str, _: &'a Caller) -> ServiceFuture<'a, LeaseReply> {
        async move { lease(id, 0.0) }.boxed()
    }
}
