//! Shows the progress of a suite: on a terminal a bar with the remaining time, otherwise a line per
//! case.

use indicatif::ProgressBar;

use crate::cli::progress::{BAR, TICK, style};
use crate::cli::terminal::{Terminal, plain, write_error_stream};
use warpgauge_job_views::JobEvent;

/// Shows the steps of a run. With `--quiet`, nothing is shown.
pub(super) struct Steps {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Names of the steps, in order. Any further steps are repeated comparisons.
    names: Vec<String>,
    /// Number of steps that were shown.
    told: usize,
    of: usize,
    attempt: u32,
}

impl Steps {
    pub(super) fn start(terminal: Terminal, names: Vec<String>) -> Self {
        let of = names.len();
        let bar = (terminal.interactive && !terminal.quiet).then(|| {
            let bar = ProgressBar::new(of as u64);
            style(&bar, BAR);
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, quiet: terminal.quiet, names, told: 0, of, attempt: 1 }
    }

    /// Shows an event of a job. Because events may be missing, skipped steps are shown as well.
    pub(super) fn show(&mut self, event: &JobEvent) {
        if event.attempt > self.attempt {
            self.attempt = event.attempt;
            self.told = 0;
            self.of = self.names.len();
            let text = format!("restarted, attempt {}", event.attempt);
            match &self.bar {
                Some(bar) => bar.set_message(text),
                None => self.line(&text),
            }
        }
        if let (Some(done), Some(all)) = (event.points_done, event.points) {
            self.of = all.max(self.names.len());
            self.reach((done + 1).min(all));
            if let Some(bar) = &self.bar {
                bar.set_length(self.of as u64);
                bar.set_position(done as u64);
            }
        }
    }

    /// Shows that all cases have started.
    pub(super) fn all(&mut self) {
        self.reach(self.names.len());
    }

    /// Shows that the next step has started.
    pub(super) fn begin(&mut self) {
        self.reach(self.told + 1);
    }

    /// Counts a step as completed.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn reach(&mut self, number: usize) {
        while self.told < number {
            let what = self.names.get(self.told).map(String::as_str);
            let what = plain(what.unwrap_or("again in fresh processes"));
            self.told += 1;
            match &self.bar {
                Some(bar) => bar.set_message(what),
                None => self.line(&format!("{} of {}: {what}", self.told, self.of)),
            }
        }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            write_error_stream(&format!("warpgauge: {text}"));
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
