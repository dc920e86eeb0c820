//! A service without devices. It answers from the request alone; the name of the kernel selects the
//! answer.

#[path = "fake_functions.rs"]
mod functions;
#[path = "fake_gate.rs"]
mod gate;
#[path = "fake_imports.rs"]
mod imports;
#[path = "fake_matrices.rs"]
mod matrices;
#[path = "fake_tensors.rs"]
mod tensors;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Semaphore, watch};
use warpgauge_api::openapi;
use warpgauge_contract::{
    AxisValue, CompareRequest, CompileRequest, ContractLimits, EvaluateRequest, KernelCode,
    ReturnOutputs, SweepPlan, SweepRequest,
};
use warpgauge_gate::Baseline;
use warpgauge_gate::report::WorstCase;
use warpgauge_job_views::Unready;
use warpgauge_job_views::{
    CancelOutcome, CancelReport, CleanupReport, JobEvent, JobList, JobSummary, JobView,
    KernelCodeView, ServiceStatistics, SweepEvent,
};
use warpgauge_model::{JobStage, JobState};
use warpgauge_report::{
    CandidateReport, CompareResponse, CompileResponse, EvaluateResponse, KernelVerdict,
    ProfilePlan, ResponseStatus, SweepBest, SweepPoint, SweepResponse, SweepStarted, SweepStatus,
    SweepTable, Tooling,
};
use warpgauge_service::{
    ArtifactContent, ArtifactKind, ArtifactList, ArtifactService, ArtifactView, Caller,
    CleanupPolicy, CompileService, EvaluationService, ExecError, JobEvents, JobQuery, JobRequest,
    JobService, JobSubmission, MachineService, Problem, ServiceError, ServiceFuture, ServiceStatus,
    Services, SubmittedJob, SweepEvents,
};

const REPORT: &str = include_str!("../../../openapi/examples/report.json");
const TOOLING: &str = include_str!("../../../openapi/examples/tooling.json");
const PROFILE_PLAN: &str = include_str!("../../../openapi/examples/profile_plan.json");
const STATUS: &str = include_str!("../../../openapi/examples/status.json");

/// Kernel names with a meaning of their own.
pub const HANG: &str = "hang";
#[allow(dead_code, reason = "the example server uses fewer of them than the tests")]
pub const PANIC: &str = "panic";

/// See the module.
pub struct FakeService {
    /// Jobs with their owners.
    jobs: Mutex<BTreeMap<String, (String, JobView)>>,
    baselines: Mutex<BTreeMap<String, Baseline>>,
    next: AtomicU64,
    /// Kernels named `hang` that have started.
    pub started: watch::Sender<usize>,
    /// Evaluations whose future was dropped before its end.
    pub cancelled: watch::Sender<usize>,
    /// Lets as many kernels named `hang` go on as it gets permits.
    pub release: Semaphore,
    status: ServiceStatus,
}

impl FakeService {
    pub fn new() -> Self {
        let mut status: ServiceStatus = serde_json::from_str(STATUS).unwrap();
        env!("CARGO_PKG_VERSION").clone_into(&mut status.version);
        Self {
            jobs: Mutex::default(),
            baselines: Mutex::default(),
            next: AtomicU64::new(1),
            started: watch::Sender::new(0),
            cancelled: watch::Sender::new(0),
            release: Semaphore::new(0),
            status,
        }
    }

    #[allow(dead_code, reason = "the example server has its GPU always")]
    pub fn without_devices(mut self) -> Self {
        self.status.devices.clear();
        self
    }

    /// The service by its parts. Jobs, the gate and the machine share the state of this one.
    pub fn services(self: &Arc<Self>) -> Services {
        Services {
            evaluations: self.clone(),
            jobs: self.clone(),
            artifacts: self.clone(),
            compiler: self.clone(),
            gate: self.clone(),
            imports: Arc::new(imports::FakeImports),
            matrices: Arc::new(matrices::FakeMatrices),
            tensors: Arc::new(tensors::FakeTensors),
            functions: Arc::new(functions::FakeFunctions),
            machine: self.clone(),
        }
    }

