//! Matrices of the service without devices: there is one, which cannot be changed.

use std::sync::Arc;

use futures_util::FutureExt;
use warpgauge_service::{Answer, Caller, MatrixService, ServiceError, Upload};
use warpgauge_sparse::Csr;
use warpgauge_spmv::{MatrixShape, MatrixSummary};

use super::FakeService;

const NAME: &str = "laplacian.mtx";

fn summary() -> MatrixSummary {
    MatrixSummary {
        filename: NAME.to_owned(),
        shape: MatrixShape::default(),
        blake3: "0".repeat(64),
        bytes: 1,
        uploaded_at: 1_767_225_600.0,
    }
}

fn found(name: &str) -> Result<(), ServiceError> {
    match name == NAME {
        true => Ok(()),
        false => Err(ServiceError::NoSuchMatrix(name.to_owned())),
    }
}

impl MatrixService for FakeService {
    fn put_matrix<'a>(&'a self, upload: Upload, _: &'a Caller) -> Answer<'a, MatrixSummary> {
        async move { Ok(MatrixSummary { filename: upload.name, ..summary() }) }.boxed()
    }

    fn matrices<'a>(&'a self, _: &'a Caller) -> Answer<'a, Vec<MatrixSummary>> {
        async { Ok(vec![summary()]) }.boxed()
    }

    fn matrix<'a>(&'a self, name: &'a str, _: &'a Caller) -> Answer<'a, Arc<Csr>> {
        async move {
            found(name)?;
            let csr = Csr::new(1, vec![0, 1], vec![0], vec![1.0]).expect("one entry");
            Ok(Arc::new(csr))
        }
        .boxed()
    }

    fn remove_matrix<'a>(&'a self, name: &'a str, _: &'a Caller) -> Answer<'a, ()> {
        async move { found(name) }.boxed()
    }
}
