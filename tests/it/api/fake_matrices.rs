//! Matrices of the service without devices: there is one, which cannot be changed.

use std::io::{Seek, Write};

use futures_util::FutureExt;
use warpgauge_contract::EvaluateRequest;
use warpgauge_service::{
    Caller, Extents, MatrixFile, MatrixFileFormat, MatrixService, ServiceError, ServiceFuture,
    Upload, WantedProduct,
};
use warpgauge_sparse::spmv::{MatrixShape, MatrixSummary, UploadProgress, UploadState};

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

/// See the module.
pub struct FakeMatrices;

impl MatrixService for FakeMatrices {
    fn put_matrix<'a>(&'a self, upload: Upload, _: &'a Caller) -> ServiceFuture<'a, MatrixSummary> {
        async move { Ok(MatrixSummary { filename: upload.name, ..summary() }) }.boxed()
    }

    fn matrices<'a>(&'a self, _: &'a Caller) -> ServiceFuture<'a, Vec<MatrixSummary>> {
        async { Ok(vec![summary()]) }.boxed()
    }

    fn matrix_uploads(&self, _: &Caller) -> Vec<UploadProgress> {
        let uploading = |filename: &str| UploadProgress {
            filename: filename.to_owned(),
            state: UploadState::Reading,
            bytes_read: 8 << 20,
            bytes_total: 20 << 20,
        };
        vec![uploading(NAME), uploading("other.mtx")]
    }

    fn contract_of_product<'a>(
        &'a self,
        wanted: WantedProduct,
        _: &'a Caller,
    ) -> ServiceFuture<'a, (EvaluateRequest, Extents)> {
        async move {
            if let WantedProduct::Stored(request) = &wanted {
                found(&request.mtx_filename)?;
            }
            let contract = serde_json::from_str(include_str!("contract.json")).expect("a contract");
            Ok((contract, (1, 1, 1)))
        }
        .boxed()
    }

    fn matrix_file<'a>(
        &'a self,
        name: &'a str,
        format: MatrixFileFormat,
        _: &'a Caller,
    ) -> ServiceFuture<'a, MatrixFile> {
        async move {
            found(name)?;
            let mut content = tempfile::tempfile().expect("a temporary file");
            content.write_all(b"matrix").expect("room");
            content.rewind().expect("a file");
            let file_name = format!("laplacian.{}", format.extension());
            Ok(MatrixFile { file_name, content, bytes: 6 })
        }
        .boxed()
    }

    fn remove_matrix<'a>(&'a self, name: &'a str, _: &'a Caller) -> ServiceFuture<'a, ()> {
        async move { found(name) }.boxed()
    }
}
