//! After the launches: nothing written that should not be, everything written that should be, and
//! expectations met, for the inputs of the contract and for others.
//!
//! Nothing that is expected reaches the candidate: its outputs were copied to the host, and a
//! reference kernel gets every buffer anew, once the candidate runs no more.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::arm::Arm;
use super::buffers::{JobBuffer, bytes_of, is_random};
use super::executor::Executor;
use super::job::{Failed, JobResult, candidate, environment, timed};
use super::scrub::Residue;
use super::trials::{Audit, Inputs, Kept, Rig, Shown, present};
use crate::contract::Role;
use crate::device::support::Near;
use crate::device::{MappedFile, Staging};
use crate::validate::{
    self, Comparison, Contents, OutputFacts, POISON_BYTE, SECOND_POISON_BYTE, Weakness,
};
use crate::worker::protocol::{
    AuditFacts, Blame, Job, OutputCheck, OutputSummary, ReferenceRun, RunOutcome,
};

/// Outputs of this size and up are hashed on all cores.
const PARALLEL_HASH_BYTES: usize = 256 << 10;

/// Time that reference kernels may take for audits beyond the first, in all.
const AUDIT_TIME: Duration = Duration::from_millis(500);

/// Inputs above this size are not compared with outputs when the contract is linted, bytes.
const LINT_INPUT_BYTES: usize = 16 << 20;

/// What is expected, by buffer.
type Expectations = Vec<(usize, Expected)>;

/// Outputs: buffer and content.
pub(super) type Outputs = Vec<(usize, Staging)>;

/// What the candidate left, for verification.
pub(super) struct Evidence {
    /// Outputs for the contract's own inputs.
    pub canonical: Outputs,
    /// Outputs of a second launch, on other inputs where they may differ, and on other poison.
    pub second: Option<(Shown, Outputs)>,
    /// Outputs of timed launches.
    pub audits: Vec<Audit>,
}

/// Copies all outputs to the host.
pub(super) fn copy_outputs(rig: &Rig<'_, '_>) -> JobResult<Outputs> {
    let written = rig.buffers.iter().enumerate().filter(|(_, b)| b.spec.role != Role::Input);
    let copy = |(index, buffer): (usize, &JobBuffer<'_>)| {
        let mut content = rig.executor.pinned.take(buffer.len());
        buffer.copy_to_host(content.bytes_mut(), &rig.executor.stream).map_err(candidate)?;
        Ok((index, content))
    };
    written.map(copy).collect()
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
        Ok(())
    })?;
    let began = Instant::now();
    let verified = verify(executor, job, buffers, &mut inputs, evidence, residue, outcome);
    outcome.timings.verify_ms += began.elapsed().as_secs_f64() * 1e3;
    verified
}

fn verify<'job>(
    executor: &Executor,
    job: &'job Job,
    buffers: &mut [JobBuffer<'job>],
    inputs: &mut Inputs,
    evidence: Evidence,
    residue: &mut Residue,
    outcome: &mut RunOutcome,
) -> JobResult<()> {
    guards_intact(executor, buffers)?;
    inputs_unchanged(executor, buffers)?;
    let mut oracle = Oracle { executor, job, buffers, residue, references: Vec::new() };
    let canonical = Shown::canonical(oracle.buffers);
    let (expected, each) = oracle.expect(&canonical)?;
    let mut right = true;
    for (buffer, expected) in &expected {
        let comparison = oracle.compare(*buffer, &evidence.canonical, expected, POISON_BYTE)?;
        right &= comparison.passed;
        outcome.checks.push(OutputCheck { buffer: *buffer, comparison });
    }
    // A kernel that is wrong for the contract's inputs needs no further witness.
    if right {
        oracle.all_written(&evidence)?;
        let second = oracle.second(&evidence, &expected)?;
        if job.lint {
            outcome.weaknesses = oracle.lint(&expected, second.as_ref())?;
        }
        oracle.audits(evidence.audits, each, inputs, outcome)?;
    }
    oracle.references.into_iter().for_each(|reference| reference.retire(residue));
    Ok(())
}

