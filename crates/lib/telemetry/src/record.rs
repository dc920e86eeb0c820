//! The counters of this process. The main type is [`Telemetry`].

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::counters::{
    CacheResult, Counter, Counters, DeliveryResult, EndState, EvaluationOutcome, LabelKind, Reject,
    Stage,
};
use super::histogram::{Histogram, Observed};
use super::recent::Recent;

/// The number of devices that have separate counters, by ordinal. All devices with higher ordinals
/// share the last counters.
const DEVICES: usize = 64;

/// All counters. The methods that record events describe what they count.
#[derive(Debug)]
pub struct Telemetry {
    started: Instant,
    stages: Box<[Histogram]>,
    outcomes: Counters<EvaluationOutcome>,
    images: Counters<CacheResult>,
    not_compiled: Counter,
    runs: Counter,
    run_failed: Counter,
    correct: Counter,
    wrong: Counter,
    released: Counter,
    devices: [Device; DEVICES],
    submitted: Counter,
    submitted_lately: Recent,
    ended: Counters<EndState>,
    rejects: Counters<Reject>,
    deliveries: Counters<DeliveryResult>,
}

/// The time for which a device was in use.
#[derive(Debug)]
struct Device {
    busy_ns: AtomicU64,
    /// The start of the current lease, in nanoseconds after the start of the process plus one; 0
    /// means that the device is not leased.
    since_ns: AtomicU64,
    run_ns: AtomicU64,
}

/// The runs on devices, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// The number of all runs on devices.
    pub all: u64,
    /// The number of runs that did not complete.
    pub failed: u64,
    /// The number of runs with correct outputs.
    pub correct: u64,
    /// The number of runs with incorrect outputs.
    pub wrong: u64,
}

/// The times for which a device was in use, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceOccupancy {
    /// The time for which the device was leased, including cleanup and the current lease.
    pub busy_s: f64,
    /// The running time of evaluations that have ended.
    pub run_s: f64,
    /// Whether the device is leased now.
    pub leased: bool,
}

/// Returns the counters of this process.
pub fn telemetry() -> &'static Telemetry {
    static TELEMETRY: LazyLock<Telemetry> = LazyLock::new(Telemetry::new);
    &TELEMETRY
}

impl Telemetry {
    fn new() -> Self {
        let device = || Device {
            busy_ns: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            run_ns: AtomicU64::new(0),
        };
        Self {
            started: Instant::now(),
            stages: Stage::ALL.iter().map(|_| Histogram::new()).collect(),
            outcomes: Counters::default(),
            images: Counters::default(),
            not_compiled: Counter::default(),
            runs: Counter::default(),
            run_failed: Counter::default(),
            correct: Counter::default(),
            wrong: Counter::default(),
            released: Counter::default(),
            devices: std::array::from_fn(|_| device()),
            submitted: Counter::default(),
            submitted_lately: Recent::default(),
            ended: Counters::default(),
            rejects: Counters::default(),
            deliveries: Counters::default(),
        }
    }

    /// Records the duration of a stage, in milliseconds, the unit of reports. The methods below
    /// record the stages queue, compile and total.
    pub fn stage(&self, stage: Stage, ms: f64) {
        self.stages[stage.index()].observe_ms(ms);
    }

    /// Records the outcome of an evaluation.
    pub fn evaluated(&self, outcome: EvaluationOutcome) {
        self.outcomes.add(outcome);
    }

    /// Records a compilation that took `took`, with the source of its image, or its failure.
    pub fn compiled(&self, image: CacheResult, took: Duration) {
        self.images.add(image);
        if image == CacheResult::Failed {
            self.not_compiled.add();
        }
        self.stages[Stage::Compile.index()].observe(took);
    }

    /// Records that a kernel ran on a device for `ms`. `ended` is whether it completed. `correct`
    /// is whether the outputs were correct, or `None` if they were not checked.
    pub fn ran(&self, device: u32, ms: f64, ended: bool, correct: Option<bool>) {
        self.runs.add();
        if !ended {
            self.run_failed.add();
        }
        match correct {
            Some(true) => self.correct.add(),
            Some(false) => self.wrong.add(),
            None => {}
        }
        // The cast converts an invalid number of milliseconds to zero.
        self.device(device).run_ns.fetch_add((ms * 1e6) as u64, Ordering::Relaxed);
    }

    /// Records that a device was leased after a wait.
    pub fn leased(&self, device: u32, waited: Duration) {
        self.stages[Stage::Queue.index()].observe(waited);
        self.device(device).since_ns.store(self.now_ns() + 1, Ordering::Relaxed);
    }

    /// Records that a lease ended and the device has been cleaned up.
    pub fn released(&self, device: u32) {
        self.released.add();
        let device = self.device(device);
        let since = device.since_ns.swap(0, Ordering::Relaxed);
        if since > 0 {
            let held = (self.now_ns() + 1).saturating_sub(since);
            device.busy_ns.fetch_add(held, Ordering::Relaxed);
        }
    }

