//! What launches left beside what is expected of them: the verdicts, and what speaks against a launch.

use super::comparison::{compare_output, unwritten};
use std::collections::BTreeMap;

use super::expectations::{Evidence, Expectations, Expected};
use super::outputs::Outputs;
use super::written::WriteTraces;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::buffers::JobBuffer;
use crate::child::timing::inputs::Shown;
use crate::protocol::{Checks, OutputCheck};
use warpgauge_validate::{Comparison, FillTrace, Filling, Reason, ReasonCode, StandingTies};

/// What a launch left, and what its outputs held before.
pub(crate) type LeftOutputs<'a> = (&'a Outputs, Filling);

/// The verdicts on a job's launches, whatever made these.
pub(crate) struct OutputVerdicts<'a> {
    checks: &'a Checks,
    written: WriteTraces,
    /// Elements of each output that were off by one in every launch with inputs of its own; empty where not all
    /// inputs vary.
    standing: BTreeMap<usize, StandingTies>,
    /// What spoke against a launch that was found wrong.
    pub against: Evidence,
}

/// How a report names a launch that is wrong after others were right.
pub(crate) struct Otherwise<'a> {
    /// As the proof names it that elements were never written.
    pub launch: &'a str,
    pub code: ReasonCode,
    /// What comes before what is wrong.
    pub when: String,
}

impl<'a> OutputVerdicts<'a> {
    /// `moving`: whether each launch finds nothing but inputs of its own.
    pub(crate) fn new(checks: &'a Checks, moving: bool) -> Self {
        let rounded =
            checks.tolerances.0.iter().filter(|(_, found)| moving && found.outliers.is_some());
        let standing = rounded.map(|(buffer, _)| (*buffer, StandingTies::default())).collect();
        Self { checks, written: WriteTraces::default(), standing, against: Evidence::NONE }
    }

    /// The verdict on each output of the first launch, which had the contract's inputs. Returns whether all are
    /// right. `tied`: outputs that differ between equal keys alone.
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

    /// A launch after one that was right is right too.
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
                    "element {element} of output `{name}` is off by one in every launch, whatever the inputs: it is no \
                     tie of rounding"
                );
                return Err(Failed::reason(Reason::new(ReasonCode::OutputMismatch, text)));
            }
        }
        Ok(())
    }

    /// An element of an output that has been off in too many launches to be a tie of rounding.
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

    /// Whether one launch cannot tell if elements of an output that are wrong were never written.
    pub(crate) fn is_open(&self, check: &OutputCheck) -> bool {
        let comparison = &check.comparison;
        !comparison.passed
            && comparison.unwritten == 0
            && self.written.of(check.buffer).is_some_and(|trace| trace.held > 0)
    }

    /// Tells so by another launch, which had another filling.
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

    /// Adds what a launch left of its filling. Unwritten elements count whatever share of mismatches
    /// is allowed.
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
