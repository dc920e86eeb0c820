//! Formats events of jobs as lines of text.

use crate::cli::format;
use warpgauge_job_views::JobEvent;

/// Returns an event on one line.
pub(super) fn of(event: &JobEvent) -> String {
    let mut text = format!("{} ({:.1} s)", event.state.name(), event.elapsed_s);
    if let (Some(done), Some(all)) = (event.points_done, event.points) {
        text.push_str(&format!(", {done} of {all} points"));
    }
    if event.trials_done > 0 {
        text.push_str(&format!(", {} launches timed", event.trials_done));
    }
    if let Some(statistics) = &event.statistics {
        text.push_str(&format!(", {}", format::so_far(statistics)));
    }
    if event.attempt > 1 {
        text.push_str(&format!(", attempt {}", event.attempt));
    }
    if let Some(error) = &event.error {
        text.push_str(&format!(": {error}"));
    }
    crate::cli::terminal::plain(&text)
}
