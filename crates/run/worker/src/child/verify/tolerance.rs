//! Tolerances that are derived from the expected values, before the candidate is launched.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::expectations::ExpectedFile;
use super::oracle::unknown;
use super::references::ReferenceKernels;
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::content::Seed;
use crate::child::secret::Secret;
use crate::child::timing::inputs::{Shown, present};
use crate::protocol::{Blame, Checks, ReferenceRun};
use warpgauge_contract::{Role, Tolerance};
use warpgauge_tensor::Dtype;
use warpgauge_validate::{
    Arrangement, FusionTies, Nudge, NudgedRun, QUICK, ResolvedTolerance, is_doubtful, nudges,
    resolve, resolve_by_fusion, resolve_by_noise, sample, sampled_ranges,
};

/// Returns the checks with a tolerance for each output. Runs the references on the contract's
/// inputs, if a tolerance depends on their outputs. Afterwards the buffers hold the contract's
/// inputs.
pub(crate) fn settled<'a>(
    checks: &'a Checks,
    references: &mut ReferenceKernels<'_>,
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
    sanitize: bool,
) -> JobResult<Cow<'a, Checks>> {
    if checks.open.is_empty() {
        return Ok(Cow::Borrowed(checks));
    }
    let mut settled = checks.clone();
    for (buffer, path) in &checks.files {
        if checks.open.iter().any(|(open, _)| open == buffer) && !checks.is_arranged(*buffer) {
            let spec = buffers.get(*buffer).ok_or_else(|| unknown(*buffer))?.spec;
            let content = ExpectedFile::open(path, spec, (checks, Shown::CANONICAL))?;
            let sample = sample(content.bytes(), spec.dtype);
            let tolerance = resolve(given_for(checks, *buffer), spec.dtype, &sample);
            settle(&mut settled, *buffer, tolerance);
        }
    }
    executor.suspend_checks(sanitize).map_err(environment)?;
    let measured = by_cleared(&mut settled, references, executor, buffers)
        .and_then(|()| by_references(&mut settled, references, executor, buffers));
    executor.resume_checks(sanitize).map_err(environment)?;
    measured.map(|()| Cow::Owned(settled))
}

/// Determines the tolerances of outputs with more than one correct form, from the magnitude of
/// those expected values that matter. A reference need not write the others, and may write rows in
/// another order in each run.
fn by_cleared(
    checks: &mut Checks,
    references: &mut ReferenceKernels<'_>,
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
) -> JobResult<()> {
    let is_open = |buffer: &usize| checks.open.iter().any(|(open, _)| open == buffer);
    let outputs = checks.arrangements.iter().flat_map(Arrangement::outputs);
    let arranged: Vec<usize> = outputs.filter(is_open).collect();
    if arranged.is_empty() {
        return Ok(());
    }
    for (buffer, expected) in references.expect(executor, buffers, Shown::CANONICAL)? {
        if arranged.contains(&buffer) {
            let dtype = buffers[buffer].spec.dtype;
            let sample = sample(expected.bytes(), dtype);
            let tolerance = resolve(given_for(checks, buffer), dtype, &sample);
            settle(checks, buffer, tolerance);
        }
    }
    present(Shown::CANONICAL, buffers, executor.tools()?)
}

/// Determines the tolerances of outputs that references compute, from repeated runs with perturbed
/// inputs.
fn by_references(
    checks: &mut Checks,
    references: &mut ReferenceKernels<'_>,
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
) -> JobResult<()> {
    let all = checks.references.clone();
    for (index, reference) in all.iter().enumerate() {
        let mut open = open_outputs(checks, reference);
        let given = buffers.iter().filter(|buffer| buffer.spec.role != Role::Output);
        let types: Vec<Dtype> = given.map(|buffer| buffer.spec.dtype).collect();
        if nudges(types.iter().copied(), None).is_empty() {
            let is_float = |output: &usize| buffers[*output].spec.dtype.is_float();
            let (of_floats, whole): (_, Vec<usize>) = open.into_iter().partition(is_float);
            open = of_floats;
            by_fusion(checks, &whole, (references, index), executor, buffers)?;
        }
        if open.is_empty() {
            continue;
        }
        present(Shown::CANONICAL, buffers, executor.tools()?)?;
        let buffers = &*buffers;
        let mut run = |nudge| {
            references.run_nudged(executor, buffers, index, nudge)?;
            let sample = |output: &usize| sampled(executor, buffers, *output);
            open.iter().map(sample).collect::<JobResult<Vec<_>>>()
        };
        let began = Instant::now();
        let base = run(None)?;
        let is_quick = began.elapsed() < QUICK;
        let elements = base.iter().zip(&open);
        let elements = elements.filter_map(|(sample, output)| {
            let dtype = buffers[*output].spec.dtype;
            dtype.is_float().then(|| sample.len() / dtype.size())
        });
        let fewest = elements.min();
        let mut runs = Vec::new();
        for nudge in nudges(types.into_iter(), fewest.filter(|_| is_quick)) {
            runs.push((nudge, run(Some(nudge))?));
        }
        let resolved = |runs: &[(Nudge, Vec<Vec<u8>>)]| -> Vec<ResolvedTolerance> {
            let of_output = |(place, output): (usize, &usize)| {
                let runs = runs.iter().map(|(nudge, all)| NudgedRun::of(nudge, &all[place]));
                let (dtype, given) = (buffers[*output].spec.dtype, given_for(checks, *output));
                resolve_by_noise(given, dtype, &base[place], (&runs.collect::<Vec<_>>(), None))
            };
            open.iter().enumerate().map(of_output).collect()
        };
        let mut measured = resolved(&runs);
        let all = || open.iter().zip(&base).zip(&measured);
        if all()
            .any(|((output, base), found)| is_doubtful(buffers[*output].spec.dtype, base, found))
        {
            for _ in 0..if is_quick { Nudge::REPEATS } else { 1 } {
                runs.push((Nudge::NONE, run(Some(Nudge::NONE))?));
            }
            measured = resolved(&runs);
        }
        for (output, measured) in open.iter().zip(measured) {
            settle(checks, *output, measured);
        }
    }
    Ok(())
}