    /// Records that a job was accepted.
    pub fn submitted(&self) {
        self.submitted.add();
        self.submitted_lately.add(self.started.elapsed().as_secs());
    }

    /// Records that a job ended, with the time since its acceptance.
    pub fn job_ended(&self, state: EndState, took: Duration) {
        self.ended.add(state);
        self.stages[Stage::Total.index()].observe(took);
    }

    /// Records that a request was refused.
    pub fn rejected(&self, why: Reject) {
        self.rejects.add(why);
    }

    /// Records the result of an attempt to deliver a webhook.
    pub fn delivered(&self, how: DeliveryResult) {
        self.deliveries.add(how);
    }

    /// Returns the number of seconds since the counters were first used, which is approximately the
    /// uptime of the process.
    pub fn uptime_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns the durations of a stage.
    pub fn stage_times(&self, stage: Stage) -> Observed {
        self.stages[stage.index()].observed()
    }

    /// Returns the number of evaluations by outcome.
    pub fn outcomes(&self) -> Vec<(&'static str, u64)> {
        self.outcomes.all()
    }

    /// Returns the number of compilations by source of the image.
    pub fn images(&self) -> Vec<(&'static str, u64)> {
        self.images.all()
    }

    /// Returns the number of compilations with this source of the image.
    pub fn images_from(&self, origin: CacheResult) -> u64 {
        self.images.get(origin)
    }

    /// Returns the number of runs on devices, by result.
    pub fn runs(&self) -> Runs {
        Runs {
            all: self.runs.get(),
            failed: self.run_failed.get(),
            correct: self.correct.get(),
            wrong: self.wrong.get(),
        }
    }

    /// Returns the number of leases that ended.
    pub fn releases(&self) -> u64 {
        self.released.get()
    }

    /// Returns the times for which a device was in use.
    pub fn device_use(&self, device: u32) -> DeviceOccupancy {
        let device = self.device(device);
        let load = |ns: &AtomicU64| ns.load(Ordering::Relaxed);
        let since = load(&device.since_ns);
        let current = if since > 0 { (self.now_ns() + 1).saturating_sub(since) } else { 0 };
        DeviceOccupancy {
            busy_s: (load(&device.busy_ns) + current) as f64 * 1e-9,
            run_s: load(&device.run_ns) as f64 * 1e-9,
            leased: since > 0,
        }
    }

    /// Returns the number of accepted jobs, in total and in the last five minutes.
    pub fn submissions(&self) -> (u64, u64) {
        let lately = self.submitted_lately.count(self.started.elapsed().as_secs());
        (self.submitted.get(), lately)
    }

    /// Returns the number of ended jobs, by state.
    pub fn endings(&self) -> Vec<(&'static str, u64)> {
        self.ended.all()
    }

    /// Returns the number of jobs that ended in this state.
    pub fn ended_in(&self, state: EndState) -> u64 {
        self.ended.get(state)
    }

    /// Returns the number of refused requests, by reason.
    pub fn rejects(&self) -> Vec<(&'static str, u64)> {
        self.rejects.all()
    }

    /// Returns the number of attempts to deliver webhooks, by result.
    pub fn deliveries(&self) -> Vec<(&'static str, u64)> {
        self.deliveries.all()
    }

    fn device(&self, ordinal: u32) -> &Device {
        &self.devices[(ordinal as usize).min(DEVICES - 1)]
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_while_it_is_held_and_after() {
        let telemetry = Telemetry::new();
        assert_eq!(telemetry.device_use(0).busy_s, 0.0);
        telemetry.leased(0, Duration::from_millis(3));
        let (first, second) = (telemetry.device_use(0), telemetry.device_use(0));
        assert!(first.leased && second.busy_s >= first.busy_s && first.busy_s > 0.0);
        telemetry.released(0);
        let after = telemetry.device_use(0);
        assert!(!after.leased && after.busy_s >= second.busy_s);
        assert_eq!(telemetry.device_use(0), after);
        // A second release, or a release without a lease, adds nothing.
        telemetry.released(0);
        assert_eq!(telemetry.device_use(0), after);
        assert_eq!(telemetry.stage_times(Stage::Queue).count(), 1);
    }

    #[test]
    fn devices_beyond_the_last_place_share_it() {
        let telemetry = Telemetry::new();
        telemetry.ran(70, 2.0, true, Some(true));
        telemetry.ran(u32::MAX, 1.0, false, None);
        assert_eq!(telemetry.device_use(99).run_s, 0.003);
        assert_eq!(telemetry.runs(), Runs { all: 2, failed: 1, correct: 1, wrong: 0 });
        telemetry.ran(0, f64::NAN, false, Some(false));
        assert_eq!(telemetry.device_use(0).run_s, 0.0);
    }
}
