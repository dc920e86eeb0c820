//! Warm-up and timed launches.
//!
//! A trial is: inputs that no launch saw before → outputs poisoned → L2 flushed (cold) → event,
//! launch, event. Trials are queued in batches behind a gate that holds the device back until the
//! host is ahead of it; the cycle counters of all multiprocessors are read before and after a batch.

use std::time::{Duration, Instant};

mod batch;
mod inputs;

pub(super) use batch::{Audit, BATCH, Kept, Rig};
pub(super) use inputs::{Inputs, Shown, present};

use super::arm::Arm;
use super::job::{JobResult, environment, timed};
use crate::device::{GpuHealth, GpuMonitor};
use crate::measure::{Decision, Sorted, StopReason, decide, is_stable};
use crate::worker::protocol::{BatchFacts, DeviceKind, TrialPlan};

/// Launches whose median is compared with that of the next as many during warm-up.
const STABILITY_LAUNCHES: usize = 10;

/// Warm-up ends this long after its planned end, whatever happened: seconds.
const WARMUP_GRACE_S: f64 = 0.5;

/// Longest time that a batch should take, so that progress is seen and a stop is near: seconds.
const BATCH_S: f64 = 0.2;

/// Longest time of one step of the warm-up, seconds.
const WARMUP_STEP_S: f64 = 0.05;

/// Memory for outputs that are to be audited, bytes.
const AUDIT_BYTES: usize = 256 << 20;

/// Audits there are at least, whatever memory they take.
const MIN_AUDITS: usize = 2;

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
    progress: &mut dyn FnMut(u32),
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
        bare.launch_once(&mut arm, 0)?;
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
    let (mut medians, mut spread) = (Vec::new(), 0.0_f64);
    let mut count = 1;
    loop {
        let step = Instant::now();
        let count_now = rig.largest_batch(arm).min(count);
        let batch = rig.run(arm, count_now, &[])?;
        let each = step.elapsed() / count_now as u32;
        measured.warmup_launches += count_now as u32;
        measured.busy_ms += batch.busy_ms;
        let samples = batch.samples_ms.iter().map(|&ms| f64::from(ms)).collect::<Vec<_>>();
        spread = spread.max(relative_spread(&samples));
        medians.extend(Sorted::new(&samples).map(|sorted| sorted.median()));
        // The emulated device has neither clocks nor caches to warm.
        if rig.executor.device().kind == DeviceKind::Emulator {
            return Ok(each);
        }
        let passed = start.elapsed().as_secs_f64();
        measured.warmup_stable = is_stable(&medians, spread);
        if passed >= plan.min_warmup_s && measured.warmup_stable
            || passed >= plan.min_warmup_s + WARMUP_GRACE_S
        {
            return Ok(each);
        }
        count = launches_in(each, WARMUP_STEP_S).min(STABILITY_LAUNCHES);
    }
}

fn trials(
    rig: &mut Rig<'_, '_>,
    arm: &mut Arm,
    plan: &TrialPlan,
    mut each: Duration,
    measured: &mut Measured,
    progress: &mut dyn FnMut(u32),
) -> JobResult<()> {
    let start = Instant::now();
    let output_bytes = rig.output_bytes().max(1);
    let most_audits = (AUDIT_BYTES / output_bytes).clamp(MIN_AUDITS, plan.audits.max(2) as usize);
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
        let count = launches_in(each, BATCH_S).min(target - done).min(rig.largest_batch(arm));
        // Some of every batch, so that no part of the trials is beyond suspicion.
        let share = (most_audits * count).div_ceil(target.max(1));
        let left = (2 * most_audits).saturating_sub(measured.audits.len());
        let audits = if plan.audits == 0 { 0 } else { share.min(left) };
        let audited = rig.inputs.secret.choose(audits, count);
        let began = Instant::now();
        let batch = rig.run(arm, count, &audited)?;
        each = began.elapsed() / count as u32;
        measured.busy_ms += batch.busy_ms;
        measured.batches.push(BatchFacts {
            trials: batch.samples_ms.len() as u32,
            clock: batch.clock,
            throttle_reasons: rig.throttle_reasons(),
        });
        measured.audits.extend(batch.audits.into_iter().map(|mut audit| {
            audit.trial += done;
            audit
        }));
        measured.samples_ms.extend(batch.samples_ms);
        progress(measured.samples_ms.len() as u32);
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
    fn batches_follow_the_time_a_launch_takes() {
        let size = |each_ms, time_s| launches_in(Duration::from_millis(each_ms), time_s);
        assert_eq!(size(1, 0.2), 200);
        assert_eq!(size(0, 0.2), BATCH);
        assert_eq!(size(1000, 0.2), 1);
        assert_eq!(size(1, 0.0), 1);
    }
}
