//! Progress on standard error: a spinner on a terminal, a line per stage elsewhere.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::{Terminal, write_error_stream};

/// How often the spinner turns and the stage is looked up.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Shows which stage a command has reached; nothing with `--quiet`.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    stage: Mutex<String>,
}

impl Progress {
    pub(super) fn start(terminal: Terminal) -> Self {
        let bar = (terminal.interactive && !terminal.quiet).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, quiet: terminal.quiet, stage: Mutex::new(String::new()) }
    }

    /// Does something that writes to the terminal, with the spinner out of its way.
    pub(super) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Says that this stage is reached, once however often it is called.
    pub(super) fn stage(&self, text: &str) {
        let mut current = self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if *current == text {
            return;
        }
        text.clone_into(&mut current);
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None if self.quiet => {}
            None => write_error_stream(&format!("warpgauge: {text}")),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
