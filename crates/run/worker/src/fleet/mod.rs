//! The server's side of the workers: starts and replaces worker processes, and leases devices.
//!
//! Every device has one worker and, if configured, a hot spare: starting a worker takes a fraction
//! of a second, switching to the spare takes no time. The fleet kills a worker that hangs or loses
//! its context, with its process group. The spare then becomes the worker, and a new spare is
//! started. A device runs one job at a time, regardless of the number of its workers. The emulated
//! device is an exception: if another owner's long job runs there, an owner without a running job
//! does not wait, and its job runs beside it.

mod aide;
mod answer;
mod asked;
mod costs;
mod kind;
mod lease;
mod one_shot;
mod plan;
mod probe;
mod process;
mod profiler;
mod restart;
mod sealed;
mod slot;
mod spawner;
mod system;
mod types;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};

use crate::protocol::PlanReport;
use crate::queue::{LeaseNeeds, WaitQueue, Waiter, retry_after};
use warpgauge_model::{DeviceInfo, DeviceKind, Unavailable};
use warpgauge_telemetry::telemetry;
use warpgauge_turns::Owner;

pub use kind::HELD_DIR;
use kind::{WorkerKind, WorkerProgram};
pub use lease::Lease;
pub use one_shot::{OneShot, OneShotEnd};
pub use plan::chip_of;
use process::{StartPlan, Worker};
pub use profiler::CounterClaim;
use profiler::Profilers;
use sealed::Sealing;
use slot::{Slot, Work};
use spawner::Spawner;
pub use types::{
    DeviceChoice, DeviceStatus, FleetConfig, FleetError, LastReading, LeaseError, RunEvent,
    SupportSource,
};

/// Maximum number of jobs that run beside another owner's job on the emulated device. By default,
/// each process has up to half of the host's memory for the device, at most 16 GiB.
const BESIDE: usize = 1;

/// Time that an owner waits for the emulated device before its job runs beside another.
const BESIDE_AFTER: Duration = Duration::from_millis(200);

/// The devices of this host, and their worker processes.
pub struct Fleet {
    state: Mutex<State>,
    /// Settings for starting a worker, for each device.
    plans: Vec<StartPlan>,
    /// Workers that judge sealed jobs and run references, for each device.
    sealing: Vec<Sealing>,
    profilers: Profilers,
    /// Notified when a request begins to wait for a lease.
    begun_to_wait: Notify,
    /// True once running jobs must stop.
    stop: watch::Sender<bool>,
    /// Runtime for cleaning up the device after a lease is dropped.
    runtime: Handle,
}

/// A queue ticket: the channel through which a waiter gets its lease.
type Ticket = oneshot::Sender<Result<Grant, LeaseError>>;

/// A device granted to a waiter.
struct Grant {
    slot: usize,
    worker: Worker,
    owner: Owner,
}

/// A request that waits for a lease. If it is dropped after a device was granted but before the
/// lease was taken, it returns the device.
struct Waiting {
    fleet: Arc<Fleet>,
    answer: oneshot::Receiver<Result<Grant, LeaseError>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // After this, no device can be granted. An earlier grant is either received here or was
        // already taken.
        self.answer.close();
        if let Ok(Ok(grant)) = self.answer.try_recv() {
            drop(Lease::new(Arc::clone(&self.fleet), grant, Duration::ZERO));
        }
    }
}

struct State {
    /// One slot per device, followed by the emulated device's slots for jobs that run beside
    /// another.
    slots: Vec<Slot>,
    devices: usize,
    queue: WaitQueue<Ticket>,
    closing: bool,
    /// Moving average of the duration of a lease.
    mean_lease: Duration,
}