fn summarise(job: &Job, (buffer, content): &(usize, Staging)) -> JobResult<OutputSummary> {
    let bytes = content.bytes();
    let mut hasher = blake3::Hasher::new();
    if bytes.len() >= PARALLEL_HASH_BYTES {
        hasher.update_rayon(bytes);
    } else {
        hasher.update(bytes);
    }
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

/// Nothing was written before or after a buffer.
pub(super) fn guards_intact(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    let guarded = buffers.iter().filter_map(|buffer| Some((buffer, buffer.guard_bands()?)));
    let (owners, bands): (Vec<_>, Vec<_>) = guarded.unzip();
    let Some(value) = owners.first().map(|buffer| buffer.guard_byte()) else { return Ok(()) };
    let bands = bands.concat();
    let found = tools.support.first_other(&bands, value, tools.stream).map_err(environment)?;
    for (pair, buffer) in found.chunks(2).zip(owners) {
        let name = &buffer.spec.name;
        let place = match *pair {
            [_, Some(at)] => format!("{at} bytes after the end of `{name}`"),
            [Some(at), _] => {
                let distance = buffer.guard_bands().map_or(0, |[before, _]| before.1 as u64) - at;
                format!("{distance} bytes before the start of `{name}`")
            }
            _ => continue,
        };
        let text = format!(
            "the kernel wrote outside its buffers, first {place}; check its bounds against the \
             shapes of the contract, or run it with `sanitize: true` on the emulator"
        );
        return Err(Failed::new("guard_band_written", text, Blame::Candidate));
    }
    Ok(())
}

fn inputs_unchanged(executor: &Executor, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
    let tools = executor.tools()?;
    for buffer in buffers.iter().filter(|buffer| buffer.spec.role == Role::Input) {
        if let Some(at) = buffer.first_change(tools).map_err(environment)? {
            let place = buffer.element_of(at);
            let place =
                place.map_or(String::new(), |element| format!(", first at element {element}"));
            let text = format!(
                "the kernel changed its input `{}`{place}; an argument that a kernel writes needs \
                 role `output` or `inout`",
                buffer.spec.name
            );
            return Err(Failed::new("input_modified", text, Blame::Candidate));
        }
    }
    Ok(())
}

/// What is expected, and where it comes from.
struct Oracle<'a, 'job> {
    executor: &'a Executor,
    job: &'job Job,
    buffers: &'a mut [JobBuffer<'job>],
    residue: &'a mut Residue,
    /// Loaded at first use, in the job's order.
    references: Vec<Arm>,
}

/// Expected content of a buffer.
enum Expected {
    File(MappedFile),
    Computed(Staging),
}

impl Expected {
    fn bytes(&self) -> &[u8] {
        match self {
            Expected::File(file) => file.bytes(),
            Expected::Computed(content) => content.bytes(),
        }
    }
}

impl Oracle<'_, '_> {
    /// What is expected for the inputs shown, by buffer, and how long it took to compute.
    fn expect(&mut self, shown: &Shown) -> JobResult<(Expectations, Duration)> {
        let began = Instant::now();
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
        Ok((expected, began.elapsed()))
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
        let tolerance = self.job.tolerances.iter().find(|(index, _)| *index == buffer);
        let actual = actual.iter().find(|(index, _)| *index == buffer);
        let (Some((_, tolerance)), Some((_, actual)), Some(compared)) =
            (tolerance, actual, self.buffers.get(buffer))
        else {
            return Err(unknown(buffer));
        };
        let spec = compared.spec;
        let poison = [poison; 8];
        let poison = compared.is_poisoned().then(|| &poison[..spec.dtype.size()]);
        let (actual, expected) = (actual.bytes(), expected.bytes());
        Ok(validate::compare(spec.dtype, &spec.shape, actual, expected, poison, tolerance))
    }

    /// Every element of a checked output was written: two launches on different poison left none
    /// of it.
    fn all_written(&self, evidence: &Evidence) -> JobResult<()> {
        let Some((_, second)) = &evidence.second else { return Ok(()) };
        for (index, tolerance) in &self.job.tolerances {
            let Some(buffer) = self.buffers.get(*index).filter(|b| b.is_poisoned()) else {
                continue;
            };
            let content = |outputs: &Outputs| outputs.iter().position(|(other, _)| other == index);
            let (Some(a), Some(b)) = (content(&evidence.canonical), content(second)) else {
                continue;
            };
            let spec = buffer.spec;
            let (a, b) = (evidence.canonical[a].1.bytes(), second[b].1.bytes());
            let size = spec.dtype.size();
            let proof = validate::unwritten(a, POISON_BYTE, b, SECOND_POISON_BYTE, size);
            let elements = (a.len() / size.max(1)) as f64;
            let allowed = (1.0 - tolerance.required_matched_ratio) * elements;
            if let Some(first) = proof.first.filter(|_| proof.unwritten as f64 > allowed) {
                let text = format!(
                    "output `{}`: {} of {elements} elements were never written, first element \
                     {first}; what they held before the launch happens to be what is expected",
                    spec.name, proof.unwritten
                );
                return Err(Failed::new("output_unwritten", text, Blame::Candidate));
            }
        }
        Ok(())
    }

