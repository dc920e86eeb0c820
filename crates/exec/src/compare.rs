//! One comparison from contract to report: each kernel evaluated on its own, then pairs side by
//! side, all on one device.

use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::error::{self, ExecError};
use super::local::LocalExecutor;
use super::prepare::{self, CompileOutcome, Prepared};
use super::progress::ActiveOrder;
use super::run::{Laid, Purpose, Ran, ms, need};
use super::{assemble, decision, recorded};
use warpgauge_contract::{
    Candidate, CompareRequest, EvaluateRequest, InputChoice, KernelCode, KernelFamily,
};
use warpgauge_measure::paired::{self, PairOutcome, PairedComparison, Ranking};
use warpgauge_measure::{COMPARED_COUNTS, Counted, Preset, rank_counted};
use warpgauge_model::{DeviceInfo, DeviceKind, JobStage};
use warpgauge_report::{
    Availability, CandidateReport, CompareResponse, CountComparison, EvaluateResponse,
    ResponseStatus, Timings, VerdictBy,
};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{Job, PairPlan};

mod faults;
mod same_image;
mod tuned;

use same_image::{is_same_image, set_same_image, unmeasured};

pub(super) use faults::REFERENCE_PATH;
pub(super) use faults::{placed, unusable_reference};

/// A kernel that was evaluated on its own.
pub(super) struct Evaluated {
    report: EvaluateResponse,
    /// `None` if it did not compile.
    pub(super) prepared: Option<Prepared>,
    /// What the emulator counted in one launch.
    counts: Option<std::collections::BTreeMap<String, u64>>,
}

impl Evaluated {
    /// Whether its times may be compared: nothing is known against it.
    fn is_comparable(&self) -> bool {
        self.prepared.is_some() && self.report.kernel_exec_result.runtime.is_some()
    }

    /// What it does in one launch, if it may be compared.
    fn counted(&self) -> Option<Counted> {
        self.report.counted.filter(|_| self.is_comparable())
    }
}