impl Fleet {
    /// Finds the devices and begins to start their workers. Lease requests wait for the workers.
    ///
    /// # Errors
    /// Returns a [`FleetError`], for example if a configured device does not exist.
    pub async fn start(
        config: FleetConfig,
        support: SupportSource,
    ) -> Result<Arc<Self>, FleetError> {
        let found = probe::find(&config).await?;
        let spawner = Spawner::start().map_err(FleetError::Thread)?;
        let plan = |device: &DeviceInfo| StartPlan {
            program: WorkerProgram {
                path: config.program.clone(),
                emulator: found.emulator.clone(),
                run_dir: config.run_dir.clone(),
                libraries: match device.kind {
                    DeviceKind::Cuda => config.libraries.clone(),
                    DeviceKind::Emulator => Vec::new(),
                },
            },
            kind: WorkerKind::Timing,
            device: device.ordinal,
            start_timeout: config.start_timeout,
            support: Arc::clone(&support),
            spawner: spawner.clone(),
        };
        let cupti = |device: &DeviceInfo| {
            warpgauge_device::cupti::for_driver(&config.cupti, device.target.driver_version)
        };
        let workers = if config.hot_spare { 2 } else { 1 };
        let emulated = found.devices.iter().filter(|device| device.kind == DeviceKind::Emulator);
        let beside = emulated.flat_map(|device| std::iter::repeat_n(device, BESIDE));
        let all: Vec<&DeviceInfo> = found.devices.iter().chain(beside).collect();
        let plans: Vec<StartPlan> = all.iter().copied().map(plan).collect();
        let counted = plans.iter().cloned().zip(all.iter().copied().map(cupti));
        let devices = found.devices.len();
        let slots = all.iter().enumerate().map(|(index, device)| {
            // Workers for jobs that run beside another are started when they are needed.
            Slot::new((*device).clone(), if index < devices { workers } else { 0 })
        });
        let state = Mutex::new(State {
            slots: slots.collect(),
            devices,
            queue: WaitQueue::new(config.queue_capacity),
            closing: false,
            mean_lease: Duration::from_millis(100),
        });
        let stop = watch::Sender::new(false);
        let runtime = Handle::current();
        let fleet = Arc::new(Self {
            sealing: plans.iter().map(Sealing::new).collect(),
            profilers: Profilers::new(counted),
            begun_to_wait: Notify::new(),
            state,
            plans: plans.clone(),
            stop,
            runtime,
        });
        for (index, plan) in plans.into_iter().enumerate() {
            tokio::spawn(slot::keep_staffed(Arc::downgrade(&fleet), index, plan));
            // On a GPU, starting a worker takes a fraction of a second; on the emulated device, no
            // time.
            if fleet.lock().slots[index].info.kind == DeviceKind::Cuda {
                let fleet = Arc::clone(&fleet);
                tokio::spawn(async move { fleet.sealing[index].summon().await });
            }
        }
        Ok(fleet)
    }

    /// Returns the status of every device. Jobs that ran beside another are included.
    pub fn devices(&self) -> Vec<DeviceStatus> {
        let state = self.lock();
        let (slots, beside) = state.slots.split_at(state.devices);
        let status = |slot: &Slot| {
            let of_device = beside.iter().filter(|one| one.info.ordinal == slot.info.ordinal);
            let jobs = of_device.map(|one| one.status().jobs_done).sum::<u64>();
            let status = slot.status();
            DeviceStatus { jobs_done: status.jobs_done + jobs, ..status }
        };
        slots.iter().map(status).collect()
    }

    /// Returns the number of requests that wait for a lease.
    pub fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    /// Returns as soon as a request waits for a device.
    pub async fn wanted(&self) {
        let begun = self.begun_to_wait.notified();
        tokio::pin!(begun);
        // From here on the notification is not missed.
        begun.as_mut().enable();
        if self.waiting() == 0 {
            begun.await;
        }
    }

    /// Waits for a device that meets `need`. Devices are shared fairly between owners.
    ///
    /// # Errors
    /// Returns a [`LeaseError`].
    pub async fn lease(self: &Arc<Self>, need: &LeaseNeeds) -> Result<Lease, LeaseError> {
        let asked = Instant::now();
        let (ticket, answer) = oneshot::channel();
        let waits = {
            let mut state = self.lock();
            state.enqueue(need.clone(), ticket, asked)?;
            !state.queue.is_empty()
        };
        if waits {
            self.begun_to_wait.notify_waiters();
            self.look_beside();
        }
        let mut waiting = Waiting { fleet: Arc::clone(self), answer };
        let grant = (&mut waiting.answer).await.map_err(|_| LeaseError::ShuttingDown)??;
        Ok(Lease::new(Arc::clone(self), grant, asked.elapsed()))
    }

