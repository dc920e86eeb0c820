//! One device: its workers, and the task that maintains their number.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::process::{StartPlan, Worker};
use super::restart::RestartPolicy;
use super::{DeviceStatus, Fleet, LastReading};
use crate::protocol::{EvaluatedRun, GpuReading};
use warpgauge_model::{DeviceInfo, DeviceState};
use warpgauge_sandbox::device_worker::Confinement;

/// Current use of a device. Only an unused device can be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    None,
    /// A lease holds the device.
    Lease,
    /// The lease has ended; its worker scrubs the device within a bounded time.
    CleanUp,
}

/// Time for which a device must be free before a spare is started on it.
const QUIET: Duration = Duration::from_millis(100);

/// Maximum time that the start of a spare waits for its device to be free.
const QUIET_LIMIT: Duration = Duration::from_millis(500);

/// A device of the fleet, and its workers.
pub(super) struct Slot {
    pub info: DeviceInfo,
    /// Workers that wait for a job. The first one gets the next job.
    ready: VecDeque<Worker>,
    /// Number of workers: ready workers, and the worker of a lease.
    staff: usize,
    /// Intended number of workers.
    wanted: usize,
    restart: RestartPolicy,
    failure: Option<String>,
    started: u64,
    jobs: u64,
    confinement: Option<Confinement>,
    reading: Result<LastReading, String>,
    /// Current use of the device.
    pub work: watch::Sender<Work>,
    /// Changes whenever a worker may have to be started.
    pub changed: watch::Sender<()>,
    /// Changes whenever a worker was started or a start failed.
    pub arrivals: watch::Sender<()>,
}

impl Slot {
    pub(super) fn new(info: DeviceInfo, wanted: usize) -> Self {
        Self {
            info,
            ready: VecDeque::new(),
            staff: 0,
            wanted,
            restart: RestartPolicy::default(),
            failure: None,
            started: 0,
            jobs: 0,
            confinement: None,
            reading: Err("no worker has started yet".to_owned()),
            work: watch::Sender::new(Work::None),
            changed: watch::Sender::new(()),
            arrivals: watch::Sender::new(()),
        }
    }

    pub(super) fn status(&self) -> DeviceStatus {
        let state = match &self.failure {
            Some(reason) => DeviceState::Failed { reason: reason.clone() },
            None if self.started == 0 => DeviceState::Starting,
            None => DeviceState::Ready,
        };
        DeviceStatus {
            info: self.info.clone(),
            state,
            busy: self.is_busy(),
            ready_workers: self.ready.len(),
            jobs_done: self.jobs,
            restarts: self.started.saturating_sub(self.wanted as u64),
            confinement: self.confinement.clone(),
            reading: self.reading.clone(),
        }
    }

    /// Returns why the device cannot be used, if so. A device that still has a worker can be used.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref().filter(|_| self.staff == 0)
    }

    /// Takes a ready worker if the device is free. Drops dead workers that it finds.
    pub(super) fn take_ready(&mut self) -> Option<Worker> {
        if self.is_busy() {
            return None;
        }
        while let Some(mut worker) = self.ready.pop_front() {
            if worker.is_idle() {
                return Some(worker);
            }
            self.lost_one();
        }
        None
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Raises the intended number of workers to `workers`.
    pub(super) fn want(&mut self, workers: usize) {
        if self.wanted < workers {
            self.wanted = workers;
            self.changed.send_modify(|()| ());
        }
    }

    /// Takes a ready worker that has never had a job.
    pub(super) fn take_unused(&mut self) -> Option<Worker> {
        while let Some(index) = self.ready.iter().position(|worker| worker.jobs() == 0) {
            let mut worker = self.ready.remove(index)?;
            if worker.is_idle() {
                return Some(worker);
            }
            self.lost_one();
        }
        None
    }

    pub(super) fn put_ready(&mut self, worker: Worker) {
        self.ready.push_front(worker);
    }

    pub(super) fn set_work(&mut self, work: Work) {
        self.jobs += u64::from(work == Work::Lease);
        self.work.send_replace(work);
    }

    pub(super) fn is_busy(&self) -> bool {
        *self.work.borrow() != Work::None
    }

    /// Records that a worker has ended or is no longer used.
    pub(super) fn lost_one(&mut self) {
        self.staff = self.staff.saturating_sub(1);
        self.changed.send_modify(|()| ());
    }

    /// Records that a worker was added.
    pub(super) fn gained_one(&mut self, worker: &Worker) {
        self.staff += 1;
        self.started += 1;
        self.confinement = Some(worker.confinement().clone());
        // The state under load says more than that of an idle device.
        if !self.reading.as_ref().is_ok_and(|last| last.after_launches) {
            self.reading = worker.reading().clone().map(|reading| LastReading::now(reading, false));
        }
    }

    /// Keeps the state of the GPU after timed launches, if the worker read it.
    pub(super) fn evaluated(&mut self, run: &EvaluatedRun) {
        if let Some(([_, health], settings)) = run.health.zip(run.settings.clone()) {
            self.reading = Ok(LastReading::now(GpuReading { health, settings }, true));
        }
    }

    /// Ends all workers that wait for a job.
    pub(super) fn dismiss_all(&mut self) {
        self.ready.clear();
        self.wanted = 0;
    }
}

