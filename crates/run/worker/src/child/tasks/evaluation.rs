//! Launches, times and verifies a program, phase by phase.

use std::cell::RefCell;
use std::path::Path;

use crate::child::failure::{JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, Use, allocate_and_queue};
use crate::child::run::{Run, timed};
use crate::child::timing::batch::Rig;
use crate::child::timing::inputs::{Inputs, Shown, all_move, may_move};
use crate::child::timing::lasting::{self, Spent};
use crate::child::timing::sealed_turns::Turns;
use crate::child::timing::trials::{self, Health};
use crate::child::verify::counted_launch;
use crate::child::verify::explanation;
use crate::child::verify::lint;
use crate::child::verify::oracle::Oracle;
use crate::child::verify::outputs;
use crate::child::verify::references::ReferenceKernels;
use crate::child::verify::surroundings::{guards_intact, nothing_else_touched};
use crate::child::verify::tolerance;
use crate::protocol::{Blame, EvaluatePlan, EvaluatedRun, FromWorker, VariablesKept};
use warpgauge_model::{CacheState, DeviceKind, WorkerTimings};
use warpgauge_validate::Filling;

/// Launches the candidate, and verifies each audited launch before the next one begins. Expected
/// values are thus never in memory that the candidate could reach.
pub(crate) fn run(
    run: &mut Run<'_, '_>,
    plan: &EvaluatePlan,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    run.executor.arm_checks(plan.sanitize)?;
    let turns = allocate(run, plan)?;
    let Run { executor, job, link, outcome, residue, buffers } = run;
    let launches = &job.program.launches;
    let inputs = Inputs::of_plan(buffers, plan);
    let how = (Blame::Candidate, inputs.restored(buffers));
    let mut program = timed(&mut outcome.timings.load_ms, || {
        LoadedProgram::load(executor, launches, buffers, residue, how)
    })?;
    outcome.function = program.facts;
    let mut rig = Rig {
        inputs,
        cache: plan.trials.as_ref().map_or(CacheState::Hot, |trials| trials.cache),
        executor,
        buffers,
        turns,
        load: None,
        looked_at: false,
        health: Health::default(),
    };
    // The watchdog notices that the server is gone.
    let _ = link.send(&FromWorker::Started);
    let moving = (rig.inputs.are_all_moving(rig.buffers), rig.inputs.are_moving());
    let (moving, redrawn) = moving;
    let link = RefCell::new(&mut **link);
    let timings = &mut outcome.timings;
    let mut references = ReferenceKernels::new(&plan.checks, residue, redrawn);
    // The running time of references is not counted for the candidate.
    let measures = plan.checks.measures_tolerances();
    let tell = |message: FromWorker| {
        if measures {
            // The watchdog notices that the server is gone.
            let _ = link.borrow_mut().send(&message);
        }
    };
    tell(FromWorker::Verifying);
    let checks = timed(&mut timings.verify_ms, || {
        let Rig { executor, buffers, .. } = &mut rig;
        tolerance::settled(&plan.checks, &mut references, executor, buffers, plan.sanitize)
    });
    tell(FromWorker::Resumed);
    let judged = match &checks {
        Ok(checks) => {
            let mut oracle = Oracle::new(checks, references, &link, (moving, plan.sanitize));
            let with = (&mut oracle, &*job.directory);
            let judged = judge(&mut rig, plan, &mut program, with, timings, told);
            told.audits = oracle.audits.clone();
            oracle.retire();
            judged
        }
        Err(_) => {
            references.retire();
            checks.map(|_| ())
        }
    };
    let turns = rig.turns.take();
    let health = std::mem::take(&mut rig.health);
    program.retire(residue);
    told.emulator_report = match &executor.runners {
        Some(runners) => runners.report(),
        None => executor.emulator.and_then(|emulator| emulator.take_report()),
    };
    executor.arm_checks(false)?;
    let _ = link.borrow_mut().send(&FromWorker::Executed);
    if let Some(turns) = turns {
        told.sealed.turns = turns.made;
        told.sealed.launches = turns.into_taken(residue);
        if judged.is_ok() && executor.device().kind == DeviceKind::Cuda {
            // The judge waits for it, and the answer of the monitor is pending.
            executor.stream.synchronize().map_err(environment)?;
            residue.take_buffers(std::mem::take(*buffers));
            residue.return_lent();
        }
    }
    told.health = timed(&mut outcome.timings.monitor_ms, || health.told());
    judged
}

