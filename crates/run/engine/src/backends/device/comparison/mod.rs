//! Comparisons of kernels that workers run. First all kernels are compiled. Then each is evaluated
//! alone, and pairs are run side by side, all during one lease. The main type is [`DeviceSession`].

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{DeviceBackend, Laid};
use crate::backend::Purpose;
use crate::backend::{
    Compared, ComparisonSession, Conclusion, Contest, NotCompiled, REFERENCE_PATH, decision, placed,
};
use crate::clock::ms;
use crate::error::{self, ExecError};
use crate::host::need;
use crate::prepare::{self, CompileOutcome, Prepared};
use crate::profiling::tool_runs;
use crate::progress::ActiveOrder;
use crate::reporting::{Additions, Ran, assemble, finished};
use warpgauge_contract::{Candidate, CompareRequest, InputChoice, KernelCode};
use warpgauge_model::{DeviceInfo, DeviceKind, JobStage};
use warpgauge_report::{
    CountComparison, EvaluateResponse, KernelVerdict, Timings, TuningReport, VerdictBy,
};
use warpgauge_statistics::paired::{self, PairOutcome, PairedComparison, Ranking};
use warpgauge_statistics::{COMPARED_COUNTS, Counted, CountedRank, Preset, rank_counted};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{PairPlan, WorkerJob};

mod code_diffs;
mod same_image;
mod tuned;

/// The reason why times of the emulated device are not compared.
const EMULATED: &str = "times of the emulated device are not compared; see the counts";

/// Result of compiling a kernel of a comparison.
struct Built {
    compiled: CompileOutcome,
    /// Wall-clock time in milliseconds. Kernels are compiled in parallel, so their times overlap.
    compile_ms: f64,
    /// How the kernel's configuration was chosen.
    tuning: Option<TuningReport>,
}

/// Results of an evaluation that the paired runs need.
struct Evaluated {
    /// `None` if the kernel did not compile.
    prepared: Option<Prepared>,
    /// Counts of the emulated device for one launch.
    counts: Option<BTreeMap<String, u64>>,
}

/// A kernel of a comparison after its evaluation.
#[derive(Clone, Copy)]
struct Side<'a> {
    evaluated: &'a Evaluated,
    report: &'a EvaluateResponse,
}

impl Side<'_> {
    /// Returns whether the kernel's times may be compared. No check of the kernel or of its
    /// contract may have failed, and the kernel must have been timed.
    fn is_comparable(&self) -> bool {
        self.evaluated.prepared.is_some()
            && self.report.kernel_exec_result.runtime.is_some()
            && self.report.kernel_verdict() != KernelVerdict::Weak
    }

    /// Returns whether no check failed. The kernel's time may nevertheless have no rank.
    fn is_right(&self) -> bool {
        self.report.is_timed()
    }

    /// Returns the kernel's counts for one launch, or `None` if they may not be compared.
    fn counted(&self) -> Option<Counted> {
        self.report.counted.filter(|_| self.is_comparable())
    }
}

/// A pair of kernels, by their positions in the session, and the result of their comparison.
struct Pair {
    reference: usize,
    candidate: usize,
    outcome: Result<PairedComparison, String>,
}

impl Pair {
    fn is_of(&self, reference: usize, candidate: usize) -> bool {
        self.reference == reference && self.candidate == candidate
    }
}

/// The kernels of a comparison, which run during one lease. The reference is at position 0.
pub(super) struct DeviceSession<'a> {
    backend: &'a DeviceBackend,
    job: &'a ActiveOrder<'a>,
    request: CompareRequest,
    /// Candidates with their indices among all candidates of the request.
    candidates: Vec<(usize, Candidate)>,
    /// Whether the only candidate equals the reference, so that no time needs to be measured.
    is_same_image: bool,
    lease: Lease,
    queue_ms: f64,
    /// Number of runs so far. It is part of the id of each run.
    runs: u32,
    /// Compiled kernels that are not evaluated yet.
    built: std::vec::IntoIter<Built>,
    evaluated: Vec<Evaluated>,
}