/// Starts workers on a device, one after another, until the fleet is dropped.
pub(super) async fn keep_staffed(fleet: Weak<Fleet>, index: usize, plan: StartPlan) {
    let Some(mut changed) =
        fleet.upgrade().map(|fleet| fleet.lock().slots[index].changed.subscribe())
    else {
        return;
    };
    loop {
        changed.mark_unchanged();
        let Some(delay) = fleet.upgrade().map(|fleet| {
            let state = fleet.lock();
            let slot = &state.slots[index];
            let short = !state.closing && slot.staff < slot.wanted;
            short.then(|| slot.restart.delay(Instant::now()))
        }) else {
            return;
        };
        match delay {
            None => {
                // An error means that the fleet was dropped.
                if changed.changed().await.is_err() {
                    return;
                }
            }
            Some(delay) if !delay.is_zero() => tokio::time::sleep(delay).await,
            Some(_) => {
                until_quiet(&fleet, index).await;
                let started = Worker::start(&plan).await;
                let Some(fleet) = fleet.upgrade() else { return };
                add(&fleet, index, started);
            }
        }
    }
}

/// Waits for a good moment to start a spare. Creating a context disturbs timing on the device,
/// above all the first measurement after a crash. A device without workers does not wait.
async fn until_quiet(fleet: &Weak<Fleet>, index: usize) {
    let Some((mut work, mut changed)) = fleet.upgrade().map(|fleet| {
        let state = fleet.lock();
        let slot = &state.slots[index];
        (slot.work.subscribe(), slot.changed.subscribe())
    }) else {
        return;
    };
    let quiet = async {
        // An error means that the fleet was dropped.
        while work.wait_for(|work| *work == Work::None).await.is_ok() {
            if timeout(QUIET, work.wait_for(|work| *work != Work::None)).await.is_err() {
                return;
            }
        }
    };
    let staffless = async {
        while fleet.upgrade().is_some_and(|fleet| fleet.lock().slots[index].staff > 0) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = quiet => {}
        () = staffless => {}
        () = tokio::time::sleep(QUIET_LIMIT) => {}
    }
}

/// Records the outcome of starting a worker.
fn add(fleet: &Arc<Fleet>, index: usize, started: Result<Worker, String>) {
    let mut state = fleet.lock();
    if state.closing {
        return;
    }
    let slot = &mut state.slots[index];
    let device = slot.info.ordinal;
    let arrivals = slot.arrivals.clone();
    match started {
        Ok(worker) => {
            tracing::info!(device, "a worker is ready");
            slot.restart.succeeded();
            slot.failure = None;
            slot.gained_one(&worker);
            // Workers that are already warm are used first.
            slot.ready.push_back(worker);
            state.dispatch();
        }
        Err(reason) => {
            tracing::error!(device, %reason, "a worker cannot be started");
            if slot.restart.failed(Instant::now()) {
                slot.failure = Some(reason);
                state.refuse_hopeless();
            }
        }
    }
    arrivals.send_modify(|()| ());
}
