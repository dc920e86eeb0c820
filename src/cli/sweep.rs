//! `warpgauge sweep`: evaluates a kernel at every point of a grid of parameters.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::args::{Patience, Target};
use super::assume::KernelFlags;
use super::html_file::HtmlFlag;
use super::progress::Progress;
use super::sweep_sizes::size_axes;
use super::sweep_table::SweepTableView;
use super::terminal::Terminal;
use super::{CliError, kernel_contract, place, report, sweep_axes};
use crate::exit::Exit;
use warpgauge_client::{Reply, WaitEvent};
use warpgauge_config::Config;
use warpgauge_job_views::SweepEvent;
use warpgauge_page::PageOf;
use warpgauge_report::{SweepResponse, SweepStarted};

#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// Contract with axes: .yaml, .json or .msgpack (`-`: YAML or JSON from standard input); or a
    /// kernel, as for `eval`, with axes from `--set NAME=VALUE,VALUE`
    #[arg(value_name = "CONTRACT|KERNEL")]
    pub contract: PathBuf,
    #[command(flatten)]
    pub kernel: KernelFlags,
    /// Accept kernels even if a useless kernel would pass too (`allow_weak`)
    #[arg(long)]
    pub allow_weak: bool,
    /// Print the response as JSON, unchanged
    #[arg(long)]
    pub json: bool,
    /// Print the table as comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    #[command(flatten)]
    pub html: HtmlFlag,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub patience: Patience,
}

pub(super) fn run(args: &SweepArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    args.html.check([&args.contract])?;
    let progress = Progress::start(terminal);
    let flags = &args.kernel;
    let opened = kernel_contract::open(
        &args.contract,
        (&args.target, args.patience.seconds),
        (config, terminal),
        (&progress, "sweeping"),
        |kernel, place| match sweep_axes::varies(&flags.assume) {
            true => kernel.contract_for_axes(place, terminal, flags),
            false => kernel.contract(place, terminal, &flags.wishes()),
        },
        |contract| {
            sweep_axes::put(&flags.assume, &mut contract.fields)?;
            flags.apply_others(&mut contract.fields)?;
            if !contract.fields.contains_key("axes") {
                return Err(CliError::Usage(format!(
                    "{}: nothing varies: set several values for a number, such as `--set n=1024,4096`, or add to the contract \
                     `axes`",
                    contract.path().display()
                )));
            }
            if args.allow_weak {
                contract.fields.insert("allow_weak".to_owned(), true.into());
            }
            Ok(())
        },
    );
    let (mut place, contract) = opened?;
    let shows_rows = !args.json && !args.csv;
    let mut news = News {
        table: shows_rows.then(|| {
            let sizes = size_axes(&contract.fields);
            SweepTableView::new(has_work(&contract.fields), sizes, terminal.style())
        }),
        progress,
        terminal,
        started: false,
        points: 0,
        again: false,
    };
    let swept = place.sweep(contract, &mut |told| news.hear(told));
    let Reply { text, value: answer } = swept.map_err(|error| flags.explain(error))?;
    news.catch_up(&answer)?;
    drop(place);
    let News { table, progress, .. } = news;
    drop(progress);
    if args.csv {
        let csv = answer.table.to_csv();
        let csv = csv.map_err(|error| CliError::Internal(format!("table to CSV: {error}")))?;
        terminal.print(&csv)?;
    } else if let Some(table) = table {
        terminal.print(&table.summary(&answer))?;
        report::print_page(&args.target, &answer.job_id, terminal)?;
    } else {
        terminal.print_line(&text)?;
    }
    args.html.write(PageOf::Sweep(&answer), terminal)?;
    Ok(Exit::of_sweep(&answer))
}

/// Returns whether the contract declares bytes, and whether it declares operations. Throughputs are
/// computed from them.
fn has_work(fields: &Map<String, Value>) -> [bool; 2] {
    let work = fields.get("work");
    ["bytes", "flops"]
        .map(|kind| work.and_then(|work| work.get(kind)).is_some_and(|w| !w.is_null()))
}

/// Shows the points of a sweep as they arrive.
struct News {
    table: Option<SweepTableView>,
    progress: Progress,
    terminal: Terminal,
    /// Whether the event that contains the number of points has arrived.
    started: bool,
    points: usize,
    /// Whether the event stream broke. Afterwards, points arrive only with the final report.
    again: bool,
}

impl News {
    /// Shows an event.
    fn hear(&mut self, told: WaitEvent) -> Result<(), CliError> {
        match told {
            WaitEvent::Sweep(event) => return self.take(&event),
            WaitEvent::Job(event) => {
                if let (true, Some(done)) = (self.again, event.points_done) {
                    self.progress.done(done as u64);
                }
            }
            other => {
                self.again |= matches!(other, WaitEvent::Again(_));
                self.progress.beside(|| place::remark(&other, self.terminal));
            }
        }
        Ok(())
    }

    /// Shows the points in the report for which no event arrived.
    fn catch_up(&mut self, answer: &SweepResponse) -> Result<(), CliError> {
        let (job_id, axes) = (answer.job_id.clone(), answer.axes.clone());
        let points = answer.points.len();
        self.take(&SweepEvent::Started(SweepStarted { job_id, points, axes }))?;
        for point in answer.points.iter().skip(self.points) {
            self.take(&SweepEvent::Point(Box::new(point.clone())))?;
        }
        Ok(())
    }

    fn take(&mut self, event: &SweepEvent) -> Result<(), CliError> {
        let lines = match event {
            // If a sweep is retried, its events are repeated.
            SweepEvent::Started(_) if std::mem::replace(&mut self.started, true) => None,
            SweepEvent::Point(point) if point.index < self.points => None,
            SweepEvent::Started(started) => {
                self.progress.count(started.points as u64, "points");
                self.table.as_mut().map(|table| table.header(&started.axes))
            }
            SweepEvent::Point(point) => {
                self.points = point.index + 1;
                // Without a terminal, the row of the table already shows this.
                if self.terminal.interactive || self.table.is_none() {
                    self.progress.done(point.index as u64 + 1);
                }
                self.table.as_ref().map(|table| table.row(point))
            }
        };
        match lines {
            Some(lines) => self.progress.beside(|| self.terminal.print(&lines)),
            None => Ok(()),
        }
    }
}
