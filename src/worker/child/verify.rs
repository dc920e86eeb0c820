//! After the launches: everything written that should be, and expectations met, for the inputs of
//! the contract and for others.
//!
//! Nothing that is expected reaches the candidate: its outputs were copied to the host, and a
//! reference kernel gets every buffer anew, once the candidate runs no more.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::arm::Arm;
use super::audit::{launch_reference, on_host, release};
use super::buffers::{JobBuffer, bytes_of, outputs};
use super::executor::Executor;
use super::intact;
use super::job::{Failed, JobResult, candidate, timed};
use super::scrub::Residue;
use super::secret::Secret;
use super::trials::{Audit, Inputs, Rig, Shown, present};
use crate::device::{MappedFile, Staging};
use crate::tensor::Dtype;
use crate::validate::{self, Comparison, POISON_BYTE, Reason, ReasonCode, SECOND_POISON_BYTE};
use crate::worker::protocol::{
    AuditFacts, Blame, DeviceKind, Job, OutputCheck, OutputSummary, ReferenceRun, RunOutcome,
};

/// Outputs of this size and up are hashed on all cores.
const PARALLEL_HASH_BYTES: usize = 256 << 10;

/// Outputs that are only hashed are copied in pieces of this size.
const HASHED_PIECE_BYTES: usize = 16 << 20;

/// Time after which no further timed launch is verified.
const AUDIT_TIME: Duration = Duration::from_millis(500);

/// The same on the emulated device, which is slow, and whose times count for nothing.
const EMULATED_AUDIT_TIME: Duration = Duration::from_secs(2);

/// The part of that time that launches of the warm-up get beside it.
const HISTORY_SHARE: u32 = 3;

/// What is expected, by buffer.
pub(super) type Expectations = Vec<(usize, Expected)>;

/// Outputs: buffer and content.
pub(super) type Outputs = Vec<(usize, Staging)>;

/// What the candidate left, for verification.
pub(super) struct Evidence {
    /// Outputs for the contract's own inputs, those that are checked or kept.
    pub canonical: Outputs,
    /// Outputs of a second launch, on other inputs where they may differ, and on other poison.
    pub second: Option<(Shown, Outputs)>,
    /// Outputs of the first launches of the warm-up, in which the kernel keeps its variables.
    pub history: Vec<Audit>,
    /// Outputs of timed launches.
    pub audits: Vec<Audit>,
}

/// Copies the outputs that are checked or kept to the host, and hashes the others on the way.
pub(super) fn capture(rig: &Rig<'_, '_>, job: &Job) -> JobResult<(Outputs, Vec<OutputSummary>)> {
    let (mut content, mut hashed) = (Vec::new(), Vec::new());
    for (index, buffer) in outputs(rig.buffers) {
        if job.tolerance(index).is_some() || job.keep_outputs.contains(&index) {
            content.push((index, copy_output(rig, buffer)?));
        } else {
            let blake3 = hash_output(rig, buffer)?;
            hashed.push(OutputSummary { buffer: index, blake3, file: None });
        }
    }
    Ok((content, hashed))
}

/// Copies all outputs to the host.
pub(super) fn copy_outputs(rig: &Rig<'_, '_>) -> JobResult<Outputs> {
    outputs(rig.buffers).map(|(index, buffer)| Ok((index, copy_output(rig, buffer)?))).collect()
}

fn copy_output(rig: &Rig<'_, '_>, buffer: &JobBuffer<'_>) -> JobResult<Staging> {
    let mut content = rig.executor.pinned.take(buffer.len());
    buffer.copy_to_host(content.bytes_mut(), &rig.executor.stream).map_err(candidate)?;
    Ok(content)
}

