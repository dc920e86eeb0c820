//! Explains wrong results by making further launches.
//!
//! A launch may be wrong after correct ones because of a race, or because its result depends on
//! earlier launches. Repeating the same launch without the state of earlier launches distinguishes
//! the two.

use std::time::{Duration, Instant};

use super::expectations::{Evidence, Expectations};
use super::oracle::Oracle;
use super::outputs::{Outputs, copy_outputs};
use crate::child::failure::{Failed, JobResult, candidate, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::restore_all;
use crate::child::timing::batch::Rig;
use crate::child::timing::inputs::{Shown, present};
use crate::protocol::{Blame, BufferSpec, Checks, OutputCheck};
use warpgauge_model::FailureCode;
use warpgauge_validate::{Filling, Reason, ReasonCode, ResolvedTolerance};

/// Number of launches that are compared with the first one.
const REPEATS: usize = 6;

/// Time limit for starting repeated launches.
const REPEAT_TIME: Duration = Duration::from_millis(300);

/// Minimum number of runs of a reference, made even after [`REPEAT_TIME`] because one run may
/// repeat the race's outcome by chance; and the time after which no run is started in any case.
const LEAST_RUNS: (usize, Duration) = (3, Duration::from_secs(2));

/// Returns the failure of a kernel that was correct at first: nondeterminism if it is found, else
/// `failed`.
pub(crate) fn later(
    rig: &mut Rig<'_, '_>,
    program: &mut LoadedProgram,
    oracle: &mut Oracle<'_, '_>,
    failed: Failed,
) -> Failed {
    let told_apart = [
        ReasonCode::DependsOnHistory,
        ReasonCode::WrongForOtherSeeds,
        ReasonCode::OutputVariesBetweenTrials,
    ];
    if failed.sticky || !told_apart.iter().any(|code| code.failure() == failed.failure.code) {
        return failed;
    }
    let varying = match varying_output(rig, program, oracle, oracle.verdicts.against.shown) {
        Ok(None) => varying_reference(rig, oracle),
        other => other,
    };
    match varying {
        Ok(Some(told)) => told,
        // The first finding stands, even if this check fails; but a lost context must be reported.
        Err(lost) if lost.sticky => Failed { sticky: true, ..failed },
        _ => failed,
    }
}

/// Explains the failure of a kernel that is wrong at its first launch. Returns `Ok` if no
/// explanation is found.
pub(crate) fn first(
    rig: &mut Rig<'_, '_>,
    program: &mut LoadedProgram,
    oracle: &mut Oracle<'_, '_>,
    checks: &[OutputCheck],
) -> JobResult<()> {
    let differs = |check: &OutputCheck| {
        let found = &check.comparison;
        !found.passed && found.unwritten == 0 && found.non_finite == 0
    };
    if !checks.iter().any(differs) {
        return Ok(());
    }
    match why(rig, program, oracle) {
        Ok(Some(told)) => Err(told),
        Err(lost) if lost.sticky => Err(lost),
        // The first finding stands, even if this check fails.
        _ => Ok(()),
    }
}

/// Returns why the first launch is wrong, if repeated launches show it.
fn why(
    rig: &mut Rig<'_, '_>,
    program: &mut LoadedProgram,
    oracle: &mut Oracle<'_, '_>,
) -> JobResult<Option<Failed>> {
    if let Some(told) = varying_output(rig, program, oracle, Shown::CANONICAL)? {
        return Ok(Some(told));
    }
    varying_reference(rig, oracle)
}

/// Returns a failure if a reference gives different results on the same inputs.
fn varying_reference(
    rig: &mut Rig<'_, '_>,
    oracle: &mut Oracle<'_, '_>,
) -> JobResult<Option<Failed>> {
    let Rig { executor, buffers, .. } = rig;
    let specs = buffers.iter().map(|buffer| buffer.spec).collect::<Vec<_>>();
    let shown = oracle.verdicts.against.shown;
    let output = oracle.aside(executor, |oracle| {
        let (against, checks) = (&oracle.verdicts.against, oracle.checks);
        let expect = || oracle.references.expect(executor, buffers, shown);
        varying_expectation(expect, against, checks, &specs)
    })?;
    Ok(output.map(|output| {
        let name = &specs[output].name;
        let text = format!(
            "the reference kernel leaves different results in `{name}` on the same inputs: it gives no \
             expected values; look for races in it, and for elements that it never writes"
        );
        Failed::new(FailureCode::Nondeterministic, text, Blame::Reference)
    }))
}

/// Returns the first output for which repeated runs of the references differ from the evidence
/// against the candidate.
fn varying_expectation(
    mut expect: impl FnMut() -> JobResult<Expectations>,
    against: &Evidence,
    checks: &Checks,
    specs: &[&BufferSpec],
) -> JobResult<Option<usize>> {
    if against.computed.is_empty() {
        return Ok(None);
    }
    let began = Instant::now();
    for run in 1..=REPEATS + 1 {
        let again = expect()?;
        let differs = |(index, before): &&(usize, Vec<u8>)| {
            let now = again.iter().find(|(other, _)| other == index);
            let (Some((_, now)), Some(tolerance)) = (now, checks.tolerances.of(*index)) else {
                return false;
            };
            // The order of these rows may vary between runs of a correct reference, too.
            !checks.is_arranged(*index) && differ(specs[*index], tolerance, (before, now.bytes()))
        };
        if let Some((index, _)) = against.computed.iter().find(differs) {
            return Ok(Some(*index));
        }
        let enough = if run < LEAST_RUNS.0 { LEAST_RUNS.1 } else { REPEAT_TIME };
        if began.elapsed() > enough {
            break;
        }
    }
    Ok(None)
}

fn nondeterministic(output: &str) -> Failed {
    let text = format!(
        "launches on the same inputs, with all of the kernel's state restored, leave different \
         results in `{output}`: look for races between threads and blocks, and for memory that is \
         read before it is written (`sanitize: true` finds both)"
    );
    Failed::reason(Reason::new(ReasonCode::Nondeterministic, text))
}

/// Returns a failure if equal launches differ in an output. Returns `None` if they agree, or if the
/// kernel's variables cannot be reset.
fn varying_output(
    rig: &mut Rig<'_, '_>,
    program: &mut LoadedProgram,
    oracle: &Oracle<'_, '_>,
    shown: Shown,
) -> JobResult<Option<Failed>> {
    let filling = Filling::number(rig.inputs.secret.bits());
    let Rig { executor, buffers, .. } = rig;
    let began = Instant::now();
    present(shown, buffers, executor.tools()?)?;
    let mut first: Option<Outputs> = None;
    for _ in 0..=REPEATS {
        let tools = executor.tools()?;
        if !program.forget(tools.stream).map_err(environment)? {
            return Ok(None);
        }
        restore_all(buffers, filling, tools).map_err(environment)?;
        program.launch(buffers, tools.stream).map_err(candidate)?;
        tools.stream.synchronize().map_err(candidate)?;
        let left = copy_outputs(executor, buffers)?;
        let Some(first) = &first else {
            first = Some(left);
            continue;
        };
        for ((index, one), (_, other)) in first.iter().zip(&left) {
            let checks = oracle.checks;
            let Some(tolerance) = checks.tolerances.of(*index) else { continue };
            if !checks.is_arranged(*index)
                && differ(buffers[*index].spec, tolerance, (one.bytes(), other.bytes()))
            {
                return Ok(Some(nondeterministic(&buffers[*index].spec.name)));
            }
        }
        if began.elapsed() > REPEAT_TIME {
            break;
        }
    }
    Ok(None)
}

/// Returns whether two results differ by more than the tolerance.
fn differ(spec: &BufferSpec, tolerance: &ResolvedTolerance, (a, b): (&[u8], &[u8])) -> bool {
    let (dtype, shape) = (spec.dtype, &spec.shape);
    // Results that are not finite must be compared even if the tolerance does not allow them.
    let tolerance = ResolvedTolerance { allow_non_finite: true, ..*tolerance };
    a != b && !warpgauge_validate::compare(dtype, shape, a, b, None, &tolerance).passed
}
