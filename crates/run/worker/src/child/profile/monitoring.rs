//! Monitors the whole GPU through the driver during back-to-back launches.
//!
//! Monitoring (GPM) is read twice, and covers all work between the two readings. The device must
//! therefore run the kernel and nothing else from before the first reading until after the second.
//! A separate thread reads, while this thread keeps two batches of launches queued. On an H200, a
//! reading describes the state some 150 ms before the request, so the device is first kept busy for
//! twice that time. The work that restores state before each launch is monitored again without the
//! kernel, so that it can be subtracted.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::trace;
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, restore_inouts};
use crate::child::run::{Run, timed};
use crate::protocol::{Blame, MonitorPlan, MonitoredRun};
use warpgauge_contract::Role;
use warpgauge_device::{ACTIVITY, DeviceError, EventPool, GpmError, GpmValue, GpuMonitor, Stream};
use warpgauge_model::{FailureCode, MonitorFacts, MonitorWindow};

/// Minimum time between two readings for which NVML's results are useful.
const MIN_WINDOW: Duration = Duration::from_millis(100);

/// Time for which the device is busy before the first reading: longer than the age of a reading.
const LEAD: Duration = Duration::from_millis(300);

/// Maximum number of readings after the first.
const MAX_READINGS: u32 = 5;

/// Activity at which a GPU counts as busy, percent of the time.
const BUSY: f64 = 99.0;

/// Maximum repetitions of a batch, such that two batches and their events fit the queue of a
/// stream.
const MAX_BATCH: u64 = 400;

/// Minimum duration of a batch; shorter batches grow.
const BATCH_TIME: Duration = Duration::from_millis(2);

/// Number of launches from which the period of an empty kernel is measured.
const EMPTY_LAUNCHES: u32 = 2000;

/// Monitors the GPU while the job's kernel runs. Another run times and verifies the kernel.
pub(crate) fn run(
    run: &mut Run<'_, '_>,
    plan: &MonitorPlan,
    told: &mut MonitoredRun,
) -> JobResult<()> {
    let mut arm = trace::begin(run, false, &mut None)?;
    let Run { executor, outcome, residue, buffers, .. } = run;
    let monitored = timed(&mut outcome.timings.execute_ms, || {
        let window = Duration::from_millis(plan.window_ms.into()).max(MIN_WINDOW);
        watch(executor, &mut arm, buffers, window)
    });
    arm.retire(residue);
    let unavailable = |error: GpmError| MonitorFacts {
        unavailable: Some(error.unavailable()),
        ..MonitorFacts::default()
    };
    told.settings.clone_from(&executor.settings);
    told.facts = Some(monitored?.unwrap_or_else(unavailable));
    Ok(())
}

/// The outer result is the job's; the inner result is that of the monitoring.
type MonitorResult<T> = JobResult<Result<T, GpmError>>;

