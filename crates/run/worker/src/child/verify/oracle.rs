//! The judge of the worker's own launches: it checks that outputs are written and correct, and that
//! no other memory was changed.
//!
//! Each launch is verified before the next one begins, with its outputs still in the buffers.
//! Afterwards, the expectations computed for it are removed, or are useless to a launch with other
//! inputs.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::arranged;
use super::counted_launch::CountedOutputs;
use super::expectations::{Expectations, elements};
use super::on_device::{Agreement, DeviceCheck};
use super::outputs::Outputs;
use super::references::ReferenceKernels;
use super::surroundings::nothing_else_touched;
use super::ties;
use super::verdicts::{LeftOutputs, Otherwise, OutputVerdicts};
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::io::link::Link;
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::residue::Residue;
use crate::child::timing::audit_schedule::Assigned;
use crate::child::timing::inputs::Shown;
use crate::child::timing::judge::{Audit, Judge, OnDevice, Phase, Referee, Verification};
use crate::protocol::{AuditFacts, Blame, Checks, FromWorker, OutputCheck};
use warpgauge_device::DeviceBuffer;
use warpgauge_device::inspection::{Findings, Inspection};
use warpgauge_model::FailureCode;
use warpgauge_validate::{Filling, ReasonCode};

/// Minimum duration of a verification during which the server pauses the candidate's time limit.
const WORTH_TELLING: Duration = Duration::from_millis(2);

/// Verifies launches. It notifies the server, observes the time limit for verification, and words
/// the failure for each kind of launch.
pub(crate) struct Oracle<'a, 'l> {
    pub checks: &'a Checks,
    link: &'a RefCell<&'l mut Link>,
    /// Whether accesses of the candidate are checked; those of references are not.
    sanitize: bool,
    /// Whether every launch gets new inputs, so that the correct result of one launch is useless to
    /// another.
    moving: bool,
    pub(crate) references: ReferenceKernels<'a>,
    on_device: DeviceCheck<'a>,
    pub(crate) verdicts: OutputVerdicts<'a>,
    /// Outputs of the counted launch, until the first launch is judged.
    pub(crate) counted: Option<CountedOutputs>,
    /// Number of timed launches that were verified, and number of those that were skipped.
    pub audits: AuditFacts,
    /// Whether verification takes so long that the worker notifies the server of it.
    slow: bool,
    assigned: Assigned,
    /// The launch whose verification is queued, and the host's time for it so far.
    queued: Option<(Audit, Duration)>,
}

impl<'a, 'l> Oracle<'a, 'l> {
    /// Creates a judge. Every tolerance in `checks` must be determined. `moving`: whether every
    /// launch gets new inputs.
    pub(crate) fn new(
        checks: &'a Checks,
        references: ReferenceKernels<'a>,
        link: &'a RefCell<&'l mut Link>,
        (moving, sanitize): (bool, bool),
    ) -> Self {
        Self {
            checks,
            link,
            sanitize,
            moving,
            references,
            on_device: DeviceCheck::new(checks, moving),
            verdicts: OutputVerdicts::new(checks, moving),
            counted: None,
            audits: AuditFacts::default(),
            slow: true,
            assigned: Assigned::default(),
            queued: None,
        }
    }

    /// Returns the connection to the server.
    pub(crate) fn link(&self) -> &'a RefCell<&'l mut Link> {
        self.link
    }

