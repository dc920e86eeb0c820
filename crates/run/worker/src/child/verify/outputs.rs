//! A launch's outputs: copied to the host, hashed, and stored for the caller.

use std::path::{Path, PathBuf};

use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, candidate};
use crate::child::memory::buffers::{JobBuffer, outputs};
use crate::protocol::{Blame, EvaluatePlan, OutputSummary};
use warpgauge_device::Staging;
use warpgauge_model::gate_page::MOST_RANGES;
use warpgauge_model::{DeviceKind, FailureCode};

/// Returns the hashes of all outputs, computed on the device. Returns none on the emulated device,
/// where the host is faster.
pub(crate) fn hash_on_device(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
) -> JobResult<Vec<OutputSummary>> {
    if executor.device().kind != DeviceKind::Cuda {
        return Ok(Vec::new());
    }
    let support = executor.tools()?.support;
    let all = outputs(buffers).collect::<Vec<_>>();
    let mut summaries = Vec::with_capacity(all.len());
    for some in all.chunks(MOST_RANGES) {
        let ranges = some.iter().map(|(_, buffer)| (buffer.address(), buffer.len() as u64));
        let ranges = ranges.collect::<Vec<_>>();
        let digests = executor.with_locks(support, |locks| locks.digests(&ranges));
        summaries.extend(some.iter().zip(digests.map_err(candidate)?).map(
            |(&(buffer, _), digest)| {
                let blake3 = blake3::Hash::from_bytes(digest).to_hex().to_string();
                OutputSummary { buffer, blake3, file: None }
            },
        ));
    }
    Ok(summaries)
}

/// Minimum size of outputs that are hashed on all cores, bytes.
const PARALLEL_HASH_BYTES: usize = 256 << 10;

/// Size of the pieces in which outputs that are only hashed are copied, bytes.
const HASHED_PIECE_BYTES: usize = 16 << 20;

/// Index of each output's buffer, and its content.
pub(crate) type Outputs = Vec<(usize, Staging)>;

/// Copies the outputs that are checked or stored to the host. Adds the others to `hashed`, if the
/// device has not hashed them; the host hashes them while it copies.
pub(crate) fn capture(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
    plan: &EvaluatePlan,
    hashed: &mut Vec<OutputSummary>,
) -> JobResult<Outputs> {
    let mut content = Vec::new();
    for (index, buffer) in outputs(buffers) {
        if plan.checks.tolerances.of(index).is_some() || plan.keep_outputs.contains(&index) {
            content.push((index, copy_output(executor, buffer)?));
        } else if hashed.iter().all(|output| output.buffer != index) {
            let blake3 = hash_output(executor, buffer)?;
            hashed.push(OutputSummary { buffer: index, blake3, file: None });
        }
    }
    Ok(content)
}

/// Copies all outputs to the host.
pub(crate) fn copy_outputs(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<Outputs> {
    outputs(buffers).map(|(index, buffer)| Ok((index, copy_output(executor, buffer)?))).collect()
}

fn copy_output(executor: &Executor, buffer: &JobBuffer<'_>) -> JobResult<Staging> {
    let mut content = executor.pinned.take(buffer.len());
    buffer.copy_to_host(content.bytes_mut(), &executor.stream).map_err(candidate)?;
    Ok(content)
}

/// Returns the BLAKE3 hash of an output in hexadecimal. One piece is hashed while the next is
/// copied.
fn hash_output(executor: &Executor, buffer: &JobBuffer<'_>) -> JobResult<String> {
    let copy = |at: usize| {
        let bytes = HASHED_PIECE_BYTES.min(buffer.len() - at);
        buffer.start_copy_part_to_host(at, executor.pinned.take(bytes), &executor.stream)
    };
    let mut hasher = blake3::Hasher::new();
    let mut copying = (buffer.len() > 0).then(|| copy(0)).transpose().map_err(candidate)?;
    for next in (HASHED_PIECE_BYTES..).step_by(HASHED_PIECE_BYTES) {
        let Some(copy_before) = copying.take() else { break };
        let piece = copy_before.finish().map_err(candidate)?;
        if next < buffer.len() {
            copying = Some(copy(next).map_err(candidate)?);
        }
        update(&mut hasher, piece.bytes());
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn update(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    if bytes.len() >= PARALLEL_HASH_BYTES {
        hasher.update_rayon(bytes);
    } else {
        hasher.update(bytes);
    }
}

fn hash(bytes: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    update(&mut hasher, bytes);
    hasher.finalize().to_hex().to_string()
}

/// Returns the summaries of all outputs, by buffer, and stores the content of those that the plan
/// keeps. `hashed` contains the outputs whose hashes are known; `outputs` has content.
pub(crate) fn summarise_all(
    directory: &Path,
    plan: &EvaluatePlan,
    outputs: &[(usize, &[u8])],
    hashed: &[OutputSummary],
) -> JobResult<Vec<OutputSummary>> {
    let mut all = hashed.to_vec();
    for &(buffer, bytes) in outputs {
        let kept = plan.keep_outputs.contains(&buffer);
        let file = kept.then(|| keep(directory, buffer, bytes)).transpose()?;
        match all.iter_mut().find(|output| output.buffer == buffer) {
            Some(known) => known.file = file,
            None => all.push(OutputSummary { buffer, blake3: hash(bytes), file }),
        }
    }
    all.sort_by_key(|output| output.buffer);
    Ok(all)
}

fn keep(directory: &Path, buffer: usize, bytes: &[u8]) -> JobResult<PathBuf> {
    let path = directory.join(format!("output_{buffer}.bin"));
    std::fs::write(&path, bytes).map_err(|error| {
        let text = format!("cannot write output {buffer} to {}: {error}", path.display());
        Failed::new(FailureCode::OutputUnwritable, text, Blame::Environment)
    })?;
    Ok(path)
}
