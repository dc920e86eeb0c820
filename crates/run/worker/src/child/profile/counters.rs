//! Reads the hardware counters of a launch in the process that makes the launch.
//!
//! Separate workers read counters. Reading them changes how launches are made, so a worker that
//! times launches never loads CUPTI. The library, the device's available counters, earlier plans,
//! and the reserved counters outlive a job; each job only makes the passes.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::trace;
use crate::child::device::counters::{Counters, Unit};
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::JobBuffer;
use crate::child::run::{Run, timed};
use crate::protocol::{Blame, CountPlan, CountedRun, CounterFacts, CounterTimings};
use warpgauge_device::cupti::{CountedLaunch, CounterPlan, CuptiError, PassError};
use warpgauge_model::{CacheState, Cause, FailureCode};

/// Maximum time to wait for counters that another process holds.
const BUSY_LIMIT: Duration = Duration::from_secs(2);

/// First delay between attempts to reserve the counters. It doubles with each attempt.
const BUSY_DELAY: Duration = Duration::from_millis(25);

/// The launch whose counters are read, with its preparation.
struct Launched<'a, 'job> {
    program: &'a mut LoadedProgram,
    buffers: &'a [JobBuffer<'job>],
    executor: &'a Executor,
    cache: CacheState,
    /// Duration of the preparation, milliseconds.
    prepare_ms: f64,
}

impl Launched<'_, '_> {
    /// Empties L2 by reading, so that the launch evicts only lines that it wrote itself. Lines that
    /// were dirty before would count as traffic of the launch.
    fn empty_l2(&self) -> JobResult<()> {
        let tools = self.executor.tools()?;
        if let (CacheState::Cold, Some(flush)) = (self.cache, &self.executor.flush) {
            let (address, bytes) = (flush.address(), flush.len());
            let read = tools.support.first_difference(address, flush, bytes, tools.stream);
            read.map_err(environment)?;
        }
        Ok(())
    }
}

impl CountedLaunch for Launched<'_, '_> {
    type Error = Failed;

    fn prepare(&mut self) -> JobResult<()> {
        let start = Instant::now();
        let (executor, stream) = (self.executor, &self.executor.stream);
        self.program.forget(stream).map_err(environment)?;
        trace::restore(executor, self.buffers)?;
        self.empty_l2()?;
        stream.synchronize().map_err(environment)?;
        self.prepare_ms += start.elapsed().as_secs_f64() * 1e3;
        Ok(())
    }

    fn launch(&mut self) -> JobResult<()> {
        let stream = &self.executor.stream;
        self.program.launch(self.buffers, stream).map_err(candidate)?;
        stream.synchronize().map_err(candidate)
    }
}

/// Reads the counters of the program's launches. Another run times and verifies the program.
pub(crate) fn run(run: &mut Run<'_, '_>, plan: &CountPlan, told: &mut CountedRun) -> JobResult<()> {
    let Some(mut counters) = run.executor.counters.take() else {
        let text =
            "the server requested counters from a worker that does not read counters".to_owned();
        return Err(Failed::new(FailureCode::InternalError, text, Blame::Environment));
    };
    let read = read(run, &mut counters, plan, told);
    if let Some(unit) = &mut counters.unit {
        unit.keep(run.residue.modules());
    }
    run.executor.counters = Some(counters);
    read
}

fn read(
    run: &mut Run<'_, '_>,
    counters: &mut Counters,
    plan: &CountPlan,
    told: &mut CountedRun,
) -> JobResult<()> {
    let mut program = trace::begin(run, false, &mut None)?;
    let Run { executor, outcome, residue, buffers, .. } = run;
    let executor = &**executor;
    let mut subject =
        Launched { program: &mut program, buffers, executor, cache: plan.cache, prepare_ms: 0.0 };
    let mut facts = CounterFacts::default();
    let collected = timed(&mut outcome.timings.execute_ms, || {
        executor.reset_persisting_l2()?;
        // This launch makes the driver load what it loads lazily. If the kernel fails here, the
        // counters are not the cause.
        subject.prepare()?;
        subject.launch()?;
        patiently(|| collect(counters, &mut subject, plan, &mut facts))
    });
    program.retire(residue);
    match collected? {
        Ok(()) => {}
        Err(error) => facts.unavailable = Some(error.cause.because(error.to_string())),
    }
    told.facts = Some(facts);
    Ok(())
}

