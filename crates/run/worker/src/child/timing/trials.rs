//! Warm-up and timed launches.
//!
//! A trial is: inputs that no earlier launch had → the kernel's variables as after loading →
//! outputs poisoned → L2 flushed (cold) → blocking kernel → event, launch, event → perhaps
//! verification. The blocking kernel holds the device back until the host has queued the whole
//! launch. Nothing is written for a trial before the previous trial has ended. Trials are grouped
//! in batches. The cycle counters of all multiprocessors are read before and after each batch.
//!
//! During the warm-up a kernel keeps its variables. The results of the first warm-up launches are
//! verified, which detects a kernel that is not correct in every launch. During timing its
//! variables are reset, so that it cannot distinguish the launches.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::batch::{Memory, NoJudge, Rig};
use super::inputs::Inputs;
use super::judge::{Phase, Referee};
use super::load::{LOAD_AUDITS, Load};
use crate::child::device::executor::BATCH;
use crate::child::failure::{JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::secret::Secret;
use crate::protocol::{BatchFacts, LoadFacts, TrialPlan};
use warpgauge_device::GpuHealth;
use warpgauge_model::{DeviceKind, Regime};
use warpgauge_statistics::{
    Decision, RankedBy, Sorted, StopReason, WARMUP_BATCH, decide, is_stable, ranked_by,
};
use warpgauge_validate::Filling;

/// Maximum extension of the warm-up beyond its planned end, seconds.
const WARMUP_GRACE_S: f64 = 0.5;

/// Maximum planned duration of a batch, seconds. It keeps progress visible and allows an early
/// stop.
pub(super) const BATCH_S: f64 = 0.2;

/// Maximum duration of one step of the warm-up, seconds.
const WARMUP_STEP_S: f64 = 0.025;

/// Number of warm-up launches whose results are verified.
pub(super) const HISTORY_LAUNCHES: usize = 10;

/// Maximum duration of the verified warm-up launches on the emulated device, which needs no other
/// warm-up, seconds.
const HISTORY_S: f64 = 0.5;

/// Number of additional sealed launches, if the times of sealed and other launches disagree. Noise
/// seldom recurs in all of them.
const CONFIRMING: usize = 9;

/// Number of launches from which the time of an empty kernel is measured.
const EMPTY_LAUNCHES: usize = 40;

/// Result of timing a kernel.
#[derive(Default)]
pub(crate) struct Measured {
    /// Time of each launch, milliseconds, in launch order.
    pub samples_ms: Vec<f32>,
    pub batches: Vec<BatchFacts>,
    pub warmup_launches: u32,
    /// Whether the warm-up ended because times were stable.
    pub warmup_stable: bool,
    pub busy_ms: f64,
    /// Wall time of verification.
    pub verifying: Duration,
    pub stopped: Option<StopReason>,
    /// Median time of an empty kernel, milliseconds.
    pub empty_launch_ms: Option<f64>,
    /// The load before timed launches, if any.
    pub load: Option<LoadFacts>,
}

/// A query of the GPU's health that is still running.
type Asked = JoinHandle<GpuHealth>;

/// Health of the GPU at the first timed launch and after the last, queried in the background.
#[derive(Default)]
pub(crate) struct Health(Option<(Asked, Asked)>);

impl Health {
    /// Waits for the answers. Returns `None` if the GPU is not monitored or a query failed.
    pub(crate) fn told(self) -> Option<[GpuHealth; 2]> {
        let (before, after) = self.0?;
        Some([before.join().ok()?, after.join().ok()?])
    }
}

/// Warms up and times the kernel according to the plan.
pub(crate) fn measure(
    rig: &mut Rig<'_, '_>,
    arm: &mut LoadedProgram,
    plan: &TrialPlan,
    judge: &mut dyn Referee,
    progress: &mut dyn FnMut(&[f32]),
) -> JobResult<Measured> {
    let mut measured = Measured::default();
    rig.executor.reset_persisting_l2()?;
    measured.empty_launch_ms = empty_launch(rig)?;
    let each = match plan.regime {
        Regime::Isolated => warm_up(rig, arm, plan, judge, &mut measured)?,
        Regime::Sustained => settle(rig, arm, plan, judge, &mut measured)?,
    };
    let before = health(rig);
    trials(rig, arm, (plan, each), judge, &mut measured, progress)?;
    rig.health = Health(before.zip(health(rig)));
    measured.load = rig.load.take().map(|load| load.facts());
    Ok(measured)
}

/// Warms up with the load that precedes each timed launch. Returns the approximate wall time of a
/// timed launch including its load.
fn settle(
    rig: &mut Rig<'_, '_>,
    arm: &mut LoadedProgram,
    plan: &TrialPlan,
    judge: &mut dyn Referee,
    measured: &mut Measured,
) -> JobResult<Duration> {
    // These launches keep their variables, and the first of them are verified.
    let brief = TrialPlan { min_warmup_s: 0.0, ..plan.clone() };
    let each = warm_up(rig, arm, &brief, judge, measured)?;
    rig.settle(arm, plan.min_warmup_s)?;
    let load_s = rig.load.as_ref().map_or(0.0, Load::least_s);
    Ok(each + Duration::from_secs_f64(load_s))
}

/// Queries the GPU's health in another thread, because the query takes half a millisecond.
fn health(rig: &Rig<'_, '_>) -> Option<Asked> {
    let monitor = Arc::clone(rig.executor.monitor.as_ref().ok()?);
    std::thread::Builder::new().name("health".to_owned()).spawn(move || monitor.health()).ok()
}

/// Returns the time of an empty launch under the same conditions, which is a lower bound of every
/// time. A worker measures it only once.
fn empty_launch(rig: &mut Rig<'_, '_>) -> JobResult<Option<f64>> {
    if rig.executor.empty_launch_ms.is_none() && rig.executor.timing.is_some() {
        let mut arm = match &rig.executor.support {
            Some(support) => LoadedProgram::empty(support).map_err(environment)?,
            None => return Ok(None),
        };
        let cache = rig.cache;
        let inputs = Inputs::new(&[], false);
        let executor = &mut *rig.executor;
        let mut bare = Rig {
            executor,
            buffers: &mut [],
            inputs,
            cache,
            turns: None,
            load: None,
            looked_at: false,
            health: Health::default(),
        };
        // The first launch loads the kernel.
        bare.launch_once(&mut arm, Filling::FIXED)?;
        let samples = bare.run(&mut arm, EMPTY_LAUNCHES, &mut NoJudge)?.samples_ms;
        let samples = samples.into_iter().map(f64::from).collect::<Vec<_>>();
        rig.executor.empty_launch_ms = Sorted::new(&samples).map(|sorted| sorted.median());
    }
    Ok(rig.executor.empty_launch_ms)
}

/// Makes launches until the planned time has passed and times are stable. Returns the wall time of
/// one launch in the last step, including its preparation.
fn warm_up(
    rig: &mut Rig<'_, '_>,
    arm: &mut LoadedProgram,
    plan: &TrialPlan,
    judge: &mut dyn Referee,
    measured: &mut Measured,
) -> JobResult<Duration> {
    let start = Instant::now();
    let emulated = rig.executor.device().kind == DeviceKind::Emulator;
    let (mut medians, mut spread) = (Vec::new(), 0.0_f64);
    let mut count = 1;
    loop {
        let step = Instant::now();
        let count_now = count.min(BATCH);
        let before = measured.warmup_launches as usize;
        let verified = HISTORY_LAUNCHES.saturating_sub(before).min(count_now);
        let later = HISTORY_LAUNCHES.saturating_sub(before + verified);
        judge.begin(Phase::WarmUp, before, (0..verified).collect(), later);
        let batch = rig.run_with(arm, count_now, judge, Memory::Kept)?;
        let spent = judge.spent();
        measured.verifying += spent;
        let each = step.elapsed().saturating_sub(spent) / count_now as u32;
        measured.warmup_launches += count_now as u32;
        measured.busy_ms += batch.busy_ms;
        let samples = batch.samples_ms.iter().map(|&ms| f64::from(ms)).collect::<Vec<_>>();
        spread = spread.max(relative_spread(&samples));
        medians.extend(Sorted::new(&samples).map(|sorted| sorted.median()));
        // Verification does not warm the device up.
        let passed = start.elapsed().saturating_sub(measured.verifying).as_secs_f64();
        // The emulated device has neither clocks nor caches to warm.
        if emulated {
            let left = HISTORY_LAUNCHES.saturating_sub(measured.warmup_launches as usize);
            if left == 0 || passed >= HISTORY_S {
                return Ok(each);
            }
            count = launches_in(each, HISTORY_S).min(left);
            continue;
        }
        measured.warmup_stable = is_stable(&medians, spread);
        if passed >= plan.min_warmup_s && measured.warmup_stable
            || passed >= plan.min_warmup_s + WARMUP_GRACE_S
        {
            return Ok(each);
        }
        count = launches_in(each, WARMUP_STEP_S).min(WARMUP_BATCH as usize);
    }
}

fn trials(
    rig: &mut Rig<'_, '_>,
    arm: &mut LoadedProgram,
    (plan, mut each): (&TrialPlan, Duration),
    judge: &mut dyn Referee,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&[f32]),
) -> JobResult<()> {
    let mut start = Instant::now();
    let mut verified_before = measured.verifying;
    // Number of samples and number of batches of a first measurement that was repeated.
    let mut before = None;
    loop {
        let done = measured.samples_ms.len();
        let (first, _) = before.unwrap_or_default();
        let samples = &measured.samples_ms[first..];
        let verifying = measured.verifying.saturating_sub(verified_before);
        let elapsed_s = start.elapsed().saturating_sub(verifying).as_secs_f64();
        let target = match decide(&plan.stop, samples, elapsed_s) {
            Decision::Continue { next_look } => first + next_look as usize,
            Decision::Stop(reason) => {
                measured.stopped = Some(reason);
                if let Some(turns) = &mut rig.turns
                    && rig.executor.device().kind == DeviceKind::Cuda
                    && turns.are_to_confirm(samples, first)
                {
                    turns.begin(done, (0..CONFIRMING).collect(), 0);
                    judge.begin(Phase::Timed, done, Vec::new(), 0);
                    if let Some(load) = &mut rig.load {
                        load.begin(Vec::new(), None);
                    }
                    run_batch(rig, arm, CONFIRMING, judge, measured, progress)?;
                    continue;
                }
                let parted = ranked_by(samples) == RankedBy::Mean;
                match before {
                    // Measure once more, because noise would not recur.
                    None if parted && rig.executor.device().kind == DeviceKind::Cuda => {
                        before = Some((done, measured.batches.len()));
                        (start, verified_before) = (Instant::now(), measured.verifying);
                        continue;
                    }
                    Some((samples, batches)) if !parted => {
                        measured.samples_ms.drain(..samples);
                        measured.batches.drain(..batches);
                        if let Some(turns) = &mut rig.turns {
                            turns.forget(samples);
                        }
                    }
                    _ => {}
                }
                return Ok(());
            }
        };
        let left_s = plan.stop.max_time_s.map(|most| (most - elapsed_s).max(0.0));
        // Load takes time, so a batch of a few launches must not exceed the remaining time.
        let batch_s = left_s.filter(|_| rig.load.is_some()).map_or(BATCH_S, |s| s.min(BATCH_S));
        let count = launches_in(each, batch_s).min(target - done).min(BATCH);
        let (all, left) = (target - first, target - done - count);
        let mut places = |of_all| places(&mut rig.inputs.secret, of_all, count, all);
        let later = |of_all| left.div_ceil(count) * share(of_all, count, all);
        judge.begin(Phase::Timed, done, places(plan.audits), later(plan.audits));
        if let Some(turns) = &mut rig.turns {
            turns.begin(done, places(plan.sealed), later(plan.sealed));
        }
        if let Some(load) = &mut rig.load {
            load.begin(places(LOAD_AUDITS), left_s);
        }
        let took = run_batch(rig, arm, count, judge, measured, progress)?;
        each = took / count as u32;
    }
}