    /// Dispatches again once a new waiter may run beside another job. If it cannot start then, it
    /// starts when the obstacle is gone.
    fn look_beside(self: &Arc<Self>) {
        let state = self.lock();
        if state.slots.len() > state.devices {
            let fleet = Arc::downgrade(self);
            self.runtime.spawn(async move {
                tokio::time::sleep(BESIDE_AFTER).await;
                if let Some(fleet) = fleet.upgrade() {
                    fleet.lock().dispatch();
                }
            });
        }
    }

    /// Returns whether a slot is for jobs that run beside another.
    fn is_beside(&self, slot: usize) -> bool {
        slot >= self.lock().devices
    }

    /// Rejects new leases and lets running jobs continue for `grace`. Then stops them, and ends
    /// each worker after it has cleaned up its last job.
    pub async fn shutdown(&self, grace: Duration) {
        let mut slots = {
            let mut state = self.lock();
            state.closing = true;
            self.sealing.iter().for_each(Sealing::close);
            self.profilers.close();
            for waiter in state.queue.remove_where(|_| true) {
                let _ = waiter.ticket.send(Err(LeaseError::ShuttingDown));
            }
            for slot in &state.slots {
                slot.changed.send_modify(|()| ());
                slot.arrivals.send_modify(|()| ());
            }
            state.slots.iter().map(|slot| slot.work.subscribe()).collect::<Vec<_>>()
        };
        let jobs_ended = async {
            for slot in &mut slots {
                // An error means that the slot is gone, and the job with it.
                let _ = slot.wait_for(|work| *work != Work::Lease).await;
            }
        };
        if tokio::time::timeout(grace, jobs_ended).await.is_err() {
            tracing::warn!(?grace, "jobs still run after the grace period: stopping them");
        }
        self.stop.send_replace(true);
        for slot in &mut slots {
            let _ = slot.wait_for(|work| *work != Work::CleanUp).await;
        }
        for slot in &mut self.lock().slots {
            slot.dismiss_all();
        }
        self.sealing.iter().for_each(Sealing::dismiss);
        self.profilers.dismiss();
    }

    /// Plans the collection of NVIDIA's metrics on a chip, with a CUPTI library that fits a device.
    ///
    /// # Errors
    /// Fails if there is no CUPTI library, if CUPTI knows neither the chip nor any of the metrics,
    /// or if CUPTI fails.
    pub async fn plan_counters(
        &self,
        device: u32,
        chip: &str,
        metrics: &[String],
    ) -> Result<PlanReport, Unavailable> {
        self.profilers.plan(device, chip, metrics).await
    }

    /// Returns the expected time of reading NVIDIA's metrics on a device, milliseconds. The
    /// estimate assumes a worker that has read the same metrics before.
    pub fn counters_ms(&self, device: u32, metrics: &[String], passes: u32) -> f64 {
        self.profilers.expected_ms(device, metrics, passes)
    }

