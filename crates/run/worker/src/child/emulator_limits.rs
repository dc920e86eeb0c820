//! What the emulated device lacks is no fault of a kernel.

use serde_json::Value;

use crate::protocol::{Blame, RunFailure, TaskOutcome};
use warpgauge_device::EmulatorControl;
use warpgauge_model::FailureCode;

/// What begins every message about that.
const PREFIX: &str = "not supported on the emulated device";

/// A failure, and if it is a limit of the emulator, said as that, in the emulator's own words.
pub(super) fn restated(
    failure: RunFailure,
    emulator: EmulatorControl,
    told: &TaskOutcome,
) -> RunFailure {
    // With this the emulator answers what a GPU can do and it cannot.
    if failure.code != FailureCode::NotSupported {
        return failure;
    }
    // A report that was taken before has it, if the failure was before that.
    let report = emulator.take_report();
    let before = match told {
        TaskOutcome::Evaluated(told) => told.emulator_report.as_ref(),
        _ => None,
    };
    let reports = [report.as_ref(), before];
    let why = reports.into_iter().flatten().find_map(last_message);
    let why = why.unwrap_or(&failure.message);
    RunFailure {
        code: failure.code,
        message: format!("{PREFIX}: {why}"),
        blame: Blame::Environment,
    }
}

/// What the emulator said last.
fn last_message(report: &Value) -> Option<&str> {
    report["messages"].as_array()?.last()?["text"].as_str()
}
