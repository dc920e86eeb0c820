//! How far a suite is: a bar with the time left on a terminal, a line per case elsewhere.

use indicatif::ProgressBar;

use crate::cli::progress::{BAR, TICK, style};
use crate::cli::terminal::{Terminal, plain, write_error_stream};
use crate::pipeline::GateProgress;

/// Shows steps; nothing with `--quiet`.
pub(super) struct Steps {
    bar: Option<ProgressBar>,
    quiet: bool,
    done: u64,
    of: u64,
}

impl Steps {
    pub(super) fn start(terminal: Terminal, of: usize) -> Self {
        let bar = (terminal.interactive && !terminal.quiet).then(|| {
            let bar = ProgressBar::new(of as u64);
            style(&bar, BAR);
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, quiet: terminal.quiet, done: 0, of: of as u64 }
    }
}

impl GateProgress for Steps {
    fn extend(&mut self, by: usize) {
        self.of += by as u64;
        if let Some(bar) = &self.bar {
            bar.set_length(self.of);
        }
    }

    fn begin(&mut self, what: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.set_message(plain(what)),
            None if self.quiet => {}
            None => {
                let (done, of) = (self.done, self.of);
                write_error_stream(&format!("warpgauge: {done} of {of}: {}", plain(what)));
            }
        }
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
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