fn watch(
    executor: &Executor,
    arm: &mut LoadedProgram,
    buffers: &[JobBuffer<'_>],
    window: Duration,
) -> MonitorResult<MonitorFacts> {
    let stream = &executor.stream;
    let monitor = match &executor.monitor {
        Ok(monitor) => monitor,
        Err(reason) => {
            return Err(Failed::new(FailureCode::Unmonitored, reason.clone(), Blame::Environment));
        }
    };
    // This launch makes the driver load what it loads lazily. If the kernel fails here, monitoring
    // is not the cause.
    arm.forget(stream).map_err(environment)?;
    trace::restore(executor, buffers)?;
    stream.synchronize().map_err(environment)?;
    arm.launch(buffers, stream).map_err(candidate)?;
    stream.synchronize().map_err(candidate)?;
    let belt = Belt { monitor, stream, events: &executor.events, window };
    let empty_period_s = empty_period(executor).map_err(environment)?;
    let changed = buffers.iter().any(|buffer| buffer.spec.role == Role::Inout);
    let restores = changed || arm.restores_variables();
    let put_back = |arm: &mut LoadedProgram| -> JobResult<()> {
        arm.forget(stream).map_err(environment)?;
        restore_inouts(buffers, executor.tools()?).map_err(environment)
    };
    let running = belt.watch(candidate, || {
        put_back(arm)?;
        arm.launch(buffers, stream).map_err(candidate)
    })?;
    let running = match running {
        Ok(running) => running,
        Err(error) => return Ok(Err(error)),
    };
    let restoring = if restores {
        match belt.watch(environment, || put_back(arm))? {
            Ok(window) => Some(window),
            Err(error) => return Ok(Err(error)),
        }
    } else {
        None
    };
    let other_processes = monitor.health().other_processes;
    let unavailable = None;
    Ok(Ok(MonitorFacts { running, restoring, empty_period_s, other_processes, unavailable }))
}

/// Returns the time between consecutive launches of an empty kernel, seconds.
fn empty_period(executor: &Executor) -> Result<f64, DeviceError> {
    let Some(support) = &executor.support else { return Ok(0.0) };
    let (stream, mut empty) = (&executor.stream, LoadedProgram::empty(support)?);
    // The first launch makes the driver load what it loads lazily.
    empty.launch(&[], stream)?;
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..EMPTY_LAUNCHES {
        empty.launch(&[], stream)?;
    }
    stream.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / f64::from(EMPTY_LAUNCHES))
}

/// Keeps a device busy by repeating the same work.
struct Belt<'a> {
    monitor: &'a GpuMonitor,
    stream: &'a Stream,
    events: &'a EventPool,
    window: Duration,
}

/// Number of repetitions done at a point in time.
#[derive(Debug, Clone, Copy)]
struct Mark {
    done: u64,
    at: Instant,
}

impl Belt<'_> {
    /// Monitors the device while `repetition` is queued repeatedly. `blame` converts a fault of the
    /// queued work.
    fn watch(
        &self,
        blame: fn(DeviceError) -> Failed,
        mut repetition: impl FnMut() -> JobResult<()>,
    ) -> MonitorResult<MonitorWindow> {
        let (monitor, window) = (self.monitor, self.window);
        thread::scope(|scope| {
            let (begin, begun) = channel();
            let (stop, stopped) = channel();
            let reader = scope.spawn(move || read(monitor, window, &begun, &stopped));
            let moved = self.move_on(blame, &mut repetition, &begin, || reader.is_finished());
            // A reader that still waits for the beginning stops waiting when the channels close.
            drop((begin, stop));
            let read = reader.join();
            let (first, last) = moved?;
            self.stream.synchronize().map_err(blame)?;
            let Ok(read) = read else {
                let text = "the thread that takes the readings failed".to_owned();
                return Err(Failed::new(FailureCode::InternalError, text, Blame::Environment));
            };
            Ok(read.map(|(values, window)| described(values, window, first, last)))
        })
    }

    /// Queues batches until `is_over` returns true. Waits for the batch before the last one each
    /// time. Returns when the device became busy, and the last time that it was seen busy.
    fn move_on(
        &self,
        blame: fn(DeviceError) -> Failed,
        repetition: &mut impl FnMut() -> JobResult<()>,
        begin: &Sender<()>,
        is_over: impl Fn() -> bool,
    ) -> JobResult<(Mark, Mark)> {
        let [even, odd, ..] = self.events.events() else {
            let text = "no events are available to mark batches".to_owned();
            return Err(Failed::new(FailureCode::InternalError, text, Blame::Environment));
        };
        let (mut own, mut other) = (even, odd);
        let (mut size, mut queued, mut first) = (1, 0, None);
        let mut last = Mark { done: 0, at: Instant::now() };
        loop {
            let before = queued;
            for _ in 0..size {
                repetition()?;
            }
            queued += size;
            own.record(self.stream).map_err(blame)?;
            if before > 0 {
                other.synchronize().map_err(blame)?;
                let now = Mark { done: before, at: Instant::now() };
                let short = size < MAX_BATCH && now.at - last.at < BATCH_TIME;
                last = now;
                if short {
                    size = (2 * size).min(MAX_BATCH);
                } else if first.is_none() {
                    first = Some(now);
                    // A missing reader has failed, which ends the loop.
                    let _ = begin.send(());
                }
            }
            if is_over() {
                return Ok((first.unwrap_or(last), last));
            }
            (own, other) = (other, own);
        }
    }
}

