//! Runs a kernel with an invalid memory access again under the memory checker. The report then
//! names the access: its line, its thread, and its argument.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::cli::contract_file::ContractFile;
use crate::cli::place::Place;
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{CliError, json as text};
use warpgauge_client::Reply;
use warpgauge_model::FailureCode;
use warpgauge_report::EvaluateResponse;

/// Failures that the checker may explain by naming an access.
const FAULTS: [FailureCode; 4] = [
    FailureCode::IllegalAddress,
    FailureCode::MisalignedAddress,
    FailureCode::GuardBandWritten,
    FailureCode::MemoryFault,
];

/// Maximum total size of the files of a contract that is kept for another run, bytes.
const MAX_BYTES: u64 = 8 << 20;

/// Maximum duration of an evaluation after which another run is cheap.
const MAX_TIME: Duration = Duration::from_secs(20);

/// A contract that is evaluated again if its kernel makes an invalid access.
pub(super) struct Recheck {
    contract: ContractFile,
    began: Instant,
}

impl Recheck {
    /// Keeps a contract, unless it requests the checker or is large.
    pub(super) fn of(contract: &ContractFile) -> Option<Self> {
        let sizes =
            contract.files().iter().map(|file| file.metadata().map_or(0, |found| found.len()));
        let is_small = sizes.sum::<u64>() <= MAX_BYTES;
        (is_small && !asks(&contract.fields))
            .then(|| Self { contract: contract.clone(), began: Instant::now() })
    }

    /// Runs the kernel again under the checker if it made an invalid access, and adds the findings
    /// to the report. If the checker does not run or finds nothing, the report stays unchanged and
    /// a note gives the reason.
    pub(super) fn add_to(
        mut self,
        reply: &mut Reply<EvaluateResponse>,
        place: &mut dyn Place,
        progress: &Progress,
        terminal: Terminal,
    ) -> Result<(), CliError> {
        let code = reply.value.failure.as_ref().map(|failure| &failure.code);
        if !code.is_some_and(|code| FAULTS.contains(code)) || self.began.elapsed() > MAX_TIME {
            return Ok(());
        }
        terminal.note(
            "warpgauge: invalid memory access: running the kernel again under the memory checker",
        );
        once_checked(&mut self.contract.fields);
        let found = match place.evaluate(self.contract, progress) {
            Ok(checked) => checked.value.sanitize,
            Err(error @ CliError::Interrupted) => return Err(error),
            Err(error) => {
                terminal.note(&format!(
                    "warpgauge: the memory checker did not run: {}",
                    error.render()
                ));
                return Ok(());
            }
        };
        let Some(found) = found else { return Ok(()) };
        if let Some(reason) = &found.reason {
            terminal.note(&format!("warpgauge: the memory checker did not run: {reason}"));
        } else if found.findings.is_empty() {
            terminal.note("warpgauge: the memory checker found nothing");
        } else {
            reply.text = with(&reply.text, &text::tree("findings", &found)?);
            reply.value.sanitize = Some(found);
        }
        Ok(())
    }
}

/// Returns whether a contract requests the checker.
fn asks(fields: &Map<String, Value>) -> bool {
    fields.get("sanitize").is_some_and(|asked| !matches!(asked, Value::Null | Value::Bool(false)))
}

/// Reduces a contract to one launch under the checker, without further results.
fn once_checked(fields: &mut Map<String, Value>) {
    for name in ["profile", "return_outputs", "output_encoding", "measure", "webhook"] {
        fields.remove(name);
    }
    fields.insert("sanitize".to_owned(), json!("memcheck"));
    fields.insert("num_trials".to_owned(), json!(1));
}

/// Returns the report as text, with the findings added.
fn with(report: &str, found: &Value) -> String {
    match serde_json::from_str::<Map<String, Value>>(report) {
        Ok(mut fields) => {
            fields.insert("sanitize".to_owned(), found.clone());
            Value::Object(fields).to_string()
        }
        // The text was parsed as a report before.
        Err(_) => report.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn a_contract_that_asks_for_the_checker_is_not_run_again() {
        for (contract, expected) in [
            (json!({}), false),
            (json!({"sanitize": false}), false),
            (json!({"sanitize": null}), false),
            (json!({"sanitize": true}), true),
            (json!({"sanitize": "racecheck"}), true),
        ] {
            assert_eq!(asks(&fields(contract.clone())), expected, "{contract}");
        }
    }

    #[test]
    fn the_other_run_is_one_launch_and_its_findings_join_the_report() {
        let mut contract = fields(json!({"num_trials": 50, "profile": {}, "kernel": {}}));
        once_checked(&mut contract);
        let expected = json!({"num_trials": 1, "kernel": {}, "sanitize": "memcheck"});
        assert_eq!(Value::Object(contract), expected);
        let joined = with(r#"{"verdict": "failed"}"#, &json!({"available": true}));
        let joined: Value = serde_json::from_str(&joined).expect("JSON");
        assert_eq!(joined, json!({"verdict": "failed", "sanitize": {"available": true}}));
    }
}