    fn new_id(&self) -> String {
        format!("job-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn check(&self, kernel: &KernelCode) -> Result<(), ServiceError> {
        match name_of(kernel) {
            "invalid" => Err(ServiceError::invalid(vec![
                problem("kernel.io.args[0].tensor_spec.shape[0]", "bad_shape", "must be > 0"),
                problem("num_trials", "out_of_range", "must be 1–10000, is 0"),
            ])),
            "queue_full" => Err(ServiceError::QueueFull {
                waiting: 256,
                own: false,
                retry_after: Duration::from_millis(2500),
            }),
            "unavailable" => Err(ServiceError::unavailable("no nvcc here; install it")),
            "internal" => Err(ExecError::Internal {
                id: "abc123".into(),
                message: "the worker was lost".into(),
            }
            .into()),
            PANIC => panic!("asked for"),
            _ if kernel.source_code.is_none() && kernel.binary_b64.is_none() => {
                Err(ServiceError::invalid(vec![problem(
                    "kernel",
                    "missing_kernel",
                    "give source_code or binary_b64",
                )]))
            }
            _ => Ok(()),
        }
    }

    fn check_ranges(&self, request: &EvaluateRequest) -> Result<(), ServiceError> {
        self.check(&request.kernel)?;
        if request.num_trials.is_some_and(|trials| !(1..=10_000).contains(&trials)) {
            return Err(ServiceError::invalid(vec![problem(
                "num_trials",
                "out_of_range",
                "1–10000",
            )]));
        }
        if !(0.1..=600.0).contains(&request.timeout) {
            return Err(ServiceError::invalid(vec![problem("timeout", "out_of_range", "0.1–600")]));
        }
        Ok(())
    }

    fn report(&self, request: &EvaluateRequest, job_id: String) -> EvaluateResponse {
        let mut report: EvaluateResponse = serde_json::from_str(REPORT).unwrap();
        report.job_id = job_id;
        report.kernel_exec_result.metadata.kernel_name = Some(name_of(&request.kernel).to_owned());
        report.kernel_exec_result.metadata.kernel_type = Some(request.kernel.kernel_type);
        if let Some(stats) = &mut report.kernel_exec_result.runtime_stats {
            stats.samples = request.num_trials.unwrap_or(100);
        }
        for output in report.outputs.values_mut() {
            output.data_b64 = match request.return_outputs {
                ReturnOutputs::All => Some("AACAPwAAAEA=".repeat(16 << 10)),
                _ => None,
            };
        }
        report
    }

    /// The answer of the specification, with the request's candidates.
    fn comparison(&self, request: &CompareRequest) -> CompareResponse {
        let document: serde_json::Value = serde_json::from_str(&openapi::full_json()).unwrap();
        let answer = &document["paths"]["/compare"]["post"]["responses"]["200"];
        let example = &answer["content"]["application/json"]["example"];
        let mut response: CompareResponse = serde_json::from_value(example.clone()).unwrap();
        response.job_id = self.new_id();
        let example = response.candidates.remove(0);
        for candidate in request.named_candidates() {
            let evaluation =
                self.report(&request.evaluation_of(&candidate.kernel), response.job_id.clone());
            response.candidates.push(CandidateReport {
                name: candidate.name,
                evaluation,
                ..example.clone()
            });
        }
        response
    }
}

fn name_of(kernel: &KernelCode) -> &str {
    let metadata = kernel.metadata.as_ref();
    let name = metadata.and_then(|metadata| metadata.kernel_name.as_deref());
    name.unwrap_or("kernel")
}

fn sees(caller: &Caller, owner: &str) -> bool {
    caller.admin || caller.owner == owner
}

fn problem(path: &str, code: &str, message: &str) -> Problem {
    Problem { path: path.into(), code: code.into(), message: message.into() }
}

fn summary(job: &JobView) -> JobSummary {
    JobSummary {
        job_id: job.job_id.clone(),
        kind: job.kind,
        state: job.state,
        verdict: job.verdict,
        decision: job.gate.as_ref().map(|report| report.verdict),
        worst_case: job.gate.as_ref().and_then(|report| WorstCase::of(report)),
        kernel: None,
        median_ms: None,
        label: job.label.clone(),
        idempotency_key: None,
        priority: 0,
        attempt: job.attempt,
        created_at: job.created_at,
        started_at: Some(job.created_at),
        finished_at: job.finished_at,
        error: job.error.clone(),
        code: job.code.clone(),
    }
}

fn point(index: usize, values: BTreeMap<String, AxisValue>) -> SweepPoint {
    SweepPoint {
        index,
        values,
        status: SweepStatus::Correct,
        verdict: Some(KernelVerdict::Correct),
        correctness: Some(true),
        runtime_stats: None,
        gbps: None,
        gflops: None,
        counted: None,
        reasons: Vec::new(),
        resources: None,
        device: None,
        matrices: Vec::new(),
        tensors: Vec::new(),
        total_ms: 1.0,
        report: None,
    }
}

/// Counts what is dropped before it is disarmed.
struct CancelGuard<'a>(Option<&'a watch::Sender<usize>>);

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if let Some(cancelled) = self.0 {
            cancelled.send_modify(|count| *count += 1);
        }
    }
}