    /// The second launch is right too. Returns what was expected of it, if it had other inputs.
    fn second(
        &mut self,
        evidence: &Evidence,
        canonical: &[(usize, Expected)],
    ) -> JobResult<Option<(Shown, Expectations)>> {
        let Some((shown, outputs)) = &evidence.second else { return Ok(None) };
        let other = *shown != Shown::canonical(self.buffers);
        let computed = if other { Some(self.expect(shown)?.0) } else { None };
        for (buffer, expected) in computed.as_deref().unwrap_or(canonical) {
            let comparison = self.compare(*buffer, outputs, expected, SECOND_POISON_BYTE)?;
            let Some(text) = self.describe(*buffer, &comparison) else { continue };
            let (code, when) = if other {
                ("wrong_for_other_seeds", "right for the contract's seeds, but for others")
            } else {
                ("output_varies_between_trials", "right at the first launch, but at the second")
            };
            return Err(Failed::new(code, format!("{when} {text}"), Blame::Candidate));
        }
        Ok(computed.map(|computed| (shown.clone(), computed)))
    }

    /// What would pass without doing the work.
    fn lint(
        &mut self,
        canonical: &[(usize, Expected)],
        second: Option<&(Shown, Expectations)>,
    ) -> JobResult<Vec<Weakness>> {
        let mut shown = vec![Shown::canonical(self.buffers)];
        shown.extend(second.map(|(shown, _)| shown.clone()));
        let given = self.given(&shown)?;
        let mut weaknesses = Vec::new();
        for (index, expected) in canonical {
            let tolerance = self.job.tolerances.iter().find(|(other, _)| other == index);
            let Some((_, tolerance)) = tolerance else { continue };
            let other = second.and_then(|(_, all)| all.iter().find(|(other, _)| other == index));
            let mut seeds = vec![expected.bytes()];
            seeds.extend(other.map(|(_, expected)| expected.bytes()));
            let inputs = given.iter().map(|(input, contents)| {
                (input, contents.iter().map(Staging::bytes).collect::<Vec<_>>())
            });
            let inputs = inputs.collect::<Vec<_>>();
            let inputs = inputs.iter().map(|(input, seeds)| contents(self.job, **input, seeds));
            weaknesses.extend(validate::lint_output(&OutputFacts {
                expected: contents(self.job, *index, &seeds),
                tolerance,
                seeded: self.buffers.iter().any(|b| is_random(&b.spec.content)),
                inputs: &inputs.collect::<Vec<_>>(),
            }));
        }
        Ok(weaknesses)
    }

    /// What the kernel was given in each launch shown, as far as it is not too much to look at.
    fn given(&mut self, shown: &[Shown]) -> JobResult<Vec<(usize, Vec<Staging>)>> {
        let read = |b: &JobBuffer<'_>| b.spec.role != Role::Output && b.len() <= LINT_INPUT_BYTES;
        let read = self.buffers.iter().enumerate().filter(|(_, buffer)| read(buffer));
        let mut given = read.map(|(index, _)| (index, Vec::new())).collect::<Vec<_>>();
        for shown in shown {
            present(shown, self.buffers, self.executor.tools()?)?;
            for (index, contents) in &mut given {
                let buffer = &self.buffers[*index];
                let mut content = self.executor.pinned.take(buffer.len());
                let copied = buffer.copy_window_to_host(content.bytes_mut(), &self.executor.stream);
                copied.map_err(environment)?;
                contents.push(content);
            }
        }
        Ok(given)
    }

    /// Timed launches were right too.
    fn audits(
        &mut self,
        audits: Vec<Audit>,
        each: Duration,
        inputs: &mut Inputs,
        outcome: &mut RunOutcome,
    ) -> JobResult<()> {
        let affordable = (AUDIT_TIME.as_secs_f64() / each.as_secs_f64().max(1e-9)) as usize;
        let chosen = inputs.secret.choose(affordable.max(1), audits.len());
        outcome.audits = AuditFacts { done: 0, skipped: (audits.len() - chosen.len()) as u32 };
        if self.job.tolerances.is_empty() {
            return Ok(());
        }
        let mut shared: Option<(Shown, Expectations)> = None;
        for (index, audit) in audits.into_iter().enumerate() {
            if chosen.binary_search(&index).is_ok() {
                outcome.audits.done += 1;
                if !self.is_right_on_device(&audit)? {
                    self.audit(&audit, &mut shared)?;
                }
            }
            release(audit, self.residue);
        }
        Ok(())
    }

