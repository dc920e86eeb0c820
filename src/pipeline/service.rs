//! What the layers above ask of the pipeline.

use std::time::Duration;

use futures_util::future::BoxFuture;
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::{ArtifactContent, ArtifactKind, ArtifactList, ServiceError, SweepEvents};
use crate::contract::{CompareRequest, EvaluateRequest, KernelCode, SweepRequest};
use crate::report::{
    CompareResponse, CompileResponse, DeviceReport, EvaluateResponse, JobView, ProfilePlan,
    SweepResponse, Tooling,
};

/// The service behind the HTTP API and the local command line.
pub trait EvaluationService: Send + Sync + 'static {
    /// Evaluates and waits for the report. Dropping the future cancels the evaluation.
    fn evaluate(
        &self,
        request: EvaluateRequest,
    ) -> BoxFuture<'_, Result<EvaluateResponse, ServiceError>>;

    /// Compares kernels with a reference and waits for the report. Dropping the future cancels.
    fn compare(
        &self,
        request: CompareRequest,
    ) -> BoxFuture<'_, Result<CompareResponse, ServiceError>>;

    /// Runs the kernel once, untimed, and returns its outputs.
    fn execute(
        &self,
        request: EvaluateRequest,
    ) -> BoxFuture<'_, Result<EvaluateResponse, ServiceError>>;

    /// What the profile that a request asks for would take; nothing is run.
    fn profile_plan(
        &self,
        request: EvaluateRequest,
    ) -> BoxFuture<'_, Result<ProfilePlan, ServiceError>>;

    /// Accepts an evaluation and answers at once with its job id.
    fn submit(&self, request: EvaluateRequest) -> Result<String, ServiceError>;

    /// Evaluates a contract at every point of its axes, telling `events` of each. Dropping the future
    /// cancels what runs.
    fn sweep(
        &self,
        request: SweepRequest,
        events: SweepEvents,
    ) -> BoxFuture<'_, Result<SweepResponse, ServiceError>>;

    /// Compiles only.
    fn compile(
        &self,
        request: CompileRequest,
    ) -> BoxFuture<'_, Result<CompileResponse, ServiceError>>;

    /// A job, while it is kept.
    fn job(&self, job_id: &str) -> Option<JobView>;

    /// What a job left beside its report.
    fn artifacts(&self, job_id: &str) -> Result<ArtifactList, ServiceError>;

    /// One of them: of the job's kernel or, in a comparison, of the one that is named.
    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ArtifactContent, ServiceError>>;

    /// The state of the machine and of the queue.
    fn status(&self) -> ServiceStatus;

    /// What the tools of the machine can do. They are looked for once, and again if `refresh`.
    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling>;

    /// Takes no more work, gives what runs `grace` to end, then stops it.
    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

/// What `POST /compile` and `warpgauge compile` take.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct CompileRequest {
    /// The kernel; `io` may be left out.
    pub kernel: KernelCode,
    /// Architecture to compile for, e.g. `sm_90`; default: the first device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Whether the image travels back.
    #[serde(default)]
    #[oai(default)]
    pub return_image: bool,
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
    /// Jobs kept, by state.
    pub jobs_by_state: std::collections::BTreeMap<String, u64>,
    /// Mean age of the kept jobs, seconds.
    pub average_job_age_s: f64,
    /// Compilers found, one line each, e.g. `nvrtc 13.0.88 (/usr/local/cuda/lib64)`.
    pub compilers: Vec<String>,
    /// How compile children are confined: `landlock enforced`, or why not.
    pub compile_sandbox: String,
}

/// A device and its worker.
#[derive(Debug, Clone, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct DeviceView {
    /// The device.
    pub device: DeviceReport,
    /// `ready`, `busy`, `starting`, or `failed: reason`.
    pub state: String,
    /// Evaluations run since start.
    pub jobs_done: u64,
    /// Workers replaced since start, after crashes and timeouts.
    pub restarts: u64,
}
