//! Sparse matrices that callers keep here: uploaded, parsed once, and found by name.

mod files;
mod products;
mod sources;
mod uploads;

use std::io::Read;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use futures_util::FutureExt;

pub use files::{MatrixFile, MatrixFileFormat};
use uploads::{Uploads, parsed};

use crate::error::{self, Problem, ServiceError, refused};
use crate::settings;
use crate::submission::{Caller, ServiceFuture};
use crate::turns;
use warpgauge_config::Config;
use warpgauge_contract::{ContractLimits, EvaluateRequest};
use warpgauge_model::FailureCode;
use warpgauge_sparse::ReadLimits;
use warpgauge_sparse::spmv::{
    MatrixShape, MatrixSummary, SpmvRequest, StoredSpmvRequest, UploadProgress, check_matrix_name,
};
use warpgauge_store::{MatrixRow, NewMatrix, Store};
use warpgauge_turns::Pool;

/// Bytes that are read at once of what was uploaded.
const READ_BYTES: usize = 1 << 20;

/// Matrices that are worked on at once, of all callers: each may take what a key may have.
const AT_ONCE: usize = 2;

/// A Matrix Market or SPASM file that came.
pub struct Upload {
    /// Name of the matrix.
    pub name: String,
    /// The file. Read on a thread that may block.
    pub content: Box<dyn Read + Send>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A product that is asked for by itself.
#[derive(Debug)]
pub enum WantedProduct {
    /// Of a matrix that comes with the request.
    Given(Box<SpmvRequest>),
    /// Of one that has a name: the caller's, or one that is generated.
    Stored(Box<StoredSpmvRequest>),
}

/// Rows, columns and non-zeros of a matrix.
pub type Extents = (u32, u32, u32);

/// Matrices of callers. Each sees its own.
pub trait MatrixService: Send + Sync {
    /// Reads a file and keeps the matrix in place of the one of its name.
    fn put_matrix<'a>(
        &'a self,
        upload: Upload,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, MatrixSummary>;

    /// The caller's matrices, by name.
    fn matrices<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, Vec<MatrixSummary>>;

    /// The caller's uploads that are being worked on.
    fn matrix_uploads(&self, caller: &Caller) -> Vec<UploadProgress>;

    /// The contract of a product. So many matrices are worked on at once.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] where there is none of its name.
    fn contract_of_product<'a>(
        &'a self,
        wanted: WantedProduct,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, (EvaluateRequest, Extents)>;

    /// A matrix as a file.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] where there is none.
    fn matrix_file<'a>(
        &'a self,
        name: &'a str,
        format: MatrixFileFormat,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, MatrixFile>;

    /// Removes one.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] where there is none.
    fn remove_matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, ()>;
}

/// The matrices of a store.
pub(super) struct Matrices {
    store: Store,
    /// Permits of those that work on matrices.
    turns: Pool,
    /// Uploads that are being worked on.
    uploads: Uploads,
    limits: ContractLimits,
    max_bytes_per_key: u64,
}

impl Matrices {
    /// The matrices of this store, within the limits of the configuration.
    pub(super) fn new(store: Store, config: &Config) -> Self {
        Self {
            store,
            turns: turns::pool(AT_ONCE, config),
            uploads: Uploads::default(),
            limits: settings::limits(config),
            max_bytes_per_key: config.limits.max_matrix_bytes_per_key,
        }
    }
}

impl MatrixService for Matrices {
    fn put_matrix<'a>(
        &'a self,
        upload: Upload,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, MatrixSummary> {
        async move {
            let (name, owner) = (upload.name.clone(), caller.owner.clone());
            check_matrix_name(&name).map_err(|message| invalid("filename", message))?;
            let max_bytes = self.max_bytes_per_key;
            let limits = match max_bytes {
                0 => ReadLimits::default(),
                max_bytes => ReadLimits { max_bytes },
            };
            let ticket = self.uploads.begin(&owner, &name, upload.bytes);
            let turn = self.turn(&owner).await?;
            let read = turn.aside(move || Ok((parsed(upload, &limits, &ticket)?, ticket)));
            // It is told of until it is kept.
            let (parsed, _ticket) = read.await?;
            let detail = serde_json::to_vec(&parsed.shape)
                .map_err(|error| error::internal("describing a matrix", &error))?;
            let hash = parsed.hash;
            let new = NewMatrix { owner, name: name.clone(), hash, detail, max_bytes };
            self.store.matrices().put(new, Arc::new(parsed.file)).await.map_err(refused)?;
            let all = self.matrices(caller).await?;
            // Another upload may have removed it meanwhile.
            all.into_iter().find(|one| one.filename == name).ok_or(ServiceError::NoSuchMatrix(name))
        }
        .boxed()
    }

    fn matrices<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, Vec<MatrixSummary>> {
        async move {
            let rows = self.store.matrices().list(&caller.owner).await.map_err(refused)?;
            rows.into_iter().map(summary).collect()
        }
        .boxed()
    }

    fn matrix_uploads(&self, caller: &Caller) -> Vec<UploadProgress> {
        self.uploads.of(&caller.owner)
    }

    fn contract_of_product<'a>(
        &'a self,
        wanted: WantedProduct,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, (EvaluateRequest, Extents)> {
        products::contract_of(self, wanted, &caller.owner).boxed()
    }

    fn matrix_file<'a>(
        &'a self,
        name: &'a str,
        format: MatrixFileFormat,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, MatrixFile> {
        files::file_of(self, name, format, &caller.owner).boxed()
    }

    fn remove_matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, ()> {
        async move {
            check_matrix_name(name).map_err(|message| invalid("name", message))?;
            match self.store.matrices().delete(&caller.owner, name).await.map_err(refused)? {
                true => Ok(()),
                false => Err(ServiceError::NoSuchMatrix(name.to_owned())),
            }
        }
        .boxed()
    }
}

fn invalid(path: &str, message: String) -> ServiceError {
    let path = path.to_owned();
    ServiceError::invalid(vec![Problem { path, code: FailureCode::InvalidData, message }])
}

/// Does what takes long off the async threads.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error::internal("working on a matrix", &error))?
}

fn summary(row: MatrixRow) -> Result<MatrixSummary, ServiceError> {
    let shape: MatrixShape = serde_json::from_slice(&row.detail)
        .map_err(|error| error::internal("reading what is known of a matrix", &error))?;
    let age = row.created_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(MatrixSummary {
        filename: row.name,
        shape,
        blake3: row.hash,
        bytes: row.bytes,
        uploaded_at: age.as_secs_f64(),
    })
}
