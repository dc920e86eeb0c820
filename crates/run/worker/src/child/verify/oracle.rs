//! What a launch left: everything written that should be, nothing else touched, and expectations met.
//!
//! Each launch is verified before the next begins, from where it left its outputs; what was computed for
//! it is gone by then, or is of no use to a launch with other inputs.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::counted_launch::CountedOutputs;
use super::expectations::elements;
use super::on_device::DeviceCheck;
use super::outputs::Outputs;
use super::references::ReferenceKernels;
use super::surroundings::nothing_else_touched;
use super::ties;
use super::verdicts::{LeftOutputs, Otherwise, OutputVerdicts};
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::io::link::Link;
use crate::child::memory::buffers::JobBuffer;
use crate::child::timing::audit_schedule::Assigned;
use crate::child::timing::inputs::Shown;
use crate::child::timing::judge::{Audit, Judge};
use crate::child::timing::judge::{Phase, Referee};
use crate::protocol::{AuditFacts, Blame, Checks, FromWorker, OutputCheck};
use warpgauge_model::FailureCode;
use warpgauge_validate::{Filling, ReasonCode};

/// A verification above this time does not count for the time limit of the candidate.
const WORTH_TELLING: Duration = Duration::from_millis(2);

/// Has launches verified: tells the server when, keeps to the time for it, and says which verdict each calls for.
pub(crate) struct Oracle<'a, 'l> {
    pub checks: &'a Checks,
    link: &'a RefCell<&'l mut Link>,
    /// Whether accesses of the candidate are checked; those of references are not.
    sanitize: bool,
    /// Whether launches find nothing but inputs of their own, so that what was right for one is of no use
    /// to another.
    moving: bool,
    pub(crate) references: ReferenceKernels<'a>,
    on_device: DeviceCheck<'a>,
    pub(crate) verdicts: OutputVerdicts<'a>,
    /// What the launch that was counted left, until the first is judged.
    pub(crate) counted: Option<CountedOutputs>,
    /// Timed launches that were verified, and that were to be.
    pub audits: AuditFacts,
    /// Whether verification takes so long that the worker reports it to the server.
    slow: bool,
    assigned: Assigned,
}

impl<'a, 'l> Oracle<'a, 'l> {
    /// `checks`: with every tolerance settled; `moving`: whether launches find nothing but inputs of their own.
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
        }
    }

    /// The connection to the server.
    pub(crate) fn link(&self) -> &'a RefCell<&'l mut Link> {
        self.link
    }

    /// Gives up what it had loaded.
    pub(crate) fn retire(self) {
        self.on_device.retire(self.references.retire());
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

    /// The first launch, which had the contract's inputs: the verdict of each output. Returns whether
    /// all are right.
    pub(crate) fn first(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        left: LeftOutputs<'_>,
        told: &mut Vec<OutputCheck>,
    ) -> JobResult<bool> {
        nothing_else_touched(executor, buffers)?;
        let all = self.references.expect(executor, buffers, Shown::CANONICAL)?;
        let tied = ties::tied(executor, buffers, Shown::CANONICAL, (left.0, &elements(&all)))?;
        let right = self.verdicts.first(buffers, left, (&all, &tied), told)?;
        // A kernel that is wrong needs no further witness.
        if let Some(counted) = self.counted.take().filter(|_| right) {
            counted.confirm(executor, buffers, &all, &mut self.verdicts)?;
        }
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
        let (code, when) = if shown == Shown::CANONICAL {
            (ReasonCode::DependsOnHistory, "right at the first launch, but at the second ")
        } else {
            (ReasonCode::WrongForOtherSeeds, "right for the contract's seeds, but for others ")
        };
        let when = when.to_owned();
        let otherwise = Otherwise { launch: "the second launch", code, when };
        self.confirm(executor, buffers, (shown, filling), &otherwise)
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
        if !checks.iter().any(|check| self.verdicts.is_open(check)) {
            return Ok(());
        }
        let all = self.references.expect(executor, buffers, shown)?;
        self.verdicts.settle(buffers, left, &all, checks)
    }

    /// A launch that was not the first, from what it left in the buffers.
    fn later(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<()> {
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
            Phase::Lasting | Phase::Last => (
                ReasonCode::DependsOnHistory,
                "right at first, but in launch",
                "with its state kept",
            ),
        };
        let trial = self.assigned.trial(audit.trial);
        let launch = format!("launch {trial} {after}");
        let when = format!("{before} {trial} {after}: ");
        let otherwise = Otherwise { launch: &launch, code, when };
        self.confirm(executor, buffers, (audit.shown, audit.filling), &otherwise)
    }

    /// A launch that was not the first is right: on the device, if that can decide it. `filling`: what its
    /// outputs held before.
    fn confirm(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        (shown, filling): (Shown, Filling),
        otherwise: &Otherwise<'_>,
    ) -> JobResult<()> {
        let left = self.on_device.unless_right(executor, buffers, &mut self.references)?;
        let Some(outputs) = left else { return Ok(()) };
        let all = self.references.expect(executor, buffers, shown)?;
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

pub(crate) fn unknown(buffer: usize) -> Failed {
    let text = format!("buffer {buffer} is to be checked, but is no output with a tolerance");
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}
