//! Matrices that requests name in place of data: what the caller has under a name when its request comes is
//! put into it. So a job that waits is not disturbed by what is uploaded meanwhile.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::Arc;

use super::error::{self, Problem, ServiceError};
use super::jobs::refused;
use super::matrices::{READ_BYTES, aside};
use super::shared::{Shared, in_turn};
use super::submission::JobRequest;
use super::tensors::Copies;
use warpgauge_contract::{
    CompareRequest, CompileRequest, EvaluateRequest, KeptMatrix, MAX_MATRICES, MatrixNames,
    MatrixOrigin, MatrixUsed, SweepRequest,
};
use warpgauge_gate::GateRequest;
use warpgauge_gate::report::BaselineKind;
use warpgauge_model::FailureCode;
use warpgauge_sparse::packed;
use warpgauge_spmv::{
    Csr, Named, SpmvError, SpmvProblem, check_matrix_name, generated, is_generated, named_in,
    named_in_comparison, named_in_compilation, used,
};
use warpgauge_store::RequestReader;
use warpgauge_tensor::Blob;

/// Matrices that are worked on at once, of all callers: each may take what a key may have.
pub(super) const AT_ONCE: usize = 2;

/// Bytes of a packed matrix that are none of its rows and entries.
const PACKED_HEAD: u64 = 28;

/// A place among those that work on matrices.
pub(super) struct Turn(warpgauge_turns::Turn);

impl Turn {
    /// Does work off the async threads. The place is free when the work is done, and not when its caller
    /// has gone: what goes on takes memory as before.
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

/// How a kind of request takes matrices.
struct Takes<R> {
    /// Where it says which it has.
    told: fn(&mut R) -> &mut Vec<MatrixUsed>,
    /// Those that it names, each with the place that does.
    names: fn(&R) -> Result<MatrixNames, SpmvProblem>,
    /// Puts one into it, within the bytes that are left.
    put: fn(&Named<'_>, &mut R, &mut u64) -> Result<(), SpmvError>,
}

impl Shared {
    /// The request with matrices and shared tensors in the places of their names. `left` is how many bytes of arrays may be
    /// made yet, as for compressed data: what comes small does not fill a disk.
    ///
    /// # Errors
    /// A matrix or a tensor that is not there, or does not fit where it is named.
    pub(super) async fn with_named(
        self: &Arc<Self>,
        request: JobRequest,
        owner: &str,
        left: &mut u64,
        copies: Copies,
    ) -> Result<JobRequest, ServiceError> {
        Ok(match request {
            JobRequest::Evaluate(request) => {
                let named = self.evaluation_with(*request, owner, left, copies);
                JobRequest::Evaluate(Box::new(named.await?))
            }
            JobRequest::Execute(request) => {
                let named = self.evaluation_with(*request, owner, left, copies);
                JobRequest::Execute(Box::new(named.await?))
            }
            JobRequest::Compare(request) => {
                JobRequest::Compare(Box::new(self.comparison_with(*request, owner, left).await?))
            }
            JobRequest::Sweep(request) => {
                JobRequest::Sweep(Box::new(self.sweep_with(*request, owner, left).await?))
            }
            JobRequest::Gate(request) => {
                JobRequest::Gate(Box::new(self.gate_with(*request, owner, left).await?))
            }
        })
    }

    pub(super) async fn evaluation_with(
        self: &Arc<Self>,
        request: EvaluateRequest,
        owner: &str,
        left: &mut u64,
        copies: Copies,
    ) -> Result<EvaluateRequest, ServiceError> {
        let takes = Takes {
            told: |request: &mut EvaluateRequest| &mut request.matrices,
            names: named_in,
            put: |named, request, left| named.put_into(request, left),
        };
        // The vector of a product may be a tensor. Its turn ends when the request is whole.
        let (request, _turn) = self.with_tensors(request, owner, left, copies).await?;
        self.filled(request, takes, owner, left).await
    }

    async fn comparison_with(
        self: &Arc<Self>,
        request: CompareRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<CompareRequest, ServiceError> {
        let takes = Takes {
            told: |request: &mut CompareRequest| &mut request.matrices,
            names: named_in_comparison,
            put: |named, request, left| named.put_into_comparison(request, left),
        };
        let named = self.with_tensors(request, owner, left, Copies::ThroughHost);
        let (request, _turn) = named.await?;
        self.filled(request, takes, owner, left).await
    }

    pub(super) async fn compilation_with(
        &self,
        request: CompileRequest,
        owner: &str,
    ) -> Result<CompileRequest, ServiceError> {
        let takes = Takes {
            told: |(_, told): &mut (CompileRequest, Vec<MatrixUsed>)| told,
            names: |(request, _)| named_in_compilation(request),
            put: |named, (request, _), left| named.put_into_compilation(request, left),
        };
        let mut left = self.limits.max_decoded_bytes;
        let (request, _) = self.filled((request, Vec::new()), takes, owner, &mut left).await?;
        Ok(request)
    }

    /// A request with the matrices that it names.
    async fn filled<R: Send + 'static>(
        &self,
        mut request: R,
        Takes { told, names, put }: Takes<R>,
        owner: &str,
        left: &mut u64,
    ) -> Result<R, ServiceError> {
        said_by_caller(told(&mut request));
        for (name, path) in names(&request).map_err(invalid)? {
            let turn = self.turn(owner).await?;
            let from = self.found(&name, &path, owner).await?;
            let max_bytes = self.limits.max_matrix_bytes;
            let mut now = *left;
            let work = move || {
                let (csr, used) = from.read(&name, &path, max_bytes)?;
                let named = Named { name: &name, csr: &csr, max_bytes };
                put(&named, &mut request, &mut now).map_err(unfit)?;
                told(&mut request).push(used);
                Ok((request, now))
            };
            (request, *left) = turn.aside(work).await?;
        }
        Ok(request)
    }