/// Makes the first launch, the second launch, and the timed launches.
fn judge(
    rig: &mut Rig<'_, '_>,
    plan: &EvaluatePlan,
    program: &mut LoadedProgram,
    (oracle, directory): (&mut Oracle<'_, '_>, &Path),
    timings: &mut WorkerTimings,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    let proven = is_proven(plan);
    // The outputs go to a caller who inspects them, and they are not verified, so their filling is
    // fixed.
    let mut filling = || match proven {
        true => Filling::not_a_number(rig.inputs.secret.bits()),
        false => Filling::FIXED,
    };
    let (of_counted, filling) = (filling(), filling());
    if plan.count {
        let how = (proven, plan.sanitize);
        told.counts = counted_launch::launch(rig, program, oracle, of_counted, how)?;
    }
    timed(&mut timings.execute_ms, || rig.launch_once(program, filling))?;
    let right = first(rig, plan, filling, (oracle, directory), timings, told)
        .map_err(|failed| explanation::later(rig, program, oracle, failed))?;
    if proven {
        rig.inputs.leave_contract();
        let filling = Filling::number(rig.inputs.secret.bits());
        let shown = timed(&mut timings.execute_ms, || rig.launch_once(program, filling))?;
        let Rig { executor, buffers, .. } = rig;
        let second = timed(&mut timings.verify_ms, || {
            oracle.aside(executor, |oracle| {
                // A kernel that is wrong for the contract's inputs needs no second launch to prove
                // it.
                if right {
                    return oracle.second(executor, buffers, shown, filling);
                }
                let outputs = outputs::copy_outputs(executor, buffers)?;
                let left = (&outputs, filling);
                oracle.settle(executor, buffers, shown, left, &mut told.checks)
            })
        });
        tell_guarantees(rig, program, told);
        if !right {
            second?;
            return explanation::first(rig, program, oracle, &told.checks);
        }
        let measured = second.and_then(|()| measure(rig, plan, program, oracle, timings, told));
        measured.map_err(|failed| explanation::later(rig, program, oracle, failed))?;
        return match plan.lint {
            true => timed(&mut timings.verify_ms, || lint(rig, oracle, shown, told)),
            false => Ok(()),
        };
    }
    tell_guarantees(rig, program, told);
    rig.inputs.leave_contract();
    measure(rig, plan, program, oracle, timings, told)
}

/// Reports which kinds of state cannot carry over from one launch to the next.
fn tell_guarantees(rig: &Rig<'_, '_>, program: &LoadedProgram, told: &mut EvaluatedRun) {
    told.inputs_moved = rig.inputs.are_moving();
    told.input_sets = rig.inputs.sets();
    let all_move = rig.inputs.are_all_moving(rig.buffers);
    told.variables = (!all_move).then(|| match program.unlisted() {
        None => VariablesKept::PutBack,
        Some(reason) => VariablesKept::NotKnown(reason.clone()),
    });
}

