//! What memory checks found, and what it means for the verdict.

use std::path::Path;

use serde::Deserialize;

use crate::contract::{EvaluateRequest, Sanitize};
use crate::report::{Finding, SanitizeReport};
use crate::worker::protocol::{DeviceInfo, DeviceKind, RunOutcome};

/// Checks whose findings a GPU answers with a fault, or with another buffer's content: a kernel
/// with one of them is not right, whatever its outputs hold. While checks run, such accesses are
/// listed and skipped instead of ending the kernel.
const FAULTS: [&str; 4] = ["out_of_bounds", "misaligned", "use_after_free", "read_only_write"];

/// The emulator's report, as far as it is read here.
#[derive(Deserialize)]
struct EmulatorReport {
    findings: Vec<EmulatorFinding>,
}

/// One finding as the emulator writes it.
#[derive(Deserialize)]
struct EmulatorFinding {
    check: String,
    kernel: String,
    block: [u32; 3],
    thread: [u32; 3],
    file: Option<String>,
    line: Option<u32>,
    message: String,
    count: u64,
}

/// The outcome of the checks that the request asks for.
pub(super) fn report(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    outcome: &RunOutcome,
) -> Option<SanitizeReport> {
    if request.sanitize == Sanitize::Off {
        return None;
    }
    if device.kind != DeviceKind::Emulator {
        return Some(unavailable(
            "compute-sanitizer is not driven by this version; run the contract with \
             `--device emulator`, which checks every access",
        ));
    }
    let Some(report) = &outcome.emulator_report else {
        return Some(unavailable("the emulator gave no report, since the kernel did not run"));
    };
    Some(match EmulatorReport::deserialize(report) {
        Ok(report) => SanitizeReport {
            available: true,
            reason: None,
            source: Some("emulator".to_owned()),
            findings: report.findings.into_iter().map(finding).collect(),
        },
        Err(error) => unavailable(&format!("the emulator's report cannot be read: {error}")),
    })
}

/// Why the findings make the kernel wrong, if they do.
pub(super) fn fault(report: Option<&SanitizeReport>) -> Option<String> {
    let is_fault = |finding: &&Finding| FAULTS.contains(&finding.check.as_str());
    let found = report?.findings.iter().find(is_fault)?;
    Some(format!("memory check `{}`: {}", found.check, found.message))
}

fn finding(found: EmulatorFinding) -> Finding {
    let name = |file: &str| {
        Path::new(file).file_name().map_or(file.to_owned(), |name| name.to_string_lossy().into())
    };
    let source = found.file.as_deref().zip(found.line);
    Finding {
        check: found.check,
        kernel: found.kernel,
        block: found.block,
        thread: found.thread,
        source: source.map(|(file, line)| format!("{}:{line}", name(file))),
        message: found.message,
        count: found.count,
    }
}

fn unavailable(reason: &str) -> SanitizeReport {
    SanitizeReport {
        available: false,
        reason: Some(reason.to_owned()),
        source: None,
        findings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_access_is_a_fault_and_a_race_is_a_finding() {
        let found = |check: &str| {
            finding(EmulatorFinding {
                check: check.to_owned(),
                kernel: "k".to_owned(),
                block: [0; 3],
                thread: [5, 0, 0],
                file: Some("/private/kernel.cu".to_owned()),
                line: Some(6),
                message: "what happened".to_owned(),
                count: 1,
            })
        };
        let report = |check: &str| SanitizeReport {
            available: true,
            reason: None,
            source: None,
            findings: vec![found("shared_race"), found(check)],
        };
        assert_eq!(fault(Some(&report("shared_race"))), None);
        assert_eq!(fault(None), None);
        let told = fault(Some(&report("out_of_bounds"))).unwrap();
        assert!(told.contains("out_of_bounds") && told.contains("what happened"), "{told}");
        assert_eq!(found("misaligned").source.as_deref(), Some("kernel.cu:6"));
    }
}
