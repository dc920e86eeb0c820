//! Judges a share of a kernel's timed launches in a process that the kernel has never run in.
//!
//! The candidate's process makes all launches, on this process's buffers, and announces each launch
//! that is to be sealed. This process then provides inputs and fillings, and verifies the launch.

use std::cell::RefCell;

use super::evaluation::allocate_and_fill;
use crate::child::device::runners::RemoteProgram;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::run::Run;
use crate::child::timing::batch::Rig;
use crate::child::timing::inputs::Inputs;
use crate::child::timing::judge::{Audit, Judge};
use crate::child::timing::judge::{Phase, Referee};
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
    allocate_and_fill(run, plan)?;
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
    let lent = candidate_runner.borrow_mut().lend(buffers, guard);
    if let Err(failed) = lent {
        references.retire();
        // The candidate's process continues without sealed launches.
        told.sealed = SealedFacts::unavailable(failed.failure.message);
        return Ok(());
    }
    inputs.leave_contract();
    let mut rig = Rig {
        inputs,
        cache: plan.trials.as_ref().map_or(CacheState::Hot, |trials| trials.cache),
        executor,
        buffers,
        turns: None,
        load: None,
        looked_at: false,
    };
    let _ = link.send(&FromWorker::Started);
    let link = RefCell::new(&mut **link);
    let mut oracle = Oracle::new(&checks, references, &link, (moving, plan.sanitize));
    // The references load while the candidate's process loads the kernel.
    let loaded = oracle.references.load_all(rig.executor, rig.buffers);
    let mut program = LoadedProgram::elsewhere(RemoteProgram::of_another(&candidate_runner));
    let judged =
        loaded.and_then(|()| judge(&mut rig, &mut program, &mut oracle, &candidate_runner, told));
    told.audits = oracle.audits.clone();
    // The reference's process closes the buffers while the candidate's process finishes.
    oracle.retire();
    // The candidate's process has the buffers open, and uses them until it closes the connection.
    candidate_runner.borrow_mut().part();
    judged
}

fn judge(
    rig: &mut Rig<'_, '_>,
    program: &mut LoadedProgram,
    oracle: &mut Oracle<'_, '_>,
    runner: &RefCell<crate::child::device::runners::Runner>,
    told: &mut EvaluatedRun,
) -> JobResult<()> {
    loop {
        let Some(later) = runner.borrow_mut().next_turn()? else { return Ok(()) };
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
