//! Findings of memory and race checks, and their effect on the verdict.

use std::path::Path;

use serde::Deserialize;

use crate::host::Host;
use crate::prepare::Prepared;
use warpgauge_contract::{EvaluateRequest, Sanitize};
use warpgauge_metrics::sanitizer::SanitizerFinding;
use warpgauge_model::{DeviceInfo, DeviceKind, Unavailable};
use warpgauge_nsight::sanitizer::{self, Check, SanitizerOutput};
use warpgauge_report::{CheckReport, Finding, SanitizeReport};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{Blame, EvaluatedRun, RunOutcome};

/// Checks whose findings make a kernel wrong even if its outputs are correct. On a GPU such an
/// access causes a fault, reaches another buffer, or makes the result depend on timing. While
/// checks run, such accesses are reported and skipped instead of ending the kernel.
const FAULTS: [&str; 7] = [
    "out_of_bounds",
    "misaligned",
    "use_after_free",
    "read_only_write",
    "shared_race",
    "undefined_mask",
    "global_race",
];

/// The fields of the emulator's report that are used here.
#[derive(Deserialize)]
struct EmulatorReport {
    findings: Vec<EmulatorFinding>,
}

/// A finding as the emulator reports it.
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

/// Runs the requested checks on a GPU in sequence, each in a separate process. Returns `None` if
/// none are requested. Returns `None` for the emulated device, too, which makes its checks during
/// the evaluation's run.
pub(crate) async fn check(
    host: &Host,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> Option<SanitizeReport> {
    let checks = wanted(&request.sanitize);
    if checks.is_empty() || lease.device().kind == DeviceKind::Emulator {
        return None;
    }
    let failure = outcome.failure.as_ref();
    if let Some(failure) = failure.filter(|failure| failure.blame == Blame::Environment) {
        let text = format!("the kernel was not run: {}", failure.message);
        return Some(unavailable(&text));
    }
    let mut told = Vec::new();
    for check in checks {
        let asked = sanitizer::CheckRun {
            job: &prepared.job,
            directory: &prepared.job.directory,
            check,
            time_limit: host.tool_limit(),
        };
        let answer = sanitizer::check(&host.tools, lease, &asked).await;
        told.push((check, answer));
    }
    Some(gpu_report(told))
}

/// Returns the checks that a request asks for.
fn wanted(sanitize: &Sanitize) -> Vec<Check> {
    let named = |check: &Check| match sanitize {
        Sanitize::Off => false,
        Sanitize::All => true,
        Sanitize::Tool(name) => check.name() == name,
    };
    Check::ALL.into_iter().filter(named).collect()
}

/// Combines the results of the checks in one report.
fn gpu_report(told: Vec<(Check, Result<SanitizerOutput, Unavailable>)>) -> SanitizeReport {
    let (mut checks, mut findings, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for (check, answer) in told {
        let tool = check.name().to_owned();
        match answer {
            Ok(checked) => {
                checks.push(CheckReport {
                    tool,
                    available: true,
                    version: Some(checked.tool),
                    wall_ms: Some(checked.wall.as_secs_f64() * 1e3),
                    unavailable: None,
                    left_out: checked.log.left_out,
                });
                findings.extend(checked.log.findings.into_iter().map(of_sanitizer));
            }
            Err(why) => {
                reasons.push(format!("{tool}: {} ({})", why.reason, why.remedy));
                checks.push(CheckReport {
                    tool,
                    available: false,
                    version: None,
                    wall_ms: None,
                    unavailable: Some(why),
                    left_out: None,
                });
            }
        }
    }
    SanitizeReport {
        available: reasons.is_empty(),
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        source: Some("compute-sanitizer".to_owned()),
        findings,
        checks,
    }
}

/// Returns the results of the checks that the emulated device made, if they were requested.
pub(crate) fn emulated(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    outcome: &RunOutcome<EvaluatedRun>,
) -> Option<SanitizeReport> {
    if request.sanitize == Sanitize::Off || device.kind != DeviceKind::Emulator {
        return None;
    }
    let Some(report) = &outcome.told.emulator_report else {
        return Some(unavailable(
            "there is no report of the emulator, since the kernel did not run",
        ));
    };
    Some(match EmulatorReport::deserialize(report) {
        Ok(report) => SanitizeReport {
            available: true,
            reason: None,
            source: Some("emulator".to_owned()),
            findings: report.findings.into_iter().map(finding).collect(),
            checks: Vec::new(),
        },
        Err(error) => unavailable(&format!("the emulator's report cannot be read: {error}")),
    })
}

/// Returns the reason why the findings make the kernel wrong, or `None` if they do not.
pub(crate) fn fault(report: Option<&SanitizeReport>) -> Option<String> {
    let is_fault = |finding: &&Finding| FAULTS.contains(&finding.check.as_str());
    let found = report?.findings.iter().find(is_fault)?;
    Some(format!("memory check `{}`: {}", found.check, found.message))
}

fn of_sanitizer(found: SanitizerFinding) -> Finding {
    let source = found.line().map(str::to_owned);
    Finding {
        check: found.check.to_owned(),
        kernel: found.kernel,
        block: found.block,
        thread: found.thread,
        source,
        message: found.message,
        count: found.count,
    }
}

fn finding(found: EmulatorFinding) -> Finding {
    let name = |file: &str| {
        Path::new(file).file_name().map_or(file.to_owned(), |name| name.to_string_lossy().into())
    };
    let source = found.file.as_deref().zip(found.line);
    Finding {
        check: found.check,
        kernel: found.kernel,
        block: Some(found.block),
        thread: Some(found.thread),
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
        checks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_access_and_a_race_are_faults_and_an_unwritten_word_is_a_finding() {
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
            findings: vec![found("uninitialised_read"), found(check)],
            checks: Vec::new(),
        };
        assert_eq!(fault(Some(&report("divergent_barrier"))), None);
        assert!(fault(Some(&report("global_race"))).is_some());
        assert_eq!(fault(None), None);
        let told = fault(Some(&report("out_of_bounds"))).unwrap();
        assert!(told.contains("out_of_bounds") && told.contains("what happened"), "{told}");
        assert_eq!(found("misaligned").source.as_deref(), Some("kernel.cu:6"));
    }

    #[test]
    fn checkers_make_one_report_and_one_that_fails_takes_nothing_from_the_others() {
        let log = "========= COMPUTE-SANITIZER\n\
                   ========= Invalid __global__ write of size 4 bytes\n\
                   =========     at k+0x100 in kernel.cu:5\n\
                   =========     by thread (5,0,0) in block (0,0,0)\n\
                   =========     Access to 0x7f86dac04214 is out of bounds\n\
                   ========= \n\
                   ========= ERROR SUMMARY: 1 error\n";
        let checked = SanitizerOutput {
            log: warpgauge_metrics::sanitizer::parse_log(log),
            tool: "compute-sanitizer 2025.3.1.0".to_owned(),
            outcome: RunOutcome::default(),
            wall: std::time::Duration::from_millis(800),
        };
        let why = warpgauge_model::Cause::TimedOut.because("it took too long");
        let report = gpu_report(vec![(Check::Memcheck, Ok(checked)), (Check::Initcheck, Err(why))]);
        assert!(!report.available);
        assert!(report.reason.as_ref().unwrap().starts_with("initcheck: it took too long"));
        assert_eq!(report.checks.iter().map(|c| c.available).collect::<Vec<_>>(), [true, false]);
        assert_eq!(report.checks[1].unavailable.as_ref().unwrap().code, "timed_out");
        let told = fault(Some(&report)).expect("a wrong access is a fault, whoever found it");
        assert!(told.contains("out_of_bounds"), "{told}");
        assert_eq!(report.findings[0].source.as_deref(), Some("kernel.cu:5"));
        assert_eq!(report.findings[0].thread, Some([5, 0, 0]));
    }

    #[test]
    fn what_is_asked_for_is_what_runs() {
        let names = |sanitize| wanted(&sanitize).into_iter().map(Check::name).collect::<Vec<_>>();
        assert_eq!(names(Sanitize::All), ["memcheck", "racecheck", "initcheck", "synccheck"]);
        assert_eq!(names(Sanitize::Tool("racecheck".to_owned())), ["racecheck"]);
        assert!(names(Sanitize::Off).is_empty());
    }
}
