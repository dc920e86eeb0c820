//! Warm-up and timed launches.

use std::time::{Duration, Instant};

use super::buffers::JobBuffer;
use super::job::{Executor, JobResult, candidate};
use crate::contract::CacheState;
use crate::device::{DeviceBuffer, DeviceError, Event, PreparedLaunch};
use crate::worker::protocol::{DeviceKind, TrialPlan};

/// Most trials that are queued before the device is waited for.
pub(super) const BATCH: usize = 256;

/// Warm-up launches there are at least, unless they take very long.
const MIN_WARMUP_LAUNCHES: u32 = 3;

/// Warm-up ends this long after its planned end, whatever happened: seconds.
const WARMUP_GRACE_S: f64 = 2.0;

/// Longest time that a batch should take, so that progress is seen and a stop is near: seconds.
const BATCH_S: f64 = 0.2;

/// What executing yields.
#[derive(Debug, Default)]
pub(super) struct Executed {
    pub samples_ms: Vec<f32>,
    pub warmup_launches: u32,
    pub device_busy_ms: f64,
}

/// Launches as planned; without a plan, once. After it the buffers hold what the last launch left.
pub(super) fn execute(
    executor: &Executor,
    plan: Option<TrialPlan>,
    launch: &mut PreparedLaunch,
    buffers: &[JobBuffer<'_>],
    progress: &mut dyn FnMut(u32),
) -> JobResult<Executed> {
    let mut run = Run { executor, launch, buffers, executed: Executed::default() };
    let result = match plan {
        None => run.batch(1, None, false).map(drop),
        Some(plan) => run.warm_up(plan).and_then(|each| run.trials(plan, each, progress)),
    };
    result.map_err(candidate)?;
    Ok(run.executed)
}

struct Run<'a, 'job> {
    executor: &'a Executor,
    launch: &'a mut PreparedLaunch,
    buffers: &'a [JobBuffer<'job>],
    executed: Executed,
}

impl Run<'_, '_> {
    /// Launches until the planned time has passed. Returns the wall time one launch took at the
    /// end, restoring included.
    fn warm_up(&mut self, plan: TrialPlan) -> Result<Duration, DeviceError> {
        let start = Instant::now();
        let mut count = 1usize;
        loop {
            let batch_start = Instant::now();
            self.batch(count, None, false)?;
            let each = batch_start.elapsed() / count as u32;
            self.executed.warmup_launches += count as u32;
            let passed = start.elapsed().as_secs_f64();
            let launches = self.executed.warmup_launches;
            // The emulated device has neither clocks nor caches to warm, and its counts repeat only
            // if the number of launches does.
            let emulated = self.executor.device.kind == DeviceKind::Emulator;
            let enough = passed >= plan.min_warmup_s && launches >= MIN_WARMUP_LAUNCHES || emulated;
            if enough || passed >= plan.min_warmup_s + WARMUP_GRACE_S {
                return Ok(each);
            }
            let rest = Duration::from_secs_f64((plan.min_warmup_s - passed).max(0.0));
            count =
                batch_size(each, rest).max((MIN_WARMUP_LAUNCHES.saturating_sub(launches)) as usize);
        }
    }

    fn trials(
        &mut self,
        plan: TrialPlan,
        mut each: Duration,
        progress: &mut dyn FnMut(u32),
    ) -> Result<(), DeviceError> {
        self.executor.context.reset_persisting_l2()?;
        let flush = match plan.cache {
            CacheState::Cold => self.executor.flush.as_ref(),
            CacheState::Hot => None,
        };
        let trials = plan.trials as usize;
        self.executed.samples_ms.reserve_exact(trials);
        while self.executed.samples_ms.len() < trials {
            let rest = trials - self.executed.samples_ms.len();
            let count = batch_size(each, Duration::from_secs_f64(BATCH_S)).min(rest);
            let start = Instant::now();
            self.batch(count, flush, true)?;
            each = start.elapsed() / count as u32;
            progress(self.executed.samples_ms.len() as u32);
        }
        Ok(())
    }

    /// Queues `count` launches, each with its restoring, and waits for them. `timed`: each between
    /// two events, whose distance becomes a sample.
    fn batch(
        &mut self,
        count: usize,
        flush: Option<&DeviceBuffer>,
        timed: bool,
    ) -> Result<(), DeviceError> {
        let stream = &self.executor.stream;
        let (first, last, pairs) = split(self.executor.events.events());
        first.record(stream)?;
        for [start, end] in pairs.iter().take(count) {
            for buffer in self.buffers {
                buffer.restore(stream)?;
            }
            if let Some(flush) = flush {
                flush.fill(0, stream)?;
            }
            if timed {
                start.record(stream)?;
            }
            self.launch.launch(stream)?;
            if timed {
                end.record(stream)?;
            }
        }
        last.record(stream)?;
        last.synchronize()?;
        self.executed.device_busy_ms += f64::from(last.elapsed_ms_since(first)?);
        if timed {
            for [start, end] in pairs.iter().take(count) {
                self.executed.samples_ms.push(end.elapsed_ms_since(start)?);
            }
        }
        Ok(())
    }
}

/// The first event, the last, and the pairs between.
fn split(events: &[Event]) -> (&Event, &Event, &[[Event; 2]]) {
    let ([first, last], pairs) = events.split_first_chunk::<2>().expect("2 * BATCH + 2 events");
    (first, last, pairs.as_chunks().0)
}

/// Launches of `each` that fit into `time`, 1 to [`BATCH`].
fn batch_size(each: Duration, time: Duration) -> usize {
    let count = time.as_secs_f64() / each.as_secs_f64().max(1e-9);
    (count as usize).clamp(1, BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_follow_the_time_a_launch_takes() {
        let size = |each_ms, time_ms| {
            batch_size(Duration::from_millis(each_ms), Duration::from_millis(time_ms))
        };
        assert_eq!(size(1, 200), 200);
        assert_eq!(size(0, 200), BATCH);
        assert_eq!(size(1000, 200), 1);
        assert_eq!(size(1, 0), 1);
    }
}
