//! What a launch left: everything written that should be, nothing else touched, and expectations met.
//!
//! Each launch is verified before the next begins, from where it left its outputs; what was computed for
//! it is gone by then, or is of no use to a launch with other inputs.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::comparison::unwritten;
use super::counted_launch::CountedOutputs;
use super::expectations::{Evidence, Expectations, Expected};
use super::on_device::launch_reference;
use super::outputs::Outputs;
use super::surroundings::nothing_else_touched;
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::io::link::Link;
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, bytes_of, rewrite_inputs};
use crate::child::memory::residue::Residue;
use crate::child::memory::variables::Restored;
use crate::child::secret::Secret;
use crate::child::timing::audit_schedule::Assigned;
use crate::child::timing::inputs::{Shown, present};
use crate::child::timing::judge::{Audit, Judge};
use crate::child::timing::judge::{Phase, Referee};
use crate::protocol::{AuditFacts, Blame, Checks, EvaluatePlan, FromWorker, OutputCheck};
use warpgauge_device::{DeviceBuffer, MappedFile, Staging};
use warpgauge_model::FailureCode;
use warpgauge_validate::{Comparison, Filling, Reason, ReasonCode, Trace};

/// A verification above this time does not count for the time limit of the candidate.
const WORTH_TELLING: Duration = Duration::from_millis(2);

/// Who knows what is right, and tells whether launches are.
pub(crate) struct Oracle<'a, 'l> {
    pub checks: &'a Checks,
    residue: &'a mut Residue,
    link: &'a RefCell<&'l mut Link>,
    /// Whether accesses of the candidate are checked; those of references are not.
    sanitize: bool,
    /// Whether launches find nothing but inputs of their own, so that what was right for one is of no use
    /// to another.
    pub(crate) moving: bool,
    /// Whether random inputs are drawn anew for each launch.
    redrawn: bool,
    /// Loaded at first use, in the plan's order.
    pub(crate) references: Vec<LoadedProgram>,
    /// What the outputs of references are filled with, anew for each run: a candidate cannot match what
    /// a reference never wrote.
    fillings: Secret,
    /// Memory for outputs where that to flush L2 with is too small.
    scratch: Option<DeviceBuffer>,
    /// What launches left of their fillings, by buffer.
    traces: Vec<(usize, Trace)>,
    /// What the launch that was counted left, until the first is judged.
    pub(crate) counted: Option<CountedOutputs>,
    /// Timed launches that were verified, and that were to be.
    pub audits: AuditFacts,
    /// Whether verification takes so long that the server is told of it.
    slow: bool,
    assigned: Assigned,
    /// What spoke against a launch that was found wrong.
    pub against: Evidence,
}

impl<'a, 'l> Oracle<'a, 'l> {
    pub(crate) fn new(
        plan: &'a EvaluatePlan,
        residue: &'a mut Residue,
        link: &'a RefCell<&'l mut Link>,
        (moving, redrawn): (bool, bool),
    ) -> Self {
        Self {
            checks: &plan.checks,
            residue,
            link,
            sanitize: plan.sanitize,
            moving,
            redrawn,
            references: Vec::new(),
            fillings: Secret::new(),
            scratch: None,
            traces: Vec::new(),
            counted: None,
            audits: AuditFacts::default(),
            slow: true,
            assigned: Assigned::default(),
            against: Evidence::NONE,
        }
    }

    /// The connection to the server.
    pub(crate) fn link(&self) -> &'a RefCell<&'l mut Link> {
        self.link
    }

    /// Gives up the references.
    pub(crate) fn retire(self) {
        for reference in self.references {
            reference.retire(self.residue);
        }
        self.scratch.into_iter().for_each(|memory| self.residue.take_memory(memory));
    }

    /// Memory of so many bytes, taken out while it is used; `None`: that to flush L2 with serves.
    pub(crate) fn scratch(
        &mut self,
        executor: &Executor,
        bytes: usize,
    ) -> JobResult<Option<DeviceBuffer>> {
        if executor.flush.as_ref().is_some_and(|flush| flush.len() >= bytes) {
            return Ok(None);
        }
        match self.scratch.take() {
            Some(memory) => Ok(Some(memory)),
            None => DeviceBuffer::new(&executor.context, bytes as u64, "verifying outputs")
                .map(Some)
                .map_err(environment),
        }
    }

    /// Takes it back.
    pub(crate) fn keep_scratch(&mut self, memory: Option<DeviceBuffer>) {
        self.scratch = memory;
    }

    /// Does what is not the candidate's doing, while its time limit stands still.
    pub(crate) fn aside<T>(
        &mut self,
        executor: &Executor,
        work: impl FnOnce(&mut Self) -> JobResult<T>,
    ) -> JobResult<T> {
        // A server that is gone is noticed by the watchdog.
        let _ = self.link.borrow_mut().send(&FromWorker::Verifying);
        let done = self.apart(executor, work);
        let _ = self.link.borrow_mut().send(&FromWorker::Resumed);
        done
    }

