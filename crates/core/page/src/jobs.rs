//! Pages about jobs: one job, the list of jobs, and pages without a report.

use std::time::{Duration, UNIX_EPOCH};

use maud::{Markup, html};
use warpgauge_contract::REFERENCE_NAME;
use warpgauge_gate::report::WorstCase;
use warpgauge_job_views::{JobEvent, JobList, JobSummary, JobView};
use warpgauge_model::JobState;

use crate::document::{Content, Links, Refresh};
use crate::job_filter::ListFilter;
use crate::parts::{self, Section, Tone};
use crate::script::PageScript;
use crate::{comparison, evaluation, gate, live, sweep, text};

/// The number of seconds after which a browser reloads the page of a job that has not ended, or the
/// list.
const REFRESH_S: u32 = 3;

/// The number of characters of an id that the list shows.
const ID_SHOWN: usize = 8;

/// Writes the page of a job: its report, or its state. With the newest event of a job that has not
/// ended, the page shows more of its progress, and a script keeps it up to date.
pub fn job(view: &JobView, now: Option<&JobEvent>, links: &Links) -> String {
    content(view, now, links).whole(links)
}

pub(crate) fn content(view: &JobView, now: Option<&JobEvent>, links: &Links) -> Content {
    if let Some(report) = &view.comparison {
        return comparison::content(report, REFERENCE_NAME, links);
    }
    if let Some(report) = view.sweep.as_ref().and_then(|sweep| sweep.result.as_ref()) {
        return sweep::content(report);
    }
    if let Some(report) = &view.gate {
        return gate::content(report);
    }
    match &view.result {
        Some(report) => evaluation::content(report, links),
        None => state(view, now, links),
    }
}

/// Shows a job without a report: it has not ended, or ended without one.
fn state(view: &JobView, now: Option<&JobEvent>, links: &Links) -> Content {
    let waits = !view.state.is_end();
    let word = view.state.name().replace('_', " ");
    let heading = html! {
        (view.kind.name())
        @if let Some(label) = &view.label { " " (text::code(label)) }
    };
    let error = view.error.as_ref().map(|error| {
        html! {
            (text::message(error))
            @if let Some(code) = &view.code { " " span.dim.mono { (code) } }
        }
    });
    let reloads = html! { "This page reloads every " (REFRESH_S) "\u{202f}s." };
    let reloads = (waits && links.root.is_some()).then(|| match now {
        Some(_) => html! { noscript { (reloads) } },
        None => reloads,
    });
    let sentences = [error, reloads].into_iter().flatten().collect::<Vec<_>>();
    let mut facts = vec![
        ("accepted", html! { (moment(view.created_at)) }),
        (
            "ended",
            html! { @match view.finished_at { Some(at) => (moment(at)), None => "not yet" } },
        ),
    ];
    if !waits {
        facts.push(("started", html! { (text::counted(view.attempt as usize, "time")) }));
    }
    let refresh = match now {
        Some(_) => Refresh::Script(PageScript::Job, Some(REFRESH_S)),
        None => Refresh::Reload(REFRESH_S),
    };
    Content {
        title: format!("{word}: {}", view.kind.name()),
        about: html! { "job " span.mono { (text::name(&view.job_id)) } },
        refresh: waits.then_some(refresh),
        main: html! {
            (parts::verdict(tone(view.state), &word, heading, &sentences))
            @if waits { (live::section(view, now, links)) }
            (Section::new("job", "The job").open(true).with(parts::facts(facts)))
            @if links.root.is_some() && waits {
                form.fields method="post" action=(links.to(&format!("jobs/{}/cancel", view.job_id))) {
                    button { "Cancel the job" }
                }
            }
        },
    }
}

fn tone(state: JobState) -> Tone {
    match state {
        JobState::Completed => Tone::Good,
        JobState::Failed => Tone::Bad,
        JobState::Cancelled | JobState::TimedOut => Tone::Doubt,
        JobState::Submitted
        | JobState::Queued
        | JobState::Compiling
        | JobState::Validating
        | JobState::Profiling => Tone::Plain,
    }
}

/// Formats a time, given in seconds since the Unix epoch, in UTC.
pub(crate) fn moment(seconds: f64) -> Markup {
    let at =
        Duration::try_from_secs_f64(seconds).ok().and_then(|since| UNIX_EPOCH.checked_add(since));
    // RFC 3339 cannot represent years after 9999.
    let at = at.filter(|_| seconds < 253_402_300_800.0);
    html! {
        @match at.map(|at| humantime::format_rfc3339_seconds(at).to_string()) {
            Some(text) => time datetime=(text) { (text.replace('T', " ").replace('Z', " UTC")) },
            None => "unknown",
        }
    }
}

/// A page of the list of jobs.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    pub jobs: &'a JobList,
    /// The filter that all jobs of the page match.
    pub filter: &'a ListFilter,
    /// Whether the caller requested a page after the first.
    pub is_later: bool,
}

