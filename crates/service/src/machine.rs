//! The machine and the process of the service, for those who look at them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::error::{ServiceError, refused};
use super::jobs::LiveJobs;
use super::readiness::Readiness;
use super::records::visibility;
use super::service::{DeviceView, MachineService, ServiceStatus};
use super::statistics;
use super::submission::{Answer, Caller};
use warpgauge_config::Config;
use warpgauge_executor::Executor;
use warpgauge_jobs::{JobCounts, ServiceStatistics, Unready};
use warpgauge_model::DeviceState;
use warpgauge_report::Tooling;
use warpgauge_store::{STATES, Store};
use warpgauge_telemetry::telemetry;

/// The machine and the process of the service.
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
    /// The machine of this executor; its uptime begins now.
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
        let counts = self.store.counts(visibility(caller)).await.map_err(refused)?;
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

    fn statistics<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ServiceStatistics> {
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