impl LocalExecutor {
    /// Takes one comparison to its report. Boxed: one may be part of another, and each is large.
    pub(super) fn compare<'a>(
        &'a self,
        job: &'a ActiveOrder<'_>,
        request: CompareRequest,
    ) -> BoxFuture<'a, Result<CompareResponse, ExecError>> {
        self.compare_any(job, request).boxed()
    }

    async fn compare_any(
        &self,
        job: &ActiveOrder<'_>,
        mut request: CompareRequest,
    ) -> Result<CompareResponse, ExecError> {
        if self.config.devices.device_metrics {
            request.profile.get_or_insert_default();
        }
        let mut response = if request.is_mixed() {
            Box::pin(self.compare_mixed(job, request)).await?
        } else if request.ref_kernel.family() == KernelFamily::Torch {
            Box::pin(self.compare_torch(job, request)).await?
        } else {
            Box::pin(self.compare_on_device(job, request)).await?
        };
        show_both_sides(&mut response);
        Ok(response)
    }

    async fn compare_on_device(
        &self,
        job: &ActiveOrder<'_>,
        mut request: CompareRequest,
    ) -> Result<CompareResponse, ExecError> {
        let arrived = Instant::now();
        warpgauge_contract::validate_compare(&request, &self.limits).map_err(error::invalid)?;
        let device = self.device_for(&request.requires)?;
        let tunings = self.tune_all(job, &mut request, &device).await?;
        let candidates = request.named_candidates();
        job.stage(JobStage::Compiling);
        let mut built = self.build_all(job, &request, &candidates, &device).await?;
        for (built, earlier) in built.iter_mut().zip(&tunings.compiled_ms) {
            built.compile_ms += earlier;
        }
        if let [Built { compiled: CompileOutcome::Failed(failure), compile_ms }] = &built[..] {
            let reference = request.evaluation_of(&request.ref_kernel);
            let timings =
                Timings { compile: *compile_ms, total: ms(arrived), ..Timings::default() };
            let report = assemble::not_compiled(job.id(), &reference, &device, failure, timings);
            recorded::evaluation(&report);
            return Err(unusable_reference(&report));
        }
        let same_image = is_same_image(&request, &candidates, &built);
        let request = if same_image { unmeasured(request) } else { request };
        job.stage(JobStage::WaitingForDevice);
        let queued = Instant::now();
        let need = need(job, &device, &request.requires);
        let lease = self.quiet_lease(&need).await?;
        let waited = ms(queued);
        let mut bench = Bench { shared: self, job, request: &request, lease, runs: 0 };
        let mut built = built.into_iter();
        let mut next = || built.next().ok_or_else(too_few_builds);

        let reference = bench.evaluate(&request.ref_kernel, next()?, "reference").await;
        let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?;
        if !reference.is_comparable() {
            return Err(unusable_reference(&reference.report));
        }
        let mut evaluated = vec![reference];
        for (index, candidate) in candidates.iter().enumerate() {
            let own = bench.evaluate(&candidate.kernel, next()?, &candidate.name).await;
            evaluated.push(own.map_err(|error| placed(error, &request.path_of(index)))?);
        }
        let (pairs, failures) =
            if same_image { Default::default() } else { bench.pairs(&evaluated).await };
        let device = bench.lease.device().clone();
        drop(bench);
        let codes = self.code_diffs(job, &request, &device, &evaluated).await;
        let mut response = assemble(job.id(), &device, &candidates, evaluated, &pairs, &failures);
        tunings.put_into(&mut response);
        if same_image {
            set_same_image(&mut response);
        }
        for (report, code) in response.candidates.iter_mut().zip(codes) {
            match code {
                Some(Ok(diff)) => report.code_diff = Some(diff),
                Some(Err(why)) => report.no_code_diff = Some(why),
                None => {}
            }
        }
        if candidates.len() > 1 {
            let alpha = decision::policy(&request).alpha;
            response.ranking = ranking(candidates.len() + 1, &pairs, alpha)?;
        }
        response.timings.queue = waited;
        response.timings.total = ms(arrived);
        Ok(response)
    }

    /// Has the cache hold the images of a comparison, as far as its kernels compile.
    pub(super) async fn compile_ahead_all(
        &self,
        job: &ActiveOrder<'_>,
        request: &CompareRequest,
        device: &DeviceInfo,
    ) {
        // Whoever compares the kernels is told what is wrong with them.
        let _ = self.build_all(job, request, &request.named_candidates(), device).await;
    }

    /// As [`Self::compile_ahead_all`], of an evaluation.
    pub(super) async fn compile_ahead(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        device: &DeviceInfo,
    ) {
        let _ = prepare::compile(&self.compiler, request, &device.target, job.owner()).await;
    }

    /// Compiles the reference and all candidates at once, before a device is held for any of them. They
    /// come in that order.
    async fn build_all(
        &self,
        job: &ActiveOrder<'_>,
        request: &CompareRequest,
        candidates: &[Candidate],
        device: &DeviceInfo,
    ) -> Result<Vec<Built>, ExecError> {
        let kernels = std::iter::once((&request.ref_kernel, REFERENCE_PATH.to_owned())).chain(
            candidates
                .iter()
                .enumerate()
                .map(|(index, candidate)| (&candidate.kernel, request.path_of(index))),
        );
        let builds = kernels.map(async |(kernel, path)| {
            let request = request.evaluation_of(kernel);
            let began = Instant::now();
            let compiled =
                prepare::compile(&self.compiler, &request, &device.target, job.owner()).await;
            let compiled = compiled.map_err(|error| placed(error, &path))?;
            Ok(Built { compiled, compile_ms: ms(began) })
        });
        // Of several faults the first kernel's is told.
        let mut built = futures_util::future::join_all(builds).await;
        // What candidates are compared with does not compile for them either.
        if matches!(&built[0], Ok(Built { compiled: CompileOutcome::Failed(_), .. })) {
            built.truncate(1);
        }
        built.into_iter().collect()
    }
}

/// A kernel of a comparison, compiled.
struct Built {
    compiled: CompileOutcome,
    /// Milliseconds of wall clock. Kernels are compiled side by side: the times overlap.
    compile_ms: f64,
}

/// Puts the reference's metrics beside those of the first candidate, where the CUDA Evaluation Server has them.
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

fn too_few_builds() -> ExecError {
    let error = std::io::Error::other("there are fewer compiled kernels than kernels");
    error::internal("comparing kernels", &error)
}

/// A device, and what is compared on it.
struct Bench<'a> {
    shared: &'a LocalExecutor,
    job: &'a ActiveOrder<'a>,
    request: &'a CompareRequest,
    lease: Lease,
    /// Runs so far: each gets an id of its own.
    runs: u32,
}

/// A pair of kernels, by index, and how they compare.
struct Pair {
    reference: usize,
    candidate: usize,
    comparison: PairedComparison,
}

/// A pair that could not be compared, and why.
struct Failure {
    reference: usize,
    candidate: usize,
    reason: String,
}

