//! After the launches: outputs to the host, inputs unchanged, expectations met.
//!
//! Nothing the candidate left on the device reaches the expectation: its outputs are copied away
//! first, inputs are compared with fresh content, and a reference kernel gets every buffer anew.

use std::path::PathBuf;

use super::buffers::{JobBuffer, bytes_of};
use super::job::{Executor, Failed, JobResult, candidate, environment, load, prepare, timed};
use super::scrub::Residue;
use crate::contract::Role;
use crate::device::{MappedFile, Staging};
use crate::validate;
use crate::worker::protocol::{Blame, Job, OutputCheck, OutputSummary, ReferenceRun, RunOutcome};

/// Outputs of this size and up are hashed on all cores.
const PARALLEL_HASH_BYTES: usize = 256 << 10;

/// A copy of an output as the candidate left it.
struct Actual {
    buffer: usize,
    bytes: Staging,
}

/// Verifies everything the job asks for.
pub(super) fn run(
    executor: &Executor,
    job: &Job,
    buffers: &[JobBuffer<'_>],
    residue: &mut Residue,
    outcome: &mut RunOutcome,
) -> JobResult<()> {
    let RunOutcome { timings, outputs, checks, .. } = outcome;
    let actual = timed(&mut timings.d2h_ms, || {
        let actual = copy_outputs(executor, buffers)?;
        for output in &actual {
            outputs.push(summarise(job, output)?);
        }
        Ok(actual)
    })?;
    timed(&mut timings.execute_ms, || inputs_unchanged(executor, buffers))?;
    for (buffer, path) in &job.expected_files {
        let check = || compare_with_file(job, buffers, &actual, *buffer, path);
        checks.push(timed(&mut timings.d2h_ms, check)?);
    }
    for (index, reference) in job.references.iter().enumerate() {
        let run = || run_reference(executor, reference, index, buffers, residue);
        timed(&mut timings.execute_ms, run)?;
        for &buffer in &reference.outputs {
            let check = || compare_with_reference(executor, job, buffers, &actual, buffer);
            checks.push(timed(&mut timings.d2h_ms, check)?);
        }
    }
    Ok(())
}

fn copy_outputs(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<Vec<Actual>> {
    let written = buffers.iter().enumerate().filter(|(_, buffer)| buffer.spec.role != Role::Input);
    let copy = |(index, buffer): (usize, &JobBuffer<'_>)| {
        let mut bytes = executor.pinned.take(buffer.live.len());
        let stream = &executor.stream;
        buffer.live.copy_to_host(0, bytes.bytes_mut(), stream).map_err(candidate)?;
        Ok(Actual { buffer: index, bytes })
    };
    written.map(copy).collect()
}

fn summarise(job: &Job, output: &Actual) -> JobResult<OutputSummary> {
    let bytes = output.bytes.bytes();
    let mut hasher = blake3::Hasher::new();
    if bytes.len() >= PARALLEL_HASH_BYTES {
        hasher.update_rayon(bytes);
    } else {
        hasher.update(bytes);
    }
    let kept = job.keep_outputs.contains(&output.buffer);
    let file = kept.then(|| keep(job, output)).transpose()?;
    let blake3 = hasher.finalize().to_hex().to_string();
    Ok(OutputSummary { buffer: output.buffer, blake3, file })
}

fn keep(job: &Job, output: &Actual) -> JobResult<PathBuf> {
    let path = job.directory.join(format!("output_{}.bin", output.buffer));
    std::fs::write(&path, output.bytes.bytes()).map_err(|error| {
        let text = format!("write output {} to {}: {error}", output.buffer, path.display());
        Failed::new("output_unwritable", text, Blame::Environment)
    })?;
    Ok(path)
}

fn inputs_unchanged(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    for buffer in buffers.iter().filter(|buffer| buffer.spec.role == Role::Input) {
        if let Some(at) = buffer.first_change(tools).map_err(environment)? {
            let element = at / buffer.spec.dtype.size() as u64;
            let text = format!(
                "the kernel changed its input `{}`, first at element {element}; an argument that \
                 a kernel writes needs role `output` or `inout`",
                buffer.spec.name
            );
            return Err(Failed::new("input_modified", text, Blame::Candidate));
        }
    }
    Ok(())
}

/// Runs a reference kernel on fresh content; the buffers then hold what it left.
fn run_reference(
    executor: &Executor,
    reference: &ReferenceRun,
    index: usize,
    buffers: &[JobBuffer<'_>],
    residue: &mut Residue,
) -> JobResult<()> {
    let blamed = |error| Failed::device(error, Blame::Reference);
    let tools = executor.tools()?;
    for buffer in buffers {
        // Inputs were just compared with fresh content; only a reference kernel may have changed
        // them since.
        if index > 0 || buffer.spec.role != Role::Input {
            buffer.refill(tools).map_err(environment)?;
        }
    }
    let function = load(executor, &reference.launch, residue, Blame::Reference)?;
    let shape = super::job::shape_of(&reference.launch);
    let facts = function.facts(shape.block_threads(), shape.shared_bytes).map_err(blamed)?;
    residue.note_local_bytes(facts.local_bytes);
    let mut launch = prepare(function, &reference.launch, buffers).map_err(blamed)?;
    launch.launch(&executor.stream).map_err(blamed)?;
    executor.stream.synchronize().map_err(blamed)
}

fn compare_with_file(
    job: &Job,
    buffers: &[JobBuffer<'_>],
    actual: &[Actual],
    buffer: usize,
    path: &std::path::Path,
) -> JobResult<OutputCheck> {
    let spec = buffers.get(buffer).map(|buffer| buffer.spec).ok_or_else(|| unknown(buffer))?;
    let expected = MappedFile::open(path, bytes_of(spec)?).map_err(|error| {
        let text = format!("read the expected content of {}: {error}", spec.name);
        Failed::new("expected_unreadable", text, Blame::Environment)
    })?;
    compare(job, buffers, actual, buffer, expected.bytes())
}

fn compare_with_reference(
    executor: &Executor,
    job: &Job,
    buffers: &[JobBuffer<'_>],
    actual: &[Actual],
    buffer: usize,
) -> JobResult<OutputCheck> {
    let live = buffers.get(buffer).map(|buffer| &buffer.live).ok_or_else(|| unknown(buffer))?;
    let mut expected = executor.pinned.take(live.len());
    live.copy_to_host(0, expected.bytes_mut(), &executor.stream)
        .map_err(|error| Failed::device(error, Blame::Reference))?;
    compare(job, buffers, actual, buffer, expected.bytes())
}

fn compare(
    job: &Job,
    buffers: &[JobBuffer<'_>],
    actual: &[Actual],
    buffer: usize,
    expected: &[u8],
) -> JobResult<OutputCheck> {
    let tolerance = job.tolerances.iter().find(|(index, _)| *index == buffer);
    let actual = actual.iter().find(|output| output.buffer == buffer);
    let (Some((_, tolerance)), Some(actual), Some(compared)) =
        (tolerance, actual, buffers.get(buffer))
    else {
        return Err(unknown(buffer));
    };
    let spec = compared.spec;
    let poison = [validate::POISON_BYTE; 8];
    let poison = compared.is_poisoned().then(|| &poison[..spec.dtype.size()]);
    let bytes = actual.bytes.bytes();
    let comparison = validate::compare(spec.dtype, &spec.shape, bytes, expected, poison, tolerance);
    Ok(OutputCheck { buffer, comparison })
}

fn unknown(buffer: usize) -> Failed {
    let text = format!("buffer {buffer} is to be checked, but is no output with a tolerance");
    Failed::new("internal_error", text, Blame::Environment)
}
