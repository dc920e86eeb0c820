//! Verdicts on the outputs of launches, and the evidence against a wrong launch.

use super::comparison::{compare_output, unwritten};
use std::collections::BTreeMap;

use super::expectations::{Evidence, Expectations, Expected};
use super::oracle::unknown;
use super::outputs::Outputs;
use super::written::WriteTraces;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::buffers::JobBuffer;
use crate::child::timing::inputs::Shown;
use crate::protocol::{Checks, OutputCheck};
use warpgauge_validate::{
    Arrangement, Comparison, FillTrace, Filling, Reason, ReasonCode, StandingTies,
};

/// Outputs of a launch, and the filling that they had before it.
pub(crate) type LeftOutputs<'a> = (&'a Outputs, Filling);

/// The verdicts on a job's launches, in whichever process they were made.
pub(crate) struct OutputVerdicts<'a> {
    checks: &'a Checks,
    written: WriteTraces,
    /// For each output, the elements that were off by one in every launch with new inputs. Empty
    /// unless all inputs vary.
    standing: BTreeMap<usize, StandingTies>,
    /// Evidence against a launch that was found to be wrong.
    pub against: Evidence,
}

/// Wording for a launch that is wrong although others were correct.
pub(crate) struct Otherwise<'a> {
    /// Name of the launch in a failure about unwritten elements.
    pub launch: &'a str,
    pub code: ReasonCode,
    /// Beginning of the failure's message.
    pub when: String,
}

impl<'a> OutputVerdicts<'a> {
    /// Starts without any verdict. `moving`: whether every launch gets new inputs.
    pub(crate) fn new(checks: &'a Checks, moving: bool) -> Self {
        let rounded =
            checks.tolerances.0.iter().filter(|(_, found)| moving && found.outliers.is_some());
        let standing = rounded.map(|(buffer, _)| (*buffer, StandingTies::default())).collect();
        Self { checks, written: WriteTraces::default(), standing, against: Evidence::NONE }
    }

