//! One comparison of torch kernels: the reference on its own, then each candidate against it.

use std::time::{Duration, Instant};

use super::evaluate::{Case, Judgement, Oracle, plan_of, seed};
use super::gpu::beside::{Compared, SideBySide};
use super::judge::unsure_ms;
use super::player::{CANDIDATE, REFERENCE, submission};
use crate::compare::{REFERENCE_PATH, placed, unusable_reference};
use crate::decision;
use crate::error::{self, ExecError};
use crate::local::LocalExecutor;
use crate::progress::ActiveOrder;
use crate::run::ms;
use warpgauge_contract::CompareRequest;
use warpgauge_measure::paired::{PairedComparison, PairedVerdict};
use warpgauge_model::JobStage;
use warpgauge_report::{
    CandidateReport, CompareResponse, EvaluateResponse, ResponseStatus, Timings, VerdictBy,
};

/// Why no candidate is called faster or slower.
const NOT_COMPARED: &str = "times of the CPU rank nothing: both are in the reports";
const NOT_BESIDE: &str = "there was no time left to time both sides in turns: both times are in the reports; \
                          `measure.max_time` and `timeout` say how long it may take";

/// How much longer the reference may take beside the candidate than alone, relative and beyond what is not known
/// of its time, for that to say something.
const SLOWED: f64 = 0.1;

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
        let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?.report;
        if reference.kernel_exec_result.runtime.is_none() {
            return Err(unusable_reference(&reference));
        }
        timings.add(&reference.timings);
        let mut candidates = Vec::new();
        for (index, candidate) in request.named_candidates().into_iter().enumerate() {
            let own = shared.judge(&candidate.kernel, true).await;
            let Judgement { report: own, compared, .. } =
                own.map_err(|error| placed(error, &request.path_of(index)))?;
            timings.add(&own.timings);
            let beside = side_by_side(&reference, &own, compared);
            let why = beside.as_ref().err().map_or("", String::as_str);
            let mut report = candidate_report(candidate.name, own, why);
            if let Ok(comparison) = beside {
                (report.comparison, report.not_compared) = (Some(comparison), None);
            }
            candidates.push(report);
        }
        timings.total = ms(arrived);
        let mut response = assembled(job.id(), reference, candidates, timings);
        if response.candidates.iter().any(|candidate| candidate.comparison.is_some()) {
            response.verdict_by = VerdictBy::Times;
            response.comparison = response.candidates[0].comparison.clone();
        }
        Ok(response)
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
    ) -> Result<Judgement, ExecError> {
        let arrived = Instant::now();
        let mut request = self.request.evaluation_of(kernel);
        // The reference is called beside the candidate, and what it returns is what counts.
        request.expected.clear();
        let plan = Some(plan_of(&request));
        let beside = (against && !self.request.is_mixed()).then(|| self.beside());
        // What the comparison is to take does not count as hanging.
        request.timeout += beside.as_ref().map_or(0.0, |beside| beside.max_time.as_secs_f64());
        let mut entered = match self.request.is_mixed() {
            true => self.executor.enter_torch(request.timeout, self.job.owner()).await?,
            false => self.executor.enter_torch_for(&request, self.job.owner()).await?,
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
            plan,
            beside: beside.filter(|_| entered.device.is_some()),
            count: false,
            backward: self.request.wants_backward(),
            seed: self.seed,
            request,
        };
        self.executor.judge_torch(self.job, &mut entered, case, timings, arrived).await
    }

    /// How a candidate is timed beside the reference.
    fn beside(&self) -> SideBySide {
        let seconds = decision::max_time_s(self.request);
        let comparisons = self.request.named_candidates().len();
        SideBySide {
            policy: decision::policy(self.request).for_family(comparisons),
            max_time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        }
    }
}

/// The candidate beside the reference, or why there is no saying.
fn side_by_side(
    reference: &EvaluateResponse,
    own: &EvaluateResponse,
    compared: Option<Compared>,
) -> Result<PairedComparison, String> {
    let Some(Compared { comparison, reference_ms, candidate_ms, resolution_ms }) = compared else {
        return Err(if own.device.is_some() { NOT_BESIDE } else { NOT_COMPARED }.to_owned());
    };
    let clocks = reference.torch.as_ref().and_then(|torch| torch.clocks.clone());
    let Some(clocks) = clocks else {
        return Err("the reference has no time of its own by the judge's clock".to_owned());
    };
    // All of handing over is deducted here, as it is beside the candidate.
    let alone = clocks.judge_ms - unsure_ms(clocks.hand_over_ms, clocks.batch);
    // It is faster than the reference is when nothing can slow that, too.
    let most = alone + resolution_ms;
    let faster = comparison.verdict == PairedVerdict::Faster;
    let only_beside = faster && candidate_ms * (1.0 + comparison.margin) > most;
    if only_beside || reference_ms > most + SLOWED * alone {
        return Err(format!(
            "the reference took {reference_ms:.5} ms beside the candidate and {alone:.5} ms alone, by the \
             judge's clock: something slowed it, which may be work that the candidate left running on the \
             device"
        ));
    }
    Ok(comparison)
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
