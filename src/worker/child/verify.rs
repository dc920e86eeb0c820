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
use crate::validate::{self, Comparison, Filling, Reason, ReasonCode, Trace};
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
    /// What they held before.
    pub first: Filling,
    /// Outputs of a second launch, on other inputs where they may differ, and what they held before.
    pub second: Option<(Shown, Filling, Outputs)>,
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
    let mut oracle =
        Oracle { executor, job, buffers, residue, references: Vec::new(), traces: Vec::new() };
    let canonical = Shown::canonical(oracle.buffers);
    let expected = oracle.expect(&canonical)?;
    let mut right = true;
    for (buffer, expected) in &expected {
        let (comparison, trace) =
            oracle.compare(*buffer, &evidence.canonical, expected, evidence.first)?;
        right &= comparison.passed;
        if comparison.passed {
            oracle.note(*buffer, &trace, &comparison, "the first launch")?;
        } else {
            oracle.traces.push((*buffer, trace));
        }
        outcome.checks.push(OutputCheck { buffer: *buffer, comparison });
    }
    // A kernel that is wrong for the contract's inputs needs no further witness.
    if right {
        let second = oracle.second(evidence, &expected)?;
        if job.lint {
            outcome.weaknesses = oracle.lint(&expected, second.as_ref())?;
        }
        oracle.later(evidence, &mut inputs.secret, outcome)?;
    } else {
        oracle.settle(evidence, &expected, &mut outcome.checks)?;
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
    /// What launches left of their fillings, by buffer.
    traces: Vec<(usize, Trace)>,
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
        filling: Filling,
    ) -> JobResult<(Comparison, Trace)> {
        let actual = actual.iter().find(|(index, _)| *index == buffer);
        let (Some(tolerance), Some((_, actual)), Some(compared)) =
            (self.job.tolerance(buffer), actual, self.buffers.get(buffer))
        else {
            return Err(unknown(buffer));
        };
        let spec = compared.spec;
        let filling = compared.is_poisoned().then_some(filling);
        let (actual, expected) = (actual.bytes(), expected.bytes());
        let (dtype, shape) = (spec.dtype, &spec.shape);
        Ok(validate::compare_traced(dtype, shape, actual, expected, filling, tolerance))
    }

    /// The second launch is right too. Returns what was expected of it, if it had other inputs.
    fn second(
        &mut self,
        evidence: &Evidence,
        canonical: &[(usize, Expected)],
    ) -> JobResult<Option<(Shown, Expectations)>> {
        let Some((shown, filling, outputs)) = &evidence.second else { return Ok(None) };
        let other = *shown != Shown::canonical(self.buffers);
        let computed = if other { Some(self.expect(shown)?) } else { None };
        for (buffer, expected) in computed.as_deref().unwrap_or(canonical) {
            let (comparison, trace) = self.compare(*buffer, outputs, expected, *filling)?;
            self.note(*buffer, &trace, &comparison, "the second launch")?;
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

    /// Whether elements that are wrong were never written, where one launch cannot tell: the second
    /// had another filling.
    fn settle(
        &mut self,
        evidence: &Evidence,
        canonical: &[(usize, Expected)],
        checks: &mut [OutputCheck],
    ) -> JobResult<()> {
        let Some((shown, filling, outputs)) = &evidence.second else { return Ok(()) };
        let open = |traces: &[(usize, Trace)], check: &OutputCheck| {
            let comparison = &check.comparison;
            let trace = traces.iter().find(|(buffer, _)| *buffer == check.buffer);
            !comparison.passed
                && comparison.unwritten == 0
                && trace.is_some_and(|(_, trace)| trace.held > 0)
        };
        if !checks.iter().any(|check| open(&self.traces, check)) {
            return Ok(());
        }
        let other = *shown != Shown::canonical(self.buffers);
        let computed = if other { Some(self.expect(shown)?) } else { None };
        for (buffer, expected) in computed.as_deref().unwrap_or(canonical) {
            let Some(check) = checks.iter_mut().find(|check| check.buffer == *buffer) else {
                continue;
            };
            let found = self.traces.iter().find(|(index, _)| index == buffer).map(|found| found.1);
            let Some(first) = found.filter(|_| open(&self.traces, check)) else { continue };
            let (_, mut both) = self.compare(*buffer, outputs, expected, *filling)?;
            both.add(&first);
            if both.is_reason() {
                check.comparison.unwritten = first.held;
            }
        }
        Ok(())
    }

    /// Adds what a launch left of its filling. Unwritten elements count whatever share of mismatches
    /// is allowed.
    fn note(
        &mut self,
        buffer: usize,
        trace: &Trace,
        comparison: &Comparison,
        launch: &str,
    ) -> JobResult<()> {
        let known = self.traces.iter_mut().find(|(index, _)| *index == buffer);
        let all = match known {
            Some((_, all)) => {
                all.add(trace);
                *all
            }
            None => {
                self.traces.push((buffer, *trace));
                *trace
            }
        };
        if trace.held > 0 && all.is_proof() {
            let name = &self.job.buffers[buffer].name;
            return Err(unwritten(name, trace, comparison, launch));
        }
        Ok(())
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
                let (comparison, trace) =
                    self.compare(*buffer, &outputs, expected, audit.filling)?;
                let launch = format!("launch {} {after}", audit.trial);
                self.note(*buffer, &trace, &comparison, &launch)?;
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

/// That elements of an output were never written in a launch.
pub(super) fn unwritten(
    output: &str,
    trace: &Trace,
    comparison: &Comparison,
    launch: &str,
) -> Failed {
    let text = format!(
        "output `{output}`: {} of {} elements were never written ({launch}); a kernel must write \
         every element in every launch, whatever share of mismatches is allowed, and what it is to \
         keep needs role `inout`",
        trace.held, comparison.elements
    );
    Failed::reason(Reason::new(ReasonCode::OutputUnwritten, text))
}

fn unknown(buffer: usize) -> Failed {
    let text = format!("buffer {buffer} is to be checked, but is no output with a tolerance");
    Failed::new("internal_error", text, Blame::Environment)
}