impl EvaluationService for FakeService {
    fn evaluate(
        &self,
        request: EvaluateRequest,
        _: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse> {
        async move {
            self.check_ranges(&request)?;
            if name_of(&request.kernel) == HANG {
                let mut guard = CancelGuard(Some(&self.cancelled));
                self.started.send_modify(|count| *count += 1);
                self.release.acquire().await.unwrap().forget();
                guard.0 = None;
            }
            Ok(self.report(&request, self.new_id()))
        }
        .boxed()
    }

    fn compare(
        &self,
        request: CompareRequest,
        _: JobSubmission,
    ) -> ServiceFuture<'_, CompareResponse> {
        async move {
            let candidates = request.named_candidates();
            let kernels = candidates.iter().map(|candidate| &candidate.kernel);
            for kernel in std::iter::once(&request.ref_kernel).chain(kernels) {
                self.check_ranges(&request.evaluation_of(kernel))?;
            }
            if candidates.is_empty() {
                return Err(ServiceError::invalid(vec![problem(
                    "custom_kernel",
                    "candidates",
                    "give one",
                )]));
            }
            Ok(self.comparison(&request))
        }
        .boxed()
    }

    fn execute(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse> {
        self.evaluate(request, submission)
    }

    /// Every point is correct at once; that of a kernel named `hang` waits for a permit.
    fn sweep(
        &self,
        request: SweepRequest,
        _: JobSubmission,
        events: SweepEvents,
    ) -> ServiceFuture<'_, SweepResponse> {
        async move {
            let plan = SweepPlan::new(request, &ContractLimits::default()).map_err(|errors| {
                ServiceError::invalid(errors.into_iter().map(Into::into).collect())
            })?;
            let (job_id, axes) = (self.new_id(), plan.axes().to_vec());
            let started = SweepStarted { job_id, points: plan.points(), axes };
            let mut points = Vec::new();
            for index in 0..plan.points() {
                let request = plan.request(index).expect("valid at every point");
                self.check_ranges(&request)?;
                if index == 0 {
                    events(SweepEvent::Started(started.clone()));
                }
                if name_of(&request.kernel) == HANG {
                    let mut guard = CancelGuard(Some(&self.cancelled));
                    self.started.send_modify(|count| *count += 1);
                    self.release.acquire().await.unwrap().forget();
                    guard.0 = None;
                }
                let point = point(index, plan.values(index));
                events(SweepEvent::Point(Box::new(point.clone())));
                points.push(point);
            }
            Ok(SweepResponse {
                job_id: started.job_id,
                status: ResponseStatus::Success,
                verdict: Some(KernelVerdict::Correct),
                counts: BTreeMap::from([("correct".to_owned(), points.len())]),
                table: SweepTable::of(&started.axes, &points),
                axes: started.axes,
                points,
                best: SweepBest::default(),
                devices: Vec::new(),
                total_ms: 1.0,
            })
        }
        .boxed()
    }

