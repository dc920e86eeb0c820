//! Hardware counters of a launch, read by the process that makes it.
//!
//! A worker that reads counters is one of its own: reading them changes how launches are made, so a
//! worker that times never loads CUPTI. The library, what the device has to count, the plans of
//! metrics that were asked for before, and the counters themselves outlive a job: what remains of
//! one is the passes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::job::{Failed, JobResult, Run, candidate, environment, timed};
use super::loaded::LoadedProgram;
use super::traced;
use crate::protocol::{Blame, CountPlan, Counted, CounterFacts, CounterTimings};
use warpgauge_device::cupti::{
    Cupti, CuptiError, PassError, Plan, Session, Subject, counter_availability,
};
use warpgauge_device::{Context, Module};
use warpgauge_model::{CacheState, Cause, FailureCode};

/// Plans that are kept: sets of metrics, of which callers use few.
const PLANS: usize = 32;

/// Modules that are kept for a session; with more it is ended.
const MODULES: usize = 16;

/// Longest time to wait for counters that another process has.
const BUSY_LIMIT: Duration = Duration::from_secs(2);

/// First wait for them; it doubles.
const BUSY_DELAY: Duration = Duration::from_millis(25);

/// What reading counters needs beyond a job.
pub(super) struct Counters {
    candidates: Vec<PathBuf>,
    ordinal: u32,
    unit: Option<Unit>,
    /// Why there will be none in this process.
    refused: Option<CuptiError>,
}

/// CUPTI on a device.
struct Unit {
    cupti: Cupti,
    chip: String,
    availability: Option<Vec<u8>>,
    /// The last ones used, newest first.
    plans: VecDeque<(Vec<String>, Rc<Plan>)>,
    session: Option<Session>,
    /// Modules that the session added instructions to. CUPTI looks at them again later: it crashes
    /// if they are gone, so they stay, with their variables zeroed, for as long as the session.
    instrumented: Vec<Module>,
}

impl Counters {
    /// `candidates`: where CUPTI may be.
    pub(super) fn new(candidates: Vec<PathBuf>, ordinal: u32) -> Self {
        Self { candidates, ordinal, unit: None, refused: None }
    }

    /// Opens CUPTI, so that the first job does not have to. What goes wrong goes wrong again then,
    /// and is told.
    pub(super) fn warm_up(&mut self, context: &Context) {
        let _ = self.unit(context);
    }

    /// Whether no other program of the machine can read counters, because of this one.
    pub(super) fn are_held(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.session.is_some())
    }

    /// Gives the counters back.
    pub(super) fn release(&mut self) {
        if let Some(unit) = &mut self.unit {
            unit.close();
        }
    }

    fn unit(&mut self, context: &Context) -> Result<&mut Unit, CuptiError> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let unit = match self.unit.take() {
            Some(unit) => unit,
            None => match Unit::open(&self.candidates, self.ordinal, context) {
                Ok(unit) => unit,
                Err(error) => {
                    // What another process holds, it gives back; all else stays as it is.
                    self.refused = Some(error.clone()).filter(|error| !error.is_busy());
                    return Err(error);
                }
            },
        };
        Ok(self.unit.insert(unit))
    }
}

impl Unit {
    fn open(libraries: &[PathBuf], ordinal: u32, context: &Context) -> Result<Self, CuptiError> {
        let cupti = Cupti::open(libraries)?;
        cupti.check_device(ordinal)?;
        let chip = cupti.chip(ordinal)?;
        // A help for planning: without it, a plan may name what this very chip lacks.
        let availability = match counter_availability(cupti, context) {
            Err(error) if error.is_busy() => return Err(error),
            other => other.ok(),
        };
        Ok(Self {
            cupti,
            chip,
            availability,
            plans: VecDeque::new(),
            session: None,
            instrumented: Vec::new(),
        })
    }