/// Processes the first launch's outputs: returns them to the caller, and verifies them. Returns
/// whether they are correct.
fn first(
    rig: &mut Rig<'_, '_>,
    plan: &EvaluatePlan,
    filling: Filling,
    (oracle, directory): (&mut Oracle<'_, '_>, &Path),
    timings: &mut WorkerTimings,
    told: &mut EvaluatedRun,
) -> JobResult<bool> {
    let Rig { executor, buffers, .. } = rig;
    oracle.aside(executor, |oracle| {
        let mut hashed = timed(&mut timings.d2h_ms, || outputs::hash_on_device(executor, buffers))?;
        let is_equal = plan.keep_outputs.is_empty()
            && timed(&mut timings.verify_ms, || {
                oracle.first_is_equal(executor, buffers, &mut told.checks)
            })?;
        if is_equal {
            told.outputs = hashed;
            return Ok(true);
        }
        let content =
            timed(&mut timings.d2h_ms, || outputs::capture(executor, buffers, plan, &mut hashed))?;
        let bytes = content.iter().map(|(index, content)| (*index, content.bytes()));
        let bytes = bytes.collect::<Vec<_>>();
        let (summaries, right) = std::thread::scope(|scope| {
            // The outputs for the caller are summarised while this thread verifies.
            let summarise = || outputs::summarise_all(directory, plan, &bytes, &hashed);
            let summaries =
                std::thread::Builder::new().name("hash".to_owned()).spawn_scoped(scope, summarise);
            let right = timed(&mut timings.verify_ms, || {
                oracle.first(executor, buffers, (&content, filling), &mut told.checks)
            });
            let summaries = summaries.ok().and_then(|summaries| summaries.join().ok());
            (summaries.unwrap_or_else(summarise), right)
        });
        told.outputs = summaries?;
        right
    })
}

/// Warms up, times the launches, and checks for effects of many launches.
fn measure(
    rig: &mut Rig<'_, '_>,
    plan: &EvaluatePlan,
    program: &mut LoadedProgram,
    oracle: &mut Oracle<'_, '_>,
    timings: &mut WorkerTimings,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    let Some(trials) = &plan.trials else { return Ok(()) };
    let Rig { executor, turns, .. } = rig;
    if let Some(turns) = turns {
        timed(&mut timings.verify_ms, || match turns.is_answered_soon() {
            true => turns.wait(),
            false => oracle.aside(executor, |_| turns.wait()),
        })?;
    }
    let link = oracle.link();
    let mut progress = |samples: &[f32]| link.borrow_mut().progress(samples.len(), samples);
    let measured = timed(&mut timings.execute_ms, || {
        trials::measure(rig, program, trials, oracle, &mut progress)
    })?;
    let verify_ms = measured.verifying.as_secs_f64() * 1e3;
    timings.device_busy_ms = measured.busy_ms;
    timings.verify_ms += verify_ms;
    timings.execute_ms -= verify_ms;
    told.samples_ms = measured.samples_ms;
    told.batches = measured.batches;
    told.warmup_launches = measured.warmup_launches;
    told.warmup_stable = measured.warmup_stable;
    told.stopped = measured.stopped;
    told.settings = rig.executor.settings.clone();
    told.empty_launch_ms = measured.empty_launch_ms;
    told.load = measured.load;
    if program.has_steps {
        told.lines = timed(&mut timings.execute_ms, || rig.time_steps(program))?;
    }
    // An unverified launch may have written outside its outputs.
    let Rig { executor, buffers, looked_at, turns, .. } = rig;
    let look = if *looked_at { guards_intact } else { nothing_else_touched };
    let looked =
        timed(&mut timings.verify_ms, || oracle.aside(executor, |_| look(executor, buffers)));
    looked?;
    let lasts = is_proven(plan) && program.keeps_state();
    if let Some(turns) = turns {
        turns.end();
        if lasts || plan.lint {
            // The buffers are used again below. The judge's verdict on timed launches comes first.
            let wait = || oracle.aside(executor, |_| turns.wait());
            timed(&mut timings.verify_ms, wait)?;
        }
    }
    if !lasts {
        return Ok(());
    }
    let launches = 2 + told.warmup_launches + told.samples_ms.len() as u32;
    let spent = Spent { launches, seconds: timings.execute_ms * 1e-3 };
    let lasted =
        timed(&mut timings.execute_ms, || lasting::run(rig, program, (trials, spent), oracle))?;
    let verify_ms = lasted.verifying.as_secs_f64() * 1e3;
    timings.verify_ms += verify_ms;
    timings.execute_ms -= verify_ms;
    told.lasting = Some(lasted.facts);
    Ok(())
}

