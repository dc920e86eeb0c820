//! Warm-up and timed launches.
//!
//! A trial is: inputs that no launch saw before → the kernel's variables as after loading → outputs
//! poisoned → L2 flushed (cold) → gate → event, launch, event. The gate holds the device back until
//! the host has queued all of it. Trials come in batches; the cycle counters of all multiprocessors
//! are read before and after each.
//!
//! While it warms up a kernel keeps its variables: results of the first of these launches are
//! verified, and show a kernel that is not right in every launch. When it is timed it keeps nothing,
//! so that it cannot know which launches are which.

use std::time::{Duration, Instant};

mod batch;
mod inputs;

use batch::Memory;
pub(super) use batch::{Audit, BATCH, Kept, Rig};
pub(super) use inputs::{Inputs, Shown, present};

use super::arm::Arm;
use super::job::{JobResult, environment, timed};
use crate::device::{GpuHealth, GpuMonitor};
use crate::measure::{Decision, Sorted, StopReason, WARMUP_BATCH, decide, is_stable};
use crate::validate::Filling;
use crate::worker::protocol::{BatchFacts, DeviceKind, TrialPlan};

/// Warm-up ends this long after its planned end, whatever happened: seconds.
const WARMUP_GRACE_S: f64 = 0.5;

/// Longest time that a batch should take, so that progress is seen and a stop is near: seconds.
const BATCH_S: f64 = 0.2;

/// Longest time of one step of the warm-up, seconds.
const WARMUP_STEP_S: f64 = 0.025;

/// Memory for outputs that are to be audited, bytes.
const AUDIT_BYTES: usize = 256 << 20;

/// Audits there are at least, whatever memory they take.
const MIN_AUDITS: usize = 2;

/// Up to so many timed launches are audited one and all.
const FULLY_AUDITED: u32 = 20;

/// A kernel that may keep something where it cannot be wiped is audited so many times as often.
const UNWIPED_FACTOR: u32 = 4;

/// Launches of the warm-up whose results are verified.
const HISTORY_LAUNCHES: usize = 10;

/// Longest time that these take on the emulated device, which needs no other warm-up: seconds.
const HISTORY_S: f64 = 0.5;

/// Launches of a kernel that does nothing.
const EMPTY_LAUNCHES: usize = 40;

/// What measuring yields.
#[derive(Default)]
pub(super) struct Measured {
    /// Time of each launch, milliseconds, in launch order.
    pub samples_ms: Vec<f32>,
    pub batches: Vec<BatchFacts>,
    pub warmup_launches: u32,
    /// Whether the warm-up ended because times were stable.
    pub warmup_stable: bool,
    pub busy_ms: f64,
    pub audits: Vec<Audit>,
    /// Launches of the warm-up, to be verified too.
    pub history: Vec<Audit>,
    pub stopped: Option<StopReason>,
    /// How the GPU was before the first and after the last timed launch.
    pub health: Option<[GpuHealth; 2]>,
    /// Median time of a kernel that does nothing, milliseconds.
    pub empty_launch_ms: Option<f64>,
    /// Wall time of asking how the GPU is, milliseconds.
    pub monitor_ms: f64,
}

/// Warms up and measures as planned.
pub(super) fn measure(
    rig: &mut Rig<'_, '_>,
    arm: &mut Arm,
    plan: &TrialPlan,
    progress: &mut dyn FnMut(&[f32]),
) -> JobResult<Measured> {
    let mut measured = Measured::default();
    rig.executor.reset_persisting_l2()?;
    measured.empty_launch_ms = empty_launch(rig)?;
    let each = warm_up(rig, arm, plan, &mut measured)?;
    // What the kernel saw while it warmed up does not come again.
    let tools = rig.executor.tools()?;
    rig.inputs.renew(rig.buffers, tools)?;
    let before = health(rig, &mut measured);
    trials(rig, arm, plan, each, &mut measured, progress)?;
    measured.health = before.zip(health(rig, &mut measured)).map(<[GpuHealth; 2]>::from);
    Ok(measured)
}

