//! `warpgauge eval`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::EvalArgs;
use super::contract_file::ContractFile;
use super::progress::{Progress, TICK};
use super::terminal::Terminal;
use super::{CliError, local, outputs, remote, report};
use crate::config::Config;
use crate::contract::EvaluateRequest;
use crate::exit::Exit;
use crate::pipeline::{EvaluationService, ServiceError, Submission};
use crate::report::EvaluateResponse;

pub(super) fn run(args: &EvalArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let progress = Progress::start(terminal);
    let mut contract = ContractFile::read(&args.contract, config.server.body_limit_bytes)?;
    apply_flags(args, &mut contract.fields);
    let (text, response) = match &args.target.server {
        Some(server) => {
            progress.stage(&format!("evaluating at {server}"));
            let body = Value::Object(contract.fields);
            remote::post(&args.target, server, "/evaluate", &body)?
        }
        None => {
            progress.stage("starting");
            let request: EvaluateRequest = contract.typed()?;
            local::answer(config, |service| {
                let progress = &progress;
                async move {
                    watched(
                        Arc::clone(&service),
                        service.evaluate(request, Submission::local()),
                        progress,
                    )
                    .await
                }
            })?
        }
    };
    drop(progress);
    finish(args, &text, &response, terminal)
}

/// Puts the flags into the contract, where the service looks for them.
fn apply_flags(args: &EvalArgs, fields: &mut serde_json::Map<String, Value>) {
    if let Some(trials) = args.trials {
        fields.insert("num_trials".to_owned(), json!(trials));
    }
    if args.return_outputs.is_some() {
        // A contract that names some outputs, or an encoding, keeps its say.
        let wants_none = matches!(fields.get("return_outputs"), None | Some(Value::Null));
        if wants_none || fields["return_outputs"] == "none" {
            fields.insert("return_outputs".to_owned(), json!("all"));
        }
        fields
            .entry("output_encoding")
            .or_insert_with(|| json!({"compress": "zstd", "format": "npy"}));
    }
}

/// Waits for work of this process, showing the stage meanwhile.
pub(super) async fn watched<T>(
    service: Arc<dyn EvaluationService>,
    work: impl Future<Output = Result<T, ServiceError>>,
    progress: &Progress,
) -> Result<T, CliError> {
    let mut ticks = tokio::time::interval(TICK);
    tokio::pin!(work);
    loop {
        tokio::select! {
            outcome = &mut work => return Ok(outcome?),
            _ = ticks.tick() => {
                if let Some(stage) = stage(&service.status().jobs_by_state) {
                    progress.stage(stage);
                }
            }
        }
    }
}

/// The stage of the only job of this process, by the states of the jobs.
fn stage(jobs_by_state: &BTreeMap<String, u64>) -> Option<&'static str> {
    let any = |state: &str| jobs_by_state.get(state).is_some_and(|count| *count > 0);
    [
        ("profiling", "running on the device"),
        ("compiling", "compiling"),
        ("queued", "waiting for a device"),
    ]
    .into_iter()
    .find(|(state, _)| any(state))
    .map(|(_, text)| text)
}

fn finish(
    args: &EvalArgs,
    text: &str,
    response: &EvaluateResponse,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    // The report first: a full disk must not cost it.
    if args.json {
        terminal.print_line(text)?;
    } else {
        terminal.print(&report::evaluation(response, terminal.colour))?;
    }
    if let Some(directory) = &args.return_outputs {
        for path in outputs::write(&response.outputs, directory)? {
            terminal.note(&format!("wrote {}", path.display()));
        }
    }
    Ok(Exit::of_report(response))
}

#[cfg(test)]
mod tests {
    use super::super::args::Command;
    use super::super::args::testing::{command, with_flags};
    use super::*;

    fn fields_with(flags: &[&str], contract: Value) -> Value {
        match command(&[&["eval", "c.yaml"], flags].concat()) {
            Command::Eval(args) => with_flags(contract, |fields| apply_flags(&args, fields)),
            other => panic!("parses as eval: {other:?}"),
        }
    }

    #[test]
    fn flags_reach_the_contract() {
        assert_eq!(fields_with(&[], json!({})), json!({}));
        assert_eq!(
            fields_with(&["--trials", "9"], json!({"num_trials": 3})),
            json!({"num_trials": 9})
        );
        let out = ["--return-outputs", "out"];
        let npy = json!({"compress": "zstd", "format": "npy"});
        assert_eq!(
            fields_with(&out, json!({"return_outputs": "none"})),
            json!({"return_outputs": "all", "output_encoding": npy})
        );
        let own = json!({"return_outputs": ["y"], "output_encoding": {"format": "raw"}});
        assert_eq!(fields_with(&out, own.clone()), own);
    }

    #[test]
    fn the_stage_is_that_of_the_running_job() {
        let states = |pairs: &[(&str, u64)]| {
            stage(&pairs.iter().map(|(state, count)| ((*state).to_owned(), *count)).collect())
        };
        assert_eq!(states(&[("compiling", 1), ("queued", 0)]), Some("compiling"));
        assert_eq!(states(&[("profiling", 1)]), Some("running on the device"));
        assert_eq!(states(&[("completed", 1)]), None);
    }
}