/// blake3 of an output, hex. One piece is hashed while the next is copied.
fn hash_output(rig: &Rig<'_, '_>, buffer: &JobBuffer<'_>) -> JobResult<String> {
    let executor = &*rig.executor;
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

/// Verifies everything the job asks for.
pub(super) fn run<'job>(
    executor: &Executor,
    job: &'job Job,
    buffers: &mut [JobBuffer<'job>],
    mut inputs: Inputs,
    evidence: Evidence,
    residue: &mut Residue,
    outcome: &mut RunOutcome,
) -> JobResult<()> {
    timed(&mut outcome.timings.d2h_ms, || {
        for output in &evidence.canonical {
            outcome.outputs.push(summarise(job, output)?);
        }
        outcome.outputs.sort_by_key(|output| output.buffer);
        Ok(())
    })?;
    let began = Instant::now();
    let verified = verify(executor, job, buffers, &mut inputs, &evidence, residue, outcome);
    evidence.history.into_iter().chain(evidence.audits).for_each(|audit| release(audit, residue));
    outcome.timings.verify_ms += began.elapsed().as_secs_f64() * 1e3;
    verified
}

fn verify<'job>(
    executor: &Executor,
    job: &'job Job,
    buffers: &mut [JobBuffer<'job>],
    inputs: &mut Inputs,
    evidence: &Evidence,
    residue: &mut Residue,
    outcome: &mut RunOutcome,
) -> JobResult<()> {
    intact::guards_intact(executor, buffers)?;
    intact::inputs_unchanged(executor, buffers)?;
    let mut oracle = Oracle { executor, job, buffers, residue, references: Vec::new() };
    let canonical = Shown::canonical(oracle.buffers);
    let expected = oracle.expect(&canonical)?;
    let mut right = true;
    for (buffer, expected) in &expected {
        let comparison = oracle.compare(*buffer, &evidence.canonical, expected, POISON_BYTE)?;
        right &= comparison.passed;
        outcome.checks.push(OutputCheck { buffer: *buffer, comparison });
    }
    // A kernel that is wrong for the contract's inputs needs no further witness.
    if right {
        let second = oracle.second(evidence, &expected, &outcome.checks)?;
        if job.lint {
            outcome.weaknesses = oracle.lint(&expected, second.as_ref())?;
        }
        oracle.later(evidence, &mut inputs.secret, outcome)?;
    }
    oracle.references.into_iter().for_each(|reference| reference.retire(residue));
    Ok(())
}

fn summarise(job: &Job, (buffer, content): &(usize, Staging)) -> JobResult<OutputSummary> {
    let bytes = content.bytes();
    let mut hasher = blake3::Hasher::new();
    update(&mut hasher, bytes);
    let kept = job.keep_outputs.contains(buffer);
    let file = kept.then(|| keep(job, *buffer, bytes)).transpose()?;
    Ok(OutputSummary { buffer: *buffer, blake3: hasher.finalize().to_hex().to_string(), file })
}

fn keep(job: &Job, buffer: usize, bytes: &[u8]) -> JobResult<PathBuf> {
    let path = job.directory.join(format!("output_{buffer}.bin"));
    std::fs::write(&path, bytes).map_err(|error| {
        let text = format!("write output {buffer} to {}: {error}", path.display());
        Failed::new("output_unwritable", text, Blame::Environment)
    })?;
    Ok(path)
}

/// What is expected, and where it comes from.
pub(super) struct Oracle<'a, 'job> {
    pub executor: &'a Executor,
    pub job: &'job Job,
    pub buffers: &'a mut [JobBuffer<'job>],
    residue: &'a mut Residue,
    /// Loaded at first use, in the job's order.
    pub(super) references: Vec<Arm>,
}

/// Expected content of a buffer.
pub(super) enum Expected {
    File(MappedFile),
    Computed(Staging),
}

impl Expected {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Expected::File(file) => file.bytes(),
            Expected::Computed(content) => content.bytes(),
        }
    }
}

impl Oracle<'_, '_> {
    /// What is expected for the inputs shown, by buffer.
    fn expect(&mut self, shown: &Shown) -> JobResult<Expectations> {
        let mut expected = Vec::new();
        for (buffer, path) in &self.job.expected_files {
            let spec = self.buffers.get(*buffer).map(|buffer| buffer.spec);
            let spec = spec.ok_or_else(|| unknown(*buffer))?;
            let file = MappedFile::open(path, bytes_of(spec)?).map_err(|error| {
                let text = format!("read the expected content of {}: {error}", spec.name);
                Failed::new("expected_unreadable", text, Blame::Environment)
            })?;
            expected.push((*buffer, Expected::File(file)));
        }
        let job = self.job;
        for (index, reference) in job.references.iter().enumerate() {
            self.run_reference(index, reference, shown)?;
            for &buffer in &reference.outputs {
                expected.push((buffer, Expected::Computed(self.computed(buffer)?)));
            }
        }
        Ok(expected)
    }