/// Chooses random positions in a batch of `count` launches: the batch's share of `of_all` chosen
/// launches among `all` launches. Every batch gets at least one if `of_all` is not 0.
fn places(secret: &mut Secret, of_all: u32, count: usize, all: usize) -> Vec<usize> {
    secret.choose(share(of_all, count, all), count)
}

/// Returns the number of chosen launches for a batch of `count` launches.
fn share(of_all: u32, count: usize, all: usize) -> usize {
    (of_all as usize * count).div_ceil(all.max(1))
}

/// Times one batch. Returns its duration without verification.
fn run_batch(
    rig: &mut Rig<'_, '_>,
    arm: &mut LoadedProgram,
    count: usize,
    judge: &mut dyn Referee,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&[f32]),
) -> JobResult<Duration> {
    let began = Instant::now();
    let batch = rig.run(arm, count, judge)?;
    let spent = judge.spent();
    let took = began.elapsed().saturating_sub(spent);
    measured.verifying += spent;
    measured.busy_ms += batch.busy_ms;
    measured.batches.push(BatchFacts {
        trials: batch.samples_ms.len() as u32,
        clock: batch.clock,
        throttle_reasons: rig.executor.throttle_reasons(),
    });
    measured.samples_ms.extend(batch.samples_ms);
    progress(&measured.samples_ms);
    Ok(took)
}

/// Returns the standard deviation of samples divided by their median. The estimate uses the
/// quartiles, so that a single late launch does not inflate it. The quartiles of a normal
/// distribution are 1.349 σ apart.
fn relative_spread(samples: &[f64]) -> f64 {
    let sorted = Sorted::new(samples).filter(|sorted| sorted.median() > 0.0);
    sorted.map_or(0.0, |s| (s.percentile(75.0) - s.percentile(25.0)) / 1.349 / s.median())
}

/// Returns the number of launches of duration `each` that fit into `time_s`, between 1 and
/// [`BATCH`].
pub(super) fn launches_in(each: Duration, time_s: f64) -> usize {
    let count = time_s / each.as_secs_f64().max(1e-9);
    (count as usize).clamp(1, BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_follow_the_time_a_launch_takes() {
        let size = |each_ms, time_s| launches_in(Duration::from_millis(each_ms), time_s);
        assert_eq!(size(1, 0.2), 200);
        assert_eq!(size(0, 0.2), BATCH);
        assert_eq!(size(1000, 0.2), 1);
        assert_eq!(size(1, 0.0), 1);
    }
}