impl DeviceBackend {
    /// Compiles the kernels of a comparison into the cache. Failures are ignored.
    pub(crate) async fn compile_ahead_all(
        &self,
        job: &ActiveOrder<'_>,
        request: &CompareRequest,
        device: &DeviceInfo,
    ) {
        let candidates: Vec<_> = request.named_candidates().into_iter().enumerate().collect();
        // The comparison reports the failures.
        let _ = self.build_all(job, request, &candidates, device).await;
    }

    /// Compiles the reference and all candidates in parallel, before a device is leased. Returns
    /// the reference first, then the candidates in order.
    async fn build_all(
        &self,
        job: &ActiveOrder<'_>,
        request: &CompareRequest,
        candidates: &[(usize, Candidate)],
        device: &DeviceInfo,
    ) -> Result<Vec<Built>, ExecError> {
        let of_candidates =
            candidates.iter().map(|(index, one)| (&one.kernel, request.path_of(*index)));
        let kernels =
            std::iter::once((&request.ref_kernel, REFERENCE_PATH.to_owned())).chain(of_candidates);
        let builds = kernels.map(async |(kernel, path)| {
            let request = request.evaluation_of(kernel);
            let began = Instant::now();
            let compiled =
                prepare::compile(&self.host.compiler, &request, &device.target, job.owner()).await;
            let compiled = compiled.map_err(|error| placed(error, &path))?;
            Ok(Built { compiled, compile_ms: ms(began), tuning: None })
        });
        // If several kernels fail, the error of the first is returned.
        let mut built = futures_util::future::join_all(builds).await;
        // The reference does not compile, so there is nothing to compare the candidates with.
        if matches!(&built[0], Ok(Built { compiled: CompileOutcome::Failed(_), .. })) {
            built.truncate(1);
        }
        built.into_iter().collect()
    }
}

