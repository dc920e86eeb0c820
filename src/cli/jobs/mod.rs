//! `warpgauge jobs`: jobs at a server.

mod args;
mod end;
mod list;
mod stream;

pub(super) use args::JobsCommand;
pub(super) use stream::follow_job;

use self::args::{JobArgs, WaitArgs};
use super::progress::Progress;
use super::remote::{self, Method};
use super::terminal::{Terminal, plain};
use super::{CliError, report};
use crate::exit::Exit;
use crate::report::{CancelReport, JobEvent, JobView};

pub(super) fn run(command: &JobsCommand, terminal: Terminal) -> Result<Exit, CliError> {
    match command {
        JobsCommand::List(args) => list::run(args, terminal),
        JobsCommand::Show(args) => show(args, terminal),
        JobsCommand::Cancel(args) => cancel(args, terminal),
        JobsCommand::Wait(args) => wait(args, terminal),
        JobsCommand::Events(args) => events(args, terminal),
    }
}

/// What a job did so far; the exit code says only whether that could be found out.
fn show(args: &JobArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let (text, job) = fetch(args)?;
    if args.json {
        terminal.print_line(&text)?;
    } else {
        terminal.print(&page(&job, terminal))?;
    }
    Ok(Exit::Success)
}

fn cancel(args: &JobArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let (target, server) = args.place();
    let route = args.route("");
    let (text, answer): (_, CancelReport) = remote::ask(&target, server, Method::DELETE, &route)?;
    if args.json {
        terminal.print_line(&text)?;
    } else {
        let outcome = list::word(&answer.outcome);
        terminal.print_line(&format!("{}  {outcome}  {}", answer.job_id, answer.state.name()))?;
    }
    Ok(Exit::Success)
}

/// Waits for a job's end; the exit code is that of `eval`, `compare` or `sweep`.
fn wait(args: &WaitArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let progress = Progress::start(terminal);
    let job = &args.job;
    let ended = stream::follow(job, args.timeout, &mut |event: &JobEvent, _: &str| {
        progress.stage(&stream::line(event));
        Ok(())
    })?;
    drop(progress);
    if !ended {
        let seconds = args.timeout.unwrap_or_default();
        terminal.note(&format!("job {} has not ended after {seconds} s", job.job_id));
        return Ok(Exit::Busy);
    }
    let (text, view) = fetch(job)?;
    if job.json {
        terminal.print_line(&text)?;
    } else {
        terminal.print(&page(&view, terminal))?;
    }
    Ok(end::exit(&view))
}

/// Prints a job's news as they come.
fn events(args: &JobArgs, terminal: Terminal) -> Result<Exit, CliError> {
    stream::follow(args, None, &mut |event: &JobEvent, text: &str| {
        let line = if args.json { text.to_owned() } else { stream::line(event) };
        terminal.print_line(&line)
    })?;
    Ok(Exit::Success)
}

fn fetch(args: &JobArgs) -> Result<(String, JobView), CliError> {
    let (target, server) = args.place();
    Ok(remote::ask(&target, server, Method::GET, &args.route(""))?)
}

/// A job for people: where it stands and, once it ended, its report.
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
        text.push_str(&report::comparison(comparison, terminal.colour));
    } else if let Some(result) = &job.result {
        text.push_str(&report::evaluation(result, terminal.colour));
    }
    if let Some(sweep) = &job.sweep {
        text.push_str(&format!("{} of {} points done\n", sweep.points_done, sweep.points));
    }
    text
}
