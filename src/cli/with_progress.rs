//! Runs a job in this process and shows its progress.

use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::progress::{Progress, TICK};
use super::{CliError, format};
use serde::Deserialize;
use serde_json::{Map, Value};

use warpgauge_contract::MeasureSpec;
use warpgauge_job_views::JobEvent;
use warpgauge_model::JobStage;
use warpgauge_service::{Caller, JobEvents, JobService, JobSubmission, ServiceFuture};
use warpgauge_statistics::Preset;

/// What is known about the work of a job before it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Expected {
    /// Number of launches that will be timed, if the contract sets it.
    trials: Option<u32>,
    /// Maximum duration of the timing, seconds.
    bound_s: Option<f64>,
}

impl Expected {
    /// Estimates the steps of a job from the fields of its request. The executor validates the
    /// fields later. A comparison times each kernel alone and then in pairs.
    pub(super) fn of_body(body: &Map<String, Value>) -> Self {
        let measure = body.get("measure").map(MeasureSpec::deserialize);
        let measure = measure.and_then(Result::ok).unwrap_or_default();
        if !body.contains_key("ref_kernel") {
            let trials = body.get("num_trials").and_then(Value::as_u64);
            let trials = trials.and_then(|trials| u32::try_from(trials).ok());
            return Self { trials, bound_s: Some(alone_s(&measure)) };
        }
        let candidates = body.get("candidates").and_then(Value::as_array);
        let kernels = candidates.map_or(1, Vec::len) as f64 + 1.0;
        let pair_s = Preset::builtin(measure.preset).compare.max_time_s;
        let pair_s = measure.max_time.unwrap_or(pair_s);
        let pairs = kernels * (kernels - 1.0) / 2.0;
        let bound_s = kernels * alone_s(&measure) + pairs * pair_s;
        Self { trials: None, bound_s: Some(bound_s) }
    }
}

/// Returns the maximum time for which one kernel is timed, seconds.
fn alone_s(measure: &MeasureSpec) -> f64 {
    measure.max_time.unwrap_or_else(|| Preset::builtin(measure.preset).measurement.max_time_s)
}

/// Runs a job in this process and shows its progress.
pub(super) async fn with_progress<'a, T>(
    jobs: &dyn JobService,
    expected: Expected,
    progress: &Progress,
    work: impl FnOnce(JobSubmission) -> ServiceFuture<'a, T>,
) -> Result<T, CliError> {
    let mut view = View::new(expected);
    with_news(jobs, &mut |event| view.show(event, progress), work).await
}

/// Runs a job in this process and passes its events to `on_event`. Some events may be missing, in
/// particular early ones.
pub(super) async fn with_news<'a, T>(
    jobs: &dyn JobService,
    on_event: &mut (dyn FnMut(&JobEvent) + Send),
    work: impl FnOnce(JobSubmission) -> ServiceFuture<'a, T>,
) -> Result<T, CliError> {
    let (submission, id) = JobSubmission::local_watched();
    let caller = Caller::local();
    let mut work = work(submission);
    let mut ticks = tokio::time::interval(TICK);
    let mut news: Option<JobEvents> = None;
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => return Ok(outcome?),
            event = next(&mut news) => match event {
                Some(event) => on_event(&event),
                // The event stream has ended.
                None => news = Some(futures_util::stream::pending().boxed()),
            },
            // A job can be watched once it is accepted.
            _ = ticks.tick(), if news.is_none() => news = jobs.watch(&id, &caller).await.ok(),
        }
    }
}

/// Returns the next event. If there is no event stream, the future never resolves.
async fn next(news: &mut Option<JobEvents>) -> Option<JobEvent> {
    match news {
        Some(news) => news.next().await,
        None => std::future::pending().await,
    }
}

/// State of the progress display of a job.
pub(super) struct View {
    expected: Expected,
    /// Time at which the first timed launch was observed.
    timing_since: Option<Instant>,
    /// Whether the bar counts launches.
    counting: bool,
}

/// What the display shows for an event.
#[derive(Debug, PartialEq)]
enum Shown {
    Stage(&'static str),
    /// Number of completed launches, and the number that is expected.
    Done {
        done: u32,
        of: u32,
    },
    /// A detail of the stage that changes often.
    Detail(String),
}

impl View {
    pub(super) fn new(expected: Expected) -> Self {
        Self { expected, timing_since: None, counting: false }
    }