    /// Whether a timed launch left what the references leave for its inputs, as far as that can be
    /// told on the device and without writing the inputs anew. `false` says nothing: a reference
    /// may have changed an input, for one.
    fn is_right_on_device(&mut self, audit: &Audit) -> JobResult<bool> {
        let on_device = audit.outputs.iter().all(|(_, kept)| matches!(kept, Kept::Device(_)));
        let same_seed = self.buffers.iter().all(|buffer| buffer.is_of(audit.shown.seed));
        if !on_device || !self.job.expected_files.is_empty() {
            return Ok(false);
        }
        if !same_seed {
            present(&audit.shown, self.buffers, self.executor.tools()?)?;
        }
        for (buffer, &window) in self.buffers.iter_mut().zip(&audit.shown.windows) {
            buffer.set_window(window);
        }
        let job = self.job;
        for (index, reference) in job.references.iter().enumerate() {
            let Some(arm) = self.references.get_mut(index) else { return Ok(false) };
            launch_reference(self.executor, arm, self.buffers)?;
            for buffer in &reference.outputs {
                if !self.is_close_on_device(audit, *buffer)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn is_close_on_device(&self, audit: &Audit, index: usize) -> JobResult<bool> {
        let kept = audit.outputs.iter().find(|(other, _)| *other == index);
        let tolerance = self.job.tolerances.iter().find(|(other, _)| *other == index);
        let (Some((_, Kept::Device(actual))), Some((_, tolerance))) = (kept, tolerance) else {
            return Ok(false);
        };
        let (tools, buffer) = (self.executor.tools()?, &self.buffers[index]);
        let near = Near {
            atol: tolerance.atol,
            rtol: tolerance.rtol,
            allow_non_finite: tolerance.allow_non_finite,
        };
        let dtype = buffer.spec.dtype;
        let count = (buffer.len() / dtype.size()) as u64;
        let addresses = (actual.address(), buffer.address());
        let different = tools.support.count_different(addresses, count, dtype, near, tools.stream);
        Ok(different.map_err(environment)? == Some(0))
    }

    /// Compares a timed launch's outputs with what is expected, on the host.
    fn audit(
        &mut self,
        audit: &Audit,
        shared: &mut Option<(Shown, Expectations)>,
    ) -> JobResult<()> {
        let expected = match shared.take() {
            Some((shown, expected)) if shown == audit.shown => expected,
            _ => self.expect(&audit.shown)?.0,
        };
        let outputs = on_host(self.executor, &audit.outputs)?;
        for (buffer, expected) in &expected {
            let comparison = self.compare(*buffer, &outputs, expected, POISON_BYTE)?;
            if let Some(text) = self.describe(*buffer, &comparison) {
                let text = format!(
                    "right when it was not timed, but in timed launch {} {text}",
                    audit.trial
                );
                let code = "output_varies_between_trials";
                return Err(Failed::new(code, text, Blame::Candidate));
            }
        }
        *shared = Some((audit.shown.clone(), expected));
        Ok(())
    }

    fn describe(&self, buffer: usize, comparison: &Comparison) -> Option<String> {
        let name = self.buffers.get(buffer).map_or("?", |buffer| buffer.spec.name.as_str());
        validate::validation_error(name, comparison)
    }
}

/// Leaves an audit's device memory to be scrubbed.
pub(super) fn release(audit: Audit, residue: &mut Residue) {
    for (_, kept) in audit.outputs {
        if let Kept::Device(memory) = kept {
            residue.take_memory(memory);
        }
    }
}

/// Kept outputs, on the host.
pub(super) fn on_host(executor: &Executor, outputs: &[(usize, Kept)]) -> JobResult<Outputs> {
    let copy = |(index, kept): &(usize, Kept)| {
        let content = match kept {
            Kept::Host(staging) => {
                let mut content = executor.pinned.take(staging.bytes().len());
                content.bytes_mut().copy_from_slice(staging.bytes());
                content
            }
            Kept::Device(memory) => {
                let mut content = executor.pinned.take(memory.len());
                let copied = memory.copy_to_host(0, content.bytes_mut(), &executor.stream);
                copied.map_err(environment)?;
                content
            }
        };
        Ok((*index, content))
    };
    outputs.iter().map(copy).collect()
}

/// Queues a reference on what the buffers show, as if it had just been loaded.
fn launch_reference(
    executor: &Executor,
    reference: &mut Arm,
    buffers: &[JobBuffer<'_>],
) -> JobResult<()> {
    reference.forget(&executor.stream).map_err(environment)?;
    for buffer in buffers {
        buffer.restore(POISON_BYTE, &executor.stream).map_err(environment)?;
    }
    let launched = reference.launch(buffers, &executor.stream);
    launched.map_err(|error| Failed::device(error, Blame::Reference))
}

/// A buffer's content for each seed, as the lint takes it.
fn contents<'a>(job: &'a Job, index: usize, seeds: &'a [&'a [u8]]) -> Contents<'a> {
    let spec = &job.buffers[index];
    Contents { name: &spec.name, dtype: spec.dtype, shape: &spec.shape, seeds }
}

fn unknown(buffer: usize) -> Failed {
    let text = format!("buffer {buffer} is to be checked, but is no output with a tolerance");
    Failed::new("internal_error", text, Blame::Environment)
}
