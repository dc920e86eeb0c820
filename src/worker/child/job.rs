//! One job, phase by phase.

use std::any::Any;
use std::time::Instant;

use super::arm::Arm;
use super::buffers::{JobBuffer, Use, allocate_all};
use super::counters;
use super::emulated;
use super::executor::Executor;
use super::link::Link;
use super::monitored;
use super::paired;
use super::scrub::Residue;
use super::traced;
use super::trials::{self, Inputs, Rig};
use super::verify::{self, Evidence};
use crate::contract::CacheState;
use crate::device::DeviceError;
use crate::validate::{Filling, Reason};
use crate::worker::protocol::{Blame, FromWorker, Job, LaunchCounts, RunFailure, RunOutcome};

/// A job's failure.
#[derive(Debug)]
pub(super) struct Failed {
    pub failure: RunFailure,
    /// Whether the context is known to be lost.
    pub sticky: bool,
}

/// Result of a phase.
pub(super) type JobResult<T> = Result<T, Failed>;

impl Failed {
    pub(super) fn new(code: &str, message: String, blame: Blame) -> Self {
        let failure = RunFailure { code: code.to_owned(), message, blame };
        Self { failure, sticky: false }
    }

    /// What speaks against the candidate.
    pub(super) fn reason(reason: Reason) -> Self {
        Self::new(reason.code.name(), reason.message, Blame::Candidate)
    }

    pub(super) fn device(error: DeviceError, blame: Blame) -> Self {
        let sticky = error.is_sticky();
        let failure = RunFailure { code: error.code.to_owned(), message: error.to_string(), blame };
        Self { failure, sticky }
    }
}

/// Errors of work that the candidate asked for, or that its faults surface in.
pub(super) fn candidate(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Candidate)
}

/// Errors of our own work.
pub(super) fn environment(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Environment)
}

/// How a job ended, and what it left on the device.
pub(super) struct JobEnd {
    pub outcome: RunOutcome,
    /// Whether the context is unusable.
    pub lost: bool,
    pub residue: Residue,
}

/// Runs a job.
pub(super) fn run(executor: &mut Executor, job: &Job, link: &mut Link) -> JobEnd {
    let mut outcome = RunOutcome::default();
    let mut residue = Residue::default();
    let mut buffers = Vec::new();
    let Job { paired, traced, counters, monitored, .. } = job;
    let (told, left, content) = (&mut outcome, &mut residue, &mut buffers);
    let result = if let Some(plan) = paired {
        paired::run(executor, job, plan, link, left, told)
    } else if let Some(plan) = traced {
        traced::run(executor, (job, plan), link, told, left, content)
    } else if let Some(plan) = counters {
        counters::run(executor, (job, plan), link, told, left, content)
    } else if let Some(plan) = monitored {
        monitored::run(executor, (job, plan), link, told, left, content)
    } else {
        phases(executor, job, link, told, left, content)
    };
    let mut lost = executor.context.synchronize().is_err();
    if let Err(failed) = result {
        lost |= failed.sticky;
        outcome.failure = Some(match executor.emulator {
            Some(emulator) => emulated::restated(failed.failure, emulator, &outcome),
            None => failed.failure,
        });
    }
    outcome.printed = executor.printed.take();
    residue.take_buffers(buffers);
    JobEnd { outcome, lost, residue }
}

/// The end of a job in which this program panicked. Nothing of its state can be trusted.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> JobEnd {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let mut outcome = RunOutcome::default();
    let message = format!("the worker failed: {text}; this is a defect of warpgauge");
    let code = "internal_error".to_owned();
    outcome.failure = Some(RunFailure { code, message, blame: Blame::Environment });
    JobEnd { outcome, lost: true, residue: Residue::default() }
}

/// The candidate runs first, and all its launches, before anything that is expected of it exists on
/// the device.
fn phases<'job>(
    executor: &mut Executor,
    job: &'job Job,
    link: &mut Link,
    outcome: &mut RunOutcome,
    residue: &mut Residue,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    executor.arm_checks(job.sanitize)?;
    timed(&mut outcome.timings.h2d_ms, || allocate_and_fill(executor, job, buffers))?;
    let arm = timed(&mut outcome.timings.load_ms, || {
        Arm::load(executor, &job.launch, buffers, residue, Blame::Candidate)
    });
    let mut arm = arm?;
    outcome.function = arm.facts;
    let moving = may_move(job);
    let mut rig = Rig {
        inputs: Inputs::new(buffers, moving),
        cache: job.trials.as_ref().map_or(CacheState::Hot, |plan| plan.cache),
        executor: &mut *executor,
        buffers,
    };
    // A server that is gone is noticed by the watchdog.
    let _ = link.send(&FromWorker::Started);
    let evidence = candidate_launches(&mut rig, job, &mut arm, link, outcome);
    let inputs = rig.inputs;
    arm.retire(residue);
    outcome.emulator_report = executor.emulator.and_then(|emulator| emulator.take_report());
    // Reference kernels are not under suspicion.
    executor.arm_checks(false)?;
    let evidence = evidence?;
    let _ = link.send(&FromWorker::Executed);
    verify::run(executor, job, buffers, inputs, evidence, residue, outcome)
}

