//! Runs one job: dispatches its task, and describes how it ended.

use std::any::Any;

use super::device::executor::Executor;
use super::device::runners::Runners;
use super::emulator_limits;
use super::failure::{Failed, JobResult};
use super::io::link::Link;
use super::memory::buffers::JobBuffer;
use super::memory::residue::Residue;
use super::places;
use super::profile::{counters, monitoring, trace};
use super::run::Run;
use super::tasks::{evaluation, paired, sealed_share, serving};
use crate::protocol::{
    Blame, CountedRun, EvaluatedRun, JudgePlan, JudgedTask, MonitoredRun, PairedRun, RunFailure,
    RunOutcome, TaskOutcome, TracedRun, WorkerJob, WorkerTask,
};
use warpgauge_model::FailureCode;

/// Outcome of a job, and its data that are still on the device.
pub(super) struct JobEnd {
    pub outcome: RunOutcome,
    /// Whether the context is unusable.
    pub lost: bool,
    pub residue: Residue,
}

/// Runs a job.
pub(super) fn run(executor: &mut Executor, job: &WorkerJob, link: &mut Link) -> JobEnd {
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
    let (result, mut told) = match &job.task {
        task if matches!(task, WorkerTask::Judge(_)) != run.executor.is_judge => {
            (Err(not_mine()), task.nothing())
        }
        WorkerTask::Evaluate(plan) => {
            let mut told = EvaluatedRun::default();
            let result = evaluation::run(&mut run, plan, &mut told);
            (result, TaskOutcome::Evaluated(Box::new(told)))
        }
        WorkerTask::Pair(plan) => {
            let mut told = PairedRun::default();
            (paired::run(&mut run, plan, &mut told), TaskOutcome::Paired(told))
        }
        WorkerTask::Count(plan) => {
            let mut told = CountedRun::default();
            (counters::run(&mut run, plan, &mut told), TaskOutcome::Counted(told))
        }
        WorkerTask::Trace(plan) => {
            let mut told = TracedRun::default();
            (trace::run(&mut run, plan, &mut told), TaskOutcome::Traced(told))
        }
        WorkerTask::Monitor(plan) => {
            let mut told = MonitoredRun::default();
            (monitoring::run(&mut run, plan, &mut told), TaskOutcome::Monitored(told))
        }
        WorkerTask::Judge(plan) => judged(&mut run, plan),
        WorkerTask::Serve => (serving::run(&mut run), TaskOutcome::Served),
    };
    executor.ready.get_mut().clear();
    // A judge's kernels run in other processes, at other addresses.
    let memory = match &job.task {
        WorkerTask::Judge(_) => Vec::new(),
        _ => buffers.iter().map(JobBuffer::place).collect(),
    };
    let mut lost = executor.context.synchronize().is_err();
    if let Err(failed) = result {
        lost |= failed.sticky;
        outcome.failure = Some(match executor.emulator {
            Some(emulator) => {
                let failure = emulator_limits::restated(failed.failure, emulator, &told);
                let message = places::named(&failure.message, &memory);
                RunFailure { message, ..failure }
            }
            None => failed.failure,
        });
    }
    if let TaskOutcome::Evaluated(told) = &mut told
        && let Some(report) = &mut told.emulator_report
    {
        places::name_all(report, &memory);
    }
    outcome.printed = executor.printed.take();
    residue.take_buffers(buffers);
    link.forget_sockets();
    JobEnd { outcome: outcome.map(|()| told), lost, residue }
}

/// Runs a task whose launches are made by runners.
fn judged(run: &mut Run<'_, '_>, plan: &JudgePlan) -> (JobResult<()>, TaskOutcome) {
    let checked = matches!(&plan.task, JudgedTask::Evaluate(plan) if plan.sanitize);
    let connected = Runners::connect(run.link, plan.has_reference, checked);
    let connected = connected.map(|runners| run.executor.runners = Some(runners));
    let judged = match &plan.task {
        JudgedTask::Evaluate(plan) => {
            let mut told = EvaluatedRun::default();
            let result = connected.and_then(|()| evaluation::run(run, plan, &mut told));
            (result, TaskOutcome::Evaluated(Box::new(told)))
        }
        JudgedTask::Share(plan) => {
            let mut told = EvaluatedRun::default();
            let result = connected.and_then(|()| sealed_share::run(run, plan, &mut told));
            (result, TaskOutcome::Evaluated(Box::new(told)))
        }
        JudgedTask::Pair(plan) => {
            let mut told = PairedRun::default();
            let result = connected.and_then(|()| paired::run(run, plan, &mut told));
            (result, TaskOutcome::Paired(told))
        }
    };
    // The runners end when their connections close.
    run.executor.runners = None;
    judged
}

/// Returns the end of a job in which this program panicked. None of its state can be trusted.
pub(super) fn panicked(job: &WorkerJob, panic: &(dyn Any + Send)) -> JobEnd {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let message = format!("the worker failed: {text}; this is a defect of warpgauge");
    let code = FailureCode::InternalError;
    let failure = RunFailure { code, message, blame: Blame::Environment };
    let outcome = RunOutcome::from(failure).map(|()| job.task.nothing());
    JobEnd { outcome, lost: true, residue: Residue::default() }
}

/// Returns the failure of a task for a worker of another kind. Only judges run judge tasks, and
/// judges run no submitted code.
fn not_mine() -> Failed {
    let text = "the server gave a task to a worker of another kind".to_owned();
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}
