//! The operations.

use std::sync::Arc;

use poem::http::HeaderMap;
use poem_openapi::param::{Path, Query};
use poem_openapi::{ApiResponse, OpenApi, Tags};

use super::artifacts::{self, ArtifactReply, Picture};
use super::capabilities::Capabilities;
use super::error::ApiError;
use super::failure::{
    Fails, Open, TakesArtifact, TakesBody, TakesJob, TakesNothing, TakesParameters,
};
use super::payload::{Contract, Reply};
use super::sweep::{self, Form, SweepFormat, SweepReply};
use super::views::{Accepted, CudaInfo, Devices, Health, Info, LegacyJob};
use crate::contract::{CompareRequest, EvaluateRequest, SweepRequest};
use crate::pipeline::{
    ArtifactList, Caller, CompileRequest, EvaluationService, JobRequest, ServiceError, Submission,
};
use crate::report::{CompareResponse, CompileResponse, EvaluateResponse, JobView, ProfilePlan};

/// The operations over a service.
pub(super) struct Api {
    pub(super) service: Arc<dyn EvaluationService>,
    pub(super) body_limit_bytes: u64,
}

/// Groups of operations.
#[derive(Tags)]
enum Tag {
    /// Compile, run, check and time kernels.
    Kernels,
    /// Watch jobs and fetch their reports.
    Jobs,
    /// What this machine is and can do.
    Machine,
}

/// Answers of `POST /evaluate`.
#[derive(ApiResponse)]
enum Evaluated {
    /// The evaluation ran to an end: the report says whether the kernel compiled, whether it is
    /// right, and how fast it is.
    #[oai(status = 200)]
    Report(Reply<EvaluateResponse>),
    /// The evaluation was accepted (`wait=false`) and can be watched.
    #[oai(status = 202)]
    Accepted(
        Reply<Accepted>,
        /// Where the job is.
        #[oai(header = "Location")]
        String,
    ),
}

fn yes() -> bool {
    true
}

#[OpenApi]
impl Api {
    /// Evaluate a kernel
    ///
    /// Compiles the kernel, runs it on seeded or given inputs, checks its outputs and times it. A
    /// kernel that does not compile or is wrong is a result (200), not an HTTP error. With
    /// `wait=false` the answer comes at once and the report is fetched from `/jobs/{job_id}`.
    /// Closing the connection cancels an evaluation that is waited for.
    #[oai(path = "/evaluate", method = "post", operation_id = "evaluate", tag = "Tag::Kernels")]
    async fn evaluate(
        &self,
        /// Whether to wait for the report.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// The kernel and its IO contract.
        request: Contract<EvaluateRequest>,
    ) -> Result<Evaluated, Fails<TakesBody>> {
        let Contract { value, share } = request;
        if !wait.0 {
            let request = JobRequest::Evaluate(Box::new(value));
            let submitted = self.service.submit(request, self.submission()).await?;
            let accepted = Accepted::new(submitted.job_id);
            let location = accepted.status_url.clone();
            return Ok(Evaluated::Accepted(Reply::new(&accepted)?, location));
        }
        let report = self.service.evaluate(value, self.submission()).await?;
        drop(share);
        Ok(Evaluated::Report(report_reply(report).await?))
    }

    /// Compare kernels
    ///
    /// Evaluates a reference and one or more candidates, each on its own, and then times them side by
    /// side in interleaved blocks: `faster`, `slower`, `same` or `inconclusive`, with the speedup's
    /// confidence interval and the smallest effect that would have been seen. Candidates must leave
    /// what the reference leaves, within `atol` and `rtol`.
    #[oai(path = "/compare", method = "post", operation_id = "compare", tag = "Tag::Kernels")]
    async fn compare(
        &self,
        /// The kernels and their IO contract.
        request: Contract<CompareRequest>,
    ) -> Result<Reply<CompareResponse>, Fails<TakesBody>> {
        let Contract { value, share } = request;
        let report = self.service.compare(value, self.submission()).await?;
        drop(share);
        Ok(Reply::new(&report)?)
    }