    /// Runs a reference kernel on what a launch of the candidate was shown.
    fn run_reference(
        &mut self,
        index: usize,
        reference: &ReferenceRun,
        shown: &Shown,
    ) -> JobResult<()> {
        let (executor, blame) = (self.executor, Blame::Reference);
        let blamed = |error| Failed::device(error, blame);
        present(shown, self.buffers, executor.tools()?)?;
        if index == self.references.len() {
            let arm = Arm::load(executor, &reference.launch, self.buffers, self.residue, blame)?;
            self.references.push(arm);
        }
        launch_reference(executor, &mut self.references[index], self.buffers)?;
        executor.stream.synchronize().map_err(blamed)
    }

    fn computed(&self, buffer: usize) -> JobResult<Staging> {
        let source = self.buffers.get(buffer).ok_or_else(|| unknown(buffer))?;
        let mut content = self.executor.pinned.take(source.len());
        source
            .copy_to_host(content.bytes_mut(), &self.executor.stream)
            .map_err(|error| Failed::device(error, Blame::Reference))?;
        Ok(content)
    }

    fn compare(
        &self,
        buffer: usize,
        actual: &Outputs,
        expected: &Expected,
        poison: u8,
    ) -> JobResult<Comparison> {
        let actual = actual.iter().find(|(index, _)| *index == buffer);
        let (Some(tolerance), Some((_, actual)), Some(compared)) =
            (self.job.tolerance(buffer), actual, self.buffers.get(buffer))
        else {
            return Err(unknown(buffer));
        };
        let spec = compared.spec;
        let poison = [poison; 8];
        let poison = compared.is_poisoned().then(|| &poison[..spec.dtype.size()]);
        let (actual, expected) = (actual.bytes(), expected.bytes());
        Ok(validate::compare(spec.dtype, &spec.shape, actual, expected, poison, tolerance))
    }

    /// The second launch is right too, and between them the two wrote every element. Returns what
    /// was expected of it, if it had other inputs.
    fn second(
        &mut self,
        evidence: &Evidence,
        canonical: &[(usize, Expected)],
        checks: &[OutputCheck],
    ) -> JobResult<Option<(Shown, Expectations)>> {
        let Some((shown, outputs)) = &evidence.second else { return Ok(None) };
        let other = *shown != Shown::canonical(self.buffers);
        let computed = if other { Some(self.expect(shown)?) } else { None };
        for (buffer, expected) in computed.as_deref().unwrap_or(canonical) {
            let comparison = self.compare(*buffer, outputs, expected, SECOND_POISON_BYTE)?;
            let first = checks.iter().find(|check| check.buffer == *buffer);
            let first = first.map(|check| &check.comparison).ok_or_else(|| unknown(*buffer))?;
            let launches = Launches { first, second: &comparison };
            let unwritten = match other {
                true => launches.unwritten(self.job.buffers[*buffer].dtype),
                false => self.kept_poison(*buffer, evidence, outputs),
            };
            if unwritten > 0 && self.buffers[*buffer].is_poisoned() {
                let text = format!(
                    "output `{}`: {unwritten} of {} elements were never written; a kernel must \
                     write every element in every launch, whatever share of mismatches is allowed, \
                     and what it is to keep needs role `inout`",
                    self.job.buffers[*buffer].name, comparison.elements
                );
                return Err(Failed::reason(Reason::new(ReasonCode::OutputUnwritten, text)));
            }
            let Some(text) = self.describe(*buffer, &comparison) else { continue };
            let (code, when) = if other {
                (ReasonCode::WrongForOtherSeeds, "right for the contract's seeds, but for others")
            } else {
                (ReasonCode::DependsOnHistory, "right at the first launch, but at the second")
            };
            return Err(Failed::reason(Reason::new(code, format!("{when} {text}"))));
        }
        Ok(computed.map(|computed| (shown.clone(), computed)))
    }

