//! Adds the emulator's details to a failure. The emulator's own limits are reported as such, so
//! that the kernel is not blamed for them.

use serde_json::Value;

use crate::protocol::{Blame, RunFailure, TaskOutcome};
use warpgauge_device::EmulatorControl;
use warpgauge_model::FailureCode;

/// Beginning of every message about a limit of the emulator.
const PREFIX: &str = "not supported on the emulated device";

/// Faults of a kernel for which the driver interface reports only the kind.
const FAULTS: [FailureCode; 5] = [
    FailureCode::IllegalAddress,
    FailureCode::MisalignedAddress,
    FailureCode::IllegalInstruction,
    FailureCode::HardwareStackError,
    FailureCode::LaunchTimeout,
];

/// Adds the thread and the location of a fault to a failure. If the failure is due to a limit of
/// the emulator, the message says so and quotes the emulator.
pub(super) fn restated(
    failure: RunFailure,
    emulator: EmulatorControl,
    told: &TaskOutcome,
) -> RunFailure {
    // The emulator returns this code for operations that a GPU supports and the emulator does not
    // support.
    let is_limit = failure.code == FailureCode::NotSupported;
    if !is_limit && !FAULTS.contains(&failure.code) {
        return failure;
    }
    // If an earlier report was taken after the failure, that report contains it.
    let report = emulator.take_report();
    let before = match told {
        TaskOutcome::Evaluated(told) => told.emulator_report.as_ref(),
        _ => None,
    };
    let reports = [report.as_ref(), before];
    let why = reports.into_iter().flatten().find_map(last_message);
    if !is_limit {
        let message = match why {
            Some(why) => format!("{}; {why}", failure.message),
            None => failure.message,
        };
        return RunFailure { message, ..failure };
    }
    let why = why.unwrap_or(&failure.message);
    RunFailure {
        code: failure.code,
        message: format!("{PREFIX}: {why}"),
        blame: Blame::Environment,
    }
}

/// Returns the emulator's last message.
fn last_message(report: &Value) -> Option<&str> {
    report["messages"].as_array()?.last()?["text"].as_str()
}
