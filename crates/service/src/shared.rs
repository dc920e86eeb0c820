//! What the parts of the service share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{self, ServiceError};
use super::jobs::{LiveJobs, Taking};
use super::matrix_uploads::Uploads;
use super::readiness::Readiness;
use super::run_dir::RunDir;
use super::start::Role;
use super::tensors::CopyRoom;
use warpgauge_config::Config;
use warpgauge_contract::{EvaluateRequest, Limits};
use warpgauge_exec::Executor;
use warpgauge_holder::Holders;
use warpgauge_model::DeviceInfo;
use warpgauge_store::Store;

/// A place among the evaluations in flight; dropping it frees the place.
pub(super) type Admitted = OwnedSemaphorePermit;

/// What the parts of the service share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) limits: Limits,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) store: Store,
    pub(super) jobs: Arc<LiveJobs>,
    pub(super) role: Role,
    /// Evaluations admitted at once: those that may wait, and one per device.
    pub(super) admission: Arc<Semaphore>,
    pub(super) admitted_at_most: usize,
    /// Places among those that work on matrices.
    pub(super) matrix_turns: Arc<Semaphore>,
    /// Uploads of matrices that are being worked on.
    pub(super) uploads: Uploads,
    /// Places among those that copy shared tensors for requests.
    pub(super) tensor_turns: Arc<Semaphore>,
    /// Room for copies of shared tensors on devices.
    pub(super) device_copies: CopyRoom,
    pub(super) started: Instant,
    pub(super) closing: AtomicBool,
    pub(super) readiness: Readiness,
    /// What is taken from the store.
    pub(super) taking: Arc<Taking>,
    /// After the executor, which uses it: dropped in this order.
    pub(super) run_dir: RunDir,
    /// Shared tensors, and the directory in which they are memory of the host, which goes after them.
    pub(super) tensors: Holders,
    pub(super) _shared_dir: Option<RunDir>,
}

impl Shared {
    pub(super) fn check(&self, request: &EvaluateRequest) -> Result<(), ServiceError> {
        warpgauge_contract::validate(request, &self.limits).map_err(error::invalid)
    }

    /// A place among the evaluations in flight, or the news that there is none.
    pub(super) fn admit(&self) -> Result<Admitted, ServiceError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(ServiceError::ShuttingDown);
        }
        Arc::clone(&self.admission).try_acquire_owned().map_err(|_| ServiceError::QueueFull {
            waiting: self.admitted_at_most,
            retry_after: Duration::from_secs(1),
        })
    }

    /// The device that evaluations run on when the contract does not choose.
    pub(super) fn default_device(&self) -> Result<DeviceInfo, ServiceError> {
        Ok(self.executor.offer().default_device()?.clone())
    }

    /// Places for points of a sweep beside the one that it has: while the queue is at most half full,
    /// two points per device: one on it, and the next one compiling or waiting for it. So a sweep never
    /// holds more than one place in the queue per device.
    pub(super) fn more_lanes(&self) -> Vec<Admitted> {
        let most = 2 * self.executor.offer().devices.len();
        let mut lanes = Vec::new();
        while lanes.len() + 1 < most
            && self.admission.available_permits() > self.admitted_at_most / 2
        {
            // Full or closing: the sweep goes on in the places that it has.
            let Ok(lane) = self.admit() else { break };
            lanes.push(lane);
        }
        lanes
    }
}
