//! `warpgauge eval`: evaluates one kernel.

mod recheck;
mod saves;
mod watch;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::args::EvalArgs;
use super::place::Place;
use super::progress::Progress;
use super::terminal::Terminal;
use super::{CliError, kernel_contract, matrix_files, outputs, report};
use crate::exit::Exit;
use recheck::Recheck;
use warpgauge_client::Reply;
use warpgauge_config::Config;
use warpgauge_page::PageOf;
use warpgauge_report::EvaluateResponse;

pub(super) fn run(args: &EvalArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    args.html.check([&args.contract])?;
    args.return_outputs.as_deref().map_or(Ok(()), outputs::check)?;
    if args.watch {
        return watch::run(args, config, terminal);
    }
    let (mut place, mut files) = (None, Vec::new());
    once(args, (config, terminal), &mut place, &mut files)
}

/// Evaluates once, in a place that stays open. Adds the files from which the contract was read to
/// `files`.
fn once<'c>(
    args: &'c EvalArgs,
    (config, terminal): (&'c Config, Terminal),
    place: &mut Option<Box<dyn Place + 'c>>,
    files: &mut Vec<PathBuf>,
) -> Result<Exit, CliError> {
    let progress = Progress::start(terminal);
    let wishes = args.kernel.wishes();
    let (opened, contract) = kernel_contract::open_in(
        place,
        &args.contract,
        (&args.target, args.patience.seconds),
        (config, terminal),
        (&progress, "evaluating"),
        |kernel, place| kernel.contract(place, terminal, &wishes),
        |contract| {
            args.kernel.apply(&mut contract.fields)?;
            apply_flags(args, &mut contract.fields);
            matrix_files::put_into(contract, matrix_files::max_bytes(config))
        },
    )?;
    files.extend_from_slice(contract.files());
    let source = contract.source();
    let recheck = Recheck::of(&contract);
    let evaluated = opened.evaluate(contract, &progress);
    let mut reply = evaluated.map_err(|error| args.kernel.explain(error))?;
    if let Some(recheck) = recheck {
        recheck.add_to(&mut reply, opened, &progress, terminal)?;
    }
    if !args.watch {
        *place = None;
    }
    drop(progress);
    if let Some(source) = source {
        if let Some(compile) = &mut reply.value.compile {
            source.explain(&mut compile.diagnostics);
        }
        let findings = reply.value.sanitize.iter_mut().flat_map(|found| &mut found.findings);
        findings.for_each(|finding| source.place(&mut finding.source));
    }
    finish(args, &reply, terminal)
}

/// Applies the flags to the contract.
fn apply_flags(args: &EvalArgs, fields: &mut serde_json::Map<String, Value>) {
    if args.allow_weak {
        fields.insert("allow_weak".to_owned(), json!(true));
    }
    if let Some(trials) = args.trials {
        fields.insert("num_trials".to_owned(), json!(trials));
    }
    if let Some(regime) = &args.regime {
        let measure = fields.entry("measure").or_insert_with(|| json!({}));
        if let Value::Object(measure) = measure {
            measure.insert("regime".to_owned(), json!(regime));
        }
    }
    if args.return_outputs.is_some() {
        // A contract that names outputs or an encoding keeps them.
        let wants_none = matches!(fields.get("return_outputs"), None | Some(Value::Null));
        if wants_none || fields["return_outputs"] == "none" {
            fields.insert("return_outputs".to_owned(), json!("all"));
        }
        fields
            .entry("output_encoding")
            .or_insert_with(|| json!({"compress": "zstd", "format": "npy"}));
    }
}

fn finish(
    args: &EvalArgs,
    Reply { text, value: response }: &Reply<EvaluateResponse>,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    // The report comes first, so that a full disk does not lose it.
    if args.json {
        // With --watch, each answer is one line. JSON contains no unescaped line breaks within
        // strings.
        let one_line = args.watch.then(|| text.replace(['\n', '\r'], " "));
        terminal.print_line(one_line.as_deref().unwrap_or(text))?;
    } else {
        terminal.print(&report::evaluation(response, terminal.style()))?;
        report::print_page(&args.target, &response.job_id, terminal)?;
    }
    args.html.write(PageOf::Evaluation(response), terminal)?;
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
        let sustained = ["--regime", "sustained"];
        assert_eq!(
            fields_with(&sustained, json!({"measure": {"cache": "hot"}})),
            json!({"measure": {"cache": "hot", "regime": "sustained"}})
        );
        assert_eq!(fields_with(&sustained, json!({})), json!({"measure": {"regime": "sustained"}}));
        let out = ["--return-outputs", "out"];
        let npy = json!({"compress": "zstd", "format": "npy"});
        assert_eq!(
            fields_with(&out, json!({"return_outputs": "none"})),
            json!({"return_outputs": "all", "output_encoding": npy})
        );
        let own = json!({"return_outputs": ["y"], "output_encoding": {"format": "raw"}});
        assert_eq!(fields_with(&out, own.clone()), own);
    }
}
