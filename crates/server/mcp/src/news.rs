//! Formats the events of a job for an agent.

use warpgauge_job_views::JobEvent;
use warpgauge_model::JobStage;
use warpgauge_report::readable::duration_ms;

/// Formats an event on one line.
pub(crate) fn in_words(event: &JobEvent) -> String {
    let stage = event.stage.in_words();
    let mut text = match (event.stage, event.trials_done) {
        (JobStage::Running, done @ 1..) => format!("{stage}: {done} launches timed"),
        _ => stage.to_owned(),
    };
    if let (JobStage::Running, Some(statistics)) = (event.stage, &event.statistics) {
        let [median, low, high] =
            [statistics.median_ms, statistics.ci_lower_ms, statistics.ci_upper_ms].map(duration_ms);
        text.push_str(&format!(", median {median} ({low} to {high})"));
    }
    if event.attempt > 1 {
        text.push_str(&format!(", attempt {}", event.attempt));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn news_say_what_is_going_on_and_how_far_it_is() {
        let event = |stage: &str, trials: u32, attempt: u32| -> String {
            let event = json!({
                "job_id": "j", "state": "profiling", "stage": stage, "attempt": attempt,
                "trials_done": trials, "elapsed_s": 1.0,
                "statistics": {"trials": trials, "median_ms": 2.0, "ci_lower_ms": 1.0,
                               "ci_upper_ms": 3.0},
            });
            in_words(&serde_json::from_value(event).expect("an event"))
        };
        assert_eq!(event("compiling", 0, 1), "compiling");
        let running =
            "running on the device: 40 launches timed, median 2.000 ms (1.000 ms to 3.000 ms)";
        assert_eq!(event("running", 40, 1), running);
        assert_eq!(event("waiting_for_device", 0, 2), "waiting for a device, attempt 2");
    }
}