/// Retries for a limited time if another process holds the counters. Sleeps between attempts,
/// because no event announces their release.
fn patiently(
    mut collect: impl FnMut() -> JobResult<Result<(), CuptiError>>,
) -> JobResult<Result<(), CuptiError>> {
    let (start, mut delay) = (Instant::now(), BUSY_DELAY);
    loop {
        match collect()? {
            Err(error) if error.is_busy() && start.elapsed() + delay < BUSY_LIMIT => {
                sleep(delay);
                delay *= 2;
            }
            other => return Ok(other),
        }
    }
}

fn collect(
    counters: &mut Counters,
    subject: &mut Launched<'_, '_>,
    wanted: &CountPlan,
    facts: &mut CounterFacts,
) -> JobResult<Result<(), CuptiError>> {
    let context = &subject.executor.context;
    *facts = CounterFacts::default();
    let mut ms = CounterTimings::default();
    let unit = match timed(&mut ms.open_ms, || counters.unit(context)) {
        Ok(unit) => unit,
        Err(error) => return Ok(Err(error)),
    };
    facts.tool = unit.cupti.name();
    facts.chip.clone_from(&unit.chip);
    let plan = match timed(&mut ms.plan_ms, || unit.plan(&wanted.metrics)) {
        Ok(plan) => plan,
        Err(error) => return Ok(Err(error)),
    };
    facts.missing.clone_from(&plan.refused);
    if plan.passes > wanted.max_passes as usize {
        let text = format!(
            "the metrics need {} passes, but at most {} are allowed; request fewer metrics",
            plan.passes, wanted.max_passes
        );
        return Ok(Err(CuptiError::local("plan the passes", Cause::TooManyPasses, text)));
    }
    let read = passes(unit, subject, &plan, &mut ms);
    facts.timings = ms;
    match read {
        Ok((passes, values)) => {
            facts.passes = passes;
            record(&plan, values, facts);
            Ok(Ok(()))
        }
        Err(error) => {
            // CUPTI's state is unknown after an error.
            unit.close();
            match error {
                PassError::Counters(error) => Ok(Err(error)),
                PassError::Launch(failed) => Err(failed),
            }
        }
    }
}

/// Number of passes, and the value of each metric.
type Reading = (u32, Vec<f64>);

fn passes(
    unit: &mut Unit,
    subject: &mut Launched<'_, '_>,
    plan: &Rc<CounterPlan>,
    ms: &mut CounterTimings,
) -> Result<Reading, PassError<Failed>> {
    let context = &subject.executor.context;
    subject.prepare_ms = 0.0;
    let session = timed(&mut ms.open_ms, || unit.session(context, plan))?;
    let mut collection = timed(&mut ms.begin_ms, || session.begin())?;
    while !collection.is_complete() {
        timed(&mut ms.passes_ms, || collection.pass(subject))?;
    }
    let passes = u32::try_from(collection.passes()).unwrap_or(u32::MAX);
    ms.prepare_ms = subject.prepare_ms;
    let values = timed(&mut ms.read_ms, || collection.finish())?;
    Ok((passes, values))
}

fn record(plan: &CounterPlan, values: Vec<f64>, facts: &mut CounterFacts) {
    for (name, value) in plan.metrics().zip(values) {
        let name = name.to_string_lossy().into_owned();
        if value.is_finite() {
            let value = value * base_unit(&name);
            facts.values.insert(name, value);
        } else {
            let reason = "its value is not a finite number for this launch: the divisor is 0";
            facts.missing.insert(name, reason.to_owned());
        }
    }
}

/// Returns the factor that converts the value of an NVIDIA metric to base units. CUPTI's values are
/// already in base units, except for times, which are in nanoseconds.
fn base_unit(name: &str) -> f64 {
    let counter = name.split('.').next().unwrap_or(name);
    let share = name.contains(".pct") || name.ends_with(".ratio");
    if counter.starts_with("gpu__time_") && !share { 1e-9 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_seconds_and_nothing_else_changes() {
        assert_eq!(base_unit("gpu__time_duration.sum"), 1e-9);
        assert_eq!(base_unit("gpu__time_active.avg"), 1e-9);
        assert_eq!(base_unit("gpu__time_duration.avg.pct_of_peak_sustained_elapsed"), 1.0);
        assert_eq!(base_unit("sm__cycles_elapsed.avg.per_second"), 1.0);
        assert_eq!(base_unit("dram__bytes.sum"), 1.0);
    }
}