/// Writes the list of jobs, the newest first. A script keeps the first page up to date. It copies
/// cells from the newest version of the page.
pub fn list(listed: Listed<'_>, links: &Links) -> String {
    let (jobs, filter) = (&listed.jobs.jobs, listed.filter);
    let running = jobs.iter().filter(|job| !job.state.is_end()).count();
    let head = [
        ("verdict", false),
        ("kernel", false),
        ("median", true),
        ("kind", false),
        ("label", false),
        ("accepted", false),
        ("job", false),
    ];
    let content = Content {
        title: "jobs".to_owned(),
        about: html! { "evaluates GPU kernels" },
        refresh: (!listed.is_later)
            .then(|| Refresh::Script(PageScript::List, (running > 0).then_some(REFRESH_S))),
        main: html! {
            h1.page { "Jobs" }
            div.sheet { (filter.bar(links)) }
            @if !listed.is_later && links.root.is_some() {
                p.small.new-jobs aria-live="polite" {
                    a #new-jobs hidden href=(links.to(&filter.query(None))) {}
                    span.dim #lost {}
                }
            }
            section.sheet #jobs data-running=(running) {
                @if jobs.is_empty() { (nothing(listed)) } @else {
                    (parts::table("Jobs", &head, jobs.iter().map(|job| row(job, links))))
                }
            }
            p {
                @if listed.is_later { a href=(links.to(&filter.query(None))) { "Newest jobs" } " " }
                @if let Some(cursor) = &listed.jobs.next_cursor {
                    a href=(links.to(&filter.query(Some(cursor)))) rel="next" { "Older jobs" }
                }
            }
            p.small.dim {
                "Jobs are submitted through the " a href=(links.to("docs")) { "HTTP API" }
                ", the command line, the Python package, or an agent at " code { "/mcp" } "."
            }
        },
    };
    content.whole(links)
}

fn nothing(listed: Listed<'_>) -> Markup {
    html! {
        @if listed.is_later {
            p { "There are no older jobs." (listed.filter.words()) }
        } @else if !listed.filter.is_empty() {
            p { "No job matches the filter." (listed.filter.words()) }
        } @else {
            p { "There are no jobs yet. Submit the first one:" }
            pre tabindex="0" { code { "warpgauge eval kernel.cu --server http://HOST:PORT" } }
        }
    }
}

fn row(job: &JobSummary, links: &Links) -> Markup {
    let address = links.to(&format!("jobs/{}", job.job_id));
    let (tone, word) = match (job.decision, job.verdict) {
        (Some(decision), _) => {
            let (tone, word) = gate::decision(decision);
            (tone, word.to_owned())
        }
        (None, Some(verdict)) => (Tone::of_verdict(verdict), verdict.words().to_lowercase()),
        (None, None) => (tone(job.state), job.state.name().replace('_', " ")),
    };
    // The ids of jobs that were accepted together differ only at their ends.
    let skipped = job.job_id.chars().count().saturating_sub(ID_SHOWN);
    let short = job.job_id.chars().skip(skipped).collect::<String>();
    html! { tr data-job=(job.job_id) {
        td { (parts::tag(tone, &word)) }
        td.wide {
            a href=(address) {
                @match &job.kernel { Some(kernel) => (text::code(kernel)), None => (job.kind.name()) }
            }
            @if let Some(case) = &job.worst_case { (worst(case)) }
        }
        td.num { @if let Some(ms) = job.median_ms { (text::time(ms)) } }
        td.num.left { (job.kind.name()) }
        td.name[job.label.is_some()] { @if let Some(label) = &job.label { (text::name(label)) } }
        td.num.left { (moment(job.created_at)) }
        td.mono.num.left { a href=(address) { "…" (text::name(&short)) } }
    } }
}

/// Shows the worst case of a gate: its name, and its change against the margin.
fn worst(case: &WorstCase) -> Markup {
    html! {
        div.small.dim {
            "worst case " (text::code(&case.name))
            @match case.change() {
                Some(change) => { ": " (text::message(&change)) },
                None => { ": " (text::word(&case.outcome).to_lowercase()) },
            }
        }
    }
}

/// A page without a report.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// A word that says what happened.
    pub word: &'a str,
    pub heading: &'a str,
    /// A sentence that says what happened and what to do.
    pub sentence: &'a str,
    /// Commands that solve the problem, one per line.
    pub commands: &'a str,
}

/// Writes a page without a report.
pub fn notice(notice: Notice<'_>, links: &Links) -> String {
    let sentences = [html! { (text::message(notice.sentence)) }];
    let content = Content {
        title: notice.heading.to_owned(),
        about: html! {},
        refresh: None,
        main: html! {
            (parts::verdict(Tone::Doubt, notice.word, text::name(notice.heading), &sentences))
            @if !notice.commands.is_empty() { section.sheet { (text::block(notice.commands, "")) } }
        },
    };
    content.whole(links)
}