    /// Evaluations are done at once.
    fn submit(
        &self,
        request: JobRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, SubmittedJob> {
        async move {
            let kind = request.kind();
            let JobRequest::Evaluate(request) = request else {
                return Err(ServiceError::unavailable("evaluations only"));
            };
            self.check_ranges(&request)?;
            let id = self.new_id();
            let job = JobView {
                job_id: id.clone(),
                kind,
                state: JobState::Completed,
                status: Some(ResponseStatus::Success),
                verdict: Some(KernelVerdict::Correct),
                created_at: 1_767_225_600.0,
                finished_at: Some(1_767_225_600.5),
                trials_done: request.num_trials.unwrap_or(100),
                attempt: 1,
                label: submission.label,
                error: None,
                code: None,
                result: Some(self.report(&request, id.clone())),
                comparison: None,
                sweep: None,
                gate: None,
            };
            let job = match name_of(&request.kernel) {
                HANG => JobView {
                    state: JobState::Profiling,
                    status: None,
                    verdict: None,
                    finished_at: None,
                    result: None,
                    ..job
                },
                _ => job,
            };
            self.jobs.lock().unwrap().insert(id.clone(), (submission.caller.owner, job));
            Ok(SubmittedJob { job_id: id, state: JobState::Submitted, existing: false })
        }
        .boxed()
    }

    fn submit_all(
        &self,
        jobs: Vec<(JobRequest, JobSubmission)>,
    ) -> ServiceFuture<'_, Vec<SubmittedJob>> {
        async move {
            let mut accepted = Vec::new();
            for (request, submission) in jobs {
                accepted.push(self.submit(request, submission).await?);
            }
            Ok(accepted)
        }
        .boxed()
    }
}

impl JobService for FakeService {
    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobView> {
        let found = self.jobs.lock().unwrap().get(job_id).cloned();
        let found = found.filter(|(owner, _)| sees(caller, owner)).map(|(_, job)| job);
        async move { found.ok_or_else(|| ServiceError::NoSuchJob(job_id.to_owned())) }.boxed()
    }

    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> ServiceFuture<'a, JobList> {
        let matches = |job: &JobView| {
            (query.states.is_empty() || query.states.contains(&job.state))
                && query.kind.is_none_or(|kind| kind == job.kind)
                && (query.verdict.is_none() || query.verdict == job.verdict)
                && (query.decision.is_none()
                    || query.decision == job.gate.as_ref().map(|report| report.verdict))
                && (query.label.is_none() || query.label == job.label)
                && query.cursor.as_ref().is_none_or(|cursor| job.job_id < *cursor)
        };
        let jobs = self.jobs.lock().unwrap();
        let own = jobs.values().rev().filter(|(owner, job)| sees(caller, owner) && matches(job));
        let mut jobs: Vec<_> = own.map(|(_, job)| summary(job)).collect();
        let limit = query.limit as usize;
        let next_cursor = (jobs.len() > limit).then(|| jobs[limit - 1].job_id.clone());
        jobs.truncate(limit);
        async move { Ok(JobList { jobs, next_cursor }) }.boxed()
    }

    fn cancel<'a>(
        &'a self,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CancelReport> {
        async move {
            let job = self.job(job_id, caller).await?;
            let outcome = CancelOutcome::Ended;
            Ok(CancelReport { job_id: job.job_id, outcome, state: job.state })
        }
        .boxed()
    }

    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobEvents> {
        async move {
            let job = self.job(job_id, caller).await?;
            let event = JobEvent {
                job_id: job.job_id,
                state: job.state,
                stage: JobStage::Ended,
                attempt: job.attempt,
                trials_done: job.trials_done,
                ahead: None,
                elapsed_s: 0.5,
                statistics: None,
                points_done: None,
                points: None,
                error: None,
            };
            Ok(futures_util::stream::iter([event]).boxed())
        }
        .boxed()
    }

    fn cleanup<'a>(
        &'a self,
        _: CleanupPolicy,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CleanupReport> {
        async move {
            if !caller.admin {
                return Err(ServiceError::Forbidden("for administrators".into()));
            }
            let mut jobs = self.jobs.lock().unwrap();
            let removed = std::mem::take(&mut *jobs).len() as u64;
            Ok(CleanupReport { jobs: removed, bytes: 0 })
        }
        .boxed()
    }
}

