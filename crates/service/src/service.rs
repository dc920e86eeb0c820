//! What the layers above ask of the service.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::artifacts::ArtifactService;
use super::functions::FunctionService;
use super::gate::GateService;
use super::matrices::MatrixService;
use super::submission::{
    Answer, Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, Submission, SubmittedJob,
    SweepEvents,
};
use super::tensors::TensorService;
pub use warpgauge_contract::{CompareRequest, CompileRequest, EvaluateRequest, SweepRequest};
use warpgauge_jobs::{CancelReport, CleanupReport, JobList, JobView, ServiceStatistics, Unready};
use warpgauge_report::{
    CompareResponse, CompileResponse, DeviceReport, EvaluateResponse, ProfilePlan, SweepResponse,
    Tooling,
};

/// Takes evaluations, and waits for their reports or not.
///
/// What evaluates, compares, executes or sweeps is a *job*: it is in the store before it begins, and
/// once accepted it comes to an end, whatever becomes of this process.
pub trait EvaluationService: Send + Sync {
    /// Evaluates and waits for the report. Dropping the future cancels the evaluation, unless the
    /// submission has an idempotency key: then it goes on, and asking again gives its report.
    fn evaluate(
        &self,
        request: EvaluateRequest,
        submission: Submission,
    ) -> Answer<'_, EvaluateResponse>;

    /// Compares kernels with a reference and waits for the report; dropped as [`Self::evaluate`].
    fn compare(
        &self,
        request: CompareRequest,
        submission: Submission,
    ) -> Answer<'_, CompareResponse>;

    /// Runs the kernel once, untimed, and returns its outputs; dropped as [`Self::evaluate`].
    fn execute(
        &self,
        request: EvaluateRequest,
        submission: Submission,
    ) -> Answer<'_, EvaluateResponse>;

    /// Evaluates a contract at every point of its axes, telling `events` of each; dropped as
    /// [`Self::evaluate`].
    fn sweep(
        &self,
        request: SweepRequest,
        submission: Submission,
        events: SweepEvents,
    ) -> Answer<'_, SweepResponse>;

    /// Accepts a job and answers once it is safe: it waits in the store for its turn.
    fn submit(&self, request: JobRequest, submission: Submission) -> Answer<'_, SubmittedJob>;

    /// Accepts all of these jobs, or none.
    fn submit_all(&self, jobs: Vec<(JobRequest, Submission)>) -> Answer<'_, Vec<SubmittedJob>>;
}

/// Jobs that were accepted. A caller sees its own jobs; to everybody else they are
/// [`ServiceError::NoSuchJob`](crate::ServiceError::NoSuchJob).
pub trait JobService: Send + Sync {
    /// A job, with its report once it ended.
    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, JobView>;

    /// A page of jobs, without their reports.
    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> Answer<'a, JobList>;

    /// Ends a job before its time. One that runs is stopped: its worker is killed.
    fn cancel<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, CancelReport>;

    /// News of a job, from where it stands to its end, which is the last. Who reads slowly gets the
    /// newest state, not every one.
    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, JobEvents>;

    /// Removes ended jobs, with their reports and artifacts. For administrators.
    fn cleanup<'a>(
        &'a self,
        policy: CleanupPolicy,
        caller: &'a Caller,
    ) -> Answer<'a, CleanupReport>;
}

/// Looks at kernels without running them. Leaves no job.
pub trait CompileService: Send + Sync {
    /// What the profile that a request asks for would take; nothing is run.
    fn profile_plan<'a>(
        &'a self,
        request: EvaluateRequest,
        caller: &'a Caller,
    ) -> Answer<'a, ProfilePlan>;

    /// Compiles only.
    fn compile<'a>(
        &'a self,
        request: CompileRequest,
        caller: &'a Caller,
    ) -> Answer<'a, CompileResponse>;
}

/// The machine and the process of the service.
pub trait MachineService: Send + Sync {
    /// The state of the machine and of the queue.
    fn status(&self) -> ServiceStatus;

    /// What the service has done so far; jobs are counted as far as the caller may see them.
    fn statistics<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ServiceStatistics>;

    /// Where the server keeps its data: answers to callers do not show it. `None`: it keeps none.
    fn data_dir(&self) -> Option<std::path::PathBuf> {
        None
    }

    /// Why nothing can be evaluated now; empty if something can. Answers within some seconds, whatever
    /// hangs.
    fn readiness(&self) -> BoxFuture<'_, Vec<Unready>>;

    /// What the tools of the machine can do. They are looked for once, and again if `refresh`.
    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling>;
}

/// The service behind the HTTP API and the local command line, by its parts. Copies share the parts.
#[derive(Clone)]
pub struct Services {
    /// Takes evaluations.
    pub evaluations: Arc<dyn EvaluationService>,
    /// Jobs that were accepted.
    pub jobs: Arc<dyn JobService>,
    /// What jobs leave beside their reports.
    pub artifacts: Arc<dyn ArtifactService>,
    /// Compilations and profile plans.
    pub compiler: Arc<dyn CompileService>,
    /// Suites, baselines and the history.
    pub gate: Arc<dyn GateService>,
    /// Sparse matrices.
    pub matrices: Arc<dyn MatrixService>,
    /// Shared tensors.
    pub tensors: Arc<dyn TensorService>,
    /// Functions of callers.
    pub functions: Arc<dyn FunctionService>,
    /// The machine and this process.
    pub machine: Arc<dyn MachineService>,
}

/// The state of the machine and of the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Version of this program.
    pub version: String,
    /// Seconds since the service started.
    pub uptime_s: f64,
    /// Devices that evaluations can run on.
    pub devices: Vec<DeviceView>,
    /// Evaluations waiting for a device.
    pub queue_depth: usize,
    /// Evaluations that may wait.
    pub queue_capacity: usize,
    /// Jobs of this process since it started, by state.
    pub jobs_by_state: std::collections::BTreeMap<String, u64>,
    /// Mean age of those of them that have not ended, seconds.
    pub average_job_age_s: f64,
    /// Compilers found, one line each, e.g. `nvrtc 13.0.88 (/usr/local/cuda/lib64)`.
    pub compilers: Vec<String>,
    /// How compile children are confined: `landlock enforced`, or why not.
    pub compile_sandbox: String,
}

/// A device and its worker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeviceView {
    /// The device.
    pub device: DeviceReport,
    /// `ready`, `busy`, `starting`, or `failed: reason`.
    pub state: String,
    /// Evaluations run since start.
    pub jobs_done: u64,
    /// Workers replaced since start, after crashes and timeouts.
    pub restarts: u64,
    /// How its workers are confined, by landlock and seccomp, or why not; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_sandbox: Option<String>,
}
