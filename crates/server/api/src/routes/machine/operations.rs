//! Handlers of the operations on the machine: [`Machine`].

use std::sync::Arc;

use poem::web::Data;
use poem_openapi::param::Query;
use poem_openapi::{ApiResponse, OpenApi};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::capabilities::Capabilities;
use super::cleanup::{Cleaned, policy};
use super::exposition::exposition;
use super::metrics::MetricsReply;
use super::stats::Stats;
use super::views::{CudaInfo, Devices, Health, HealthStatus, Info, Live};
use crate::error::ApiError;
use crate::error::operation::{AdminErrors, KeyErrors, OpenErrors, OperationError};
use crate::middleware::auth::{AdminKeys, Sees};
use crate::middleware::hidden_paths::HiddenPaths;
use crate::middleware::http_metrics::HttpMetrics;
use crate::phase::Phase;
use crate::response::events::Watchers;
use crate::response::reply::JsonReply;
use crate::routes::tags::Tag;
use warpgauge_job_views::Unready;
use warpgauge_service::{Caller, Services};

/// Operations on the machine.
pub(crate) struct Machine {
    pub(crate) service: Services,
    pub(crate) body_limit_bytes: u64,
    /// Counts of requests for each operation.
    pub(crate) http: Arc<HttpMetrics>,
    pub(crate) watchers: Watchers,
    pub(crate) admin_keys: AdminKeys,
    pub(crate) places: HiddenPaths,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Answers of `GET /health`.
#[derive(ApiResponse)]
enum HealthReply {
    /// The server can evaluate.
    #[oai(status = 200)]
    Ready(JsonReply<Health>),
    /// The server cannot evaluate anything. `reasons` contains the reasons with remedies.
    #[oai(status = 503)]
    NotReady(JsonReply<Health>),
}

impl Machine {
    /// Returns the value. The path of the data directory in it is visible only to administrators.
    fn shown<T: Serialize + DeserializeOwned>(&self, value: T, sees: Sees) -> Result<T, ApiError> {
        if sees == Sees::Everything { Ok(value) } else { self.places.hidden_in(value) }
    }

    /// Returns the reasons why no evaluation can run.
    async fn unready(&self) -> Vec<Unready> {
        if *self.phase.borrow() != Phase::Serving {
            return vec![Unready::shutting_down()];
        }
        self.service.machine.readiness().await
    }
}

#[OpenApi]
impl Machine {
    /// Check readiness
    ///
    /// Returns whether evaluations can run; if not, returns 503 with the reasons. No key is needed.
    /// Numbers of devices require a key, and numbers of jobs require an administrator's key.
    #[oai(path = "/health", method = "get", operation_id = "health", tag = "Tag::Machine")]
    async fn health(&self, sees: Data<&Sees>) -> Result<HealthReply, OperationError<OpenErrors>> {
        let health = Health::new(&self.service.machine.status(), self.unready().await, *sees.0);
        let ready = health.status != HealthStatus::Unhealthy;
        let reply = JsonReply::new(&health)?;
        Ok(if ready { HealthReply::Ready(reply) } else { HealthReply::NotReady(reply) })
    }

    /// Check liveness
    ///
    /// Succeeds while the process serves requests, without further checks. No key is needed.
    #[oai(path = "/live", method = "get", operation_id = "live", tag = "Tag::Machine")]
    async fn live(&self) -> Result<JsonReply<Live>, OperationError<OpenErrors>> {
        Ok(JsonReply::new(&Live { status: "alive".to_owned() })?)
    }

    /// Describe the server
    ///
    /// Returns version, devices, queue, compilers and limits.
    #[oai(path = "/info", method = "get", operation_id = "info", tag = "Tag::Machine")]
    async fn info(&self, sees: Data<&Sees>) -> Result<JsonReply<Info>, OperationError<KeyErrors>> {
        let info = Info::new(self.service.machine.status(), self.body_limit_bytes);
        Ok(JsonReply::new(&self.shown(info, *sees.0)?)?)
    }

    /// List devices
    ///
    /// Returns every device on which evaluations can run, including emulated ones, with the state
    /// of its worker. Browsers receive a page.
    #[oai(path = "/devices", method = "get", operation_id = "devices", tag = "Tag::Machine")]
    async fn devices(
        &self,
        sees: Data<&Sees>,
    ) -> Result<JsonReply<Devices>, OperationError<KeyErrors>> {
        let devices = self.service.machine.status().devices;
        Ok(JsonReply::new(&self.shown(Devices { devices }, *sees.0)?)?)
    }