impl<'a> DeviceSession<'a> {
    /// Chooses configurations, compiles all kernels, and waits for a device.
    pub(super) async fn open(
        backend: &'a DeviceBackend,
        job: &'a ActiveOrder<'a>,
        contest: Contest,
    ) -> Result<Box<dyn ComparisonSession + Send + 'a>, ExecError> {
        let arrived = Instant::now();
        let host = &backend.host;
        let device = host.device_for(&contest.request.requires)?;
        let (contest, tunings) = tuned::choose_all(backend, job, contest, &device).await?;
        let candidates = contest.candidates();
        let request = contest.request;
        job.stage(JobStage::Compiling);
        let mut built = backend.build_all(job, &request, &candidates, &device).await?;
        for (built, tuning) in built.iter_mut().zip(tunings) {
            built.compile_ms += tuning.compile_ms;
            built.tuning = tuning.report;
        }
        if let [Built { compiled: CompileOutcome::Failed(failure), compile_ms, .. }] = &built[..] {
            let reference = request.evaluation_of(&request.ref_kernel);
            let timings = Timings { compile: *compile_ms, ..Timings::default() };
            let report = assemble::not_compiled(job.id(), &reference, &device, failure, timings);
            let additions = Additions::default();
            let report = finished(report, request.allow_weak, ms(arrived), additions);
            return Ok(Box::new(NotCompiled(report)));
        }
        let is_same_image = same_image::is_same_image(&request, &candidates, &built);
        let request = if is_same_image { same_image::unmeasured(request) } else { request };
        job.stage(JobStage::WaitingForDevice);
        let queued = Instant::now();
        let lease = host.quiet_lease(&need(job, &device, &request.requires)).await?;
        Ok(Box::new(Self {
            backend,
            job,
            request,
            candidates,
            is_same_image,
            lease,
            queue_ms: ms(queued),
            runs: 0,
            built: built.into_iter(),
            evaluated: Vec::new(),
        }))
    }

    /// Evaluates the next kernel alone, against the reference's outputs.
    async fn evaluate_next(&mut self) -> Result<EvaluateResponse, ExecError> {
        let place = self.evaluated.len();
        let candidate = place.checked_sub(1).and_then(|own| self.candidates.get(own));
        let (name, kernel) = match candidate {
            Some((_, candidate)) => (candidate.name.clone(), candidate.kernel.clone()),
            None => ("reference".to_owned(), self.request.ref_kernel.clone()),
        };
        let built = self.built.next().ok_or_else(too_few_builds)?;
        let (report, evaluated) = self.evaluate(&name, &kernel, built).await?;
        self.evaluated.push(evaluated);
        Ok(report)
    }

    async fn evaluate(
        &mut self,
        name: &str,
        kernel: &KernelCode,
        built: Built,
    ) -> Result<(EvaluateResponse, Evaluated), ExecError> {
        let (backend, job) = (self.backend, self.job);
        let request = self.request.evaluation_of(kernel);
        let Built { compiled, compile_ms, tuning } = built;
        let device = self.lease.device().clone();
        let began = Instant::now();
        let mut timings = Timings { compile: compile_ms, ..Timings::default() };
        job.keep(super::kept(name, &request, &device, &compiled));
        let compiled = match compiled {
            CompileOutcome::Compiled(compiled) => *compiled,
            CompileOutcome::Failed(failure) => {
                let report = assemble::not_compiled(job.id(), &request, &device, &failure, timings);
                let took_ms = compile_ms + ms(began);
                let additions = Additions::tuned(tuning);
                let report = finished(report, request.allow_weak, took_ms, additions);
                return Ok((report, Evaluated { prepared: None, counts: None }));
            }
        };
        let id = self.next_id(name);
        let laid = backend.lay_out(job, request, compiled, id, Purpose::Rank).await?;
        let Laid { request, mut prepared, look, contract } = laid;
        let run = prepared.job.clone();
        let mut outcome = backend.execute(job, (&request, contract), run, &mut self.lease).await;
        backend.linted.settle(look, &mut outcome);
        prepared.job.task.checks.take_settled(&outcome.told.checks);
        super::keep_counted(job, name, (&request, &device), &prepared, &outcome);
        let counts = outcome.told.counts.as_ref().map(|counts| counts.counts.clone());
        timings.set_worker(&outcome.timings);
        if request.profile.is_some() {
            job.stage(JobStage::Profiling);
        }
        let lease = &mut self.lease;
        let tool_runs = tool_runs::run(&backend.host, lease, &request, &prepared, &outcome).await;
        job.keep_files(&tool_runs.artifacts);
        timings.profile = tool_runs.profile_ms;
        let ran = Ran { request, prepared, outcome, tool_runs, device };
        let report = assemble::ran(job.id(), &ran, timings)
            .map_err(|error| error::internal("building the report", &error))?;
        let is_unprofiled = self.request.profile.is_some() && !kernel.family().has_metrics();
        let unprofiled = is_unprofiled
            .then(|| "hardware metrics of a library's function are not collected".to_owned());
        let additions = Additions { unprofiled, ..Additions::tuned(tuning) };
        let report = finished(report, ran.request.allow_weak, compile_ms + ms(began), additions);
        Ok((report, Evaluated { prepared: Some(ran.prepared), counts }))
    }

    fn next_id(&mut self, name: &str) -> String {
        self.runs += 1;
        format!("{}-{}-{name}", self.job.id(), self.runs)
    }

    /// Compares the kernels whose times may be compared, pair by pair.
    async fn pairs(&mut self, reports: &[EvaluateResponse]) -> Vec<Pair> {
        if self.is_same_image || self.lease.device().kind == DeviceKind::Emulator {
            return Vec::new();
        }
        let able = sides(&self.evaluated, reports).into_iter().enumerate();
        let able = able.filter(|(_, side)| side.is_comparable()).map(|(place, _)| place);
        let able = able.collect::<Vec<_>>();
        let count = able.len() * (able.len().saturating_sub(1)) / 2;
        let mut pairs = Vec::with_capacity(count);
        for (position, &candidate) in able.iter().enumerate() {
            for &reference in &able[..position] {
                let outcome = self.pair(reference, candidate, count).await;
                pairs.push(Pair { reference, candidate, outcome });
            }
        }
        pairs
    }

    /// Measures two kernels side by side. An error contains the reason for the failure.
    async fn pair(
        &mut self,
        reference: usize,
        candidate: usize,
        pairs: usize,
    ) -> Result<PairedComparison, String> {
        let id = self.next_id("pair");
        let prepared = |place: usize| self.evaluated[place].prepared.as_ref();
        let (Some(a), Some(b)) = (prepared(reference), prepared(candidate)) else {
            return Err("one of the kernels did not compile".to_owned());
        };
        let budget = &Preset::builtin(self.request.measure.preset).compare;
        let policy = decision::policy(&self.request).for_family(pairs);
        let plan = PairPlan {
            rival: b.job.program.launches.clone(),
            tolerances: a.job.task.checks.tolerances.clone(),
            arrangements: a.job.task.checks.arrangements.clone(),
            policy: policy.clone(),
            trials_per_slot: budget.trials_per_slot,
            max_time_s: decision::max_time_s(&self.request),
            cache: self.request.measure.cache,
            fresh_inputs: self.request.measure.inputs == InputChoice::Fresh,
        };
        let mut request = self.request.evaluation_of(&self.request.ref_kernel);
        // The planned time of the comparison is added to the timeout.
        request.timeout += plan.max_time_s;
        let run = WorkerJob { id, ..a.job.with(plan) };
        let outcome = self.backend.run_task(self.job, &request, run, &mut self.lease).await;
        if let Some(failure) = outcome.failure {
            return Err(format!(
                "the side-by-side run failed ({}): {}",
                failure.code, failure.message
            ));
        }
        Ok(paired::decide_at_end(&outcome.told.blocks, &policy))
    }

    async fn concluded(mut self, reports: &[EvaluateResponse]) -> Result<Conclusion, ExecError> {
        let pairs = self.pairs(reports).await;
        let device = self.lease.device().clone();
        let Self { backend, job, request, candidates, is_same_image, lease, evaluated, .. } = self;
        drop(lease);
        let sides = sides(&evaluated, reports);
        let codes = code_diffs::all(backend, job, &request, &candidates, &device, &evaluated).await;
        let Some((reference, others)) = sides.split_first() else {
            return Err(too_few_builds());
        };
        let compared = others.iter().zip(codes).enumerate().map(|(own, (side, code_diff))| {
            let pair = pairs.iter().find(|pair| pair.is_of(0, own + 1));
            let (a, b) = (&reference.evaluated.prepared, &side.evaluated.prepared);
            let same_image = is_same_image && side.is_right();
            let comparison = match pair {
                _ if same_image => Err(same_image::NOTHING_TO_MEASURE.to_owned()),
                Some(pair) => pair.outcome.clone(),
                None => Err(why_not(&device, reference.report, side.report)),
            };
            Compared {
                comparison,
                same_image,
                identical_code: a
                    .as_ref()
                    .zip(b.as_ref())
                    .and_then(|(a, b)| a.artifact.same_code(&b.artifact)),
                counted: reference.counted().zip(side.counted()).map(|(a, b)| b.beside(a)),
                counts: counts(reference.evaluated, side.evaluated),
                code_diff,
            }
        });
        let compared = compared.collect();
        let has_several = candidates.len() > 1;
        // Positions in the session differ from indices among all kernels if some run in another
        // runtime.
        let indices = candidates.iter().map(|(index, _)| *index as u32 + 1);
        let indices = std::iter::once(0).chain(indices).collect::<Vec<_>>();
        let alpha = decision::policy(&request).alpha;
        let ranking = match has_several {
            true => ranking(sides.len(), &pairs, alpha)?.map(|found| among_all(found, &indices)),
            false => None,
        };
        let counted = sides.iter().map(Side::counted).collect::<Vec<_>>();
        let counted = if has_several { rank_counted(&counted) } else { Vec::new() };
        let of_all =
            |rank: CountedRank| CountedRank { index: indices[rank.index as usize], ..rank };
        Ok(Conclusion {
            queue_ms: self.queue_ms,
            verdict_by: match device.kind {
                _ if candidates.is_empty() => VerdictBy::Nothing,
                DeviceKind::Cuda => VerdictBy::Times,
                DeviceKind::Emulator => VerdictBy::Counts,
            },
            compared,
            ranking,
            counted_ranking: counted.into_iter().map(of_all).collect(),
        })
    }
}

