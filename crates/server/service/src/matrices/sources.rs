//! Matrices to which requests refer by name. The service copies them into a request when the
//! request arrives, so later uploads do not affect a waiting job.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::Arc;

use super::{Matrices, READ_BYTES, aside};
use crate::error::{self, Problem, ServiceError, refused};
use crate::turns::in_turn;
use warpgauge_contract::{KeptMatrix, MAX_MATRICES, MatrixOrigin, MatrixUsed, SweepRequest};
use warpgauge_model::FailureCode;
use warpgauge_sparse::packed;
use warpgauge_sparse::spmv::{
    Csr, NamedMatrix, SpmvError, SpmvProblem, TakesMatrices, check_matrix_name, generated,
    is_generated, used,
};
use warpgauge_store::RequestReader;
use warpgauge_tensor::Blob;

/// Size of a packed matrix without rows and entries, bytes.
const PACKED_HEAD: u64 = 28;

/// A permit to work on matrices.
pub(super) struct Turn(warpgauge_turns::PoolPermit);

impl Turn {
    /// Runs work outside the async threads. The permit is released when the work ends, not when the
    /// caller leaves, because the work uses memory until then.
    pub(super) async fn aside<T: Send + 'static>(
        self,
        work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        aside(move || {
            let done = work();
            drop(self.0);
            done
        })
        .await
    }
}

impl Matrices {
    /// Returns the request with the content of its named matrices. `left` is the number of bytes
    /// that the request's arrays may still take.
    ///
    /// # Errors
    ///
    /// A matrix does not exist, or does not fit the field that refers to it.
    pub(crate) async fn filled<R: TakesMatrices + Send + 'static>(
        &self,
        mut request: R,
        owner: &str,
        left: &mut u64,
    ) -> Result<R, ServiceError> {
        if let Some(used) = request.matrices_used_mut() {
            said_by_caller(used);
        }
        for (name, path) in request.matrices_wanted().map_err(invalid)? {
            let turn = self.turn(owner).await?;
            let from = self.found(&name, &path, owner).await?;
            let max_bytes = self.limits.max_matrix_bytes;
            let mut now = *left;
            let work = move || {
                let (csr, used) = from.read(&name, &path, max_bytes)?;
                let named = NamedMatrix { name: &name, csr: &csr, max_bytes };
                request.put_matrix(&named, &mut now).map_err(unfit)?;
                if let Some(list) = request.matrices_used_mut() {
                    list.push(used);
                }
                Ok((request, now))
            };
            (request, *left) = turn.aside(work).await?;
        }
        Ok(request)
    }

    /// Returns a sweep with the stored matrices to which its points refer. Generated matrices are
    /// created when they are used.
    ///
    /// # Errors
    /// The errors of [`Self::filled`], and an invalid sweep.
    pub(crate) async fn sweep_with(
        &self,
        mut request: SweepRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<SweepRequest, ServiceError> {
        let limits = self.limits.clone();
        let (names, returned) = aside(move || {
            let names = warpgauge_executor::matrices_of_sweep(&limits, &request)?;
            Ok((names, request))
        })
        .await?;
        request = returned;
        let mut kept = BTreeMap::new();
        for (name, path) in names.into_iter().filter(|(name, _)| !is_generated(name)) {
            if kept.len() == MAX_MATRICES {
                let message = format!("a sweep names at most {MAX_MATRICES} stored matrices");
                return Err(problem(&path, FailureCode::TooLarge, message));
            }
            let turn = self.turn(owner).await?;
            let from = self.found(&name, &path, owner).await?;
            let max_bytes = self.limits.max_matrix_bytes;
            let now = *left;
            let named = name.clone();
            let work = move || {
                let (csr, used) = from.read(&named, &path, max_bytes)?;
                let bytes = packed::packed_bytes(&csr);
                if bytes > now {
                    let message = "the stored matrices of the sweep take more bytes than are allowed for one \
                                   request (limits.max_decoded_bytes); name fewer";
                    return Err(problem(&path, FailureCode::TooMuchData, message.to_owned()));
                }
                let packed = Blob::written(bytes, |mut to| packed::write(&csr, &mut to));
                let packed = packed.map_err(|error| unfit(SpmvError::Io(error)))?;
                Ok((KeptMatrix { used, packed }, bytes))
            };
            let (matrix, bytes) = turn.aside(work).await?;
            *left -= bytes;
            kept.insert(name, matrix);
        }
        request.matrices = kept;
        Ok(request)
    }

    /// Waits for a permit to work on matrices. Owners take turns.
    pub(super) async fn turn(&self, owner: &str) -> Result<Turn, ServiceError> {
        in_turn(&self.turns, owner).await.map(Turn)
    }

    /// Returns the source of a matrix: the caller's matrix of this name, or a generator.
    async fn found(&self, name: &str, path: &str, owner: &str) -> Result<Source, ServiceError> {
        self.source(name, path, owner).await.map_err(|error| match error {
            // The request is invalid, because it refers to a matrix that does not exist.
            error @ ServiceError::NoSuchMatrix(_) => {
                problem(path, FailureCode::InvalidValue, error.to_string())
            }
            other => other,
        })
    }

    /// Returns the source of a matrix.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] if there is no matrix with this name.
    pub(super) async fn source(
        &self,
        name: &str,
        path: &str,
        owner: &str,
    ) -> Result<Source, ServiceError> {
        if is_generated(name) {
            return Ok(Source::Generator);
        }
        check_matrix_name(name)
            .map_err(|message| problem(path, FailureCode::InvalidValue, message))?;
        let found = self.store.matrices().get(owner, name).await.map_err(refused)?;
        let (row, content) = found.ok_or_else(|| ServiceError::NoSuchMatrix(name.to_owned()))?;
        Ok(Source::Stored { hash: row.hash, content })
    }
}

