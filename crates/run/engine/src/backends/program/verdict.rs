//! The verdict on a program: whether it met the expectation of its contract.

use std::os::unix::process::ExitStatusExt;

use crate::whole_program::ProgramEnd;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{FailureCode, FailureStage};
use warpgauge_report::{FailureReport, ValidationReport, ValidationStatus};
use warpgauge_validate::{Reason, ReasonCode};

/// Name of a program's standard output among outputs.
const STDOUT: &str = "stdout";

/// Maximum number of characters of a line that a message quotes.
const QUOTED: usize = 120;

/// Verdict on a program, with the reasons.
pub(super) struct Verdict {
    pub validation: ValidationReport,
    pub correctness: Option<bool>,
    /// Reason why the program ended early, if it did.
    pub failure: Option<FailureReport>,
}

/// Judges a program by its exit and its output.
pub(super) fn judged(request: &EvaluateRequest, ended: &ProgramEnd) -> Verdict {
    let mut reasons = Vec::new();
    let failure = early(request, ended);
    if let Some((code, failure)) = &failure {
        reasons.push(Reason::new(*code, failure.message.clone()));
    } else {
        reasons.extend(exit_code(request, ended));
        reasons.extend(printed(request, ended));
    }
    let status = match (&failure, reasons.is_empty(), request.expected.is_empty()) {
        (Some(_), _, _) => ValidationStatus::NotRun,
        (None, false, _) => ValidationStatus::Failed,
        (None, true, true) => ValidationStatus::NotChecked,
        (None, true, false) => ValidationStatus::Passed,
    };
    let correctness = match status {
        ValidationStatus::Passed => Some(true),
        ValidationStatus::NotChecked => None,
        ValidationStatus::Failed | ValidationStatus::NotRun => Some(false),
    };
    let unchecked = match request.expected_stdout() {
        Some(_) => Vec::new(),
        None => vec![STDOUT.to_owned()],
    };
    Verdict {
        validation: ValidationReport {
            status,
            outputs: Default::default(),
            reasons,
            weaknesses: Vec::new(),
            unchecked,
        },
        correctness,
        failure: failure.map(|(_, failure)| failure),
    }
}

/// Returns the name of the signal that ended the program.
pub(super) fn signal(ended: &ProgramEnd) -> Option<String> {
    Some(name_of(ended.status?.signal()?))
}