    /// Elements that kept the filling in both of two launches on equal inputs, beyond what chance
    /// can do where elements are single bytes.
    fn kept_poison(&self, index: usize, evidence: &Evidence, second: &Outputs) -> u64 {
        let content = |outputs: &Outputs| outputs.iter().position(|(other, _)| *other == index);
        let (Some(a), Some(b)) = (content(&evidence.canonical), content(second)) else { return 0 };
        let (a, b) = (evidence.canonical[a].1.bytes(), second[b].1.bytes());
        let size = self.job.buffers[index].dtype.size();
        let proof = validate::unwritten(a, POISON_BYTE, b, SECOND_POISON_BYTE, size);
        let ratio = self.job.tolerance(index).map_or(1.0, |t| t.required_matched_ratio);
        let by_chance = if size == 1 { (1.0 - ratio) * proof.elements as f64 } else { 0.0 };
        if proof.unwritten as f64 > by_chance { proof.unwritten } else { 0 }
    }

    /// Launches of the warm-up and timed launches were right too.
    fn later(
        &mut self,
        evidence: &Evidence,
        secret: &mut Secret,
        outcome: &mut RunOutcome,
    ) -> JobResult<()> {
        let time = match self.executor.device().kind {
            DeviceKind::Cuda => AUDIT_TIME,
            DeviceKind::Emulator => EMULATED_AUDIT_TIME,
        };
        let kind =
            (ReasonCode::DependsOnHistory, "right at first, but in launch", "of the warm-up");
        self.audit(&evidence.history, secret, time / HISTORY_SHARE, kind)?;
        let kind =
            (ReasonCode::OutputVariesBetweenTrials, "right when not timed, but in launch", "timed");
        let done = self.audit(&evidence.audits, secret, time, kind)?;
        outcome.audits = AuditFacts { done, skipped: evidence.audits.len() as u32 - done };
        Ok(())
    }

    /// Verifies what launches left, in random order, until `time` has passed. `kind`: code, and
    /// words before and after the launch's number. Returns how many were verified.
    fn audit(
        &mut self,
        audits: &[Audit],
        secret: &mut Secret,
        time: Duration,
        (code, before, after): (ReasonCode, &str, &str),
    ) -> JobResult<u32> {
        let (began, mut done) = (Instant::now(), 0);
        let mut left = audits.iter().collect::<Vec<_>>();
        let mut shared: Option<(Shown, Expectations)> = None;
        while !self.job.tolerances.is_empty() && !left.is_empty() {
            if done > 0 && began.elapsed() >= time {
                break;
            }
            let audit = left.swap_remove(secret.below(left.len()));
            if self.is_right_on_device(audit)? {
                done += 1;
                continue;
            }
            let outputs = on_host(self.executor, &audit.outputs)?;
            let expected = match shared.take() {
                Some((shown, expected)) if shown == audit.shown => expected,
                _ => self.expect(&audit.shown)?,
            };
            for (buffer, expected) in &expected {
                let comparison = self.compare(*buffer, &outputs, expected, POISON_BYTE)?;
                if let Some(text) = self.describe(*buffer, &comparison) {
                    let text = format!("{before} {} {after}: {text}", audit.trial);
                    return Err(Failed::reason(Reason::new(code, text)));
                }
            }
            done += 1;
            shared = Some((audit.shown.clone(), expected));
        }
        Ok(done)
    }

    fn describe(&self, buffer: usize, comparison: &Comparison) -> Option<String> {
        let name = self.buffers.get(buffer).map_or("?", |buffer| buffer.spec.name.as_str());
        validate::validation_error(name, comparison)
    }
}

/// How an output fared in two launches on different inputs, over different poison.
struct Launches<'a> {
    first: &'a Comparison,
    second: &'a Comparison,
}

impl Launches<'_> {
    /// Elements that are surely unwritten, whatever share of mismatches the contract allows.
    ///
    /// Inputs differ, so an element need not be unwritten in both launches, and equal positions
    /// prove nothing. What proves it are values: a wrong element that holds the second poison, in a
    /// type for which that is no value that a kernel computes (NaN of an unusual pattern, or next to
    /// the largest number); for wide integers, wrong elements that hold the poison of their launch
    /// in both. Narrow integers hold any value by chance: there the comparison alone judges.
    fn unwritten(&self, dtype: Dtype) -> u64 {
        match dtype.size() {
            _ if !self.second.passed => self.second.unwritten,
            2.. if dtype.is_float() => self.second.unwritten,
            4.. => self.first.unwritten.min(self.second.unwritten),
            _ => 0,
        }
    }
}

fn unknown(buffer: usize) -> Failed {
    let text = format!("buffer {buffer} is to be checked, but is no output with a tolerance");
    Failed::new("internal_error", text, Blame::Environment)
}
