//! `warpgauge sweep`.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::args::SweepArgs;
use super::contract_file::ContractFile;
use super::progress::Progress;
use super::sweep_table::SweepTableView;
use super::terminal::Terminal;
use super::{CliError, local, remote_events};
use crate::config::Config;
use crate::contract::SweepRequest;
use crate::exit::Exit;
use crate::pipeline::{EvaluationService, Submission, SweepEvent};
use crate::report::SweepResponse;

pub(super) fn run(args: &SweepArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let progress = Progress::start(terminal);
    let contract = ContractFile::read(&args.contract, config.server.body_limit_bytes)?;
    let shows_rows = !args.json && !args.csv;
    let mut news = News {
        table: shows_rows.then(|| SweepTableView::new(has_work(&contract.fields), terminal.colour)),
        progress,
        terminal,
    };
    let (text, answer) = match &args.target.server {
        Some(server) => {
            news.progress.stage(&format!("sweeping at {server}"));
            let body = Value::Object(contract.fields);
            remote_events::sweep(&args.target, server, &body, &mut |event| news.take(&event))?
        }
        None => {
            news.progress.stage("starting");
            let request: SweepRequest = contract.typed()?;
            local::answer(config, |service| sweep(service, request, &mut news))?
        }
    };
    let News { table, progress, .. } = news;
    drop(progress);
    if args.csv {
        let csv = answer.table.to_csv();
        let csv = csv.map_err(|error| CliError::Internal(format!("table to CSV: {error}")))?;
        terminal.print(&csv)?;
    } else if let Some(table) = table {
        terminal.print(&table.summary(&answer))?;
    } else {
        terminal.print_line(&text)?;
    }
    Ok(Exit::of_sweep(&answer))
}

/// Which throughputs the contract gives: bytes, operations.
fn has_work(fields: &Map<String, Value>) -> [bool; 2] {
    let work = fields.get("work");
    ["bytes", "flops"]
        .map(|kind| work.and_then(|work| work.get(kind)).is_some_and(|w| !w.is_null()))
}

/// Shows what happens as it happens.
struct News {
    table: Option<SweepTableView>,
    progress: Progress,
    terminal: Terminal,
}

impl News {
    fn take(&mut self, event: &SweepEvent) -> Result<(), CliError> {
        let lines = match event {
            SweepEvent::Started(started) => {
                self.progress.count(started.points as u64, "points");
                self.table.as_mut().map(|table| table.header(&started.axes))
            }
            SweepEvent::Point(point) => {
                // Without a terminal a row of the table tells as much.
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

/// Sweeps in this process.
async fn sweep(
    service: Arc<dyn EvaluationService>,
    request: SweepRequest,
    news: &mut News,
) -> Result<SweepResponse, CliError> {
    let (sender, mut events) = mpsc::unbounded_channel();
    // The receiver outlives the sweep.
    let sweep = service.sweep(
        request,
        Submission::local(),
        Box::new(move |event| drop(sender.send(event))),
    );
    tokio::pin!(sweep);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => news.take(&event)?,
            outcome = &mut sweep => break outcome,
        }
    };
    while let Ok(event) = events.try_recv() {
        news.take(&event)?;
    }
    Ok(outcome?)
}