    /// Sweep over axes
    ///
    /// Evaluates one contract at every combination of its `axes` and answers with one table. A point
    /// that is not valid, does not compile or is wrong is a row like the others. With `stream=true`
    /// or `Accept: text/event-stream` the points come as server-sent events, each when it is done.
    /// Closing the connection cancels the sweep.
    #[oai(path = "/sweep", method = "post", operation_id = "sweep", tag = "Tag::Kernels")]
    async fn sweep(
        &self,
        headers: &HeaderMap,
        /// Whether points are sent as server-sent events, each when it is done.
        stream: Query<Option<bool>>,
        /// Form of the answer where it is not a stream: `json`, or its table as `csv`.
        format: Query<Option<SweepFormat>>,
        /// The contract of an evaluation, and axes.
        request: Contract<SweepRequest>,
    ) -> Result<SweepReply, Fails<TakesBody>> {
        let Contract { value, share } = request;
        let form = Form::wanted(stream.0, format.0, headers);
        Ok(sweep::reply(&self.service, value, self.submission(), share, form).await?)
    }

    /// Compile a kernel
    ///
    /// Compiles for a device of this machine or for `arch`, and reports diagnostics and resource
    /// usage. Needs no device. A kernel that does not compile is a result (200).
    #[oai(path = "/compile", method = "post", operation_id = "compile", tag = "Tag::Kernels")]
    async fn compile(
        &self,
        /// The kernel.
        request: Contract<CompileRequest>,
    ) -> Result<Reply<CompileResponse>, Fails<TakesBody>> {
        let Contract { value, share } = request;
        let report = self.service.compile(value).await?;
        drop(share);
        let content_bytes = report.image_b64.as_ref().map_or(0, String::len);
        Ok(Reply::with_content(report, content_bytes).await?)
    }

    /// Run a kernel once
    ///
    /// Compiles the kernel, runs it once, untimed, and returns its outputs.
    #[oai(path = "/execute", method = "post", operation_id = "execute", tag = "Tag::Kernels")]
    async fn execute(
        &self,
        /// The kernel and its IO contract.
        request: Contract<EvaluateRequest>,
    ) -> Result<Reply<EvaluateResponse>, Fails<TakesBody>> {
        let Contract { value, share } = request;
        let report = self.service.execute(value, self.submission()).await?;
        drop(share);
        Ok(report_reply(report).await?)
    }

