//! `warpgauge history`: prints the values of a case over time, and the points at which they
//! changed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::args::Target;
use super::terminal::{Terminal, plain};
use super::{CliError, json, place};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_gate::history::{HistoryAnswer, Series, date_and_time, short_commit, svg};
use warpgauge_gate::report::outcome;
use warpgauge_model::nearest;
use warpgauge_service::{HistoryQuery, MAX_HISTORY};

/// Maximum number of values that are printed. The latest values are chosen.
const SHOWN: usize = 12;

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// Case of a suite or of an evaluation; without a case, print a summary of all cases
    pub case: Option<String>,
    /// Print the series as JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the series into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Maximum number of points; the newest are used
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_HISTORY)))]
    pub limit: u32,
    #[command(flatten)]
    pub target: Target,
}

pub(super) fn run(
    args: &HistoryArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let query = HistoryQuery { case: args.case.clone(), limit: args.limit };
    let mut place = place::open(&args.target, place::NONE, config, terminal)?;
    let answer = place.history(&query)?;
    if let (Some(case), true) = (&args.case, answer.series.is_empty()) {
        let all = place.history(&HistoryQuery { case: None, limit: args.limit })?;
        return Err(CliError::Usage(unknown(case, &all)));
    }
    drop(place);
    if let Some(path) = &args.svg {
        std::fs::write(path, svg(&answer.series))
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
        terminal.note(&format!("wrote {}", path.display()));
    }
    if args.json {
        terminal.print_line(&json::text("history", &answer)?)?;
    } else {
        terminal.print(&plain(&text(&answer, args.case.is_some())))?;
    }
    Ok(Exit::Success)
}

/// Returns the message for an unknown case. It contains the names of known cases.
fn unknown(case: &str, all: &HistoryAnswer) -> String {
    let known: BTreeSet<&str> = all.series.iter().map(|series| series.key.case.as_str()).collect();
    let meant = nearest(case, known.iter().copied());
    let meant = meant.map(|name| format!("; did you mean `{name}`")).unwrap_or_default();
    let listed = known.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let listed = if listed.is_empty() { "none".to_owned() } else { listed };
    format!("there is no history of a case `{case}`{meant}. Cases with a history: {listed}")
}

fn text(answer: &HistoryAnswer, in_full: bool) -> String {
    if answer.series.is_empty() {
        return "no history\n".to_owned();
    }
    let mut text = String::new();
    for series in &answer.series {
        text.push_str(&heading(series));
        for change in &series.changes {
            let commit = change.commit.as_deref().map(short_commit);
            let commit = commit.map(|commit| format!(" at {commit}"));
            let size = 100.0 * (change.after / change.before - 1.0);
            let size = if size.is_finite() { format!("{size:+.2} %, ") } else { String::new() };
            text.push_str(&format!(
                "  change at point {}{}: {} to {} ({size}{})\n",
                change.at + 1,
                commit.unwrap_or_default(),
                value(series, change.before),
                value(series, change.after),
                certainty(series, change.p_value)
            ));
        }
        if in_full {
            list(&mut text, series);
        }
    }
    if answer.truncated {
        text.push_str("older points are omitted; see --limit\n");
    }
    text
}

fn heading(series: &Series) -> String {
    let key = &series.key;
    let driver = key.driver.as_deref().map(|driver| format!(", driver {driver}"));
    let last = series.points.last().map(|point| format!(", last {}", value(series, point.value)));
    format!(
        "{}  {}  {}{}, {}: {} points{}\n",
        key.case,
        series.metric,
        key.device,
        driver.unwrap_or_default(),
        key.method,
        series.points.len(),
        last.unwrap_or_default()
    )
}

fn list(text: &mut String, series: &Series) {
    let skipped = series.points.len().saturating_sub(SHOWN);
    for (index, point) in series.points.iter().enumerate().skip(skipped) {
        let interval = point
            .ci_low
            .zip(point.ci_high)
            .map(|(low, high)| format!(" [{}, {}]", value(series, low), value(series, high)));
        let about = [point.commit.as_deref().map(short_commit), point.branch.clone()];
        let about = about.into_iter().flatten().map(|part| format!("  {part}")).collect::<String>();
        text.push_str(&format!(
            "  {:>5}  {}  {}{}  {}{about}\n",
            index + 1,
            date_and_time(point.unix_s).unwrap_or_default(),
            value(series, point.value),
            interval.unwrap_or_default(),
            outcome(point.verdict),
        ));
    }
}

/// Returns the certainty of a change as text. Differences of counts are exact.
fn certainty(series: &Series, p_value: f64) -> String {
    if series.metric != "time" {
        "exact".to_owned()
    } else if p_value < 0.001 {
        "p < 0.001".to_owned()
    } else {
        format!("p = {p_value:.3}")
    }
}

fn value(series: &Series, value: f64) -> String {
    if series.metric == "time" { format!("{value:.6} ms") } else { format!("{value}") }
}