    async fn gate_with(
        self: &Arc<Self>,
        mut request: GateRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<GateRequest, ServiceError> {
        // What lies in an older tree is not the request's to mend: the case is judged without.
        let older = request.baseline_origin.as_ref().is_some_and(|origin| {
            matches!(origin.kind, BaselineKind::Git | BaselineKind::Directory)
        });
        for (index, case) in request.cases.iter_mut().enumerate() {
            let lasts = Copies::ThroughHost;
            let put = self.evaluation_with(case.contract.clone(), owner, left, lasts).await;
            case.contract =
                put.map_err(|error| within(&format!("cases[{index}].contract"), error))?;
            let Some(baseline) = &mut case.baseline else { continue };
            match self.evaluation_with(baseline.clone(), owner, left, lasts).await {
                Ok(put) => *baseline = put,
                Err(ServiceError::Invalid(_) | ServiceError::Named { .. }) if older => (),
                Err(error) => return Err(within(&format!("cases[{index}].baseline"), error)),
            }
        }
        Ok(request)
    }

    /// A sweep with the stored matrices that its points name. Generated ones are made where they are used.
    async fn sweep_with(
        self: &Arc<Self>,
        request: SweepRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<SweepRequest, ServiceError> {
        if !request.matrices.is_empty() {
            let message = "is what the service knows of matrices: leave it out";
            return Err(problem("matrices", FailureCode::InvalidValue, message.to_owned()));
        }
        let (mut request, _turn) = self.sweep_with_tensors(request, owner, left).await?;
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
                    let message = "the stored matrices of the sweep take more bytes than are kept for one \
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

    /// A place among those that work on matrices, in the owner's turn.
    pub(super) async fn turn(&self, owner: &str) -> Result<Turn, ServiceError> {
        in_turn(&self.matrix_turns, owner).await.map(Turn)
    }

    /// Where a matrix comes from: the caller's of this name, or a generator.
    async fn found(&self, name: &str, path: &str, owner: &str) -> Result<Source, ServiceError> {
        self.source(name, path, owner).await.map_err(|error| match error {
            // What is wrong is the request that names it.
            error @ ServiceError::NoSuchMatrix(_) => {
                problem(path, FailureCode::InvalidValue, error.to_string())
            }
            other => other,
        })
    }

    /// Where a matrix comes from.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] where there is none of this name.
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
        let found = self.store.matrix(owner, name).await.map_err(refused)?;
        let (row, content) = found.ok_or_else(|| ServiceError::NoSuchMatrix(name.to_owned()))?;
        Ok(Source::Stored { hash: row.hash, content })
    }
}

/// Where a matrix comes from.
pub(super) enum Source {
    Generator,
    Stored { hash: String, content: RequestReader },
}

impl Source {
    /// The matrix, and what a report says of it. Blocking.
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
                        "the matrix has {bytes} bytes; a contract names matrices of at most {max_bytes} \
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

/// The matrices that stand in a request, for its report. Those of a sweep are told by its points.
pub(super) fn matrices_of(request: &JobRequest) -> Vec<MatrixUsed> {
    match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => request.matrices.clone(),
        JobRequest::Compare(request) => request.matrices.clone(),
        JobRequest::Sweep(_) => Vec::new(),
        JobRequest::Gate(request) => {
            let mut all = Vec::new();
            let baselines = request.cases.iter().filter_map(|case| case.baseline.as_ref());
            let sides = request.cases.iter().map(|case| &case.contract).chain(baselines);
            for used in sides.flat_map(|side| &side.matrices) {
                if !all.contains(used) {
                    all.push(used.clone());
                }
            }
            all
        }
    }
}

/// What a request tells of matrices when it comes is its caller's word.
fn said_by_caller(matrices: &mut [MatrixUsed]) {
    for used in matrices {
        used.origin = MatrixOrigin::File;
    }
}

fn problem(path: &str, code: FailureCode, message: String) -> ServiceError {
    ServiceError::Invalid(vec![Problem { path: path.to_owned(), code, message }])
}

pub(super) fn invalid(found: SpmvProblem) -> ServiceError {
    problem(&found.path, found.code, found.message)
}

pub(super) fn unfit(error: SpmvError) -> ServiceError {
    match error {
        SpmvError::Invalid(found) => invalid(found),
        error @ SpmvError::Io(_) => ServiceError::Unavailable(error.to_string()),
    }
}

/// A problem of a contract within a larger request.
fn within(at: &str, error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Invalid(problems) => ServiceError::Invalid(
            problems
                .into_iter()
                .map(|problem| Problem { path: format!("{at}.{}", problem.path), ..problem })
                .collect(),
        ),
        ServiceError::Named { path, error } => {
            ServiceError::Named { path: format!("{at}.{path}"), error }
        }
        other => other,
    }
}