    /// List CUDA GPUs
    ///
    /// Returns the GPUs, with the fields of the GPU Tensor Server and additional ones.
    #[oai(path = "/cuda/info", method = "get", operation_id = "cuda_info", tag = "Tag::Machine")]
    async fn cuda_info(&self) -> Result<JsonReply<CudaInfo>, OperationError<KeyErrors>> {
        Ok(JsonReply::new(&CudaInfo::new(&self.service.machine.status()))?)
    }

    /// Get statistics
    ///
    /// Returns statistics since the start of the process, with the fields of the CUDA Evaluation
    /// Server. All of them are measured. Only administrators may call this operation. `GET
    /// /metrics` returns more, for Prometheus.
    #[oai(path = "/stats", method = "get", operation_id = "stats", tag = "Tag::Machine")]
    async fn stats(
        &self,
        caller: Data<&Caller>,
    ) -> Result<JsonReply<Stats>, OperationError<AdminErrors>> {
        self.admin_keys.admit(&caller)?;
        let statistics = self.service.machine.statistics(&caller).await?;
        Ok(JsonReply::new(&Stats::new(&self.service.machine.status(), &statistics))?)
    }

    /// Get metrics
    ///
    /// Returns metrics for Prometheus in the OpenMetrics text format: latencies of every stage and
    /// operation, the queue, jobs, devices, the compile cache, and rejected requests. Only
    /// administrators may call this operation.
    #[oai(path = "/metrics", method = "get", operation_id = "metrics", tag = "Tag::Machine")]
    async fn metrics(
        &self,
        caller: Data<&Caller>,
    ) -> Result<MetricsReply, OperationError<AdminErrors>> {
        self.admin_keys.admit(&caller)?;
        let jobs = self.service.machine.statistics(&Caller::local()).await?.jobs;
        let ready = self.unready().await.is_empty();
        let status = self.service.machine.status();
        let text = exposition(&status, ready, &jobs, &self.http, self.watchers.open()).map_err(
            |error| {
                tracing::error!(%error, "the metrics cannot be written");
                ApiError::internal("metrics", "the metrics cannot be written")
            },
        )?;
        Ok(MetricsReply(text))
    }

    /// List capabilities
    ///
    /// Returns the capabilities of each device and tool, with a reason and a remedy for each
    /// missing one. The server probes tools once; `refresh=true` makes it probe them again.
    #[oai(
        path = "/capabilities",
        method = "get",
        operation_id = "capabilities",
        tag = "Tag::Machine"
    )]
    async fn capabilities(
        &self,
        sees: Data<&Sees>,
        /// Whether to probe tools again.
        #[oai(default)]
        refresh: Query<bool>,
    ) -> Result<JsonReply<Capabilities>, OperationError<KeyErrors>> {
        let tooling = self.service.machine.tooling(refresh.0).await;
        let capabilities = Capabilities::new(&self.service.machine.status(), &tooling);
        Ok(JsonReply::new(&self.shown(capabilities, *sees.0)?)?)
    }

    /// Remove ended jobs
    ///
    /// Removes the ended jobs that match any of the parameters, with their reports and artifacts.
    /// Without parameters, removes jobs that ended more than five minutes ago, as in the CUDA
    /// Evaluation Server. Only administrators may call this operation.
    #[oai(
        path = "/admin/cleanup-jobs",
        method = "post",
        operation_id = "cleanup_jobs",
        tag = "Tag::Machine"
    )]
    async fn cleanup(
        &self,
        caller: Data<&Caller>,
        /// Minimum time since the end of a removed job, seconds.
        older_than_s: Query<Option<f64>>,
        /// Number of the newest ended jobs that remain. Older ones are removed.
        #[oai(validator(minimum(value = "0")))]
        keep: Query<Option<u64>>,
        /// Maximum total size of reports and artifacts, bytes. The oldest jobs are removed until
        /// the total is within this limit.
        #[oai(validator(minimum(value = "0")))]
        max_bytes: Query<Option<u64>>,
    ) -> Result<JsonReply<Cleaned>, OperationError<AdminErrors>> {
        self.admin_keys.admit(&caller)?;
        let policy = policy(older_than_s.0, keep.0, max_bytes.0)?;
        let report = self.service.jobs.cleanup(policy, &caller).await?;
        Ok(JsonReply::new(&Cleaned::new(report))?)
    }
}
