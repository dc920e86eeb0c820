//! One job: its task, and how it ended.

use std::any::Any;
use std::time::Instant;

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::link::Link;
use super::runner::Runners;
use super::scrub::Residue;
use super::{counters, emulated, evaluate, monitored, paired, sealed, served, traced};
use crate::protocol::{
    Blame, Counted, Evaluated, Job, JudgePlan, Judged, Monitored, Paired, RunFailure, RunOutcome,
    Task, TaskOutcome, Traced,
};
use warpgauge_device::DeviceError;
use warpgauge_model::FailureCode;
use warpgauge_validate::Reason;

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
    pub(super) fn new(code: FailureCode, message: String, blame: Blame) -> Self {
        let failure = RunFailure { code, message, blame };
        Self { failure, sticky: false }
    }

    /// What speaks against the candidate.
    pub(super) fn reason(reason: Reason) -> Self {
        Self::new(reason.code.failure(), reason.message, Blame::Candidate)
    }

    pub(super) fn device(error: DeviceError, blame: Blame) -> Self {
        let sticky = error.is_sticky();
        let message = error.to_string();
        let failure = RunFailure { code: error.code, message, blame };
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

/// What every task works with.
pub(super) struct Run<'a, 'job> {
    pub executor: &'a mut Executor,
    pub job: &'job Job,
    pub link: &'a mut Link,
    /// What is told whatever the task.
    pub outcome: &'a mut RunOutcome<()>,
    pub residue: &'a mut Residue,
    pub buffers: &'a mut Vec<JobBuffer<'job>>,
}

/// Runs a job.
pub(super) fn run(executor: &mut Executor, job: &Job, link: &mut Link) -> JobEnd {
    let mut outcome = RunOutcome::default();
    let mut residue = Residue::default();
    let mut buffers = Vec::new();
    let mut run = Run {
        executor: &mut *executor,
        job,
        link,
        outcome: &mut outcome,
        residue: &mut residue,
        buffers: &mut buffers,
    };
    let (result, told) = match &job.task {
        task if matches!(task, Task::Judge(_)) != run.executor.is_judge => {
            (Err(not_mine()), task.nothing())
        }
        Task::Evaluate(plan) => {
            let mut told = Evaluated::default();
            let result = evaluate::run(&mut run, plan, &mut told);
            (result, TaskOutcome::Evaluated(Box::new(told)))
        }
        Task::Pair(plan) => {
            let mut told = Paired::default();
            (paired::run(&mut run, plan, &mut told), TaskOutcome::Paired(told))
        }
        Task::Count(plan) => {
            let mut told = Counted::default();
            (counters::run(&mut run, plan, &mut told), TaskOutcome::Counted(told))
        }
        Task::Trace(plan) => {
            let mut told = Traced::default();
            (traced::run(&mut run, plan, &mut told), TaskOutcome::Traced(told))
        }
        Task::Monitor(plan) => {
            let mut told = Monitored::default();
            (monitored::run(&mut run, plan, &mut told), TaskOutcome::Monitored(told))
        }
        Task::Judge(plan) => judged(&mut run, plan),
        Task::Serve => (served::run(&mut run), TaskOutcome::Served),
    };
    executor.ready.get_mut().clear();
    let mut lost = executor.context.synchronize().is_err();
    if let Err(failed) = result {
        lost |= failed.sticky;
        outcome.failure = Some(match executor.emulator {
            Some(emulator) => emulated::restated(failed.failure, emulator, &told),
            None => failed.failure,
        });
    }
    outcome.printed = executor.printed.take();
    residue.take_buffers(buffers);
    link.forget_sockets();
    JobEnd { outcome: outcome.map(|()| told), lost, residue }
}

/// Runs a task whose launches are made by runners.
fn judged(run: &mut Run<'_, '_>, plan: &JudgePlan) -> (JobResult<()>, TaskOutcome) {
    let checked = matches!(&plan.task, Judged::Evaluate(plan) if plan.sanitize);
    let connected = Runners::connect(run.link, plan.has_reference, checked);
    let connected = connected.map(|runners| run.executor.runners = Some(runners));
    let judged = match &plan.task {
        Judged::Evaluate(plan) => {
            let mut told = Evaluated::default();
            let result = connected.and_then(|()| evaluate::run(run, plan, &mut told));
            (result, TaskOutcome::Evaluated(Box::new(told)))
        }
        Judged::Share(plan) => {
            let mut told = Evaluated::default();
            let result = connected.and_then(|()| sealed::run(run, plan, &mut told));
            (result, TaskOutcome::Evaluated(Box::new(told)))
        }
        Judged::Pair(plan) => {
            let mut told = Paired::default();
            let result = connected.and_then(|()| paired::run(run, plan, &mut told));
            (result, TaskOutcome::Paired(told))
        }
    };
    // They end when their connections do.
    run.executor.runners = None;
    judged
}

/// The end of a job in which this program panicked. Nothing of its state can be trusted.
pub(super) fn panicked(job: &Job, panic: &(dyn Any + Send)) -> JobEnd {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let message = format!("the worker failed: {text}; this is a defect of warpgauge");
    let code = FailureCode::InternalError;
    let failure = RunFailure { code, message, blame: Blame::Environment };
    let outcome = RunOutcome::from(failure).map(|()| job.task.nothing());
    JobEnd { outcome, lost: true, residue: Residue::default() }
}

/// A judge runs no stranger's code, and nobody else judges.
fn not_mine() -> Failed {
    let text = "the server gave a task to a worker of another kind".to_owned();
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}

/// Adds the wall time that `work` takes to `total_ms`.
pub(super) fn timed<T>(total_ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total_ms += start.elapsed().as_secs_f64() * 1e3;
    result
}
