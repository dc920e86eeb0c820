//! Sparse matrices that callers upload. The service parses each once and stores it under a name.
//! The main type is [`Matrices`].

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

/// Number of bytes that one read of an upload requests.
const READ_BYTES: usize = 1 << 20;

/// Maximum number of matrices in use at the same time, for all callers. Each may need as much
/// memory as the limit for a key's stored matrices.
const AT_ONCE: usize = 2;

/// A Matrix Market or SPASM file that a caller uploads.
pub struct Upload {
    /// Name of the matrix.
    pub name: String,
    /// Reader of the file, for use on a blocking thread.
    pub content: Box<dyn Read + Send>,
    /// Size of the file, bytes.
    pub bytes: u64,
}

/// A sparse product that a request asks for.
#[derive(Debug)]
pub enum WantedProduct {
    /// A product with a matrix that the request contains.
    Given(Box<SpmvRequest>),
    /// A product with a named matrix: a stored matrix of the caller, or a generated one.
    Stored(Box<StoredSpmvRequest>),
}

/// Number of rows, columns and non-zeros of a matrix.
pub type Extents = (u32, u32, u32);

/// Access to the matrices of callers. A caller sees only its matrices.
pub trait MatrixService: Send + Sync {
    /// Reads a file and stores the matrix. A matrix of the same name is replaced.
    fn put_matrix<'a>(
        &'a self,
        upload: Upload,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, MatrixSummary>;

    /// Returns the caller's matrices, sorted by name.
    fn matrices<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, Vec<MatrixSummary>>;

    /// Returns the caller's uploads in progress.
    fn matrix_uploads(&self, caller: &Caller) -> Vec<UploadProgress>;

    /// Returns the contract that computes a product. The number of matrices in use at the same time
    /// is limited.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] if there is no matrix with this name.
    fn contract_of_product<'a>(
        &'a self,
        wanted: WantedProduct,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, (EvaluateRequest, Extents)>;

    /// Returns a matrix as a file.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] if there is no such matrix.
    fn matrix_file<'a>(
        &'a self,
        name: &'a str,
        format: MatrixFileFormat,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, MatrixFile>;

    /// Removes a matrix.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] if there is no such matrix.
    fn remove_matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, ()>;
}

/// The matrices in a store.
pub(super) struct Matrices {
    store: Store,
    /// Permits to work on matrices.
    turns: Pool,
    /// Uploads in progress.
    uploads: Uploads,
    limits: ContractLimits,
    max_bytes_per_key: u64,
}

impl Matrices {
    /// Creates the matrices of this store, with the limits in the configuration.
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
            // The ticket lists the upload until the matrix is stored.
            let (parsed, _ticket) = read.await?;
            let detail = serde_json::to_vec(&parsed.shape)
                .map_err(|error| error::internal("describing a matrix", &error))?;
            let hash = parsed.hash;
            let new = NewMatrix { owner, name: name.clone(), hash, detail, max_bytes };
            self.store.matrices().put(new, Arc::new(parsed.file)).await.map_err(refused)?;
            let all = self.matrices(caller).await?;
            // A concurrent request may have removed the matrix.
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

/// Runs slow work outside the async threads.
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
