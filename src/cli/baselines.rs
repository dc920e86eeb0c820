//! `warpgauge baselines`: lists, stores and removes baselines on a server or on this machine.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::args::Target;
use super::gate::{cases, git, suite_file};
use super::terminal::{Terminal, plain};
use super::{CliError, json, place};
use crate::exit::Exit;
use warpgauge_api::{BaselineRemoved, Baselines};
use warpgauge_config::Config;
use warpgauge_gate::{BaselineCase, BaselineSummary, NewBaseline, check_baseline_name};

/// Time for which a command retries while the server is full or restarting, seconds.
const PATIENCE_S: f64 = 120.0;

#[derive(Debug, Subcommand)]
pub(super) enum BaselinesCommand {
    /// List baselines
    List(ListArgs),
    /// Show the conditions and the cases of a baseline; with --json also its code
    Show(NameArgs),
    /// Store the working tree's kernels of a suite as a baseline; each case runs once first
    #[command(after_help = "Examples:\n  \
        warpgauge baselines store main suite.yaml --server http://gpu-host:8000\n\n\
        A baseline of that name for the same device, driver and method is replaced.")]
    Store(StoreArgs),
    /// Make the candidate of a passed gate run the baseline of this name
    #[command(after_help = "Examples:\n  \
        warpgauge baselines promote main --job JOB --server http://gpu-host:8000\n\n\
        The report of `warpgauge gate run` contains the job's id. The flag --promote of `gate run` does the same.")]
    Promote(PromoteArgs),
    /// Remove the baselines of a name; reports of runs against them remain
    Delete(NameArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print the response of `GET /baselines` as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub(super) struct NameArgs {
    /// Name of the baseline
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: String,
    /// Print the response as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    pub named: NameArgs,
    /// Suite (YAML), with its contracts and kernels
    pub suite: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct PromoteArgs {
    #[command(flatten)]
    pub named: NameArgs,
    /// `job_id` of the gate run
    #[arg(long, value_name = "JOB")]
    pub job: String,
}

fn name(text: &str) -> Result<String, String> {
    check_baseline_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

pub(super) fn run(
    command: &BaselinesCommand,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    match command {
        BaselinesCommand::List(args) => list(args, config, terminal),
        BaselinesCommand::Show(args) => show(args, config, terminal),
        BaselinesCommand::Store(args) => store(args, config, terminal),
        BaselinesCommand::Promote(args) => promote(args, config, terminal),
        BaselinesCommand::Delete(args) => delete(args, config, terminal),
    }?;
    Ok(Exit::Success)
}

fn list(args: &ListArgs, config: &Config, terminal: Terminal) -> Result<(), CliError> {
    let mut place = place::open(&args.target, place::NONE, config, terminal)?;
    let answer = Baselines { baselines: place.baselines()? };
    if args.json {
        terminal.print_line(&json::text("list", &answer)?)
    } else {
        terminal.print(&plain(&table(&answer.baselines)))
    }
}

fn show(args: &NameArgs, config: &Config, terminal: Terminal) -> Result<(), CliError> {
    let mut place = place::open(&args.target, place::NONE, config, terminal)?;
    let baseline = place.baseline(&args.name)?;
    if args.json {
        terminal.print_line(&json::text("baseline", &baseline)?)
    } else {
        terminal.print(&plain(&page(&baseline.summary())))
    }
}

fn store(args: &StoreArgs, config: &Config, terminal: Terminal) -> Result<(), CliError> {
    let suite = suite_file::read(&args.suite)?;
    let home = args.suite.parent().unwrap_or(Path::new(""));
    let limit = config.server.body_limit_bytes;
    let case = |spec: warpgauge_gate::CaseSpec| {
        let contract = cases::required(&spec, home, limit)?;
        Ok(BaselineCase { name: spec.name, contract })
    };
    let new = NewBaseline {
        name: args.named.name.clone(),
        suite: args.suite.display().to_string(),
        cases: suite.cases.into_iter().map(case).collect::<Result<_, CliError>>()?,
        pin: None,
        commit: git::described(home),
    };
    let mut place = place::open(&args.named.target, PATIENCE_S, config, terminal)?;
    let summary = place.store_baseline(new)?;
    kept("stored", &summary, args.named.json, terminal)
}

fn promote(args: &PromoteArgs, config: &Config, terminal: Terminal) -> Result<(), CliError> {
    let NameArgs { name, json, target } = &args.named;
    let mut place = place::open(target, place::NONE, config, terminal)?;
    let summary = place.promote(name, &args.job)?;
    kept("promoted", &summary, *json, terminal)
}

fn delete(args: &NameArgs, config: &Config, terminal: Terminal) -> Result<(), CliError> {
    let mut place = place::open(&args.target, place::NONE, config, terminal)?;
    let answer = BaselineRemoved { name: place.remove_baseline(&args.name)? };
    if args.json {
        terminal.print_line(&json::text("answer", &answer)?)
    } else {
        terminal.print_line(&format!("removed {}", answer.name))
    }
}

/// Prints a baseline after it was stored.
fn kept(
    how: &str,
    summary: &BaselineSummary,
    as_json: bool,
    terminal: Terminal,
) -> Result<(), CliError> {
    if as_json {
        return terminal.print_line(&json::text("baseline", summary)?);
    }
    terminal.print(&plain(&format!("{how} {}", page(summary))))
}

/// Returns the device, driver, CUDA version and method for which a baseline is valid, on one line.
fn pinned(summary: &BaselineSummary) -> String {
    let pin = &summary.pin;
    let driver = pin.driver.as_ref().map(|driver| format!(", driver {driver}"));
    format!(
        "{}{}, CUDA {}, {} {}",
        pin.device,
        driver.unwrap_or_default(),
        pin.cuda,
        pin.method,
        pin.method_version
    )
}

fn page(summary: &BaselineSummary) -> String {
    let mut text = format!("{}\n  for     {}\n", summary.name, pinned(summary));
    text.push_str(&format!("  suite   {}\n", summary.suite));
    if let Some(commit) = &summary.commit {
        text.push_str(&format!("  commit  {commit}\n"));
    }
    if let Some(job) = &summary.promoted_from {
        text.push_str(&format!("  job     {job}\n"));
    }
    text.push_str(&format!("  cases   {}\n", summary.cases.join(", ")));
    text
}

fn table(all: &[BaselineSummary]) -> String {
    if all.is_empty() {
        return "no baselines\n".to_owned();
    }
    let width = all.iter().map(|one| one.name.len()).max().unwrap_or(0).max(4);
    let mut text = format!("{:<width$}  cases  {:<12}  for\n", "name", "commit");
    for one in all {
        let commit = one.commit.as_deref().unwrap_or_default();
        let commit = commit.chars().take(12).collect::<String>();
        text.push_str(&format!(
            "{:<width$}  {:>5}  {commit:<12}  {}\n",
            one.name,
            one.cases.len(),
            pinned(one)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_gate::BaselinePin;

    #[test]
    fn a_line_per_baseline_that_cannot_steer_the_terminal() {
        let one = BaselineSummary {
            name: "main".to_owned(),
            pin: BaselinePin {
                device: "H200\x1b[2J".to_owned(),
                driver: Some("580.1".to_owned()),
                cuda: "13.0".to_owned(),
                method: "cuda_events_gated".to_owned(),
                method_version: 2,
            },
            suite: "suite.yaml".to_owned(),
            commit: Some("0123456789abcdef".to_owned()),
            promoted_from: Some("0199".to_owned()),
            stored_unix_s: 1.0,
            cases: vec!["a".to_owned(), "b".to_owned()],
        };
        let text = plain(&table(std::slice::from_ref(&one)));
        let line = "main      2  0123456789ab  H200\u{fffd}[2J, driver 580.1, CUDA 13.0, \
                    cuda_events_gated 2";
        assert_eq!(text.lines().nth(1), Some(line), "{text}");
        assert!(page(&one).contains("  job     0199\n  cases   a, b\n"), "{}", page(&one));
        assert_eq!(table(&[]), "no baselines\n");
    }
}