    /// Plan a profile
    ///
    /// What the metrics that the contract's `profile` asks for would take on this machine: the
    /// source, the passes, and about how long. Nothing is compiled or run.
    #[oai(
        path = "/profile/plan",
        method = "post",
        operation_id = "plan_profile",
        tag = "Tag::Kernels"
    )]
    async fn profile_plan(
        &self,
        /// A contract, with the `profile` in question.
        request: Contract<EvaluateRequest>,
    ) -> Result<Reply<ProfilePlan>, Fails<TakesBody>> {
        let Contract { value, share } = request;
        let plan = self.service.profile_plan(value).await?;
        drop(share);
        Ok(Reply::new(&plan)?)
    }

    /// Get a job
    ///
    /// Says where a job stands and, once it ended, holds its report.
    #[oai(path = "/jobs/:job_id", method = "get", operation_id = "get_job", tag = "Tag::Jobs")]
    async fn job(
        &self,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<Reply<JobView>, Fails<TakesJob>> {
        let job = self.find(&job_id).await?;
        let content_bytes = job.result.as_ref().map_or(0, content_bytes);
        Ok(Reply::with_content(job, content_bytes).await?)
    }

    /// Get a job's state
    ///
    /// The shape of the CUDA Evaluation Server. `/jobs/{job_id}` holds the report too.
    #[oai(path = "/job/:job_id", method = "get", operation_id = "get_job_state", tag = "Tag::Jobs")]
    async fn legacy_job(
        &self,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<Reply<LegacyJob>, Fails<TakesJob>> {
        Ok(Reply::new(&LegacyJob::new(self.find(&job_id).await?))?)
    }

    /// List a job's artifacts
    ///
    /// What the job left beside its report, of each of its kernels: PTX, SASS, machine code, the
    /// compiler's log, and the files of profilers. What there is not says why. Artifacts are kept
    /// with their job, for as long as the server's budget for them allows.
    #[oai(
        path = "/jobs/:job_id/artifacts",
        method = "get",
        operation_id = "list_artifacts",
        tag = "Tag::Jobs"
    )]
    async fn artifacts(
        &self,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<Reply<ArtifactList>, Fails<TakesArtifact>> {
        let job = self.find(&job_id).await?;
        Ok(Reply::new(&self.service.artifacts(&job.job_id, &self.caller()).await?)?)
    }

    /// Get an artifact of a job
    ///
    /// PTX and machine code that did not run are made on demand, so that SASS can be had of a
    /// kernel that was emulated. SASS needs `nvdisasm` on the server.
    #[oai(
        path = "/jobs/:job_id/artifacts/:name",
        method = "get",
        operation_id = "get_artifact",
        tag = "Tag::Jobs"
    )]
    async fn artifact(
        &self,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
        /// `ptx`, `sass`, `cubin`, `log`, `ncu-rep` or `nsys-rep`.
        name: Path<String>,
        /// Whose: in a comparison `reference` or a candidate's name. Default: the job's kernel, or
        /// the first candidate.
        kernel: Query<Option<String>>,
    ) -> Result<ArtifactReply, Fails<TakesArtifact>> {
        let job = self.find(&job_id).await?;
        let kind = artifacts::kind(&name, &job.job_id)?;
        let (caller, kernel) = (self.caller(), kernel.0.as_deref());
        let content = self.service.artifact(&job.job_id, kind, kernel, &caller).await?;
        Ok(ArtifactReply(content))
    }

    /// Draw a job's roofline
    ///
    /// The roofline of an evaluation with `profile`, as a picture. Its numbers are in the report,
    /// at `kernel_exec_result.metadata.device_metrics.roofline`.
    #[oai(
        path = "/jobs/:job_id/roofline.svg",
        method = "get",
        operation_id = "draw_roofline",
        tag = "Tag::Jobs"
    )]
    async fn roofline(
        &self,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<Picture, Fails<TakesJob>> {
        Ok(Picture::of(&self.find(&job_id).await?)?)
    }

    /// Check health
    ///
    /// Whether evaluations can run. Needs no key.
    #[oai(path = "/health", method = "get", operation_id = "health", tag = "Tag::Machine")]
    async fn health(&self) -> Result<Reply<Health>, Fails<Open>> {
        Ok(Reply::new(&Health::new(&self.service.status()))?)
    }

    /// Describe the server
    ///
    /// Version, devices, queue, compilers and limits.
    #[oai(path = "/info", method = "get", operation_id = "info", tag = "Tag::Machine")]
    async fn info(&self) -> Result<Reply<Info>, Fails<TakesNothing>> {
        let info = Info::new(self.service.status(), self.body_limit_bytes);
        Ok(Reply::new(&info)?)
    }

    /// List devices
    ///
    /// Every device that evaluations can run on, emulated ones included, and its worker.
    #[oai(path = "/devices", method = "get", operation_id = "devices", tag = "Tag::Machine")]
    async fn devices(&self) -> Result<Reply<Devices>, Fails<TakesNothing>> {
        let devices = self.service.status().devices;
        Ok(Reply::new(&Devices { devices })?)
    }

    /// List CUDA GPUs
    ///
    /// The shape of the GPU Tensor Server, and more.
    #[oai(path = "/cuda/info", method = "get", operation_id = "cuda_info", tag = "Tag::Machine")]
    async fn cuda_info(&self) -> Result<Reply<CudaInfo>, Fails<TakesNothing>> {
        Ok(Reply::new(&CudaInfo::new(&self.service.status()))?)
    }

    /// List capabilities
    ///
    /// What each device and tool can do here and, where it cannot, why and what would help. Tools
    /// are looked for once; `refresh=true` looks again.
    #[oai(
        path = "/capabilities",
        method = "get",
        operation_id = "capabilities",
        tag = "Tag::Machine"
    )]
    async fn capabilities(
        &self,
        /// Whether to look for tools again.
        #[oai(default)]
        refresh: Query<bool>,
    ) -> Result<Reply<Capabilities>, Fails<TakesParameters>> {
        let tooling = self.service.tooling(refresh.0).await;
        Ok(Reply::new(&Capabilities::new(&self.service.status(), &tooling))?)
    }
}

impl Api {
    async fn find(&self, job_id: &str) -> Result<JobView, ServiceError> {
        // An id is 36 characters; what is longer is not one, and is not echoed whole.
        if job_id.len() > 64 {
            return Err(ServiceError::NoSuchJob(job_id.chars().take(64).collect()));
        }
        self.service.job(job_id, &self.caller()).await
    }

    fn caller(&self) -> Caller {
        Caller::local()
    }

    fn submission(&self) -> Submission {
        Submission::of(self.caller())
    }
}

async fn report_reply(report: EvaluateResponse) -> Result<Reply<EvaluateResponse>, ApiError> {
    let content_bytes = content_bytes(&report);
    Reply::with_content(report, content_bytes).await
}

/// Bytes of tensor content that a report carries.
fn content_bytes(report: &EvaluateResponse) -> usize {
    let outputs = report.outputs.values();
    outputs.map(|output| output.data_b64.as_ref().map_or(0, String::len)).sum()
}