/// Searches for trivial programs that would pass the checks without doing the work. The candidate
/// does not run again.
fn lint(
    rig: &mut Rig<'_, '_>,
    oracle: &mut Oracle<'_, '_>,
    shown: Shown,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    let Rig { executor, buffers, inputs, .. } = rig;
    oracle.aside(executor, |oracle| {
        let canonical = oracle.references.expect(executor, buffers, Shown::CANONICAL)?;
        let tolerances = &oracle.checks.tolerances;
        let few = |(buffer, _): &(usize, _)| {
            let JobBuffer { spec, .. } = &buffers[*buffer];
            warpgauge_validate::needs_more_seeds(spec.shape.iter().product())
        };
        let mut others = Vec::new();
        if shown != Shown::CANONICAL {
            others.push(shown);
            others.extend(inputs.another().filter(|_| tolerances.0.iter().any(few)));
        }
        let expect = |shown| Ok((shown, oracle.references.expect(executor, buffers, shown)?));
        let others = others.into_iter().map(expect).collect::<JobResult<Vec<_>>>()?;
        let checks = oracle.checks;
        told.weaknesses = lint::weaknesses(executor, buffers, checks, &canonical, &others)?;
        Ok(())
    })
}

/// Returns whether outputs are checked; this also proves that the kernel writes all of them.
fn is_proven(plan: &EvaluatePlan) -> bool {
    !plan.checks.tolerances.is_empty()
}

/// Allocates the job's buffers, or opens the buffers of the process that judges some of the
/// launches.
fn allocate(run: &mut Run<'_, '_>, plan: &EvaluatePlan) -> JobResult<Option<Turns>> {
    let shared = plan.trials.as_ref().is_some_and(|trials| trials.sealed > 0);
    // A judge seals every launch.
    if !shared || run.executor.runners.is_some() {
        return allocate_and_fill(run, plan).map(|()| None);
    }
    let Run { executor, job, link, outcome, residue, buffers } = run;
    // The modules load while the judge prepares its buffers.
    timed(&mut outcome.timings.load_ms, || {
        executor.load_ahead(&job.program.launches, residue, Blame::Candidate);
        for reference in &plan.checks.references {
            executor.load_ahead(&reference.launches, residue, Blame::Reference);
        }
    });
    let measures = plan.checks.measures_tolerances();
    if measures {
        // The judge runs the references before it hands its buffers over.
        let _ = link.send(&FromWorker::Verifying);
    }
    timed(&mut outcome.timings.h2d_ms, || {
        Turns::open(link, &job.program.buffers, measures, (&**executor, buffers)).map(Some)
    })
}

fn allocate_and_fill(run: &mut Run<'_, '_>, plan: &EvaluatePlan) -> JobResult<()> {
    allocate_and_write(run, plan)?;
    run.executor.stream.synchronize().map_err(environment)
}

/// Allocates the job's buffers, and queues the writes of their content.
pub(crate) fn allocate_and_write(run: &mut Run<'_, '_>, plan: &EvaluatePlan) -> JobResult<()> {
    let Run { executor, job, outcome, buffers, .. } = run;
    let tools = executor.tools()?;
    let usage = Use {
        copied: false,
        // If every access is checked, a guard band would hide an access slightly outside its
        // buffer.
        guard: (!plan.sanitize).then(|| executor.guard_byte()),
        shift: 0,
        // A process that opens a buffer must get whole pages of it.
        whole_pages: executor.runners.is_some() || !all_move(&job.program.buffers, may_move(plan)),
        poisoned: true,
    };
    timed(&mut outcome.timings.h2d_ms, || {
        allocate_and_queue(&job.program.buffers, || usage, tools, buffers)
    })
}