impl Bench<'_> {
    /// Evaluates a compiled kernel on its own, against the reference's outputs.
    async fn evaluate(
        &mut self,
        kernel: &KernelCode,
        built: Built,
        name: &str,
    ) -> Result<Evaluated, ExecError> {
        let request = self.request.evaluation_of(kernel);
        let Built { compiled, compile_ms } = built;
        let device = self.lease.device().clone();
        let began = Instant::now();
        let mut timings = Timings { compile: compile_ms, ..Timings::default() };
        self.job.keep(super::run::kept(name, &request, &device, &compiled));
        let compiled = match compiled {
            CompileOutcome::Compiled(compiled) => *compiled,
            CompileOutcome::Failed(failure) => {
                timings.total = compile_ms + ms(began);
                let id = self.job.id();
                let report = assemble::not_compiled(id, &request, &device, &failure, timings);
                recorded::evaluation(&report);
                return Ok(Evaluated { report, prepared: None, counts: None });
            }
        };
        let id = self.next_id(name);
        let laid = self.shared.lay_out(self.job, request, compiled, id, Purpose::Rank).await?;
        let Laid { request, prepared, look } = laid;
        let (shared, run) = (self.shared, prepared.job.clone());
        let mut outcome = shared.execute(self.job, &request, run, &mut self.lease).await;
        self.shared.linted.settle(look, &mut outcome);
        let counts = outcome.told.counts.as_ref().map(|counts| counts.counts.clone());
        timings.set_worker(&outcome.timings);
        let (shared, lease) = (self.shared, &mut self.lease);
        if request.profile.is_some() {
            self.job.stage(JobStage::Profiling);
        }
        let tool_runs = shared.run_tools(lease, &request, &prepared, &outcome).await;
        self.job.keep_files(&tool_runs.artifacts);
        timings.profile = tool_runs.profile_ms;
        timings.total = compile_ms + ms(began);
        let ran = Ran { request, prepared, outcome, tool_runs, device };
        let mut report = assemble::ran(self.job.id(), &ran, timings)
            .map_err(|error| error::internal("building the report", &error))?;
        if self.request.profile.is_some() && !kernel.family().has_metrics() {
            let reason = "hardware metrics of a library's function are not collected";
            report.profile =
                Some(Availability { available: false, reason: Some(reason.to_owned()) });
        }
        recorded::evaluation(&report);
        Ok(Evaluated { report, prepared: Some(ran.prepared), counts })
    }

    fn next_id(&mut self, name: &str) -> String {
        self.runs += 1;
        format!("{}-{}-{name}", self.job.id(), self.runs)
    }

    /// Compares every pair of comparable kernels.
    async fn pairs(&mut self, evaluated: &[Evaluated]) -> (Vec<Pair>, Vec<Failure>) {
        let (mut pairs, mut failures) = (Vec::new(), Vec::new());
        if self.lease.device().kind == DeviceKind::Emulator {
            return (pairs, failures);
        }
        let able = (0..evaluated.len()).filter(|&index| evaluated[index].is_comparable());
        let able = able.collect::<Vec<_>>();
        let count = able.len() * (able.len().saturating_sub(1)) / 2;
        for (position, &candidate) in able.iter().enumerate() {
            for &reference in &able[..position] {
                match self.pair(&evaluated[reference], &evaluated[candidate], count).await {
                    Ok(comparison) => pairs.push(Pair { reference, candidate, comparison }),
                    Err(reason) => failures.push(Failure { reference, candidate, reason }),
                }
            }
        }
        (pairs, failures)
    }

    /// Measures two kernels side by side; the error is why that failed.
    async fn pair(
        &mut self,
        reference: &Evaluated,
        candidate: &Evaluated,
        pairs: usize,
    ) -> Result<PairedComparison, String> {
        let (Some(a), Some(b)) = (&reference.prepared, &candidate.prepared) else {
            return Err("one of the kernels did not compile".to_owned());
        };
        let budget = &Preset::builtin(self.request.measure.preset).compare;
        let policy = decision::policy(self.request).for_family(pairs);
        let plan = PairPlan {
            rival: b.job.program.launches.clone(),
            tolerances: a.job.task.checks.tolerances.clone(),
            policy: policy.clone(),
            trials_per_slot: budget.trials_per_slot,
            max_time_s: decision::max_time_s(self.request),
            cache: self.request.measure.cache,
            fresh_inputs: self.request.measure.inputs == InputChoice::Fresh,
        };
        let mut request = self.request.evaluation_of(&self.request.ref_kernel);
        // What the comparison is to take does not count as hanging.
        request.timeout += plan.max_time_s;
        let job = Job { id: self.next_id("pair"), ..a.job.with(plan) };
        let shared = self.shared;
        let outcome = shared.run_task(self.job, &request, job, &mut self.lease).await;
        if let Some(failure) = outcome.failure {
            return Err(format!(
                "side by side the run failed ({}): {}",
                failure.code, failure.message
            ));
        }
        Ok(paired::decide_at_end(&outcome.told.blocks, &policy))
    }
}

