//! What the parts of the service share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::{self, ServiceError};
use super::jobs::{LiveJobs, Taking};
use super::matrix_uploads::Uploads;
use super::readiness::Readiness;
use super::run_dir::RunDir;
use super::start::Role;
use super::tensors::CopyRoom;
use warpgauge_config::Config;
use warpgauge_contract::{EvaluateRequest, Limits};
use warpgauge_executor::Executor;
use warpgauge_model::DeviceInfo;
use warpgauge_store::Store;
use warpgauge_tensors::TensorHolders;
use warpgauge_turns::{Bounds, Full, Owner, Pool, Turn};

/// Most that wait for their turn with matrices, and with tensors: more than may be connected.
const MOST_WAITING: usize = 100_000;

/// A place among the evaluations in flight; dropping it frees the place.
pub(super) type Admitted = Turn;

/// What the parts of the service share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) limits: Limits,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) store: Store,
    pub(super) jobs: Arc<LiveJobs>,
    pub(super) role: Role,
    /// Evaluations admitted at once: those that may wait, and one per device. Where there are several keys, one
    /// has at most as many as it leaves for others.
    pub(super) admission: Pool,
    /// Places among those that work on matrices.
    pub(super) matrix_turns: Pool,
    /// Uploads of matrices that are being worked on.
    pub(super) uploads: Uploads,
    /// Places among those that copy shared tensors for requests.
    pub(super) tensor_turns: Pool,
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
    pub(super) tensors: Arc<dyn TensorHolders>,
    pub(super) _shared_dir: Option<RunDir>,
}

/// Places for so many evaluations in flight, and the dispatcher, which waits for one.
pub(super) fn admission(places: usize, shared: bool) -> Pool {
    Pool::new(Bounds { places, extra: 0, waiting: 1, shared, least: 1 })
}

/// Places for those that have files and tensors worked on, each of whom has room in memory.
pub(super) fn turns(places: usize, config: &Config) -> Pool {
    let (waiting, shared) = (MOST_WAITING, config.server.has_several_keys());
    Pool::new(Bounds { places, extra: 0, waiting, shared, least: 1 })
}

/// A place in turn.
pub(super) async fn in_turn(pool: &Pool, owner: &str) -> Result<Turn, ServiceError> {
    pool.take(Owner::named(owner)).await.map_err(queue_full)
}

fn queue_full(full: Full) -> ServiceError {
    let (waiting, own) = match full {
        Full::All(waiting) => (waiting, false),
        Full::Share(waiting) => (waiting, true),
    };
    ServiceError::QueueFull { waiting, own, retry_after: Duration::from_secs(1) }
}

impl Shared {
    pub(super) fn check(&self, request: &EvaluateRequest) -> Result<(), ServiceError> {
        warpgauge_contract::validate(request, &self.limits).map_err(error::invalid)
    }

    /// A place among the evaluations in flight, of an owner; or the news that there is none.
    pub(super) fn admit(&self, owner: &str) -> Result<Admitted, ServiceError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(ServiceError::ShuttingDown);
        }
        self.admission.try_take(Owner::named(owner), 1).map_err(queue_full)
    }

    /// The device that evaluations run on when the contract does not choose.
    pub(super) fn default_device(&self) -> Result<DeviceInfo, ServiceError> {
        Ok(self.executor.offer().default_device()?.clone())
    }

    /// Places for points of a sweep beside the one that it has: while the queue is at most half full,
    /// two points per device: one on it, and the next one compiling or waiting for it. So a sweep never
    /// holds more than one place in the queue per device.
    pub(super) fn more_lanes(&self, owner: &str) -> Vec<Admitted> {
        let most = 2 * self.executor.offer().devices.len();
        let mut lanes = Vec::new();
        while lanes.len() + 1 < most && self.admission.free() > self.admission.bounds().places / 2 {
            // Full or closing: the sweep goes on in the places that it has.
            let Ok(lane) = self.admit(owner) else { break };
            lanes.push(lane);
        }
        lanes
    }
}