impl ComparisonSession for DeviceSession<'_> {
    fn reference(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>> {
        self.evaluate_next().boxed()
    }

    fn next_candidate(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>> {
        self.evaluate_next().boxed()
    }

    fn conclude<'a>(
        self: Box<Self>,
        reports: &'a [EvaluateResponse],
    ) -> BoxFuture<'a, Result<Conclusion, ExecError>>
    where
        Self: 'a,
    {
        self.concluded(reports).boxed()
    }
}

fn too_few_builds() -> ExecError {
    let error = std::io::Error::other("there are fewer compiled kernels than kernels");
    error::internal("comparing kernels", &error)
}

fn sides<'a>(evaluated: &'a [Evaluated], reports: &'a [EvaluateResponse]) -> Vec<Side<'a>> {
    let side = |(evaluated, report)| Side { evaluated, report };
    evaluated.iter().zip(reports).map(side).collect()
}

/// Returns the reason why a correct candidate was not paired with the reference.
fn why_not(
    device: &DeviceInfo,
    reference: &EvaluateResponse,
    candidate: &EvaluateResponse,
) -> String {
    match (reference.unranked(), candidate.unranked(), device.kind) {
        (Some(why), _, _) => format!("of the reference: {why}"),
        (None, Some(why), _) => format!("of the candidate: {why}"),
        (None, None, DeviceKind::Emulator) => EMULATED.to_owned(),
        (None, None, DeviceKind::Cuda) => "the reference has no usable times".to_owned(),
    }
}