    /// Does what is not the candidate's doing: its accesses are not checked, and nothing stays behind
    /// that a later launch with the same inputs could copy.
    fn apart<T>(
        &mut self,
        executor: &Executor,
        work: impl FnOnce(&mut Self) -> JobResult<T>,
    ) -> JobResult<T> {
        executor.suspend_checks(self.sanitize).map_err(environment)?;
        let done = work(self);
        executor.resume_checks(self.sanitize).map_err(environment)?;
        if !self.moving {
            executor.pinned.scrub();
        }
        done
    }

    /// What is expected for the inputs shown, by buffer.
    pub(crate) fn expect(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
    ) -> JobResult<Expectations> {
        let mut expected = Vec::new();
        for (buffer, path) in &self.checks.files {
            let spec = buffers.get(*buffer).map(|buffer| buffer.spec);
            let spec = spec.ok_or_else(|| unknown(*buffer))?;
            let file = MappedFile::open(path, bytes_of(spec)?).map_err(|error| {
                let text = format!("read the expected content of {}: {error}", spec.name);
                Failed::new(FailureCode::ExpectedUnreadable, text, Blame::Environment)
            })?;
            expected.push((*buffer, Expected::File(file)));
        }
        let checks = self.checks;
        if !checks.references.is_empty() {
            present(shown, buffers, executor.tools()?)?;
        }
        for (index, reference) in checks.references.iter().enumerate() {
            let filling = self.run_reference(executor, buffers, index)?;
            for &buffer in &reference.outputs {
                let content = computed(executor, buffers, buffer)?;
                expected.push((buffer, Expected::Computed(content, filling)));
            }
        }
        Ok(expected)
    }

    /// Loads the reference kernels, ahead of their first use.
    pub(crate) fn load_references(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
    ) -> JobResult<()> {
        for index in self.references.len()..self.checks.references.len() {
            self.load_reference(executor, buffers, index)?;
        }
        Ok(())
    }