/// Takes two readings, a window apart, of a device that has been busy for some time.
fn read(
    monitor: &GpuMonitor,
    window: Duration,
    begun: &Receiver<()>,
    stopped: &Receiver<()>,
) -> Result<(Vec<GpmValue>, Duration), GpmError> {
    // If the launches failed, the readings are not used.
    let _ = begun.recv();
    let _ = stopped.recv_timeout(LEAD);
    let (mut first, mut since) = (monitor.gpm_reading()?, Instant::now());
    let (mut before, mut left) = (None, MAX_READINGS);
    loop {
        let _ = stopped.recv_timeout(window);
        let (second, now) = (monitor.gpm_reading()?, Instant::now());
        let values = monitor.gpm_between(&first, &second)?;
        let activity = activity(&values);
        left -= 1;
        // If launches leave the device idle in between, activity stays low, but it no longer rises.
        if left == 0 || activity.is_none_or(|percent| is_settled(before, percent)) {
            return Ok((values, now - since));
        }
        (first, since, before) = (second, now, activity);
    }
}

/// Returns the share of time in which the GPU had work, percent.
fn activity(values: &[GpmValue]) -> Option<f64> {
    let (_, value) = values.iter().find(|(name, _)| *name == ACTIVITY)?;
    value.as_ref().ok().copied()
}

/// Returns whether activity is near 100 % or no longer changes between windows.
fn is_settled(before: Option<f64>, percent: f64) -> bool {
    percent >= BUSY || before.is_some_and(|before| (percent - before).abs() <= 1.0)
}

/// Combines two readings with the repetitions between two marks.
fn described(values: Vec<GpmValue>, window: Duration, first: Mark, last: Mark) -> MonitorWindow {
    let mut told = MonitorWindow {
        window_s: window.as_secs_f64(),
        repetitions: last.done - first.done,
        ..MonitorWindow::default()
    };
    // If no repetition was completed, the current one took all the time.
    told.period_s = match told.repetitions {
        0 => told.window_s,
        repetitions => (last.at - first.at).as_secs_f64() / repetitions as f64,
    };
    for (name, value) in values {
        match value {
            Ok(value) => drop(told.values.insert(name.to_owned(), value)),
            Err(reason) => drop(told.missing.insert(name.to_owned(), reason)),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_the_time_between_marks_by_what_was_done() {
        let at = Instant::now();
        let first = Mark { done: 100, at };
        let last = Mark { done: 300, at: at + Duration::from_millis(50) };
        let values = vec![("gpm__sm_util", Ok(97.0)), ("gpm__fp16_util", Err("why".to_owned()))];
        let told = described(values, Duration::from_millis(40), first, last);
        assert_eq!((told.repetitions, told.period_s), (200, 250e-6));
        assert_eq!(told.values["gpm__sm_util"], 97.0);
        assert_eq!(told.missing["gpm__fp16_util"], "why");
        let one = described(Vec::new(), Duration::from_millis(40), first, first);
        assert_eq!(one.period_s, 0.04);
    }

    #[test]
    fn a_window_counts_when_the_device_is_as_busy_as_it_gets() {
        assert!(is_settled(None, 99.5));
        assert!(!is_settled(None, 60.0) && !is_settled(Some(60.0), 90.0));
        assert!(is_settled(Some(89.5), 90.0), "what lies between launches stays");
        let values = [("gpm__sm_util", Ok(97.0)), (ACTIVITY, Ok(99.0))];
        assert_eq!(activity(&values), Some(99.0));
        assert_eq!(activity(&values[..1]), None);
    }
}
