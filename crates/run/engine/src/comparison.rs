//! A comparison from contract to report, for kernels of any family.
//!
//! The backend of the reference opens a `ComparisonSession`. The session evaluates the reference,
//! then each candidate that runs in the reference's runtime, and decides how they compare.
//! Candidates of another runtime are evaluated by their backend against the reference's outputs.
//! Their times are not compared, because no clock times both.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::backend::{
    Compared, Contest, Evaluator, Purpose, REFERENCE_PATH, broken_reference, different_clocks,
    placed, unusable_reference,
};
use crate::clock::ms;
use crate::engine::Engine;
use crate::error::{self, ExecError, Problem};
use crate::progress::ActiveOrder;
use warpgauge_contract::{Candidate, Checked, CompareRequest, KernelRuntime};
use warpgauge_model::FailureStage;
use warpgauge_report::{
    CandidateReport, CompareResponse, EvaluateResponse, FailureReport, ResponseStatus, Timings,
    ValidationReport, ValidationStatus, VerdictBy,
};
use warpgauge_validate::{Reason, ReasonCode};

/// Reason why a comparison ends early.
enum Early {
    Error(ExecError),
    /// The reference has no usable times.
    Unusable(Box<EvaluateResponse>),
}

impl From<ExecError> for Early {
    fn from(error: ExecError) -> Self {
        Self::Error(error)
    }
}

/// Runs one comparison and returns its report. A reference without usable times is an error. The
/// future is boxed, because a gate runs many comparisons and each future is large.
pub(crate) fn compare<'a>(
    engine: &'a Engine,
    job: &'a ActiveOrder<'a>,
    request: CompareRequest,
) -> BoxFuture<'a, Result<CompareResponse, ExecError>> {
    async move {
        let request = checked(engine, request)?;
        compare_all(engine, job, &request).await.map_err(|early| match early {
            Early::Error(error) => error,
            Early::Unusable(reference) => unusable_reference(&reference),
        })
    }
    .boxed()
}

/// Runs one comparison and returns its report, also if the reference does not compile or fails.
pub(crate) fn compare_or_report<'a>(
    engine: &'a Engine,
    job: &'a ActiveOrder<'a>,
    request: CompareRequest,
) -> BoxFuture<'a, Result<CompareResponse, ExecError>> {
    async move {
        let arrived = Instant::now();
        let request = checked(engine, request)?;
        match compare_all(engine, job, &request).await {
            Ok(response) => Ok(response),
            Err(Early::Error(error)) => Err(error),
            Err(Early::Unusable(reference)) => match broken_reference(&reference) {
                Some(problem) => {
                    let told = with_broken_reference(engine, job, &request, *reference, &problem);
                    let mut response = told.await?;
                    response.timings.set_total(ms(arrived));
                    Ok(response)
                }
                None => Err(unusable_reference(&reference)),
            },
        }
    }
    .boxed()
}

fn checked(
    engine: &Engine,
    mut request: CompareRequest,
) -> Result<Checked<CompareRequest>, ExecError> {
    let host = &engine.host;
    if host.config.devices.device_metrics {
        request.profile.get_or_insert_default();
    }
    Checked::new(request, &host.limits).map_err(error::invalid)
}

async fn compare_all(
    engine: &Engine,
    job: &ActiveOrder<'_>,
    request: &Checked<CompareRequest>,
) -> Result<CompareResponse, Early> {
    let arrived = Instant::now();
    let candidates = request.named_candidates();
    let family = request.ref_kernel.family();
    let has_its_runtime =
        |index: &usize| candidates[*index].kernel.family().runtime() == family.runtime();
    let own = (0..candidates.len()).filter(has_its_runtime).collect::<Vec<_>>();
    let contest = Contest::new(request, own.clone());

    let mut session = engine.backend(family).compare(job, contest).await?;
    let reference = session.reference().await;
    let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?;
    if reference.kernel_exec_result.runtime.is_none() && reference.unranked().is_none() {
        return Err(Early::Unusable(Box::new(reference)));
    }
    let mut reports = vec![reference];
    for &index in &own {
        let report = session.next_candidate().await;
        reports.push(report.map_err(|error| placed(error, &request.path_of(index)))?);
    }
    let conclusion = session.conclude(&reports).await?;
    let mut reports = reports.into_iter();
    let reference = reports.next().ok_or_else(no_reference)?;
    let mut own = own.into_iter().zip(reports.zip(conclusion.compared)).peekable();

    let mut compared = Vec::with_capacity(candidates.len());
    for (index, Candidate { name, kernel }) in candidates.into_iter().enumerate() {
        if let Some((_, (report, beside))) = own.next_if(|(own, _)| *own == index) {
            compared.push(candidate_report(name, report, beside));
            continue;
        }
        let purpose = match kernel.family().runtime() {
            KernelRuntime::Worker => Purpose::Rank,
            KernelRuntime::Judge | KernelRuntime::Process => Purpose::Evaluate,
        };
        let report = engine.evaluate(job, request.evaluation_of(&kernel), purpose).await;
        let report = report.map_err(|error| placed(error, &request.path_of(index)))?;
        let beside = Compared::of(Err(different_clocks(&reference, &report)));
        compared.push(candidate_report(name, report, beside));
    }
    let timings = Timings { queue: conclusion.queue_ms, ..Timings::default() };
    let mut response = assembled(job.id(), reference, compared, timings);
    response.verdict_by = conclusion.verdict_by;
    response.ranking = conclusion.ranking;
    response.counted_ranking = conclusion.counted_ranking;
    response.timings.set_total(ms(arrived));
    Ok(response)
}

