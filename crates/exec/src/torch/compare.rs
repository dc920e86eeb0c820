//! One comparison of torch kernels: the reference on its own, then each candidate against it.

use std::time::Instant;

use super::evaluate::{Case, Oracle, plan_of, seed};
use super::player::{CANDIDATE, REFERENCE, submission};
use crate::compare::{REFERENCE_PATH, placed, unusable_reference};
use crate::error::{self, ExecError};
use crate::local::LocalExecutor;
use crate::progress::ActiveOrder;
use crate::run::ms;
use warpgauge_contract::CompareRequest;
use warpgauge_model::JobStage;
use warpgauge_report::{
    CandidateReport, CompareResponse, EvaluateResponse, ResponseStatus, Timings, VerdictBy,
};

/// Why no candidate is called faster or slower.
const NOT_COMPARED: &str = "times of the CPU rank nothing: both are in the reports";
const NOT_BESIDE: &str = "torch kernels are timed one after the other and not side by side, so there is no \
                          verdict on which is faster: both times are in the reports";

impl LocalExecutor {
    /// Takes a comparison of torch kernels to its report.
    pub(in super::super) async fn compare_torch(
        &self,
        job: &ActiveOrder<'_>,
        request: CompareRequest,
    ) -> Result<CompareResponse, ExecError> {
        let arrived = Instant::now();
        warpgauge_contract::validate_compare(&request, &self.limits).map_err(error::invalid)?;
        job.stage(JobStage::WaitingForDevice);
        let queued = ms(arrived);
        let mut timings = Timings { queue: queued, ..Timings::default() };
        let shared = SharedCase { executor: self, job, request: &request, seed: seed() };
        let reference = shared.judge(&request.ref_kernel, false).await;
        let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?;
        if reference.kernel_exec_result.runtime.is_none() {
            return Err(unusable_reference(&reference));
        }
        timings.add(&reference.timings);
        let mut candidates = Vec::new();
        for (index, candidate) in request.named_candidates().into_iter().enumerate() {
            let own = shared.judge(&candidate.kernel, true).await;
            let own = own.map_err(|error| placed(error, &request.path_of(index)))?;
            timings.add(&own.timings);
            let beside = if own.device.is_some() { NOT_BESIDE } else { NOT_COMPARED };
            candidates.push(candidate_report(candidate.name, own, beside));
        }
        timings.total = ms(arrived);
        Ok(assembled(job.id(), reference, candidates, timings))
    }
}

/// What all kernels of a comparison have in common.
pub(super) struct SharedCase<'a> {
    pub executor: &'a LocalExecutor,
    pub job: &'a ActiveOrder<'a>,
    pub request: &'a CompareRequest,
    /// Of the parameters of all sides.
    pub seed: u64,
}

impl SharedCase<'_> {
    /// Evaluates a kernel, against the reference if it is a candidate.
    pub async fn judge(
        &self,
        kernel: &warpgauge_contract::KernelCode,
        against: bool,
    ) -> Result<EvaluateResponse, ExecError> {
        let arrived = Instant::now();
        let mut request = self.request.evaluation_of(kernel);
        // The reference is called beside the candidate, and what it returns is what counts.
        request.expected.clear();
        let entered = match self.request.is_mixed() {
            true => self.executor.enter_torch(request.timeout).await?,
            false => self.executor.enter_torch_for(&request).await?,
        };
        let timings = Timings { queue: ms(arrived), ..Timings::default() };
        let reference = || Oracle {
            submission: submission(&self.request.ref_kernel, REFERENCE),
            outputs: None,
            path: REFERENCE_PATH.to_owned(),
            lends_init: true,
        };
        let case = Case {
            submission: submission(kernel, if against { CANDIDATE } else { REFERENCE }),
            oracles: if against { vec![reference()] } else { Vec::new() },
            plan: Some(plan_of(&request)),
            backward: self.request.wants_backward(),
            seed: self.seed,
            request,
        };
        self.executor.judge_torch(self.job, &entered, case, timings, arrived).await
    }
}

/// A candidate whose time is compared with nothing. `unranked`: why not, where it is right.
pub(super) fn candidate_report(
    name: String,
    evaluation: EvaluateResponse,
    unranked: &str,
) -> CandidateReport {
    let right = evaluation.kernel_exec_result.runtime.is_some();
    let wrong = "the candidate is not right, so its times say nothing";
    CandidateReport {
        name,
        evaluation,
        comparison: None,
        not_compared: Some(if right { unranked } else { wrong }.to_owned()),
        identical_code: None,
        same_image: false,
        counted: None,
        code_diff: None,
        no_code_diff: None,
        counts: Vec::new(),
    }
}

pub(super) fn assembled(
    job_id: &str,
    reference: EvaluateResponse,
    candidates: Vec<CandidateReport>,
    timings: Timings,
) -> CompareResponse {
    let first = candidates.first();
    CompareResponse {
        matrices: Vec::new(),
        tensors: Vec::new(),
        job_id: job_id.to_owned(),
        status: ResponseStatus::Success,
        ref_runtime: reference.kernel_exec_result.runtime_stats,
        kernel_exec_result: first
            .map(|first| first.evaluation.kernel_exec_result.clone())
            .unwrap_or_default(),
        gpu_type: reference.gpu_type.clone(),
        device: reference.device.clone(),
        verdict_by: VerdictBy::Nothing,
        comparison: None,
        not_compared: first.and_then(|first| first.not_compared.clone()),
        ranking: None,
        counted: None,
        counted_ranking: Vec::new(),
        reference,
        candidates,
        timings,
    }
}
