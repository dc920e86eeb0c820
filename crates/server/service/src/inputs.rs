//! Matrices and shared tensors to which requests refer by name. The service copies them into a
//! request when the request arrives, so later uploads do not affect a waiting job. The main type is
//! [`NamedInputs`].

use std::sync::Arc;

use super::error::{Problem, ServiceError};
use super::matrices::Matrices;
use super::submission::JobRequest;
use super::tensors::{Copies, SharedTensors};
use warpgauge_contract::{
    CompareRequest, CompileRequest, EvaluateRequest, MatrixUsed, RequestWarning, SweepRequest,
    TensorUsed,
};
use warpgauge_executor::ExecError;
use warpgauge_gate::GateRequest;
use warpgauge_gate::report::BaselineKind;
use warpgauge_model::FailureCode;

/// Copies named matrices and tensors into requests.
pub(super) struct NamedInputs {
    matrices: Arc<Matrices>,
    tensors: Arc<SharedTensors>,
    max_bytes: u64,
}

impl NamedInputs {
    /// Creates the inputs from these matrices and tensors. In one request they may take at most
    /// `max_bytes`.
    pub(super) fn new(
        matrices: Arc<Matrices>,
        tensors: Arc<SharedTensors>,
        max_bytes: u64,
    ) -> Arc<Self> {
        Arc::new(Self { matrices, tensors, max_bytes })
    }

    /// Returns the maximum number of bytes that the arrays in one body may take. It is the initial
    /// value of `left` below. The limit prevents a small body (with a name, or compressed data)
    /// from filling a disk.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the request with the content of its named matrices and shared tensors. `left` is the
    /// number of bytes that the arrays of the request may still take. Decompressed data count too.
    ///
    /// # Errors
    ///
    /// A matrix or a tensor does not exist, or does not fit the field that refers to it.
    pub(super) async fn with_named(
        &self,
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

    /// Returns the evaluation with its inputs; see [`Self::with_named`].
    pub(super) async fn evaluation_with(
        &self,
        request: EvaluateRequest,
        owner: &str,
        left: &mut u64,
        copies: Copies,
    ) -> Result<EvaluateRequest, ServiceError> {
        // The vector of a product may be a tensor. The permit is released when the request is
        // complete.
        let (request, _turn) = self.tensors.with_tensors(request, owner, left, copies).await?;
        self.matrices.filled(request, owner, left).await
    }

    async fn comparison_with(
        &self,
        request: CompareRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<CompareRequest, ServiceError> {
        let named = self.tensors.with_tensors(request, owner, left, Copies::ThroughHost);
        let (request, _turn) = named.await?;
        self.matrices.filled(request, owner, left).await
    }

    /// Returns the compilation with its matrices. A compilation cannot refer to tensors.
    pub(super) async fn compilation_with(
        &self,
        request: CompileRequest,
        owner: &str,
    ) -> Result<CompileRequest, ServiceError> {
        let mut left = self.max_bytes;
        self.matrices.filled(request, owner, &mut left).await
    }

    async fn gate_with(
        &self,
        mut request: GateRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<GateRequest, ServiceError> {
        // The request's author cannot change an older source tree, so the gate judges the case
        // without that baseline.
        let older = request.baseline_origin.as_ref().is_some_and(|origin| {
            matches!(origin.kind, BaselineKind::Git | BaselineKind::Directory)
        });
        for (index, case) in request.cases.iter_mut().enumerate() {
            let lasts = Copies::ThroughHost;
            let put = self.evaluation_with(case.contract.clone(), owner, left, lasts).await;
            case.contract =
                put.map_err(|error| error.within(&format!("cases[{index}].contract")))?;
            let Some(baseline) = &mut case.baseline else { continue };
            match self.evaluation_with(baseline.clone(), owner, left, lasts).await {
                Ok(put) => *baseline = put,
                Err(ServiceError::Exec(ExecError::Invalid(_)) | ServiceError::Named { .. })
                    if older => {}
                Err(error) => return Err(error.within(&format!("cases[{index}].baseline"))),
            }
        }
        Ok(request)
    }

    async fn sweep_with(
        &self,
        request: SweepRequest,
        owner: &str,
        left: &mut u64,
    ) -> Result<SweepRequest, ServiceError> {
        if !request.matrices.is_empty() {
            return Err(ServiceError::invalid(vec![Problem {
                path: "matrices".to_owned(),
                code: FailureCode::InvalidValue,
                message: "is set by the service: leave it out".to_owned(),
            }]));
        }
        let (request, _turn) = self.tensors.sweep_with_tensors(request, owner, left).await?;
        self.matrices.sweep_with(request, owner, left).await
    }
}

/// Returns the matrices that a request uses, for its report. Each point of a sweep reports its
/// matrices separately.
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

/// Returns the warnings about fields that were ignored or filled in when a request was read, for
/// its report.
pub(super) fn warnings_of(request: &JobRequest) -> Vec<RequestWarning> {
    match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => request.warnings.clone(),
        JobRequest::Compare(request) => request.warnings.clone(),
        JobRequest::Sweep(_) | JobRequest::Gate(_) => Vec::new(),
    }
}

/// Returns the tensors that a request uses, for its report. Each point of a sweep reports its
/// tensors separately.
pub(super) fn tensors_of(request: &JobRequest) -> Vec<TensorUsed> {
    match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => request.tensors.clone(),
        JobRequest::Compare(request) => request.tensors.clone(),
        JobRequest::Sweep(_) => Vec::new(),
        JobRequest::Gate(request) => {
            let mut all = Vec::new();
            let baselines = request.cases.iter().filter_map(|case| case.baseline.as_ref());
            let sides = request.cases.iter().map(|case| &case.contract).chain(baselines);
            for used in sides.flat_map(|side| &side.tensors) {
                if !all.contains(used) {
                    all.push(used.clone());
                }
            }
            all
        }
    }
}