/// Reports a comparison with a broken reference. Each candidate is compiled and run once alone, so
/// that the report shows whether it compiles. Its outputs cannot be compared.
async fn with_broken_reference(
    engine: &Engine,
    job: &ActiveOrder<'_>,
    request: &CompareRequest,
    reference: EvaluateResponse,
    problem: &Problem,
) -> Result<CompareResponse, ExecError> {
    let mut candidates = Vec::new();
    for (index, Candidate { name, kernel }) in request.named_candidates().into_iter().enumerate() {
        let mut alone = request.evaluation_of(&kernel);
        alone.expected.clear();
        alone.compare_as.clear();
        alone.profile = None;
        let report = engine.evaluate(job, alone, Purpose::Execute).await;
        let mut report = report.map_err(|error| placed(error, &request.path_of(index)))?;
        not_judged(&mut report, problem);
        let mut candidate = candidate_report(name, report, Compared::of(Err(String::new())));
        candidate.not_compared = Some(problem.message.clone());
        candidates.push(candidate);
    }
    Ok(assembled(job.id(), reference, candidates, Timings::default()))
}

/// Replaces the verdict on a kernel that compiled with the failure of the comparison's reference
/// kernel.
fn not_judged(report: &mut EvaluateResponse, problem: &Problem) {
    let result = &mut report.kernel_exec_result;
    if !result.compiled || report.status == ResponseStatus::Error {
        return;
    }
    result.correctness = Some(false);
    (result.runtime, result.runtime_stats) = (None, None);
    result.validation_error = Some(problem.message.clone());
    report.failure = Some(FailureReport {
        stage: FailureStage::Validate,
        code: problem.code.clone(),
        message: problem.message.clone(),
    });
    report.validation = ValidationReport {
        status: ValidationStatus::NotRun,
        outputs: BTreeMap::new(),
        reasons: vec![Reason::new(ReasonCode::ReferenceFailed, problem.message.clone())],
        weaknesses: Vec::new(),
        unchecked: Vec::new(),
    };
    report.set_verdict(true);
}

fn no_reference() -> ExecError {
    error::internal("comparing kernels", &std::io::Error::other("the reference has no report"))
}

/// Builds the response to a comparison, without the ranking of several candidates. `timings`
/// contains the times of stages that no evaluation reports.
fn assembled(
    job_id: &str,
    reference: EvaluateResponse,
    candidates: Vec<CandidateReport>,
    mut timings: Timings,
) -> CompareResponse {
    let evaluations =
        std::iter::once(&reference).chain(candidates.iter().map(|candidate| &candidate.evaluation));
    evaluations.clone().for_each(|evaluation| timings.add(&evaluation.timings));
    let on_device = evaluations.clone().find(|evaluation| evaluation.device.is_some());
    let on_device = on_device.unwrap_or(&reference);
    let is_ours = |evaluation: &EvaluateResponse| evaluation.status == ResponseStatus::Error;
    let status = match candidates.iter().any(|candidate| is_ours(&candidate.evaluation)) {
        true => ResponseStatus::Error,
        false => ResponseStatus::Success,
    };
    let first = candidates.first();
    let mut response = CompareResponse {
        matrices: Vec::new(),
        tensors: Vec::new(),
        warnings: Vec::new(),
        job_id: job_id.to_owned(),
        status,
        verdict: Some(CandidateReport::worst(&candidates)),
        ref_runtime: reference.kernel_exec_result.runtime_stats,
        kernel_exec_result: first
            .map(|first| first.evaluation.kernel_exec_result.clone())
            .unwrap_or_default(),
        gpu_type: on_device.gpu_type.clone(),
        pod_name: None,
        pod_ip: None,
        device: on_device.device.clone(),
        verdict_by: VerdictBy::Nothing,
        comparison: first.and_then(|first| first.comparison.clone()),
        not_compared: first.and_then(|first| first.not_compared.clone()),
        ranking: None,
        counted: first.and_then(|first| first.counted),
        counted_ranking: Vec::new(),
        reference,
        candidates,
        timings,
    };
    show_both_sides(&mut response);
    response
}

/// Builds the report of one candidate.
fn candidate_report(
    name: String,
    evaluation: EvaluateResponse,
    compared: Compared,
) -> CandidateReport {
    let (comparison, unranked) = match compared.comparison {
        Ok(comparison) => (Some(comparison), None),
        Err(why) => (None, Some(why)),
    };
    let is_right = evaluation.is_timed();
    let wrong = "the candidate is not right, so its times are meaningless";
    let weak = evaluation.why_weak();
    let weak =
        weak.map(|why| format!("a useless kernel would pass, too, so nothing is compared: {why}"));
    let is_weak = weak.is_some();
    let (code_diff, no_code_diff) = match compared.code_diff {
        Some(Ok(diff)) => (Some(diff), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    CandidateReport {
        name,
        evaluation,
        comparison: comparison.filter(|_| !is_weak),
        not_compared: weak.or(unranked.map(|why| if is_right { why } else { wrong.to_owned() })),
        same_image: compared.same_image,
        identical_code: compared.identical_code,
        counted: compared.counted.filter(|_| !is_weak),
        counts: compared.counts,
        code_diff,
        no_code_diff,
    }
}

/// Adds the reference's metrics to those of the first candidate, in the fields that the CUDA
/// Evaluation Server uses for both.
fn show_both_sides(response: &mut CompareResponse) {
    let of_reference = response.reference.kernel_exec_result.metadata.device_metrics.as_ref();
    let shown = response.kernel_exec_result.metadata.device_metrics.as_mut();
    let (Some(reference), Some(shown)) = (of_reference, shown) else { return };
    if shown.custom_device_metrics.is_none() {
        let groups = reference.original_device_metrics.clone();
        shown.custom_device_metrics =
            Some(std::mem::replace(&mut shown.original_device_metrics, groups));
    }
}