/// Ranks the kernels that were compared. A kernel without pairs, such as a wrong one, has no rank.
fn ranking(count: usize, pairs: &[Pair], alpha: f64) -> Result<Option<Ranking>, ExecError> {
    let outcomes = pairs.iter().filter_map(|pair| {
        let comparison = pair.outcome.as_ref().ok()?;
        Some(PairOutcome { reference: pair.reference, candidate: pair.candidate, comparison })
    });
    let outcomes = outcomes.collect::<Vec<_>>();
    if outcomes.is_empty() {
        return Ok(None);
    }
    let mut ranking = paired::rank(count, &outcomes, alpha)
        .map_err(|error| error::internal("ranking the candidates", &error))?;
    let compared = |place: usize| {
        outcomes.iter().any(|pair| pair.reference == place || pair.candidate == place)
    };
    ranking.candidates.retain(|one| compared(one.index as usize));
    Ok(Some(ranking))
}

/// Converts positions in a ranking to the indices of the kernels at those positions.
fn among_all(mut ranking: Ranking, indices: &[u32]) -> Ranking {
    let of_all = |place: &mut u32| *place = indices[*place as usize];
    ranking.candidates.iter_mut().for_each(|one| of_all(&mut one.index));
    for pair in &mut ranking.pairs {
        of_all(&mut pair.reference);
        of_all(&mut pair.candidate);
    }
    ranking
}

/// Compares the counts of both kernels. The list is empty if either kernel was not counted.
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
