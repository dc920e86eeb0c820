//! Runs one job under a tool that watches this process: a profiler or a checker.
//!
//! The tool observes the launches between two calls that start and stop a profiler. This program
//! thus selects the launches. It does not use kernel names, which the submitter chooses.

use crate::child::device::executor::Executor;
use crate::child::failure::{JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{
    JobBuffer, Use, allocate_all, outputs, restore_all, restore_inouts,
};
use crate::child::memory::variables::Restored;
use crate::child::run::{Run, timed};
use crate::protocol::{Blame, FromWorker, KernelProgram, TracePlan, TraceView, TracedRun};
use warpgauge_model::CacheState;
use warpgauge_validate::Filling;

/// Runs the job's launches for the tool. Another run times and verifies the program.
pub(crate) fn run(run: &mut Run<'_, '_>, plan: &TracePlan, told: &mut TracedRun) -> JobResult<()> {
    let checks = plan.view == TraceView::Checks;
    let mut arm = begin(run, checks, &mut told.memory_bytes)?;
    let Run { executor, outcome, residue, buffers, .. } = run;
    let launched = timed(&mut outcome.timings.execute_ms, || match plan.view {
        TraceView::Counters => counters(executor, &mut arm, buffers),
        TraceView::Timeline { launches } => {
            timeline(executor, &mut arm, buffers, launches, plan.cache)
        }
        TraceView::Checks => launch(executor, &mut arm, buffers),
    });
    arm.retire(residue);
    launched
}

/// Loads the program, and reports the start of its run. Sets `memory_bytes` to the memory of its
/// buffers according to the driver.
pub(crate) fn begin(
    run: &mut Run<'_, '_>,
    checks: bool,
    memory_bytes: &mut Option<u64>,
) -> JobResult<LoadedProgram> {
    let Run { executor, job, link, outcome, residue, buffers } = run;
    let free = |executor: &Executor| executor.context.memory_info().ok().map(|(free, _)| free);
    let before = free(executor);
    timed(&mut outcome.timings.h2d_ms, || allocate(executor, &job.program, checks, buffers))?;
    *memory_bytes = before.zip(free(executor)).and_then(|(a, b)| a.checked_sub(b));
    let launches = &job.program.launches;
    let arm = timed(&mut outcome.timings.load_ms, || match checks {
        true => LoadedProgram::load_once(executor, launches, buffers, residue),
        false => {
            let how = (Blame::Candidate, Restored::Variables);
            LoadedProgram::load(executor, launches, buffers, residue, how)
        }
    })?;
    outcome.function = arm.facts;
    let _ = link.send(&FromWorker::Started);
    Ok(arm)
}

/// Allocates buffers as in any other job. For checks, the buffers have no guard bands, and content
/// that the contract does not define is not written.
fn allocate<'job>(
    executor: &Executor,
    program: &'job KernelProgram,
    checks: bool,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    let tools = executor.tools()?;
    let guard = (!checks).then(|| executor.guard_byte());
    let usage = Use { copied: !checks, guard, shift: 0, whole_pages: false, poisoned: !checks };
    allocate_all(&program.buffers, || usage, tools, buffers)
}

/// Makes one launch, so that the driver completes its lazy loading, and then the launch that the
/// tool observes.
fn counters(
    executor: &mut Executor,
    arm: &mut LoadedProgram,
    buffers: &[JobBuffer<'_>],
) -> JobResult<()> {
    restore(executor, buffers)?;
    launch(executor, arm, buffers)?;
    arm.forget(&executor.stream).map_err(environment)?;
    restore(executor, buffers)?;
    executor.stream.synchronize().map_err(environment)?;
    seen(executor, |executor| launch(executor, arm, buffers))
}

fn timeline(
    executor: &mut Executor,
    arm: &mut LoadedProgram,
    buffers: &[JobBuffer<'_>],
    launches: u32,
    cache: CacheState,
) -> JobResult<()> {
    restore(executor, buffers)?;
    launch(executor, arm, buffers)?;
    let take = |(_, buffer)| (buffer, executor.pinned.take(JobBuffer::len(buffer)));
    let mut outputs = outputs(buffers).map(take).collect::<Vec<_>>();
    seen(executor, |executor| {
        for _ in 0..launches {
            restore_inouts(buffers, executor.tools()?).map_err(environment)?;
            if let (CacheState::Cold, Some(flush)) = (cache, &executor.flush) {
                flush.fill(0, &executor.stream).map_err(environment)?;
            }
            arm.launch(buffers, &executor.stream).map_err(candidate)?;
        }
        for (buffer, content) in &mut outputs {
            buffer.copy_to_host(content.bytes_mut(), &executor.stream).map_err(candidate)?;
        }
        executor.stream.synchronize().map_err(candidate)
    })
}

/// Performs work while the tool observes this process.
fn seen(
    executor: &mut Executor,
    work: impl FnOnce(&mut Executor) -> JobResult<()>,
) -> JobResult<()> {
    executor.context.start_profiler().map_err(environment)?;
    let done = work(executor);
    executor.context.stop_profiler().map_err(environment)?;
    done
}

pub(crate) fn restore(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    restore_all(buffers, Filling::FIXED, executor.tools()?).map_err(environment)
}

fn launch(
    executor: &mut Executor,
    arm: &mut LoadedProgram,
    buffers: &[JobBuffer<'_>],
) -> JobResult<()> {
    arm.launch(buffers, &executor.stream).map_err(candidate)?;
    executor.stream.synchronize().map_err(candidate)
}
