//! `warpgauge jobs list`: lists jobs of a server or of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::args::ListArgs;
use crate::cli::format::duration_ms;
use crate::cli::terminal::{Terminal, plain, plain_line};
use crate::cli::{CliError, json, local};
use crate::exit::Exit;
use warpgauge_client::JobListQuery;
use warpgauge_config::Config;
use warpgauge_gate::SuiteVerdict;
use warpgauge_job_views::{JobList, JobSummary};
use warpgauge_model::{JobKind, JobState};
use warpgauge_report::KernelVerdict;
use warpgauge_service::{Caller, JobQuery, stored_jobs};

/// Maximum number of jobs in a server's page. Queries of this machine's store use the same limit.
const PAGE: u32 = 200;

pub(super) fn run(args: &ListArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let client = args.server.named()?;
    let runtime = match client {
        Some(_) => None,
        None => Some(local::runtime()?),
    };
    let mut jobs: Vec<JobSummary> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let wanted = (args.limit - jobs.len() as u32).min(PAGE);
        let page = match (&client, &runtime) {
            (Some(client), _) => {
                let filter = JobListQuery {
                    states: &args.state,
                    kind: args.kind.as_deref(),
                    verdict: args.verdict.map(KernelVerdict::name),
                    decision: args.decision.map(SuiteVerdict::name),
                    label: args.label.as_deref(),
                    cursor: cursor.as_deref(),
                    limit: wanted,
                };
                client.jobs().list(&filter)?.value
            }
            (None, Some(runtime)) => {
                let query = here(args, cursor.as_deref(), wanted);
                runtime.block_on(stored_jobs(config, &query, &Caller::local()))?
            }
            (None, None) => {
                return Err(CliError::Internal("no store to list jobs from".to_owned()));
            }
        };
        let came = page.jobs.len();
        jobs.extend(page.jobs);
        jobs.truncate(args.limit as usize);
        cursor = page.next_cursor;
        if cursor.is_none() || came == 0 || jobs.len() >= args.limit as usize {
            break;
        }
    }
    if args.json {
        terminal.print_line(&json::text("list", &JobList { jobs, next_cursor: cursor })?)?;
    } else {
        terminal.print(&table(&jobs))?;
        if cursor.is_some() {
            terminal.note("there are more jobs; raise --limit to list them");
        }
    }
    Ok(Exit::Success)
}

/// Returns the query for the jobs in this machine's store.
fn here(args: &ListArgs, cursor: Option<&str>, limit: u32) -> JobQuery {
    let state = |name: &String| JobState::ALL.into_iter().find(|state| state.name() == name);
    JobQuery {
        // clap accepts no other names.
        states: args.state.iter().filter_map(state).collect(),
        kind: args.kind.as_deref().and_then(JobKind::named),
        verdict: args.verdict,
        decision: args.decision,
        label: args.label.clone(),
        idempotency_key: None,
        created_after: None,
        created_before: None,
        limit,
        cursor: cursor.map(str::to_owned),
    }
}

/// Maximum length of a kernel name in the list, characters.
const KERNEL: usize = 24;

fn table(jobs: &[JobSummary]) -> String {
    if jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
    let mut text = format!(
        "{:<36}  {:<8}  {:<10}  {:<KERNEL$}  {:<12}  {:>10}  {:>6}  label\n",
        "job", "kind", "state", "kernel", "verdict", "median", "age"
    );
    for job in jobs {
        let why = job.error.as_ref().map(|error| first_line(error)).unwrap_or_default();
        let label = job.label.as_deref().unwrap_or_default();
        let rest = [label, why].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let line = format!(
            "{:<36}  {:<8}  {:<10}  {:<KERNEL$}  {:<12}  {:>10}  {:>6}  {}",
            job.job_id,
            word(&job.kind),
            job.state.name(),
            shortened(job.kernel.as_deref().unwrap_or_default()),
            verdict(job),
            job.median_ms.map_or(String::new(), duration_ms),
            age(now - job.created_at),
            rest.join(": ")
        );
        text.push_str(plain(&line).trim_end());
        text.push('\n');
    }
    text
}

/// Returns the decision of a gate, or the verdict on a kernel.
fn verdict(job: &JobSummary) -> &'static str {
    let decision = job.decision.map(SuiteVerdict::name);
    decision.or(job.verdict.map(KernelVerdict::name)).unwrap_or_default()
}

/// Returns the name of a kernel in a readable form, shortened to the width of the column.
fn shortened(name: &str) -> String {
    let name = plain_line(&warpgauge_compile::readable(name));
    match name.chars().count() <= KERNEL {
        true => name,
        false => name.chars().take(KERNEL - 1).chain(['…']).collect(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns a duration in the largest suitable unit.
fn age(seconds: f64) -> String {
    match seconds.max(0.0) {
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3_600.0 => format!("{:.0} min", s / 60.0),
        s if s < 86_400.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// Returns the name of an enumerated value in the API.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_job_that_cannot_steer_the_terminal() {
        let job = JobSummary {
            job_id: "0199".to_owned(),
            kind: JobKind::Sweep,
            state: JobState::TimedOut,
            verdict: Some(KernelVerdict::NotChecked),
            decision: None,
            worst_case: None,
            kernel: Some("_ZN2ns10vector_addIfEEvPKT_S3_PS1_i".to_owned()),
            median_ms: Some(0.0124),
            label: Some("night\x1b[2Jly".to_owned()),
            idempotency_key: None,
            priority: 0,
            attempt: 1,
            created_at: 0.0,
            started_at: None,
            finished_at: None,
            error: Some("first\nsecond".to_owned()),
            code: None,
        };
        let decision = Some(SuiteVerdict::Regression);
        let gate = JobSummary { kind: JobKind::Gate, decision, kernel: None, ..job.clone() };
        let line = table(&[gate]).lines().nth(1).map(str::to_owned).unwrap();
        assert!(line.contains("  REGRESSION  ") && !line.contains("not_checked"), "{line}");
        let text = table(&[job]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("night\u{fffd}[2Jly: first\n"), "{text}");
        let row = "sweep     timed_out   ns::vector_add<float>     not_checked     12.40 µs  ";
        assert!(text.contains(row), "{text}");
        assert_eq!(table(&[]), "no jobs\n");
        let long = shortened(&"é".repeat(300));
        assert_eq!((long.chars().count(), long.ends_with('…')), (KERNEL, true));
    }

    #[test]
    fn ages() {
        for (seconds, text) in
            [(-1.0, "0 s"), (59.0, "59 s"), (120.0, "2 min"), (7_300.0, "2 h"), (2e6, "23 d")]
        {
            assert_eq!(age(seconds), text);
        }
    }
}
