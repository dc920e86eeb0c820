//! Judges a share of a kernel's timed launches in a process that the kernel has never run in.
//!
//! The candidate's process makes all launches, on this process's buffers, and announces each launch
//! that is to be sealed. This process then provides inputs and fillings, and verifies the launch. On
//! a GPU it prepares the inputs before, and verifies the launches after the last one.

use std::cell::RefCell;

use super::evaluation::allocate_and_write;
use super::prepared_sets::PreparedSets;
use crate::child::device::runners::{HandedOver, RemoteProgram};
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::run::Run;
use crate::child::timing::batch::Rig;
use crate::child::timing::inputs::Inputs;
use crate::child::timing::judge::{Audit, Judge};
use crate::child::timing::judge::{Phase, Referee};
use crate::child::timing::trials::Health;
use crate::child::verify::oracle::Oracle;
use crate::child::verify::references::ReferenceKernels;
use crate::child::verify::surroundings::nothing_else_touched;
use crate::child::verify::tolerance;
use crate::protocol::{Blame, EvaluatePlan, EvaluatedRun, FromWorker, SealedFacts};
use warpgauge_model::{CacheState, FailureCode};

/// Judges the launches that the candidate's process hands over, until there are no more.
pub(crate) fn run(
    run: &mut Run<'_, '_>,
    plan: &EvaluatePlan,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    run.executor.arm_checks(false)?;
    allocate_and_write(run, plan)?;
    let Run { executor, link, residue, buffers, .. } = run;
    let guard = executor.guard_byte();
    let candidate_runner = match &executor.runners {
        Some(runners) => std::rc::Rc::clone(runners.of(Blame::Candidate)?),
        None => {
            let text = "there is no candidate to judge".to_owned();
            return Err(Failed::new(FailureCode::InternalError, text, Blame::Environment));
        }
    };
    let mut inputs = Inputs::of_plan(buffers, plan);
    let (moving, redrawn) = (inputs.are_all_moving(buffers), inputs.are_moving());
    let mut references = ReferenceKernels::new(&plan.checks, residue, redrawn);
    // References must run before the candidate's process uses the buffers.
    let checks = tolerance::settled(&plan.checks, &mut references, executor, buffers, false);
    let checks = match checks {
        Ok(checks) => checks,
        Err(failed) => {
            references.retire();
            return Err(failed);
        }
    };
    inputs.leave_contract();
    let sealed = plan.trials.as_ref().map_or(0, |trials| trials.sealed as usize);
    let mut expected = Ok(false);
    let sets =
        PreparedSets::prepare(executor, buffers, &mut inputs, sealed).and_then(|mut sets| {
            executor.stream.synchronize().map_err(environment)?;
            let lent = sets.as_ref().map(|sets| sets.lend(buffers)).transpose()?;
            candidate_runner.borrow_mut().start_lending(buffers, guard, lent)?;
            if let Some(sets) = &mut sets {
                // The reference runs while the candidate's process opens the buffers.
                expected = sets.expect(executor, buffers, &mut references);
            }
            candidate_runner.borrow_mut().finish_lending(buffers).map(|()| sets)
        });
    let mut sets = match sets {
        Ok(sets) => sets,
        Err(failed) => {
            references.retire();
            // The candidate's process continues without sealed launches.
            told.sealed = SealedFacts::unavailable(failed.failure.message);
            return Ok(());
        }
    };
    let mut rig = Rig {
        inputs,
        cache: plan.trials.as_ref().map_or(CacheState::Hot, |trials| trials.cache),
        executor,
        buffers,
        turns: None,
        load: None,
        looked_at: false,
        health: Health::default(),
    };
    let _ = link.send(&FromWorker::Started);
    let link = RefCell::new(&mut **link);
    let mut oracle = Oracle::new(&checks, references, &link, (moving, plan.sanitize));
    let loaded = expected.and_then(|expected| match expected {
        true => Ok(()),
        // The references load while the candidate's process loads the kernel.
        false => oracle.references.load_all(rig.executor, rig.buffers),
    });
    let mut program = LoadedProgram::elsewhere(RemoteProgram::of_another(&candidate_runner));
    let judged = loaded.and_then(|()| {
        // A candidate that is wrong already has closed the connection, which the first turn shows.
        let _ = candidate_runner.borrow_mut().yield_turn();
        let with = (&mut program, &mut sets);
        judge(&mut rig, with, &mut oracle, &candidate_runner, told)
    });
    told.audits = oracle.audits.clone();
    // The reference's process closes the buffers while the candidate's process finishes.
    let residue = oracle.retire();
    if let Some(runners) = &mut rig.executor.runners {
        runners.dismiss_reference();
    }
    // The candidate's process has the buffers open, and uses them until it closes the connection.
    candidate_runner.borrow_mut().part();
    if let Some(sets) = sets {
        sets.retire(residue);
    }
    judged
}

fn judge(
    rig: &mut Rig<'_, '_>,
    (program, sets): (&mut LoadedProgram, &mut Option<PreparedSets>),
    oracle: &mut Oracle<'_, '_>,
    runner: &RefCell<crate::child::device::runners::Runner>,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    loop {
        let turn = runner.borrow_mut().next_turn()?;
        let later = match turn {
            HandedOver::Launch { later } => later,
            HandedOver::Nothing => {
                if let Some(sets) = sets {
                    sets.verify(rig.executor, rig.buffers, oracle)?;
                    rig.executor.stream.synchronize().map_err(environment)?;
                }
                // A candidate that does not use the buffers again does not wait for this.
                let _ = runner.borrow_mut().yield_turn();
                return Ok(());
            }
            HandedOver::Lost => return Ok(()),
        };
        if let Some(sets) = sets
            && let Some(set) = sets.open()
        {
            let how = rig.inputs.timed_launch(rig.buffers, rig.cache, true);
            let (ms, digest) = runner.borrow_mut().unlock((set.index as u32, set.key), how)?;
            told.samples_ms.push(ms);
            sets.ended(set, digest);
            continue;
        }
        let trial = told.samples_ms.len();
        // The value of `later` affects only the distribution of the time for verification.
        oracle.begin(Phase::Timed, trial, vec![0], later as usize);
        let (shown, filling, ms) = rig.time_elsewhere(program)?;
        told.samples_ms.push(ms);
        let audit = Audit { trial: 0, shown, filling, under_load: false };
        let verified = oracle.takes(0) && oracle.verify(rig.executor, rig.buffers, audit)?;
        if !verified {
            // No other process can check whether the launch changed inputs.
            nothing_else_touched(rig.executor, rig.buffers)?;
        }
        rig.executor.stream.synchronize().map_err(environment)?;
        runner.borrow_mut().yield_turn()?;
    }
}
