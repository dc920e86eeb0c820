//! Validates requests, and resolves their inputs before they become jobs. The main types are
//! [`Acceptance`] and [`Accepted`].

use std::sync::Arc;

use super::Needs;
use super::requirements::{Placement, Placements, refusal, requirements_of};
use crate::error::{self, ServiceError};
use crate::inputs::NamedInputs;
use crate::submission::{JobRequest, JobSubmission};
use crate::suites::Suites;
use crate::tensors::{Copies, SharedTensors};
use warpgauge_contract::ContractLimits;
use warpgauge_model::Requirements;

/// A validated request. It contains the content of its named matrices and tensors, and its
/// requirements on the executor.
pub(super) struct Accepted {
    request: JobRequest,
    requirements: Requirements,
}

impl Accepted {
    /// Wraps a request from the store. It was validated when its job was accepted.
    pub(super) fn stored(request: JobRequest) -> Self {
        let requirements = requirements_of(&request).unwrap_or_default();
        Self { request, requirements }
    }

    pub(super) fn request(&self) -> &JobRequest {
        &self.request
    }

    /// Requirements on the executor.
    pub(super) fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    /// Returns the request and its requirements.
    pub(super) fn into_parts(self) -> (JobRequest, Requirements) {
        (self.request, self.requirements)
    }
}

/// Turns requests into jobs: copies their inputs, validates them, and finds processes that can run
/// them.
pub(super) struct Acceptance {
    placements: Arc<Placements>,
    inputs: Arc<NamedInputs>,
    suites: Arc<Suites>,
    tensors: Arc<SharedTensors>,
    limits: ContractLimits,
}

impl Acceptance {
    /// Creates an acceptance of requests that are within these limits. `placements` finds a process
    /// that meets their requirements.
    pub(super) fn new(needs: &Needs, limits: ContractLimits, placements: Arc<Placements>) -> Self {
        let Needs { inputs, suites, tensors, .. } = needs.clone();
        Self { placements, inputs, suites, tensors, limits }
    }

    /// Validates a request, and finds a process that can run it. `left` is the number of bytes that
    /// its matrices and tensors may still take. `short` means that copies of shared tensors may be
    /// released when the request ends.
    ///
    /// # Errors
    /// All problems that were found, or the reason why no process meets the requirements.
    pub(super) async fn accept(
        &self,
        request: JobRequest,
        submission: &JobSubmission,
        left: &mut u64,
        short: bool,
    ) -> Result<(Accepted, Placement), ServiceError> {
        let owner = &submission.caller.owner;
        let requirements = requirements_of(&request);
        let placement = match &requirements {
            Ok(order) => self.placements.find(order).await.map_err(refusal),
            Err(error) => Err(error.clone()),
        };
        let here = matches!(placement, Ok(Placement::Here));
        let copies = if short && here { Copies::MayStay } else { Copies::ThroughHost };
        let mut request = self.inputs.with_named(request, owner, left, copies).await?;
        if let JobRequest::Compare(request) = &mut request {
            request.settle_arguments();
        }
        // Problems of the request take precedence over a lack of processes that could run it.
        self.check_request(&request, owner).await?;
        Ok((Accepted { request, requirements: requirements? }, placement?))
    }

    /// Validates a request against the limits and the service's state.
    async fn check_request(&self, request: &JobRequest, owner: &str) -> Result<(), ServiceError> {
        match request {
            JobRequest::Evaluate(request) | JobRequest::Execute(request) => {
                warpgauge_contract::validate(request, &self.limits).map_err(error::invalid)?;
                self.tensors.check_kept(request)
            }
            JobRequest::Compare(request) => {
                warpgauge_contract::validate_compare(request, &self.limits).map_err(error::invalid)
            }
            JobRequest::Sweep(request) => {
                Ok(warpgauge_executor::check_sweep(&self.limits, (**request).clone()).await?)
            }
            JobRequest::Gate(request) => self.suites.check_gate(request, owner).await,
        }
    }
}
