//! Shows progress on standard error: a spinner or a bar on a terminal, otherwise plain lines.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::{Terminal, plain, write_error_stream};

/// Interval at which the spinner advances and the stage is checked.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Template of the line for work of unknown length.
const SPINNER: &str = "{spinner} {wide_msg} ({elapsed})";

/// Template of the line for work with counted steps.
pub(super) const BAR: &str = "{bar:30} {pos}/{len} {wide_msg} {elapsed} (left: {eta})";

/// Approximate maximum number of lines that report counted work if there is no terminal.
const LINES: u64 = 10;

/// Shows the current stage of a command and the share of it that is complete. With `--quiet`,
/// nothing is shown.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    state: Mutex<State>,
}

/// Content of the most recent line.
#[derive(Default)]
struct State {
    stage: String,
    /// Number of steps in the stage. `called` is the name of the steps, and `told` is the number
    /// that the most recent line reported.
    steps: u64,
    called: &'static str,
    told: u64,
}

impl Progress {
    pub(super) fn start(terminal: Terminal) -> Self {
        let bar = (terminal.interactive && !terminal.quiet).then(|| {
            let bar = ProgressBar::new_spinner();
            style(&bar, SPINNER);
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, quiet: terminal.quiet, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hides the spinner while `write` writes to the terminal.
    pub(super) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Shows that the command has reached this stage. Repeated calls for a stage have no effect.
    pub(super) fn stage(&self, text: &str) {
        let mut state = self.state();
        if state.stage == text {
            return;
        }
        *state = State { stage: text.to_owned(), ..State::default() };
        match &self.bar {
            Some(bar) => {
                // The new stage has no counted steps yet.
                style(bar, SPINNER);
                bar.set_message(plain(text));
            }
            None if self.quiet => {}
            None => write_error_stream(&format!("warpgauge: {}", plain(text))),
        }
    }

    /// Shows a detail of the stage that changes often. It is shown only on a terminal.
    pub(super) fn detail(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(plain(text));
        }
    }

    /// Begins to count steps. On a terminal, a bar shows the remaining time.
    pub(super) fn count(&self, steps: u64, called: &'static str) {
        *self.state() = State { stage: called.to_owned(), steps, called, told: 0 };
        match &self.bar {
            Some(bar) => {
                style(bar, BAR);
                bar.set_length(steps);
                bar.set_position(0);
                bar.reset_eta();
                bar.set_message(called);
            }
            None if self.quiet => {}
            None => write_error_stream(&format!("warpgauge: {steps} {called}")),
        }
    }

    /// Shows that this number of steps is complete.
    pub(super) fn done(&self, done: u64) {
        let mut state = self.state();
        match &self.bar {
            Some(bar) => bar.set_position(done),
            None if self.quiet || !worth_a_line(&state, done) => {}
            None => {
                state.told = done;
                let State { steps, called, .. } = &*state;
                write_error_stream(&format!("warpgauge: {done} of {steps} {called} done"));
            }
        }
    }
}

/// Returns whether to print a line about the progress. This is the case at the end, and after about
/// every tenth of the steps.
fn worth_a_line(state: &State, done: u64) -> bool {
    done > state.told && (done == state.steps || done - state.told >= state.steps.div_ceil(LINES))
}

/// Sets the template of a bar.
pub(super) fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few_and_the_end_is_one_of_them() {
        for (steps, expected) in [(0, 0), (1, 1), (7, 7), (10, 10), (25, 9), (10_000, 10)] {
            let mut state = State { steps, ..State::default() };
            let mut lines = Vec::new();
            for done in 1..=steps {
                if worth_a_line(&state, done) {
                    state.told = done;
                    lines.push(done);
                }
                assert!(!worth_a_line(&state, state.told), "told once");
            }
            assert_eq!(lines.len(), expected, "{steps}: {lines:?}");
            assert_eq!(lines.last().copied(), (steps > 0).then_some(steps));
        }
    }

    #[test]
    fn templates_are_understood() {
        for template in [SPINNER, BAR] {
            ProgressStyle::with_template(template).unwrap();
        }
    }
}