/// The order of those that were compared; one that is in no pair, such as a wrong one, has no rank.
fn ranking(count: usize, pairs: &[Pair], alpha: f64) -> Result<Option<Ranking>, ExecError> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let outcomes = pairs.iter().map(|pair| PairOutcome {
        reference: pair.reference,
        candidate: pair.candidate,
        comparison: &pair.comparison,
    });
    let mut ranking = paired::rank(count, &outcomes.collect::<Vec<_>>(), alpha)
        .map_err(|error| error::internal("ranking the candidates", &error))?;
    let compared =
        |index: usize| pairs.iter().any(|pair| pair.reference == index || pair.candidate == index);
    ranking.candidates.retain(|one| compared(one.index as usize));
    Ok(Some(ranking))
}

fn assemble(
    job_id: &str,
    device: &DeviceInfo,
    candidates: &[Candidate],
    mut evaluated: Vec<Evaluated>,
    pairs: &[Pair],
    failures: &[Failure],
) -> CompareResponse {
    let reference = evaluated.remove(0);
    let mut timings = reference.report.timings;
    let reports = candidates.iter().zip(&evaluated).enumerate().map(|(index, (named, own))| {
        let with = |reference: usize, candidate: usize| reference == 0 && candidate == index + 1;
        let pair = pairs.iter().find(|pair| with(pair.reference, pair.candidate));
        let failed = failures.iter().find(|failure| with(failure.reference, failure.candidate));
        let identical = reference.prepared.as_ref().zip(own.prepared.as_ref());
        timings.add(&own.report.timings);
        CandidateReport {
            name: named.name.clone(),
            evaluation: own.report.clone(),
            comparison: pair.map(|pair| pair.comparison.clone()),
            not_compared: pair.is_none().then(|| why_not(device, own, failed)),
            same_image: false,
            identical_code: identical.and_then(|(a, b)| a.artifact.same_code(&b.artifact)),
            counted: reference.counted().zip(own.counted()).map(|(a, b)| b.beside(a)),
            counts: counts(&reference, own),
            code_diff: None,
            no_code_diff: None,
        }
    });
    let candidates = reports.collect::<Vec<_>>();
    let kernels = std::iter::once(&reference).chain(&evaluated).map(Evaluated::counted);
    let kernels = kernels.collect::<Vec<_>>();
    let counted_ranking = if candidates.len() > 1 { rank_counted(&kernels) } else { Vec::new() };
    let first = &candidates[0];
    let ours = candidates.iter().any(|one| one.evaluation.status == ResponseStatus::Error);
    CompareResponse {
        matrices: Vec::new(),
        tensors: Vec::new(),
        job_id: job_id.to_owned(),
        status: if ours { ResponseStatus::Error } else { ResponseStatus::Success },
        ref_runtime: reference.report.kernel_exec_result.runtime_stats,
        kernel_exec_result: first.evaluation.kernel_exec_result.clone(),
        gpu_type: Some(device.name.clone()),
        device: Some(device.into()),
        verdict_by: match device.kind {
            DeviceKind::Cuda => VerdictBy::Times,
            DeviceKind::Emulator => VerdictBy::Counts,
        },
        counted: first.counted,
        counted_ranking,
        comparison: first.comparison.clone(),
        not_compared: first.not_compared.clone(),
        ranking: None,
        reference: reference.report,
        timings,
        candidates,
    }
}

fn why_not(device: &DeviceInfo, candidate: &Evaluated, failed: Option<&Failure>) -> String {
    if let Some(failure) = failed {
        return failure.reason.clone();
    }
    if !candidate.is_comparable() {
        return "the candidate is not right, so its times say nothing".to_owned();
    }
    match device.kind {
        DeviceKind::Emulator => "times of the emulated device are not compared; see the counts",
        DeviceKind::Cuda => "the reference has no usable times",
    }
    .to_owned()
}

/// Counts of both kernels; none where one was not counted.
fn counts(reference: &Evaluated, candidate: &Evaluated) -> Vec<CountComparison> {
    let (Some(theirs), Some(own)) = (&reference.counts, &candidate.counts) else {
        return Vec::new();
    };
    let compared = COMPARED_COUNTS.iter().filter_map(|&name| {
        let (reference, candidate) = (*theirs.get(name)?, *own.get(name)?);
        let ratio = (reference > 0).then(|| candidate as f64 / reference as f64);
        Some(CountComparison { count: name.to_owned(), reference, candidate, ratio })
    });
    compared.collect()
}

#[cfg(test)]
mod tests;
