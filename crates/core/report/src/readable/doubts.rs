//! Reasons to doubt the times of a kernel, in words. The main function is [`doubts`].

use super::{duration_ms, percent, word};
use crate::{InputsShown, MeasurementReport};
use warpgauge_statistics::{HealthFlag, StopReason};

/// Returns reasons to doubt the times. `is_checked` is true if the contract has expectations;
/// without them no launch can be verified.
pub fn doubts(report: &MeasurementReport, is_checked: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match report.stopped {
        Some(StopReason::TimeBudget) => {
            notes.push("out of time, less precise than requested".to_owned())
        }
        Some(StopReason::MaxTrials) => {
            notes.push("the maximum number of launches, less precise than requested".to_owned());
        }
        Some(StopReason::Precise | StopReason::TrialsDone) | None => {}
    }
    if report.inputs == InputsShown::Same && report.input_sets.is_none() {
        notes.push(
            "the same inputs each time: a kernel that keeps results may not be noticed".to_owned(),
        );
    }
    if report.audited == 0 && is_checked {
        notes.push("no timed launch was verified".to_owned());
    }
    let not_known = report.state.as_ref().map_or(&[][..], |state| &state.not_known);
    if !not_known.is_empty() {
        notes.push(format!("memory in which results could be kept: {}", not_known.join(", ")));
    }
    if let Some(modes) = report.summary.as_ref().and_then(|summary| summary.modes.as_ref()) {
        notes.push(format!(
            "two modes: {} and {}, {} of the launches in the slower",
            duration_ms(modes.fast_ms),
            duration_ms(modes.slow_ms),
            percent(modes.slow_share)
        ));
    }
    for count in &report.rejected {
        notes.push(format!("{} samples do not count: {}", count.count, word(&count.reason)));
    }
    let flags = report.gpu.as_ref().map_or(&[][..], |gpu| &gpu.flags);
    notes.extend(flags.iter().map(|one| flag(one).to_owned()));
    notes.extend(report.notes.iter().cloned());
    notes
}

fn flag(flag: &HealthFlag) -> &'static str {
    match flag {
        HealthFlag::ThermalThrottle => "the GPU slowed down because of heat",
        HealthFlag::HwSlowdown => "the hardware of the GPU slowed it down",
        HealthFlag::PowerCap => "the GPU ran at its power limit",
        HealthFlag::LowClock => "the clock of the GPU was below three quarters of its peak",
        HealthFlag::Contention => "other processes used the GPU, too",
        HealthFlag::ClockUnknown => "the clock of the GPU could not be read",
    }
}
