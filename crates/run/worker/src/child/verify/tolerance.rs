//! Tolerances that follow from the expectation, determined before the candidate is launched.

use std::borrow::Cow;
use std::time::Instant;

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
    Nudge, NudgedRun, QUICK, ResolvedTolerance, is_doubtful, nudges, resolve, resolve_by_fusion,
    resolve_by_noise, sample, sampled_ranges,
};

/// Returns the checks with a tolerance for each output. Runs the references on the contract's inputs, if a
/// tolerance follows from their outputs. Afterwards the buffers hold the contract's inputs.
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
        if checks.open.iter().any(|(open, _)| open == buffer) {
            let spec = buffers.get(*buffer).ok_or_else(|| unknown(*buffer))?.spec;
            let content = ExpectedFile::open(path, spec, (checks, Shown::CANONICAL))?;
            let sample = sample(content.bytes(), spec.dtype);
            settle(&mut settled, *buffer, &|given| resolve(given, spec.dtype, &sample));
        }
    }
    executor.suspend_checks(sanitize).map_err(environment)?;
    let measured = by_references(&mut settled, references, executor, buffers);
    executor.resume_checks(sanitize).map_err(environment)?;
    measured.map(|()| Cow::Owned(settled))
}

/// Determines the tolerances of outputs that references compute.
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
        let given = |output: usize| {
            let found = checks.open.iter().find(|(open, _)| *open == output);
            found.and_then(|(_, given)| given.clone())
        };
        let resolved = |runs: &[(Nudge, Vec<Vec<u8>>)]| -> Vec<ResolvedTolerance> {
            let of_output = |(place, output): (usize, &usize)| {
                let runs = runs.iter().map(|(nudge, all)| NudgedRun::of(nudge, &all[place]));
                let dtype = buffers[*output].spec.dtype;
                let given = given(*output);
                resolve_by_noise(given.as_ref(), dtype, &base[place], &runs.collect::<Vec<_>>())
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
            settle(checks, *output, &|_| measured);
        }
    }
    Ok(())
}

/// Sets of inputs on which a reference runs with and without fused multiply-add.
const FUSION_SETS: usize = 16;

/// Determines the tolerance of integers from a reference that is also compiled without fused multiply-add.
/// Without such a form they stay exact. Ties are rare, so several sets of random inputs are used.
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
    let mut samples = vec![[Vec::new(), Vec::new()]; whole.len()];
    let began = Instant::now();
    for set in 0..sets {
        let seed = if set == 0 { Seed::Contract } else { Seed::Secret(secret.bits()) };
        present(Shown { seed }, buffers, executor.tools()?)?;
        let buffers = &*buffers;
        let mut add = |form: usize| {
            whole.iter().zip(&mut samples).try_for_each(|(output, samples)| {
                samples[form].extend(sampled(executor, buffers, *output)?);
                Ok(())
            })
        };
        references.run_nudged(executor, buffers, index, None)?;
        add(0)?;
        references.run_unfused(executor, buffers)?;
        add(1)?;
        if began.elapsed() > QUICK / 4 {
            break;
        }
    }
    present(Shown::CANONICAL, buffers, executor.tools()?)?;
    for (output, samples) in whole.iter().zip(&samples) {
        let dtype = buffers[*output].spec.dtype;
        let samples = [&samples[0][..], &samples[1]];
        settle(checks, *output, &|given| resolve_by_fusion(given, dtype, samples));
    }
    Ok(())
}

/// Returns the outputs of a reference whose tolerance is open.
fn open_outputs(checks: &Checks, reference: &ReferenceRun) -> Vec<usize> {
    let is_open = |output: &&usize| checks.open.iter().any(|(open, _)| open == *output);
    reference.outputs.iter().filter(is_open).copied().collect()
}

/// Stores the tolerance of an output, computed from the fields that the caller gives.
fn settle(
    checks: &mut Checks,
    buffer: usize,
    resolved: &dyn Fn(Option<&Tolerance>) -> ResolvedTolerance,
) {
    let open = checks.open.iter().find(|(open, _)| *open == buffer);
    let tolerance = checks.tolerances.0.iter_mut().find(|(checked, _)| *checked == buffer);
    if let (Some((_, given)), Some((_, tolerance))) = (open, tolerance) {
        *tolerance = resolved(given.as_ref());
    }
}

/// Returns the sample of an output.
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