/// Source of a matrix.
pub(super) enum Source {
    Generator,
    Stored { hash: String, content: RequestReader },
}

impl Source {
    /// Reads the matrix. Returns it, and its entry for a report. The call blocks.
    pub(super) fn read(
        self,
        name: &str,
        path: &str,
        max_bytes: u64,
    ) -> Result<(Arc<Csr>, MatrixUsed), ServiceError> {
        match self {
            Self::Generator => {
                let (csr, used) = generated(name, path, max_bytes).map_err(invalid)?;
                Ok((Arc::new(csr), used))
            }
            Self::Stored { hash, content } => {
                let failed =
                    |error: std::io::Error| error::internal("reading a stored matrix", &error);
                let mut content = BufReader::with_capacity(READ_BYTES, content);
                let csr = packed::read(&mut content).map_err(failed)?;
                let bytes = packed::packed_bytes(&csr);
                if bytes > max_bytes.saturating_add(PACKED_HEAD) {
                    let message = format!(
                        "the matrix has {bytes} bytes; a contract may name matrices of at most {max_bytes} \
                         (limits.max_decoded_bytes)"
                    );
                    return Err(problem(path, FailureCode::TooLarge, message));
                }
                let used = used(name, &csr, MatrixOrigin::Stored, Some(hash)).map_err(failed)?;
                Ok((Arc::new(csr), used))
            }
        }
    }
}

/// Marks the matrices in an incoming request as unverified statements of the caller.
fn said_by_caller(matrices: &mut [MatrixUsed]) {
    for used in matrices {
        used.origin = MatrixOrigin::File;
    }
}

fn problem(path: &str, code: FailureCode, message: String) -> ServiceError {
    ServiceError::invalid(vec![Problem { path: path.to_owned(), code, message }])
}

pub(super) fn invalid(found: SpmvProblem) -> ServiceError {
    problem(&found.path, found.code, found.message)
}

pub(super) fn unfit(error: SpmvError) -> ServiceError {
    match error {
        SpmvError::Invalid(found) => invalid(found),
        error @ SpmvError::Io(_) => ServiceError::unavailable(error.to_string()),
    }
}