    /// Unloads the references, and hands the memory over for scrubbing.
    pub(crate) fn retire(self) -> &'a mut Residue {
        let residue = self.references.retire();
        self.on_device.retire(residue);
        residue
    }

    /// Performs work that is not the candidate's, while the candidate's time limit is paused.
    pub(crate) fn aside<T>(
        &mut self,
        executor: &Executor,
        work: impl FnOnce(&mut Self) -> JobResult<T>,
    ) -> JobResult<T> {
        // If the server has ended, the watchdog notices it.
        let _ = self.link.borrow_mut().send(&FromWorker::Verifying);
        let done = self.apart(executor, work);
        let _ = self.link.borrow_mut().send(&FromWorker::Resumed);
        done
    }

    /// Performs work that is not the candidate's. Accesses are not checked, and no data remain that
    /// a later launch with the same inputs could copy.
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

    /// Judges the first launch on the device, if its outputs equal the references' outputs. Returns
    /// `false` if [`Self::first`] must judge it.
    pub(crate) fn first_is_equal(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        told: &mut Vec<OutputCheck>,
    ) -> JobResult<bool> {
        let is_comparable = self.counted.is_none() && self.checks.arrangements.is_empty();
        if !is_comparable || !self.on_device.is_equal(executor, buffers, &mut self.references)? {
            return Ok(false);
        }
        self.verdicts.first_is_equal(buffers, told)?;
        Ok(true)
    }

    /// Judges each output of the first launch, which had the contract's inputs. Returns whether all
    /// are correct.
    pub(crate) fn first(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        left: LeftOutputs<'_>,
        told: &mut Vec<OutputCheck>,
    ) -> JobResult<bool> {
        nothing_else_touched(executor, buffers)?;
        let all = self.references.expect(executor, buffers, Shown::CANONICAL)?;
        let arranged = self.arranged(executor, buffers, Shown::CANONICAL, (left.0, &all))?;
        let left = (arranged.as_ref().unwrap_or(left.0), left.1);
        let tied = ties::tied(executor, buffers, Shown::CANONICAL, (left.0, &elements(&all)))?;
        let right = self.verdicts.first(buffers, left, (&all, &tied), told)?;
        // A kernel that is wrong already needs no second check.
        if let Some(counted) = self.counted.take().filter(|_| right) {
            counted.confirm(executor, buffers, &all, &mut self.verdicts)?;
        }
        Ok(right)
    }

    /// Checks that the second launch is correct too. It has other inputs, if inputs may change.
    pub(crate) fn second(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
        filling: Filling,
    ) -> JobResult<()> {
        let (code, when) = if shown == Shown::CANONICAL {
            (ReasonCode::DependsOnHistory, "correct at the first launch, but at the second ")
        } else {
            (ReasonCode::WrongForOtherSeeds, "correct for the contract's seeds, but for others ")
        };
        let when = when.to_owned();
        let otherwise = Otherwise { launch: "the second launch", code, when };
        let left = self.on_device.unless_right(executor, buffers, &mut self.references)?;
        self.confirm(executor, buffers, (shown, filling), left, &otherwise)
    }

    /// Decides whether wrong elements were never written, if the first launch does not prove it.
    /// `left` contains the outputs of the second launch, which had another filling.
    pub(crate) fn settle(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
        left: (&Outputs, Filling),
        checks: &mut [OutputCheck],
    ) -> JobResult<()> {
        if !checks.iter().any(|check| self.verdicts.is_open(check)) {
            return Ok(());
        }
        let all = self.references.expect(executor, buffers, shown)?;
        let arranged = self.arranged(executor, buffers, shown, (left.0, &all))?;
        let left = (arranged.as_ref().unwrap_or(left.0), left.1);
        self.verdicts.settle(buffers, left, &all, checks)
    }

    /// Returns the outputs of a launch in the expected order; `None` if no arrangement applies.
    fn arranged(
        &self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        shown: Shown,
        (outputs, all): (&Outputs, &Expectations),
    ) -> JobResult<Option<Outputs>> {
        let arrangements = &self.checks.arrangements;
        arranged::arranged(executor, buffers, arrangements, shown, (outputs, &elements(all)))
    }

    /// Returns whether there is time to verify a launch; otherwise counts it as skipped.
    fn has_time(&mut self, executor: &Executor, audit: Audit) -> bool {
        let has_time = self.assigned.has_time(executor.device().kind);
        self.audits.skipped += u32::from(!has_time && self.is_timed(audit));
        has_time
    }

    /// Counts a verification. `took`: the host's time for it.
    fn completed(&mut self, audit: Audit, took: Duration) {
        self.slow = took > WORTH_TELLING;
        self.assigned.took(took);
        self.audits.done += u32::from(self.is_timed(audit));
    }

    fn is_timed(&self, audit: Audit) -> bool {
        self.assigned.phase == Phase::Timed && !audit.under_load
    }

    /// Verifies a launch after the first, while its outputs are in the buffers.
    fn later(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<()> {
        let left = self.on_device.unless_right(executor, buffers, &mut self.references)?;
        self.judge_later(executor, buffers, audit, left)
    }

    /// Queues the comparison of a timed launch with expected outputs in other memory: the buffers'
    /// blocks in order, starting at a byte of it. Returns `None` if the device cannot compare them.
    pub(crate) fn queue_agreement(
        &self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        inspection: &mut Inspection<'_>,
        expected: (&DeviceBuffer, usize),
    ) -> JobResult<Option<Agreement>> {
        self.on_device.queue_agreement(executor, buffers, inspection, expected)
    }

    /// Returns whether a queued comparison found a timed launch to be correct.
    pub(crate) fn agrees(
        &mut self,
        buffers: &[JobBuffer<'_>],
        agreement: Agreement,
        findings: &Findings,
    ) -> JobResult<bool> {
        let right = agreement.judge(buffers, findings)?;
        if right {
            self.verdicts.are_exact();
            self.audits.done += 1;
        }
        Ok(right)
    }

    /// Judges the outputs of a launch after the first. `None` means that the device found them to
    /// be correct.
    fn judge_later(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
        left: Option<Outputs>,
    ) -> JobResult<()> {
        let (code, before, after) = match self.assigned.phase {
            Phase::WarmUp => {
                (ReasonCode::DependsOnHistory, "correct at first, but in launch", "of the warm-up")
            }
            Phase::Timed if audit.under_load => (
                ReasonCode::OutputVariesBetweenTrials,
                "correct when not timed, but in a launch of the load before launch",
                "of the timed launches",
            ),
            Phase::Timed => (
                ReasonCode::OutputVariesBetweenTrials,
                "correct when not timed, but in launch",
                "of the timed launches",
            ),
            Phase::Lasting | Phase::Last => (
                ReasonCode::DependsOnHistory,
                "correct at first, but in launch",
                "with its state kept",
            ),
        };
        let trial = self.assigned.trial(audit.trial);
        let launch = format!("launch {trial} {after}");
        let when = format!("{before} {trial} {after}: ");
        let otherwise = Otherwise { launch: &launch, code, when };
        self.confirm(executor, buffers, (audit.shown, audit.filling), left, &otherwise)
    }

    /// Checks that a launch after the first is correct. `left` contains its outputs, or is `None`
    /// if the device found them to be correct. `filling` is their content before the launch.
    fn confirm(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        (shown, filling): (Shown, Filling),
        left: Option<Outputs>,
        otherwise: &Otherwise<'_>,
    ) -> JobResult<()> {
        let Some(outputs) = left else {
            self.verdicts.are_exact();
            return Ok(());
        };
        let all = self.references.expect(executor, buffers, shown)?;
        let arranged = self.arranged(executor, buffers, shown, (&outputs, &all))?;
        let outputs = arranged.unwrap_or(outputs);
        let tied = ties::tied(executor, buffers, shown, (&outputs, &elements(&all)))?;
        self.verdicts.confirm(buffers, (&outputs, filling), (shown, &all, &tied), otherwise)
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
        // Without expectations no result can be wrong.
        if audit.under_load && self.checks.tolerances.is_empty() {
            return Ok(false);
        }
        if !self.has_time(executor, audit) {
            return Ok(false);
        }
        let began = Instant::now();
        let later = |this: &mut Self| this.later(executor, buffers, audit);
        // Two messages take as long as a quick verification, so the server is not notified of a
        // quick one.
        let verified = match self.slow {
            true => self.aside(executor, later),
            false => self.apart(executor, later),
        };
        self.completed(audit, began.elapsed());
        verified.map(|()| true)
    }

    fn queue(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<Option<Verification>> {
        // A slow verification is not queued: the server is notified, and this thread waits.
        let began = Instant::now();
        let quick = !self.slow && !audit.under_load;
        if !quick || !self.on_device.fits(executor, buffers) {
            return Ok(None);
        }
        if !self.has_time(executor, audit) {
            return Ok(Some(Verification::Skipped));
        }
        self.on_device.start(executor, buffers, &mut self.references)?;
        self.queued = Some((audit, began.elapsed()));
        Ok(Some(Verification::Queued))
    }

    fn findings(&mut self, buffers: &[JobBuffer<'_>]) -> JobResult<OnDevice> {
        let Some((audit, before)) = self.queued else { return Ok(OnDevice::Right) };
        let began = Instant::now();
        let right = self.on_device.findings(buffers);
        if let Ok(false) = right {
            return Ok(OnDevice::Unclear);
        }
        self.queued = None;
        self.completed(audit, before + began.elapsed());
        right?;
        self.verdicts.are_exact();
        Ok(OnDevice::Right)
    }

    fn resolve(&mut self, executor: &Executor, buffers: &mut [JobBuffer<'_>]) -> JobResult<()> {
        let Some((audit, before)) = self.queued.take() else { return Ok(()) };
        let began = Instant::now();
        let left = self.on_device.outputs(executor, buffers)?;
        let judged = self.judge_later(executor, buffers, audit, Some(left));
        self.completed(audit, before + began.elapsed());
        judged
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

pub(crate) fn unknown(buffer: usize) -> Failed {
    let text =
        format!("buffer {buffer} is to be checked, but it is not an output with a tolerance");
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}
