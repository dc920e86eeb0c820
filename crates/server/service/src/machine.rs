//! State of the machine and of the service's process, for status and health queries. The main type
//! is [`Machine`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ServiceError, refused};
use super::jobs::LiveJobs;
use super::readiness::Readiness;
use super::records::visibility;
use super::statistics;
use super::submission::{Caller, ServiceFuture};
use warpgauge_config::Config;
use warpgauge_executor::Executor;
use warpgauge_job_views::{JobCounts, ServiceStatistics, Unready};
use warpgauge_model::DeviceState;
use warpgauge_report::{DeviceReading, DeviceReport, Tooling};
use warpgauge_store::{STATES, Store};
use warpgauge_telemetry::telemetry;

/// Describes the machine and the process of the service.
pub trait MachineService: Send + Sync {
    /// Returns the state of the machine and of the queue.
    fn status(&self) -> ServiceStatus;

    /// Returns counters of the service. Counts of jobs include only the jobs that the caller may
    /// see.
    fn statistics<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, ServiceStatistics>;

    /// Returns the directory of the server's data; `None` if the server has none. Answers to
    /// callers do not contain the directory.
    fn data_dir(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the reasons why no evaluation can run at present; empty if evaluations can run. The
    /// call takes at most a few seconds, even if a check hangs.
    fn readiness(&self) -> BoxFuture<'_, Vec<Unready>>;

    /// Returns the capabilities of the machine's tools. They are probed once, and again if
    /// `refresh` is set.
    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling>;
}

/// State of the machine and of the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Version of this program.
    pub version: String,
    /// Seconds since the service started.
    pub uptime_s: f64,
    /// Devices on which evaluations can run.
    pub devices: Vec<DeviceView>,
    /// Number of evaluations that wait for a device.
    pub queue_depth: usize,
    /// Maximum number of evaluations that may wait.
    pub queue_capacity: usize,
    /// Number of jobs of this process since its start, by state.
    pub jobs_by_state: std::collections::BTreeMap<String, u64>,
    /// Mean age of the jobs that have not ended, seconds.
    pub average_job_age_s: f64,
    /// Compilers that were found, with version and path, e.g. `nvrtc 13.0.88
    /// (/usr/local/cuda/lib64)`.
    pub compilers: Vec<String>,
    /// How compile processes are confined: `landlock enforced`, or the reason why they are not
    /// confined.
    pub compile_sandbox: String,
}

/// Device with the state of its worker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeviceView {
    /// Device.
    pub device: DeviceReport,
    /// State: `ready`, `busy`, `starting`, or `failed: REASON`.
    pub state: String,
    /// Number of evaluations on this device since the start of the service.
    pub jobs_done: u64,
    /// Number of workers that were replaced since the start of the service, after crashes and
    /// timeouts.
    pub restarts: u64,
    /// How landlock and seccomp confine the workers, or the reason why the workers are not
    /// confined. Absent before the first worker starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_sandbox: Option<String>,
    /// Clocks, power and temperature of the GPU when a worker read them last: after the last evaluation or, before
    /// the first one, at the worker's start. Absent if they are not known; `no_reading` gives the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<DeviceReading>,
    /// Reason why the state of the device is not known. Present unless `reading` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_reading: Option<String>,
}

/// Describes an executor's machine and this process.
pub(super) struct Machine {
    store: Store,
    executor: Arc<dyn Executor>,
    live: Arc<LiveJobs>,
    readiness: Arc<Readiness>,
    queue_capacity: usize,
    data_dir: PathBuf,
    started: Instant,
}

impl Machine {
    /// Creates a description of the machine of this executor. The uptime counts from now.
    pub(super) fn new(
        config: &Config,
        store: Store,
        executor: Arc<dyn Executor>,
        live: Arc<LiveJobs>,
        readiness: Arc<Readiness>,
    ) -> Self {
        let (queue_capacity, data_dir) =
            (config.devices.queue_capacity, config.data_dir().to_owned());
        let started = Instant::now();
        Self { store, executor, live, readiness, queue_capacity, data_dir, started }
    }

    async fn statistics_for(&self, caller: &Caller) -> Result<ServiceStatistics, ServiceError> {
        let counts = self.store.jobs().counts(visibility(caller)).await.map_err(refused)?;
        let by_state = STATES.into_iter().zip(counts.by_state).filter(|(_, count)| *count > 0);
        let by_state = by_state.map(|(state, count)| (state.name().to_owned(), count)).collect();
        let jobs = JobCounts { total: counts.total(), by_state };
        let devices = self.executor.offer().devices.into_iter().map(|device| device.info.ordinal);
        Ok(statistics::so_far(jobs, devices, self.started.elapsed().as_secs_f64()))
    }
}

impl MachineService for Machine {
    fn status(&self) -> ServiceStatus {
        let (mut jobs_by_state, average_job_age_s) = self.live.summary();
        for (state, count) in telemetry().endings() {
            *jobs_by_state.entry(state.to_owned()).or_insert(0) += count;
        }
        let offer = self.executor.offer();
        let devices = offer.devices.into_iter().map(|device| DeviceView {
            no_reading: device.reading.as_ref().err().cloned(),
            reading: device.reading.ok(),
            device: (&device.info).into(),
            state: match device.state {
                DeviceState::Ready if device.busy => "busy".to_owned(),
                state => state.to_string(),
            },
            jobs_done: device.jobs_done,
            restarts: device.restarts,
            worker_sandbox: device.worker_sandbox,
        });
        ServiceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            devices: devices.collect(),
            queue_depth: offer.waiting,
            queue_capacity: self.queue_capacity,
            jobs_by_state,
            average_job_age_s,
            compilers: offer.compilers,
            compile_sandbox: offer.compile_sandbox,
        }
    }

    fn statistics<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, ServiceStatistics> {
        self.readiness.with_database(self.statistics_for(caller))
    }

    fn data_dir(&self) -> Option<PathBuf> {
        Some(std::path::absolute(&self.data_dir).unwrap_or_else(|_| self.data_dir.clone()))
    }

    fn readiness(&self) -> BoxFuture<'_, Vec<Unready>> {
        self.readiness.look().boxed()
    }

    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling> {
        self.executor.tooling(refresh)
    }
}