impl ArtifactService for FakeService {
    /// A job that is there left its PTX, and had a log.
    fn artifacts<'a>(&'a self, job_id: &'a str, _: &'a Caller) -> ServiceFuture<'a, ArtifactList> {
        let view = |kind: ArtifactKind| ArtifactView {
            name: kind.name().to_owned(),
            kernel: "kernel".to_owned(),
            available: kind == ArtifactKind::Ptx,
            url: Some(format!("/jobs/{job_id}/artifacts/{}", kind.name())),
            media_type: Some(kind.media_type().to_owned()),
            bytes: None,
            note: None,
        };
        let artifacts = ArtifactKind::ALL.map(view).into();
        let list = ArtifactList { job_id: job_id.to_owned(), artifacts };
        async move { Ok(list) }.boxed()
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        _: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactContent> {
        async move {
            let (what, reason) = (format!("{} of job {job_id}", kind.name()), "why".to_owned());
            match kind {
                ArtifactKind::Ptx => Ok(ArtifactContent {
                    kind,
                    file_name: "kernel.ptx".to_owned(),
                    content: format!("// {}\n", kernel.unwrap_or("none")).into(),
                }),
                ArtifactKind::Log => Err(ServiceError::ArtifactGone { what, reason }),
                _ => Err(ServiceError::NoArtifact { what, reason }),
            }
        }
        .boxed()
    }

    fn code<'a>(
        &'a self,
        job_id: &'a str,
        kernel: Option<&'a str>,
        _: &'a Caller,
    ) -> ServiceFuture<'a, KernelCodeView> {
        let view = serde_json::json!({
            "job_id": job_id, "kernel": kernel.unwrap_or("kernel"),
            "files": [{"name": "kernel.cu", "text": "first\nsecond\n"}],
            "listings": [
                {"language": "ptx", "truncated": true, "instructions": [
                    {"text": "add.s32 %r1, %r1, 1", "symbol": "k", "file": "kernel.cu", "line": 2},
                    {"text": "ret", "symbol": "k"},
                ]},
                {"language": "sass", "reason": "why"},
            ],
        });
        async move { Ok(serde_json::from_value(view).unwrap()) }.boxed()
    }
}

impl CompileService for FakeService {
    fn profile_plan<'a>(
        &'a self,
        request: EvaluateRequest,
        _: &'a Caller,
    ) -> ServiceFuture<'a, ProfilePlan> {
        async move {
            self.check(&request.kernel)?;
            Ok(serde_json::from_str(PROFILE_PLAN).unwrap())
        }
        .boxed()
    }

    fn compile<'a>(
        &'a self,
        request: CompileRequest,
        _: &'a Caller,
    ) -> ServiceFuture<'a, CompileResponse> {
        async move {
            self.check(&request.kernel)?;
            let report: EvaluateResponse = serde_json::from_str(REPORT).unwrap();
            Ok(CompileResponse {
                job_id: self.new_id(),
                status: ResponseStatus::Success,
                compiled: true,
                compilation_error: None,
                diagnostics: Vec::new(),
                compile: report.compile,
                image_b64: request.return_image.then(|| "f0VMRg==".to_owned()),
                image_format: request.return_image.then(|| "cubin".to_owned()),
                signatures: Vec::new(),
                total_ms: 1.5,
            })
        }
        .boxed()
    }
}

impl MachineService for FakeService {
    fn status(&self) -> ServiceStatus {
        self.status.clone()
    }

    fn statistics<'a>(&'a self, _: &'a Caller) -> ServiceFuture<'a, ServiceStatistics> {
        async { Ok(ServiceStatistics::default()) }.boxed()
    }

    fn readiness(&self) -> BoxFuture<'_, Vec<Unready>> {
        let none = self.status.devices.is_empty();
        let unready =
            || Unready { code: "no_device".to_owned(), message: "no device works".to_owned() };
        async move { none.then(unready).into_iter().collect() }.boxed()
    }

    fn tooling(&self, _refresh: bool) -> BoxFuture<'_, Tooling> {
        let tooling = serde_json::from_str(TOOLING).unwrap();
        async move { tooling }.boxed()
    }
}