    /// Returns how to compare outputs that have more than one correct form.
    pub(crate) fn arrangements(&self) -> &'a [Arrangement] {
        &self.checks.arrangements
    }

    /// Judges each output of the first launch, which had the contract's inputs. Returns whether all
    /// are correct. `tied`: outputs that differ only among equal keys.
    pub(crate) fn first(
        &mut self,
        buffers: &[JobBuffer<'_>],
        left: LeftOutputs<'_>,
        (all, tied): (&Expectations, &[usize]),
        told: &mut Vec<OutputCheck>,
    ) -> JobResult<bool> {
        let mut right = true;
        for (buffer, expected) in all {
            let buffer = *buffer;
            let (mut judged, trace) = compare_output(self.checks, buffers, buffer, left, expected)?;
            if tied.contains(&buffer) {
                judged.excuse_ties();
            }
            right &= judged.passed;
            if judged.passed {
                let name = &buffers[buffer].spec.name;
                self.note(name, buffer, (&trace, &judged), "the first launch")?;
                self.stands(buffers, buffer, left, expected);
            } else {
                self.written.add(buffer, &trace);
            }
            told.push(OutputCheck { buffer, comparison: judged });
        }
        if !right {
            self.against = Evidence::new(Shown::CANONICAL, all);
        }
        Ok(right)
    }

    /// Records a first launch whose outputs all equal the references' outputs.
    pub(crate) fn first_is_equal(
        &mut self,
        buffers: &[JobBuffer<'_>],
        told: &mut Vec<OutputCheck>,
    ) -> JobResult<()> {
        for &buffer in self.checks.references.iter().flat_map(|reference| &reference.outputs) {
            let (Some(output), Some(tolerance)) =
                (buffers.get(buffer), self.checks.tolerances.of(buffer))
            else {
                return Err(unknown(buffer));
            };
            let (dtype, shape) = (output.spec.dtype, &output.spec.shape);
            let comparison = Comparison::of_equal(dtype, shape, tolerance);
            told.push(OutputCheck { buffer, comparison });
        }
        self.are_exact();
        Ok(())
    }

    /// Checks that a launch after the first is correct too.
    pub(crate) fn confirm(
        &mut self,
        buffers: &[JobBuffer<'_>],
        left: LeftOutputs<'_>,
        (shown, all, tied): (Shown, &Expectations, &[usize]),
        otherwise: &Otherwise<'_>,
    ) -> JobResult<()> {
        for (buffer, expected) in all {
            let (mut comparison, trace) =
                compare_output(self.checks, buffers, *buffer, left, expected)?;
            if tied.contains(buffer) {
                comparison.excuse_ties();
            }
            let name = &buffers[*buffer].spec.name;
            self.note(name, *buffer, (&trace, &comparison), otherwise.launch)?;
            if let Some(text) = warpgauge_validate::validation_error(name, &comparison) {
                self.against = Evidence::new(shown, all);
                let text = format!("{}{text}", otherwise.when);
                return Err(Failed::reason(Reason::new(otherwise.code, text)));
            }
            let anew = shown != Shown::CANONICAL;
            if let Some(element) =
                anew.then(|| self.stands(buffers, *buffer, left, expected)).flatten()
            {
                self.against = Evidence::new(shown, all);
                let text = format!(
                    "element {element} of output `{name}` is off by one in every launch, whatever the inputs, so \
                     the cause is not a rounding tie"
                );
                return Err(Failed::reason(Reason::new(ReasonCode::OutputMismatch, text)));
            }
        }
        Ok(())
    }

    /// Records a launch whose outputs are all exact, so no integer is off by one in every launch.
    pub(crate) fn are_exact(&mut self) {
        self.standing.clear();
    }

    /// Returns an element of an output that has been off by one in too many launches to be a
    /// rounding tie.
    fn stands(
        &mut self,
        buffers: &[JobBuffer<'_>],
        buffer: usize,
        (outputs, _): LeftOutputs<'_>,
        expected: &Expected,
    ) -> Option<usize> {
        let standing = self.standing.get_mut(&buffer)?;
        let (_, actual) = outputs.iter().find(|(index, _)| *index == buffer)?;
        let tolerance = self.checks.tolerances.of(buffer)?;
        let contents = (actual.bytes(), expected.bytes());
        standing.add(buffers[buffer].spec.dtype, contents, tolerance)
    }

    /// Returns whether one launch does not suffice to decide if the wrong elements of an output
    /// were never written.
    pub(crate) fn is_open(&self, check: &OutputCheck) -> bool {
        let comparison = &check.comparison;
        !comparison.passed
            && comparison.unwritten == 0
            && self.written.of(check.buffer).is_some_and(|trace| trace.held > 0)
    }

    /// Decides with a second launch, which had another filling, whether wrong elements were never
    /// written.
    pub(crate) fn settle(
        &self,
        buffers: &[JobBuffer<'_>],
        left: LeftOutputs<'_>,
        all: &Expectations,
        checks: &mut [OutputCheck],
    ) -> JobResult<()> {
        for (buffer, expected) in all {
            let Some(check) = checks.iter_mut().find(|check| check.buffer == *buffer) else {
                continue;
            };
            let first = self.written.of(*buffer).filter(|_| self.is_open(check));
            let Some(first) = first else { continue };
            let (_, mut both) = compare_output(self.checks, buffers, *buffer, left, expected)?;
            both.add(first);
            if both.is_reason() {
                check.comparison.unwritten = first.held;
            }
        }
        Ok(())
    }

    /// Adds a launch's trace of its filling. Unwritten elements are a failure even if mismatches
    /// are allowed.
    fn note(
        &mut self,
        name: &str,
        buffer: usize,
        (trace, comparison): (&FillTrace, &Comparison),
        launch: &str,
    ) -> JobResult<()> {
        if self.written.add(buffer, trace) {
            return Err(unwritten(name, trace, comparison, launch));
        }
        Ok(())
    }
}
