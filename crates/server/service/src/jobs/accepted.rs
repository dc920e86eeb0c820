//! Requests that can be jobs.

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

/// A request that was checked, with the content of the matrices and tensors that it names in place, and what
/// carrying it out requires.
pub(super) struct Accepted {
    request: JobRequest,
    requirements: Requirements,
}

impl Accepted {
    /// A request from the store, which was checked when its job was accepted.
    pub(super) fn stored(request: JobRequest) -> Self {
        let requirements = requirements_of(&request).unwrap_or_default();
        Self { request, requirements }
    }

    /// The request.
    pub(super) fn request(&self) -> &JobRequest {
        &self.request
    }

    /// What carrying it out requires.
    pub(super) fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    /// Both.
    pub(super) fn into_parts(self) -> (JobRequest, Requirements) {
        (self.request, self.requirements)
    }
}

/// Makes requests jobs: puts their inputs in, checks them, and finds processes for them.
pub(super) struct Acceptance {
    placements: Arc<Placements>,
    inputs: Arc<NamedInputs>,
    suites: Arc<Suites>,
    tensors: Arc<SharedTensors>,
    limits: ContractLimits,
}

impl Acceptance {
    /// Accepts requests within these limits that a process of these placements meets.
    pub(super) fn new(needs: &Needs, limits: ContractLimits, placements: Arc<Placements>) -> Self {
        let Needs { inputs, suites, tensors, .. } = needs.clone();
        Self { placements, inputs, suites, tensors, limits }
    }

    /// Checks a request, and finds who can carry it out. `left`: bytes of arrays that matrices and tensors in
    /// it may still take. `short`: whether the copies that its job gets of shared tensors need to last no longer
    /// than the call.
    ///
    /// # Errors
    /// Every problem found, or that no process meets the requirements.
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
        let request = self.inputs.with_named(request, owner, left, copies).await?;
        // What is wrong with the request is reported before who could carry it out.
        self.check_request(&request, owner).await?;
        Ok((Accepted { request, requirements: requirements? }, placement?))
    }

    /// Whether a request can be a job.
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