    fn give_back(
        &self,
        slot: usize,
        owner: Owner,
        worker: Option<Worker>,
        had_worker: bool,
        held: Duration,
    ) {
        if !self.is_beside(slot) {
            // This must happen before the device's next lease begins.
            telemetry().released(self.plans[slot].device);
        }
        let mut state = self.lock();
        state.queue.given_back(owner, Instant::now());
        state.give_back(slot, worker, had_worker, held);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the ready workers of a slot to the waiters that `next` takes from the queue.
fn hand_out(
    (index, slot): (usize, &mut Slot),
    queue: &mut WaitQueue<Ticket>,
    now: Instant,
    next: impl Fn(&mut WaitQueue<Ticket>, &DeviceInfo) -> Option<Waiter<Ticket>>,
) {
    while let Some(worker) = slot.take_ready() {
        let Some(waiter) = next(queue, &slot.info) else {
            slot.put_ready(worker);
            break;
        };
        let owner = waiter.need.owner;
        match waiter.ticket.send(Ok(Grant { slot: index, worker, owner })) {
            Ok(()) => slot.set_work(Work::Lease),
            // The waiter gave up, so the next waiter gets the worker.
            Err(answer) => {
                queue.given_back(owner, now);
                if let Ok(grant) = answer {
                    slot.put_ready(grant.worker);
                }
            }
        }
    }
}

impl State {
    fn enqueue(
        &mut self,
        need: LeaseNeeds,
        ticket: Ticket,
        now: Instant,
    ) -> Result<(), LeaseError> {
        if self.closing {
            return Err(LeaseError::ShuttingDown);
        }
        self.check_need(&need)?;
        // Waiters that gave up are not counted.
        self.queue.remove_where(|waiter| waiter.ticket.is_closed());
        self.queue.push(need, ticket, now);
        self.dispatch();
        if self.queue.pop_surplus().is_some() {
            let waiting = self.queue.len();
            let retry_after = retry_after(waiting, self.devices, self.mean_lease);
            return Err(LeaseError::QueueFull { waiting, retry_after });
        }
        Ok(())
    }

    fn check_need(&self, need: &LeaseNeeds) -> Result<(), LeaseError> {
        let devices = self.slots[..self.devices].iter();
        let mut suitable = devices.filter(|slot| need.is_met_by(&slot.info)).peekable();
        if suitable.peek().is_none() {
            return Err(LeaseError::NoSuchDevice { need: Box::new(need.clone()) });
        }
        let mut failure = None;
        for slot in suitable {
            match slot.failure() {
                None => return Ok(()),
                Some(reason) => failure = Some((slot.info.ordinal, reason.to_owned())),
            }
        }
        failure.map_or(Ok(()), |(device, reason)| Err(LeaseError::Failed { device, reason }))
    }

    /// Grants free devices to waiters in order. For devices that are busy, grants their extra
    /// slots.
    fn dispatch(&mut self) {
        let now = Instant::now();
        let Self { slots, queue, devices, .. } = self;
        let (of_devices, beside) = slots.split_at_mut(*devices);
        for (index, slot) in of_devices.iter_mut().enumerate() {
            hand_out((index, slot), queue, now, |queue, device| queue.take_for(device, now));
        }
        for (index, slot) in (*devices..).zip(beside) {
            let same = |one: &&Slot| one.info.ordinal == slot.info.ordinal;
            if !of_devices.iter().find(same).is_some_and(|one| one.is_busy()) {
                continue;
            }
            if queue.waits_beside(&slot.info) {
                slot.want(1);
            }
            hand_out((index, slot), queue, now, |queue, device| {
                queue.take_beside(device, now, BESIDE_AFTER)
            });
        }
    }

    /// Rejects waiters for which no usable device is left.
    fn refuse_hopeless(&mut self) {
        let waiters = self.queue.remove_where(|_| true);
        for waiter in waiters {
            match self.check_need(&waiter.need) {
                Err(error) => {
                    let _ = waiter.ticket.send(Err(error));
                }
                Ok(()) => self.queue.push(waiter.need, waiter.ticket, waiter.since),
            }
        }
    }

    /// Ends a lease after the duration `held`. `had_worker`: whether the lease had a worker until
    /// now, even if it does not return it.
    fn give_back(&mut self, slot: usize, worker: Option<Worker>, had_worker: bool, held: Duration) {
        self.mean_lease = (self.mean_lease * 7 + held) / 8;
        let closing = self.closing;
        let slot = &mut self.slots[slot];
        match worker {
            Some(worker) if !closing => slot.put_ready(worker),
            _ if had_worker => slot.lost_one(),
            _ => {}
        }
        slot.set_work(Work::None);
        self.dispatch();
    }
}
