//! `warpgauge profile`: evaluates a kernel and uses device metrics to explain the result.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::args::ProfileArgs;
use super::progress::Progress;
use super::terminal::Terminal;
use super::{CliError, kernel_contract, matrix_files, report};
use crate::exit::Exit;
use warpgauge_client::Reply;
use warpgauge_config::Config;
use warpgauge_metrics::{Caption, roofline_svg};
use warpgauge_page::PageOf;
use warpgauge_report::EvaluateResponse;

pub(super) fn run(
    args: &ProfileArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    args.html.check([&args.contract])?;
    let progress = Progress::start(terminal);
    let to = (&args.target, args.patience.seconds);
    let wishes = args.kernel.wishes();
    let opened = kernel_contract::open(
        &args.contract,
        to,
        (config, terminal),
        (&progress, "profiling"),
        |kernel, place| kernel.contract(place, terminal, &wishes),
        |contract| {
            args.kernel.apply(&mut contract.fields)?;
            matrix_files::put_into(contract, matrix_files::max_bytes(config))?;
            apply_flags(args, &mut contract.fields);
            Ok(())
        },
    );
    let (mut place, contract) = opened?;
    let source = contract.source();
    let evaluated = place.evaluate(contract, &progress);
    let Reply { text, value: mut response } =
        evaluated.map_err(|error| args.kernel.explain(error))?;
    drop((place, progress));
    if let (Some(source), Some(compile)) = (source, &mut response.compile) {
        source.explain(&mut compile.diagnostics);
    }
    if args.json {
        terminal.print_line(&text)?;
    } else {
        terminal.print(&report::profile(&response, terminal.style()))?;
        report::print_page(&args.target, &response.job_id, terminal)?;
    }
    args.html.write(PageOf::Evaluation(&response), terminal)?;
    if let Some(path) = &args.svg {
        draw(&response, path, terminal)?;
    }
    Ok(exit(&response))
}

/// Set of metrics that is collected without `--metrics`. The roofline and the advice need it.
const EXPLAIN: &str = "explain";

/// Applies the flags to the contract's `profile`.
fn apply_flags(args: &ProfileArgs, fields: &mut Map<String, Value>) {
    let profile = fields.entry("profile").or_insert(Value::Null);
    if profile.is_null() {
        *profile = json!({});
    }
    if let Value::Object(profile) = profile {
        for (name, values) in [("metrics", &args.metrics), ("tools", &args.tools)] {
            if !values.is_empty() {
                profile.insert(name.to_owned(), json!(values));
            }
        }
        profile.entry("metrics").or_insert_with(|| json!([EXPLAIN]));
    }
    if let Some(trials) = args.trials {
        fields.insert("num_trials".to_owned(), json!(trials));
    }
}

/// Draws the roofline to a file. If the metrics do not suffice, prints a note.
fn draw(response: &EvaluateResponse, path: &Path, terminal: Terminal) -> Result<(), CliError> {
    let metadata = &response.kernel_exec_result.metadata;
    let metrics = metadata.device_metrics.as_ref();
    let Some((metrics, roofline)) = metrics.and_then(|it| Some((it, it.roofline.as_ref()?))) else {
        terminal.note(&format!(
            "{} was not written: the metrics include neither operations nor bytes",
            path.display()
        ));
        return Ok(());
    };
    if roofline.time.is_none() {
        terminal.note(&format!(
            "{} was not written: a roofline shows rates, and the launch has no time",
            path.display()
        ));
        return Ok(());
    }
    let caption = Caption {
        kernel: metadata.kernel_name.as_deref().unwrap_or(&metrics.kernel),
        device: response.device.as_ref().map_or("", |device| &device.name),
        tool: &metrics.tool,
    };
    std::fs::write(path, roofline_svg(roofline, caption))
        .map_err(|source| CliError::Write { path: path.to_owned(), source })?;
    terminal.note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Returns the exit code for the evaluation. A correct kernel without metrics indicates a problem
/// of the environment.
fn exit(response: &EvaluateResponse) -> Exit {
    match Exit::of_report(response) {
        Exit::Success if response.kernel_exec_result.metadata.device_metrics.is_none() => {
            Exit::Environment
        }
        exit => exit,
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::Command;
    use super::super::args::testing::{command, with_flags};
    use super::*;

    fn fields_with(flags: &[&str], contract: Value) -> Value {
        match command(&[&["profile", "c.yaml"], flags].concat()) {
            Command::Profile(args) => with_flags(contract, |fields| apply_flags(&args, fields)),
            other => panic!("parses as profile: {other:?}"),
        }
    }

    #[test]
    fn flags_reach_the_contract() {
        let all = json!({"profile": {"metrics": ["explain"]}});
        assert_eq!(fields_with(&[], json!({})), all);
        assert_eq!(fields_with(&[], json!({"profile": null})), all);
        let own = json!({"profile": {"metrics": ["stall"], "tools": ["ncu"]}});
        assert_eq!(fields_with(&[], own.clone()), own);
        assert_eq!(
            fields_with(&["--metrics", "core,duration", "--trials", "3"], own),
            json!({"profile": {"metrics": ["core", "duration"], "tools": ["ncu"]},
                   "num_trials": 3})
        );
    }
}