fn health(rig: &Rig<'_, '_>, measured: &mut Measured) -> Option<GpuHealth> {
    timed(&mut measured.monitor_ms, || rig.executor.monitor.as_ref().ok().map(GpuMonitor::health))
}

/// What a launch takes that does nothing, under the same conditions: the floor below which no time
/// can be. Measured once for a worker.
fn empty_launch(rig: &mut Rig<'_, '_>) -> JobResult<Option<f64>> {
    if rig.executor.empty_launch_ms.is_none() && rig.executor.timing.is_some() {
        let mut arm = match &rig.executor.support {
            Some(support) => Arm::empty(support).map_err(environment)?,
            None => return Ok(None),
        };
        let cache = rig.cache;
        let inputs = Inputs::new(&[], false);
        let mut bare = Rig { executor: &mut *rig.executor, buffers: &mut [], inputs, cache };
        // The first loads the kernel.
        bare.launch_once(&mut arm, Filling::FIXED)?;
        let samples = bare.run(&mut arm, EMPTY_LAUNCHES, &[])?.samples_ms;
        let samples = samples.into_iter().map(f64::from).collect::<Vec<_>>();
        rig.executor.empty_launch_ms = Sorted::new(&samples).map(|sorted| sorted.median());
    }
    Ok(rig.executor.empty_launch_ms)
}

/// Launches until the planned time has passed and times are stable. Returns the wall time that one
/// launch took at the end, preparation included.
fn warm_up(
    rig: &mut Rig<'_, '_>,
    arm: &mut Arm,
    plan: &TrialPlan,
    measured: &mut Measured,
) -> JobResult<Duration> {
    let start = Instant::now();
    let emulated = rig.executor.device().kind == DeviceKind::Emulator;
    let (mut medians, mut spread) = (Vec::new(), 0.0_f64);
    let mut count = 1;
    loop {
        let step = Instant::now();
        let count_now = rig.largest_batch().min(count);
        let audited = history_audits(rig, count_now, measured);
        let batch = rig.run_with(arm, count_now, &audited, Memory::Kept)?;
        let each = step.elapsed() / count_now as u32;
        add_audits(&mut measured.history, batch.audits, measured.warmup_launches as usize);
        measured.warmup_launches += count_now as u32;
        measured.busy_ms += batch.busy_ms;
        let samples = batch.samples_ms.iter().map(|&ms| f64::from(ms)).collect::<Vec<_>>();
        spread = spread.max(relative_spread(&samples));
        medians.extend(Sorted::new(&samples).map(|sorted| sorted.median()));
        // The emulated device has neither clocks nor caches to warm.
        if emulated {
            let left = HISTORY_LAUNCHES.saturating_sub(measured.warmup_launches as usize);
            if left == 0 || start.elapsed().as_secs_f64() >= HISTORY_S {
                return Ok(each);
            }
            count = launches_in(each, HISTORY_S).min(left);
            continue;
        }
        let passed = start.elapsed().as_secs_f64();
        measured.warmup_stable = is_stable(&medians, spread);
        if passed >= plan.min_warmup_s && measured.warmup_stable
            || passed >= plan.min_warmup_s + WARMUP_GRACE_S
        {
            return Ok(each);
        }
        count = launches_in(each, WARMUP_STEP_S).min(WARMUP_BATCH as usize);
    }
}

/// Which of the next `count` launches of the warm-up to verify: the first ones, as far as memory
/// goes. A kernel that changes its ways is found at once, or has warmed up for nothing.
fn history_audits(rig: &Rig<'_, '_>, count: usize, measured: &Measured) -> Vec<usize> {
    let room = AUDIT_BYTES / 2 / rig.output_bytes().max(1);
    let most = room.clamp(1, HISTORY_LAUNCHES);
    (0..count.min(most.saturating_sub(measured.history.len()))).collect()
}

/// Adds audits of launches that come after `before` others.
fn add_audits(all: &mut Vec<Audit>, audits: Vec<Audit>, before: usize) {
    all.extend(audits.into_iter().map(|audit| Audit { trial: audit.trial + before, ..audit }));
}

