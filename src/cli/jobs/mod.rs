//! `warpgauge jobs`: shows, cancels and awaits jobs on a server, and lists those of this machine.

mod args;
mod end;
mod line;
mod list;

use std::time::{Duration, Instant};

pub(super) use args::JobsCommand;

use self::args::{JobArgs, ShowArgs, WaitArgs};
use super::progress::Progress;
use super::terminal::{Terminal, plain};
use super::{CliError, place, report};
use crate::exit::Exit;
use warpgauge_client::Reply;
use warpgauge_config::Config;
use warpgauge_gate::report::text as gate_text;
use warpgauge_job_views::{JobEvent, JobView};
use warpgauge_page::PageOf;

/// Time for which a command that follows a job retries if the server is unreachable, seconds.
const PATIENCE_S: f64 = 15.0;

/// Runs a subcommand and returns the exit code.
pub(super) fn run(
    command: &JobsCommand,
    config: &Config,
    terminal: Terminal,
) -> Result<u8, CliError> {
    let exit = match command {
        JobsCommand::List(args) => list::run(args, config, terminal),
        JobsCommand::Show(args) => show(args, terminal),
        JobsCommand::Cancel(args) => cancel(args, terminal),
        JobsCommand::Wait(args) => return wait(args, terminal),
        JobsCommand::Events(args) => events(args, terminal),
    };
    Ok(exit?.code())
}

/// Prints the state of a job and its report. The exit code is success if the server knows the job,
/// whatever its state.
fn show(args: &ShowArgs, terminal: Terminal) -> Result<Exit, CliError> {
    args.html.check([])?;
    let Reply { text, value: job } = fetch(&args.job)?;
    if args.job.json {
        terminal.print_line(&text)?;
    } else {
        terminal.print(&page(&job, terminal))?;
    }
    args.html.write(PageOf::Job(&job), terminal)?;
    Ok(Exit::Success)
}

fn cancel(args: &JobArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let Reply { text, value: answer } = args.server.client()?.jobs().cancel(&args.job_id)?;
    if args.json {
        terminal.print_line(&text)?;
    } else {
        let outcome = list::word(&answer.outcome);
        terminal.print_line(&format!("{}  {outcome}  {}", answer.job_id, answer.state.name()))?;
    }
    Ok(Exit::Success)
}

/// Waits until a job ends. Returns the exit code that `eval`, `compare`, `sweep` or `gate run`
/// would return.
fn wait(args: &WaitArgs, terminal: Terminal) -> Result<u8, CliError> {
    let progress = Progress::start(terminal);
    let job = &args.job;
    let until = args.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let ended = follow(job, until, terminal, &mut |event: &JobEvent, _: &str| {
        progress.stage(&line::of(event));
        Ok(())
    })?;
    drop(progress);
    if !ended {
        let seconds = args.timeout.unwrap_or_default();
        terminal.note(&format!("job {} has not ended after {seconds} s", job.job_id));
        return Ok(Exit::Busy.code());
    }
    let Reply { text, value: view } = fetch(job)?;
    if job.json {
        terminal.print_line(&text)?;
    } else {
        terminal.print(&page(&view, terminal))?;
    }
    Ok(end::exit(&view))
}

/// Prints a job's events as they arrive.
fn events(args: &JobArgs, terminal: Terminal) -> Result<Exit, CliError> {
    follow(args, None, terminal, &mut |event: &JobEvent, text: &str| {
        let line = if args.json { text.to_owned() } else { line::of(event) };
        terminal.print_line(&line)
    })?;
    Ok(Exit::Success)
}

fn follow(
    args: &JobArgs,
    until: Option<Instant>,
    terminal: Terminal,
    on_event: &mut dyn FnMut(&JobEvent, &str) -> Result<(), CliError>,
) -> Result<bool, CliError> {
    let mut patience = place::patience(PATIENCE_S, terminal);
    args.server.client()?.jobs().follow(&args.job_id, until, &mut patience, on_event)
}

fn fetch(args: &JobArgs) -> Result<Reply<JobView>, CliError> {
    Ok(args.server.client()?.jobs().get(&args.job_id)?)
}

/// Returns the state of a job and, once it has ended, its report.
fn page(job: &JobView, terminal: Terminal) -> String {
    let mut text = format!("{}  {}", job.job_id, list::word(&job.kind));
    text.push_str(&format!("  {}", job.state.name()));
    if let Some(label) = &job.label {
        text.push_str(&format!("  {}", plain(label)));
    }
    text.push('\n');
    if let Some(error) = &job.error {
        let code = job.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
        text.push_str(&plain(&format!("{error}{code}\n")));
    }
    if let Some(comparison) = &job.comparison {
        text.push_str(&report::comparison(comparison, report::Beside::unnamed(), terminal.style()));
    } else if let Some(result) = &job.result {
        text.push_str(&report::evaluation(result, terminal.style()));
    }
    if let Some(gate) = &job.gate {
        text.push_str(&plain(&gate_text(gate)));
    }
    if let Some(sweep) = &job.sweep {
        text.push_str(&format!("{} of {} points done\n", sweep.points_done, sweep.points));
    }
    text
}