/// Everything the candidate does.
fn candidate_launches(
    rig: &mut Rig<'_, '_>,
    job: &Job,
    arm: &mut Arm,
    link: &mut Link,
    outcome: &mut RunOutcome,
) -> JobResult<Evidence> {
    if job.profile {
        outcome.counts = count_launch(rig, job, arm)?;
    }
    let RunOutcome { timings, .. } = outcome;
    // Where nobody judges the outputs, they are what a caller gets who looks at them.
    let first = match is_proven(job) {
        true => Filling::not_a_number(rig.inputs.secret.bits()),
        false => Filling::FIXED,
    };
    timed(&mut timings.execute_ms, || rig.launch_once(arm, first))?;
    let (canonical, hashed) = timed(&mut timings.d2h_ms, || verify::capture(rig, job))?;
    outcome.outputs = hashed;
    let mut evidence =
        Evidence { canonical, first, second: None, history: Vec::new(), audits: Vec::new() };
    if is_proven(job) {
        let tools = rig.executor.tools()?;
        timed(&mut timings.h2d_ms, || rig.inputs.renew(rig.buffers, tools))?;
        let second = Filling::number(rig.inputs.secret.bits());
        let shown = timed(&mut timings.execute_ms, || rig.launch_once(arm, second))?;
        let outputs = timed(&mut timings.d2h_ms, || verify::copy_outputs(rig))?;
        evidence.second = Some((shown, second, outputs));
    }
    if let Some(plan) = &job.trials {
        let mut progress = |samples: &[f32]| link.progress(samples.len(), samples);
        let measured =
            timed(&mut timings.execute_ms, || trials::measure(rig, arm, plan, &mut progress))?;
        timings.device_busy_ms = measured.busy_ms;
        timings.monitor_ms = measured.monitor_ms;
        timings.execute_ms -= measured.monitor_ms;
        outcome.samples_ms = measured.samples_ms;
        outcome.batches = measured.batches;
        outcome.warmup_launches = measured.warmup_launches;
        outcome.warmup_stable = measured.warmup_stable;
        outcome.stopped = measured.stopped;
        outcome.health = measured.health;
        outcome.settings = rig.executor.settings.clone();
        outcome.empty_launch_ms = measured.empty_launch_ms;
        evidence.history = measured.history;
        evidence.audits = measured.audits;
    }
    outcome.inputs_moved = rig.inputs.are_moving();
    outcome.state_wiped = !outcome.inputs_moved && arm.is_forgetful();
    Ok(evidence)
}

/// Whether outputs are checked, so that it is proven that all of them are written.
fn is_proven(job: &Job) -> bool {
    !job.tolerances.is_empty()
}

/// Whether other random inputs would serve as well: what is expected must then be computed.
fn may_move(job: &Job) -> bool {
    let fresh = job.trials.as_ref().is_none_or(|plan| plan.fresh_inputs);
    fresh && job.expected_files.is_empty() && !job.sanitize
}

/// One launch on the emulator for its counts alone, before any other.
fn count_launch(
    rig: &mut Rig<'_, '_>,
    job: &Job,
    arm: &mut Arm,
) -> JobResult<Option<LaunchCounts>> {
    let Some(emulator) = rig.executor.emulator else { return Ok(None) };
    rig.executor.arm_checks(false)?;
    emulator.set_counting(true).map_err(environment)?;
    let launched = rig.launch_once(arm, Filling::FIXED);
    emulator.set_counting(false).map_err(environment)?;
    launched?;
    let counts = emulator.take_launch();
    // As if it had not been.
    arm.forget(&rig.executor.stream).map_err(environment)?;
    rig.executor.arm_checks(job.sanitize)?;
    Ok(counts)
}

/// Adds the wall time that `work` takes to `total_ms`.
pub(super) fn timed<T>(total_ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total_ms += start.elapsed().as_secs_f64() * 1e3;
    result
}

fn allocate_and_fill<'job>(
    executor: &Executor,
    job: &'job Job,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    let tools = executor.tools()?;
    let repeated = job.trials.is_some() || is_proven(job);
    let usage = Use {
        repeated,
        windows: repeated && may_move(job),
        // Where every access is checked, a band would hide one that misses its buffer by little.
        guard: (!job.sanitize).then(|| executor.guard_byte()),
        shift: 0,
        poisoned: true,
    };
    allocate_all(&job.buffers, || usage, tools, buffers)
}