    fn plan(&mut self, metrics: &[String]) -> Result<Rc<Plan>, CuptiError> {
        let known = self.plans.iter().position(|(names, _)| names == metrics);
        let entry = match known.and_then(|index| self.plans.remove(index)) {
            Some(entry) => entry,
            None => {
                let availability = self.availability.as_deref();
                let plan = Plan::new(self.cupti, &self.chip, availability, metrics)?;
                (metrics.to_vec(), Rc::new(plan))
            }
        };
        let plan = Rc::clone(&entry.1);
        self.plans.push_front(entry);
        self.plans.truncate(PLANS);
        Ok(plan)
    }

    /// Ends the session, and lets go of what it needed.
    fn close(&mut self) {
        self.session = None;
        self.instrumented.clear();
    }

    /// Keeps the modules of a job, if the session has to do with them.
    fn keep(&mut self, modules: impl Iterator<Item = Module>) {
        if self.session.as_ref().is_some_and(|session| session.plan().is_instrumented()) {
            self.instrumented.extend(modules);
        }
        if self.instrumented.len() > MODULES {
            self.close();
        }
    }

    /// The session for a plan; the one that there is, if it is for another, is given up.
    fn session(&mut self, context: &Context, plan: &Rc<Plan>) -> Result<&mut Session, CuptiError> {
        let kept = self.session.take_if(|open| Rc::ptr_eq(open.plan(), plan));
        let session = match kept {
            Some(session) => session,
            None => {
                self.close();
                Session::open(self.cupti, context, Rc::clone(plan))?
            }
        };
        Ok(self.session.insert(session))
    }
}

/// The launch whose counters are read, and what it needs before it.
struct Launched<'a, 'job> {
    program: &'a mut LoadedProgram,
    buffers: &'a [JobBuffer<'job>],
    executor: &'a Executor,
    cache: CacheState,
    /// Time that preparing took, milliseconds.
    prepare_ms: f64,
}

impl Launched<'_, '_> {
    /// Empties L2 by reading, so that what the launch writes pushes nothing but its own out: lines
    /// that were written before would be counted as traffic of the launch.
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

impl Subject for Launched<'_, '_> {
    type Error = Failed;

    fn prepare(&mut self) -> JobResult<()> {
        let start = Instant::now();
        let (executor, stream) = (self.executor, &self.executor.stream);
        self.program.forget(stream).map_err(environment)?;
        traced::restore(executor, self.buffers)?;
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

/// Reads the counters of the program's launches. Nothing is timed or verified: that was another run.
pub(super) fn run(run: &mut Run<'_, '_>, plan: &CountPlan, told: &mut Counted) -> JobResult<()> {
    let Some(mut counters) = run.executor.counters.take() else {
        let text = "the server asked a worker for counters that does not read any".to_owned();
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
    told: &mut Counted,
) -> JobResult<()> {
    let mut program = traced::begin(run, false, &mut None)?;
    let Run { executor, outcome, residue, buffers, .. } = run;
    let executor = &**executor;
    let mut subject =
        Launched { program: &mut program, buffers, executor, cache: plan.cache, prepare_ms: 0.0 };
    let mut facts = CounterFacts::default();
    let collected = timed(&mut outcome.timings.execute_ms, || {
        executor.reset_persisting_l2()?;
        // What the driver loads late; and a kernel that fails does so with no counters to blame.
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

/// Tries again for a while if another process has the counters. It sleeps between: nothing tells when
/// the other gives them back.
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
            "the metrics take {} passes, and {} are allowed; ask for fewer",
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
            // What CUPTI holds now is not known.
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
    plan: &Rc<Plan>,
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

fn record(plan: &Plan, values: Vec<f64>, facts: &mut CounterFacts) {
    for (name, value) in plan.metrics().zip(values) {
        let name = name.to_string_lossy().into_owned();
        if value.is_finite() {
            let value = value * base_unit(&name);
            facts.values.insert(name, value);
        } else {
            let reason = "it is not a number for this launch: what it is divided by is 0";
            facts.missing.insert(name, reason.to_owned());
        }
    }
}

/// What a value of NVIDIA's metric is multiplied by to be in base units. CUPTI's are, but for times,
/// which are nanoseconds.
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