    fn load_reference(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<()> {
        let launches = &self.checks.references[index].launches;
        let how = (Blame::Reference, Restored::ConstantsToo);
        let arm = LoadedProgram::load(executor, launches, buffers, self.residue, how)?;
        self.references.push(arm);
        Ok(())
    }

    /// Runs a reference kernel on what the buffers show, and waits for it. Returns what its outputs held
    /// before.
    pub(crate) fn run_reference(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<Filling> {
        let filling = self.queue_reference(executor, buffers, index)?;
        let ended = executor.stream.synchronize();
        ended.map(|()| filling).map_err(|error| Failed::device(error, Blame::Reference))
    }

    /// Queues a reference kernel on what the buffers show. Afterwards inputs are as they were before, as
    /// far as anybody will see them: that a reference changes one is no fault of the candidate's.
    pub(crate) fn queue_reference(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<Filling> {
        if index == self.references.len() {
            self.load_reference(executor, buffers, index)?;
        }
        let filling = Filling::drawn(self.fillings.bits());
        launch_reference(executor, &mut self.references[index], buffers, filling)?;
        // The next reference is to find them.
        let redrawn = self.redrawn && index + 1 == self.checks.references.len();
        let rewritten = rewrite_inputs(buffers, redrawn, executor.tools()?);
        rewritten.map(|()| filling).map_err(|error| Failed::device(error, Blame::Reference))
    }

    /// The first launch, which had the contract's inputs: the verdict of each output. Returns whether
    /// all are right.
    pub(crate) fn first(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        left: (&Outputs, Filling),
        told: &mut Vec<OutputCheck>,
    ) -> JobResult<bool> {
        nothing_else_touched(executor, buffers)?;
        let mut right = true;
        let all = self.expect(executor, buffers, Shown::CANONICAL)?;
        for (buffer, expected) in &all {
            let buffer = *buffer;
            let (judged, trace) = self.compare(buffers, buffer, left, expected)?;
            right &= judged.passed;
            if judged.passed {
                self.note(
                    &buffers[buffer].spec.name,
                    buffer,
                    (&trace, &judged),
                    "the first launch",
                )?;
            } else {
                self.traces.push((buffer, trace));
            }
            told.push(OutputCheck { buffer, comparison: judged });
        }
        // A kernel that is wrong needs no further witness.
        let counted = self.counted.take().filter(|_| right);
        if !right {
            self.against = Evidence::new(Shown::CANONICAL, &all);
        }
        counted.map_or(Ok(()), |counted| self.counted(buffers, &counted, &all))?;
        Ok(right)
    }

    /// The second launch, on other inputs where they may differ, is right too.
    pub(crate) fn second(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
        filling: Filling,
    ) -> JobResult<()> {
        let Some(outputs) = self.unless_right_on_device(executor, buffers)? else { return Ok(()) };
        let left = (&outputs, filling);
        let all = self.expect(executor, buffers, shown)?;
        for (buffer, expected) in &all {
            let (comparison, trace) = self.compare(buffers, *buffer, left, expected)?;
            let name = &buffers[*buffer].spec.name;
            self.note(name, *buffer, (&trace, &comparison), "the second launch")?;
            let Some(text) = warpgauge_validate::validation_error(name, &comparison) else {
                continue;
            };
            self.against = Evidence::new(shown, &all);
            let (code, when) = if shown == Shown::CANONICAL {
                (ReasonCode::DependsOnHistory, "right at the first launch, but at the second")
            } else {
                (ReasonCode::WrongForOtherSeeds, "right for the contract's seeds, but for others")
            };
            return Err(Failed::reason(Reason::new(code, format!("{when} {text}"))));
        }
        Ok(())
    }

    /// Whether elements that are wrong were never written, where one launch cannot tell: the second
    /// had another filling.
    pub(crate) fn settle(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
        left: (&Outputs, Filling),
        checks: &mut [OutputCheck],
    ) -> JobResult<()> {
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
        for (buffer, expected) in self.expect(executor, buffers, shown)? {
            let Some(check) = checks.iter_mut().find(|check| check.buffer == buffer) else {
                continue;
            };
            let found = self.traces.iter().find(|(index, _)| *index == buffer).map(|found| found.1);
            let Some(first) = found.filter(|_| open(&self.traces, check)) else { continue };
            let (_, mut both) = self.compare(buffers, buffer, left, &expected)?;
            both.add(&first);
            if both.is_reason() {
                check.comparison.unwritten = first.held;
            }
        }
        Ok(())
    }

    /// Adds what a launch left of its filling. Unwritten elements count whatever share of mismatches
    /// is allowed.
    pub(crate) fn note(
        &mut self,
        name: &str,
        buffer: usize,
        (trace, comparison): (&Trace, &Comparison),
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
            return Err(unwritten(name, trace, comparison, launch));
        }
        Ok(())
    }

    /// A launch that was not the first, from what it left in the buffers.
    fn later(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<()> {
        let Some(actual) = self.unless_right_on_device(executor, buffers)? else { return Ok(()) };
        let (code, before, after) = match self.assigned.phase {
            Phase::WarmUp => {
                (ReasonCode::DependsOnHistory, "right at first, but in launch", "of the warm-up")
            }
            Phase::Timed if audit.under_load => (
                ReasonCode::OutputVariesBetweenTrials,
                "right when not timed, but in a launch of the load before launch",
                "timed",
            ),
            Phase::Timed => (
                ReasonCode::OutputVariesBetweenTrials,
                "right when not timed, but in launch",
                "timed",
            ),
        };
        let trial = self.assigned.trial(audit.trial);
        let all = self.expect(executor, buffers, audit.shown)?;
        for (buffer, expected) in &all {
            let left = (&actual, audit.filling);
            let (comparison, trace) = self.compare(buffers, *buffer, left, expected)?;
            let name = &buffers[*buffer].spec.name;
            let launch = format!("launch {trial} {after}");
            self.note(name, *buffer, (&trace, &comparison), &launch)?;
            if let Some(text) = warpgauge_validate::validation_error(name, &comparison) {
                self.against = Evidence::new(audit.shown, &all);
                let text = format!("{before} {trial} {after}: {text}");
                return Err(Failed::reason(Reason::new(code, text)));
            }
        }
        Ok(())
    }
}

impl Judge for Oracle<'_, '_> {
    fn takes(&mut self, index: usize) -> bool {
        !self.checks.tolerances.is_empty() && self.assigned.takes(index)
    }

    fn verify(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<bool> {
        let timed = self.assigned.phase == Phase::Timed && !audit.under_load;
        // Where nothing is expected nothing can be wrong.
        if audit.under_load && self.checks.tolerances.is_empty() {
            return Ok(false);
        }
        if !self.assigned.has_time(executor.device().kind) {
            self.audits.skipped += u32::from(timed);
            return Ok(false);
        }
        let began = Instant::now();
        let later = |this: &mut Self| this.later(executor, buffers, audit);
        // What is quick is not worth two messages; they cost as much.
        let verified = match self.slow {
            true => self.aside(executor, later),
            false => self.apart(executor, later),
        };
        let took = began.elapsed();
        self.slow = took > WORTH_TELLING;
        self.assigned.took(took);
        self.audits.done += u32::from(timed);
        verified.map(|()| true)
    }
}

impl Referee for Oracle<'_, '_> {
    fn begin(&mut self, phase: Phase, before: usize, places: Vec<usize>, later: usize) {
        self.assigned.begin(phase, before, places, later);
    }

    fn spent(&self) -> Duration {
        self.assigned.spent_on_batch()
    }
}

fn computed(executor: &Executor, buffers: &[JobBuffer<'_>], buffer: usize) -> JobResult<Staging> {
    let source = buffers.get(buffer).ok_or_else(|| unknown(buffer))?;
    let mut content = executor.pinned.take(source.len());
    source
        .copy_to_host(content.bytes_mut(), &executor.stream)
        .map_err(|error| Failed::device(error, Blame::Reference))?;
    Ok(content)
}

pub(crate) fn unknown(buffer: usize) -> Failed {
    let text = format!("buffer {buffer} is to be checked, but is no output with a tolerance");
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}