/// Timed launches to audit, about, if memory allows.
fn planned_audits(plan: &TrialPlan, forgetful: bool) -> usize {
    let most = plan.stop.looks.last().copied().unwrap_or(0);
    let audits = match plan.audits {
        0 => 0,
        _ if most <= FULLY_AUDITED => FULLY_AUDITED,
        audits if forgetful => audits,
        audits => audits.saturating_mul(UNWIPED_FACTOR),
    };
    audits as usize
}

fn trials(
    rig: &mut Rig<'_, '_>,
    arm: &mut Arm,
    plan: &TrialPlan,
    mut each: Duration,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&[f32]),
) -> JobResult<()> {
    let start = Instant::now();
    let output_bytes = rig.output_bytes().max(1);
    let planned = planned_audits(plan, arm.is_forgetful());
    let most_audits = (AUDIT_BYTES / output_bytes).clamp(MIN_AUDITS, planned.max(MIN_AUDITS));
    loop {
        let done = measured.samples_ms.len();
        let elapsed_s = start.elapsed().as_secs_f64();
        let target = match decide(&plan.stop, &measured.samples_ms, elapsed_s) {
            Decision::Continue { next_look } => next_look as usize,
            Decision::Stop(reason) => {
                measured.stopped = Some(reason);
                return Ok(());
            }
        };
        let count = launches_in(each, BATCH_S).min(target - done).min(rig.largest_batch());
        // Some of every batch, so that no part of the trials is beyond suspicion.
        let share = (most_audits * count).div_ceil(target.max(1));
        let left = (2 * most_audits).saturating_sub(measured.audits.len());
        let audits = if planned == 0 { 0 } else { share.min(left) };
        let audited = rig.inputs.secret.choose(audits, count);
        let began = Instant::now();
        let batch = rig.run(arm, count, &audited)?;
        each = began.elapsed() / count as u32;
        measured.busy_ms += batch.busy_ms;
        measured.batches.push(BatchFacts {
            trials: batch.samples_ms.len() as u32,
            clock: batch.clock,
            throttle_reasons: rig.executor.throttle_reasons(),
        });
        add_audits(&mut measured.audits, batch.audits, done);
        measured.samples_ms.extend(batch.samples_ms);
        progress(&measured.samples_ms);
    }
}

/// Standard deviation of samples over their median, from the quartiles, so that a single late launch
/// does not make everything look alike: the quartiles of a normal distribution are 1.349 σ apart.
fn relative_spread(samples: &[f64]) -> f64 {
    let sorted = Sorted::new(samples).filter(|sorted| sorted.median() > 0.0);
    sorted.map_or(0.0, |s| (s.percentile(75.0) - s.percentile(25.0)) / 1.349 / s.median())
}

/// Launches of `each` that fit into `time_s`, 1 to [`BATCH`].
fn launches_in(each: Duration, time_s: f64) -> usize {
    let count = time_s / each.as_secs_f64().max(1e-9);
    (count as usize).clamp(1, BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_trials_are_audited_one_and_all_and_those_that_cannot_be_wiped_more_often() {
        let plan = |trials, audits| TrialPlan {
            stop: crate::measure::StopRule::fixed(trials),
            min_warmup_s: 0.0,
            cache: crate::contract::CacheState::Cold,
            fresh_inputs: true,
            audits,
        };
        assert_eq!(planned_audits(&plan(10, 8), true), 20);
        assert_eq!(planned_audits(&plan(1000, 8), true), 8);
        assert_eq!(planned_audits(&plan(1000, 8), false), 32);
        assert_eq!(planned_audits(&plan(10, 0), false), 0);
    }

    #[test]
    fn batches_follow_the_time_a_launch_takes() {
        let size = |each_ms, time_s| launches_in(Duration::from_millis(each_ms), time_s);
        assert_eq!(size(1, 0.2), 200);
        assert_eq!(size(0, 0.2), BATCH);
        assert_eq!(size(1000, 0.2), 1);
        assert_eq!(size(1, 0.0), 1);
    }
}