fn name_of(signal: i32) -> String {
    let known = [
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    let found = known.iter().find(|(number, _)| *number == signal);
    found.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

/// Returns the reason why the program ended early: it timed out, or a signal ended it. Returns
/// `None` if it ended by itself.
fn early(request: &EvaluateRequest, ended: &ProgramEnd) -> Option<(ReasonCode, FailureReport)> {
    let (reason, code, message) = match &ended.status {
        None => (
            ReasonCode::Timeout,
            FailureCode::Timeout,
            format!(
                "the program did not end within {} s and was stopped; `timeout` can be raised to 600",
                request.timeout
            ),
        ),
        Some(status) => {
            let number = status.signal()?;
            let hint = match number {
                9 => ": this signal is sent if memory runs out",
                25 => ": it wrote more than is allowed",
                _ => "",
            };
            let message = format!("{} ended the program{hint}", name_of(number));
            (ReasonCode::EndedBySignal, FailureCode::EndedBySignal, message)
        }
    };
    Some((reason, FailureReport { stage: FailureStage::Execute, code, message }))
}

fn exit_code(request: &EvaluateRequest, ended: &ProgramEnd) -> Option<Reason> {
    let found = ended.status?.code()?;
    let message = match request.expected_exit_code() {
        Some(expected) if found == i32::from(expected) => return None,
        Some(expected) => format!("the exit code is {found}, but {expected} was expected"),
        None if found == 0 => return None,
        None => format!(
            "the exit code is {found}, which means that the program failed; expect this code \
             (`expected.exit_code`) if it is correct"
        ),
    };
    Some(Reason::new(ReasonCode::ExitCode, message))
}

fn printed(request: &EvaluateRequest, ended: &ProgramEnd) -> Option<Reason> {
    let expected = request.expected_stdout()?;
    let found = &ended.stdout;
    let message = if found.left_out > 0 {
        format!(
            "the program printed {} bytes more than the maximum for a comparison",
            found.left_out
        )
    } else if let Some(text) = &expected.text
        && let Some(difference) = difference(text, &found.text)
    {
        difference
    } else if let Some(part) = &expected.contains
        && !found.text.contains(part)
    {
        format!("`{}` does not occur in the program's output", quoted(part))
    } else {
        return None;
    };
    Some(Reason::new(ReasonCode::OutputMismatch, format!("stdout: {message}")))
}

/// Describes the first line that differs, if any. White space at the ends of lines and at the end
/// of the text is ignored.
fn difference(expected: &str, found: &str) -> Option<String> {
    let lines = |text: &str| -> Vec<String> {
        text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
    };
    let (expected, found) = (lines(expected), lines(found));
    let at = (0..expected.len().max(found.len())).find(|&at| expected.get(at) != found.get(at))?;
    Some(match (expected.get(at), found.get(at)) {
        (Some(expected), Some(found)) => format!(
            "line {} is `{}`, but `{}` was expected",
            at + 1,
            quoted(found),
            quoted(expected)
        ),
        (Some(expected), None) => {
            format!(
                "the output ends before line {}, which should be `{}`",
                at + 1,
                quoted(expected)
            )
        }
        (None, found) => {
            let found = found.map_or("", String::as_str);
            format!(
                "the output continues after the expected end: line {} is `{}`",
                at + 1,
                quoted(found)
            )
        }
    })
}

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(QUOTED).map(printable).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
}

fn printable(c: char) -> char {
    if warpgauge_model::is_hidden(c) { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use warpgauge_sandbox::contained::CapturedText;
    use warpgauge_sandbox::device_worker::Confinement;

    fn ended(status: Option<i32>, stdout: &str) -> ProgramEnd {
        ProgramEnd {
            status: status.map(ExitStatus::from_raw),
            stdout: CapturedText { text: stdout.to_owned(), left_out: 0 },
            stderr: CapturedText::default(),
            wall: Duration::from_millis(5),
            confinement: Confinement::none("a test"),
            counted: None,
        }
    }

    fn verdict(expected: Value, ended: &ProgramEnd) -> (Option<bool>, Vec<String>) {
        let body = json!({"kernel": {"kernel_type": "program", "source_code": "s"},
            "expected": short(expected)});
        let request: EvaluateRequest = serde_json::from_value(body).unwrap();
        let verdict = judged(&request, ended);
        let reasons = verdict.validation.reasons.iter();
        (verdict.correctness, reasons.map(|reason| reason.code.name().to_owned()).collect())
    }

    /// Shortens the expectations of a program: an object with one text or number becomes that
    /// value.
    fn short(mut expected: Value) -> Value {
        for one in expected.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            match one {
                Value::String(text) => *one = json!({"text": text}),
                Value::Number(code) => *one = json!({"code": code}),
                _ => {}
            }
        }
        expected
    }

    const EXIT_3: i32 = 3 << 8;

    #[test]
    fn an_exit_code_is_right_if_it_was_expected_or_is_zero() {
        let codes = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(verdict(json!({}), &ended(Some(0), "")), (None, vec![]));
        assert_eq!(verdict(json!({"exit_code": 0}), &ended(Some(0), "")), (Some(true), vec![]));
        assert_eq!(
            verdict(json!({"exit_code": 3}), &ended(Some(EXIT_3), "")),
            (Some(true), vec![])
        );
        for expected in [json!({}), json!({"exit_code": 0}), json!({"stdout": "x"})] {
            let (correct, reasons) = verdict(expected, &ended(Some(EXIT_3), "x"));
            assert_eq!((correct, reasons), (Some(false), codes(&["exit_code"])));
        }
        let (correct, reasons) = verdict(json!({"exit_code": 0}), &ended(Some(11), ""));
        assert_eq!((correct, reasons), (Some(false), codes(&["ended_by_signal"])));
        let (correct, reasons) = verdict(json!({"stdout": ""}), &ended(None, ""));
        assert_eq!((correct, reasons), (Some(false), codes(&["timeout"])));
    }

    #[test]
    fn text_is_compared_line_by_line_and_the_first_difference_told() {
        let right = [("a\nb\n", "a  \nb"), ("", "\n\n"), ("a", "a\r\n"), ("  a", "  a")];
        for (expected, found) in right {
            assert_eq!(difference(expected, found), None, "{expected:?} {found:?}");
        }
        let wrong =
            [("a\nb", "a\nc"), ("a\nb", "a"), ("a", "a\nb"), (" a", "a"), ("a\n\nb", "a\nb")];
        for (expected, found) in wrong {
            assert!(difference(expected, found).is_some(), "{expected:?} {found:?}");
        }
        assert!(difference("a\nb", "a\nc").unwrap().starts_with("line 2 is `c`, but `b`"));
        let cut = CapturedText { text: "PASS".to_owned(), left_out: 1 };
        let cut = ProgramEnd { stdout: cut, ..ended(Some(0), "") };
        assert_eq!(verdict(json!({"stdout": {"contains": "PASS"}}), &cut).0, Some(false));
        let whole = ended(Some(0), "1\nPASS\n");
        assert_eq!(verdict(json!({"stdout": {"contains": "PASS"}}), &whole).0, Some(true));
        assert_eq!(verdict(json!({"stdout": {"contains": "FAIL"}}), &whole).0, Some(false));
    }
}
