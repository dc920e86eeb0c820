//! `warpgauge jobs list`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::args::ListArgs;
use crate::cli::terminal::{Terminal, plain};
use crate::cli::{CliError, json};
use crate::exit::Exit;
use warpgauge_client::JobListQuery;
use warpgauge_job_views::{JobList, JobSummary};
use warpgauge_report::KernelVerdict;

/// Largest page that a server gives.
const PAGE: u32 = 200;

pub(super) fn run(args: &ListArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let client = args.server.client()?;
    let mut jobs: Vec<JobSummary> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let wanted = args.limit - jobs.len() as u32;
        let filter = JobListQuery {
            states: &args.state,
            kind: args.kind.as_deref(),
            label: args.label.as_deref(),
            cursor: cursor.as_deref(),
            limit: wanted.min(PAGE),
        };
        let page = client.jobs().list(&filter)?.value;
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
            terminal.note("there are more; --limit shows them");
        }
    }
    Ok(Exit::Success)
}

fn table(jobs: &[JobSummary]) -> String {
    if jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
    let mut text = format!(
        "{:<36}  {:<8}  {:<10}  {:<12}  {:>6}  label\n",
        "job", "kind", "state", "verdict", "age"
    );
    for job in jobs {
        let why = job.error.as_ref().map(|error| first_line(error)).unwrap_or_default();
        let label = job.label.as_deref().unwrap_or_default();
        let rest = [label, why].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let line = format!(
            "{:<36}  {:<8}  {:<10}  {:<12}  {:>6}  {}",
            job.job_id,
            word(&job.kind),
            job.state.name(),
            job.verdict.map_or("", KernelVerdict::name),
            age(now - job.created_at),
            rest.join(": ")
        );
        text.push_str(plain(&line).trim_end());
        text.push('\n');
    }
    text
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// How long ago, in the largest unit of which there is one.
fn age(seconds: f64) -> String {
    match seconds.max(0.0) {
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3_600.0 => format!("{:.0} min", s / 60.0),
        s if s < 86_400.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// A word of the API.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_model::{JobKind, JobState};

    #[test]
    fn a_line_per_job_that_cannot_steer_the_terminal() {
        let job = JobSummary {
            job_id: "0199".to_owned(),
            kind: JobKind::Sweep,
            state: JobState::TimedOut,
            verdict: Some(KernelVerdict::NotChecked),
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
        let text = table(&[job]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("night\u{fffd}[2Jly: first\n"), "{text}");
        assert!(text.contains("sweep     timed_out   not_checked  "), "{text}");
        assert_eq!(table(&[]), "no jobs\n");
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