    pub(super) fn show(&mut self, event: &JobEvent, progress: &Progress) {
        if event.stage == JobStage::Running && event.trials_done > 0 {
            self.timing_since.get_or_insert_with(Instant::now);
        }
        let timed = self.timing_since.map_or(Duration::ZERO, |since| since.elapsed());
        match shown(event, self.expected, timed) {
            Shown::Stage(stage) => {
                self.counting = false;
                progress.stage(stage);
            }
            Shown::Done { done, of } => {
                if !std::mem::replace(&mut self.counting, true) {
                    progress.count(u64::from(of), "launches");
                }
                progress.done(u64::from(done));
            }
            Shown::Detail(text) => progress.detail(&text),
        }
    }
}

fn shown(event: &JobEvent, expected: Expected, timed: Duration) -> Shown {
    let stage = event.stage.in_words();
    match (event.stage, event.trials_done, expected.trials) {
        (JobStage::Running, 1.., Some(of)) => Shown::Done { done: event.trials_done.min(of), of },
        (JobStage::Running, done @ 1.., None) => {
            let mut text = format!("{stage}: {done} launches timed");
            if let Some(statistics) = &event.statistics {
                text.push_str(&format!(", {}", format::so_far(statistics)));
            }
            if let Some(bound_s) = expected.bound_s {
                let left = (bound_s - timed.as_secs_f64()).max(0.0);
                text.push_str(&format!(", at most {left:.0} s left"));
            }
            Shown::Detail(text)
        }
        _ => Shown::Stage(stage),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(stage: &str, trials: u32) -> JobEvent {
        serde_json::from_value(json!({
            "job_id": "j", "state": "profiling", "stage": stage, "attempt": 1,
            "trials_done": trials, "elapsed_s": 1.0,
            "statistics": {"trials": trials, "median_ms": 2.0, "ci_lower_ms": 1.0,
                           "ci_upper_ms": 3.0},
        }))
        .expect("an event")
    }

    #[test]
    fn launches_are_counted_where_their_number_is_known() {
        let known = Expected { trials: Some(100), bound_s: Some(5.0) };
        let seen = |stage, trials| shown(&event(stage, trials), known, Duration::ZERO);
        assert_eq!(seen("compiling", 0), Shown::Stage("compiling"));
        assert_eq!(seen("running", 0), Shown::Stage("running on the device"));
        assert_eq!(seen("running", 40), Shown::Done { done: 40, of: 100 });
        assert_eq!(seen("running", 120), Shown::Done { done: 100, of: 100 });
        // The number of timed launches stays while the stage changes.
        assert_eq!(seen("verifying", 100), Shown::Stage("verifying"));
    }

    #[test]
    fn where_it_is_not_the_statistics_tell_and_the_time_that_is_left_at_most() {
        let expected = Expected { trials: None, bound_s: Some(5.0) };
        let seen = shown(&event("running", 40), expected, Duration::from_secs(2));
        let text = "running on the device: 40 launches timed, median 2.000 ms (1.000 ms to 3.000 ms), \
                    at most 3 s left";
        assert_eq!(seen, Shown::Detail(text.to_owned()));
        let late = shown(&event("running", 40), expected, Duration::from_secs(9));
        assert!(matches!(late, Shown::Detail(text) if text.ends_with("at most 0 s left")));
    }

    #[test]
    fn an_evaluation_takes_its_launches_for_as_long_as_its_contract_says() {
        let body = json!({"num_trials": 7, "measure": {"max_time": 2.0}});
        let expected = Expected { trials: Some(7), bound_s: Some(2.0) };
        assert_eq!(Expected::of_body(body.as_object().expect("an object")), expected);
        // The executor reports fields that are not valid.
        let body = json!({"num_trials": "many", "measure": 1});
        let expected = Expected::of_body(body.as_object().expect("an object"));
        assert_eq!(expected, Expected::of_body(&Map::new()));
    }

    #[test]
    fn a_comparison_takes_every_kernel_and_every_pair() {
        let kernel = json!({"kernel_type": "cuda", "source_code": "x"});
        let request = json!({
            "ref_kernel": kernel,
            "candidates": [{"name": "a", "kernel": kernel}, {"name": "b", "kernel": kernel}],
            "measure": {"max_time": 2.0},
        });
        let expected = Expected { trials: None, bound_s: Some(3.0 * 2.0 + 3.0 * 2.0) };
        assert_eq!(Expected::of_body(request.as_object().expect("an object")), expected);
    }
}