/// Maximum number of sets of inputs on which a reference runs with and without fused multiply-add,
/// and the time after which no further set is used. A set may have few ties, and a tolerance is
/// measured only once for a contract.
const FUSION_SETS: usize = 256;
const FUSION_TIME: Duration = Duration::from_millis(500);

/// Number of ties of an output that suffices to measure their share.
const ENOUGH_TIES: usize = 4;

/// Determines the tolerance of integers by means of a reference that is also compiled without fused
/// multiply-add. If there is no such form, the integers must match exactly. Ties are rare, so
/// several sets of random inputs are used.
fn by_fusion(
    checks: &mut Checks,
    whole: &[usize],
    (references, index): (&mut ReferenceKernels<'_>, usize),
    executor: &Executor,
    buffers: &mut [JobBuffer<'_>],
) -> JobResult<()> {
    if whole.is_empty() || !references.load_unfused(executor, buffers, index)? {
        return Ok(());
    }
    let sets = if buffers.iter().any(JobBuffer::is_random) { FUSION_SETS } else { 1 };
    let mut secret = Secret::new();
    let mut found = vec![FusionTies::NONE; whole.len()];
    let began = Instant::now();
    for set in 0..sets {
        let seed = if set == 0 { Seed::Contract } else { Seed::Secret(secret.bits()) };
        present(Shown { seed }, buffers, executor.tools()?)?;
        let buffers = &*buffers;
        let samples = || -> JobResult<Vec<Vec<u8>>> {
            whole.iter().map(|output| sampled(executor, buffers, *output)).collect()
        };
        references.run_nudged(executor, buffers, index, None)?;
        let fused = samples()?;
        references.run_unfused(executor, buffers)?;
        let forms = fused.into_iter().zip(samples()?);
        for ((output, ties), (fused, separate)) in whole.iter().zip(&mut found).zip(forms) {
            ties.add(buffers[*output].spec.dtype, &fused, &separate);
        }
        let is_enough = found.iter().all(|ties| ties.count() >= ENOUGH_TIES);
        if is_enough || began.elapsed() > FUSION_TIME {
            break;
        }
    }
    present(Shown::CANONICAL, buffers, executor.tools()?)?;
    for (output, ties) in whole.iter().zip(found) {
        let (dtype, bytes) = (buffers[*output].spec.dtype, buffers[*output].len());
        let elements = bytes / dtype.size() * dtype.parts() as usize;
        let tolerance = resolve_by_fusion(given_for(checks, *output), dtype, ties, elements);
        settle(checks, *output, tolerance);
    }
    Ok(())
}

/// Returns the outputs of a reference whose tolerance is not determined yet.
fn open_outputs(checks: &Checks, reference: &ReferenceRun) -> Vec<usize> {
    let is_open = |output: &&usize| checks.open.iter().any(|(open, _)| open == *output);
    reference
        .outputs
        .iter()
        .filter(is_open)
        .copied()
        .filter(|&output| !checks.is_arranged(output))
        .collect()
}

/// Returns the tolerance fields that the caller specifies for an output whose tolerance is not
/// determined yet.
fn given_for(checks: &Checks, buffer: usize) -> Option<&Tolerance> {
    checks.open.iter().find(|(open, _)| *open == buffer)?.1.as_ref()
}

/// Stores the tolerance that was determined for an output.
fn settle(checks: &mut Checks, buffer: usize, tolerance: ResolvedTolerance) {
    if let Some((_, own)) = checks.tolerances.0.iter_mut().find(|(checked, _)| *checked == buffer) {
        *own = tolerance;
    }
}

/// Returns the sample of an output's elements that tolerances are derived from.
fn sampled(executor: &Executor, buffers: &[JobBuffer<'_>], output: usize) -> JobResult<Vec<u8>> {
    let buffer = buffers.get(output).ok_or_else(|| unknown(output))?;
    let mut sample = Vec::new();
    for piece in sampled_ranges(buffer.len(), buffer.spec.dtype) {
        let start = sample.len();
        sample.resize(start + piece.len(), 0);
        buffer
            .copy_part_to_host(piece.start, &mut sample[start..], &executor.stream)
            .map_err(|error| Failed::device(error, Blame::Reference))?;
    }
    Ok(sample)
}
