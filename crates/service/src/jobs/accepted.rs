//! Requests that can be jobs.

use std::sync::Arc;

use super::super::error::ServiceError;
use super::super::shared::Shared;
use super::super::submission::{JobRequest, Submission};
use super::super::tensors::Copies;
use super::requirements::{Takers, refusal};
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
        let requirements = request.requirements().unwrap_or_default();
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

impl Shared {
    /// Checks a request, and finds who can carry it out. `left`: bytes of arrays that matrices and tensors in
    /// it may still take. `short`: whether the copies that its job gets of shared tensors need to last no longer
    /// than the call.
    ///
    /// # Errors
    /// Every problem found, or that no process meets the requirements.
    pub(super) async fn accept(
        self: &Arc<Self>,
        request: JobRequest,
        submission: &Submission,
        left: &mut u64,
        short: bool,
    ) -> Result<(Accepted, Takers), ServiceError> {
        let owner = &submission.caller.owner;
        let requirements = request.requirements();
        let takers = match &requirements {
            Ok(order) => self.takers(order).await.map_err(refusal),
            Err(error) => Err(error.clone()),
        };
        let here = matches!(takers, Ok(Takers::Here));
        let copies = if short && here { Copies::MayStay } else { Copies::ThroughHost };
        let request = self.with_named(request, owner, left, copies).await?;
        // What is wrong with the request is reported before who could carry it out.
        self.check_request(&request, owner).await?;
        Ok((Accepted { request, requirements: requirements? }, takers?))
    }
}
