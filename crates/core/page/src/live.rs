//! The progress of a job that has not ended. The main function is [`section`].

use maud::{Markup, html};
use warpgauge_job_views::{JobEvent, JobView, MAX_AHEAD};
use warpgauge_model::{JobKind, JobStage};

use crate::document::Links;
use crate::parts::{self, Section};
use crate::text;

/// Shows the stage of a job, its progress and its place in the queue. Every line is always there,
/// so nothing moves when one of them changes. Each text is also made by the script.
pub(crate) fn section(view: &JobView, now: Option<&JobEvent>, links: &Links) -> Markup {
    let stage = now.map_or(view.state.stage(), |event| event.stage);
    let attempt = now.map_or(view.attempt, |event| event.attempt);
    let part = |name: &str, live: &str, text: &str| {
        html! { span data-live=(name) aria-live=(live) { (text) } }
    };
    let mut facts = vec![
        ("stage", part("stage", "polite", stage.in_words())),
        // It may change many times a second, so screen readers do not read each change.
        ("progress", part("progress", "off", &progress(view, now))),
    ];
    if let Some(event) = now {
        facts.push(("queue", part("queue", "polite", &queue(event.ahead))));
    }
    facts.push(("started", part("attempt", "off", &text::counted(attempt as usize, "time"))));
    let section = Section::new("progress", "Progress").open(true);
    let address = links.to(&format!("jobs/{}/events", text::encoded(&view.job_id)));
    html! {
        @if now.is_some() {
            div #live data-events=(address) data-stages=(stages()) data-points=(points(view.kind))
                data-most=(MAX_AHEAD) {
                (section.with(html! {
                    (parts::facts(facts))
                    p.small.dim.link data-live="link" aria-live="polite" {}
                }))
            }
        } @else {
            (section.with(parts::facts(facts)))
        }
    }
}

/// Returns the words for each stage as JSON.
fn stages() -> String {
    const STAGES: [JobStage; 8] = [
        JobStage::Waiting,
        JobStage::Compiling,
        JobStage::Preparing,
        JobStage::WaitingForDevice,
        JobStage::Running,
        JobStage::Verifying,
        JobStage::Profiling,
        JobStage::Ended,
    ];
    let words = STAGES.map(|stage| {
        let name = warpgauge_report::readable::word(&stage);
        format!("\"{name}\":\"{}\"", stage.in_words())
    });
    format!("{{{}}}", words.join(","))
}

/// Returns what the job completes one after the other.
fn points(kind: JobKind) -> &'static str {
    if kind == JobKind::Gate { "comparison" } else { "point" }
}

fn progress(view: &JobView, now: Option<&JobEvent>) -> String {
    let of_view = view.sweep.as_ref().map(|sweep| (sweep.points_done, sweep.points));
    let of_event = now.and_then(|event| Some((event.points_done.unwrap_or(0), event.points?)));
    if let Some((done, all)) = of_event.or(of_view) {
        let all = text::counted(all, points(view.kind));
        return format!("{} of {all} done", text::grouped(done as u64));
    }
    let statistics = now.and_then(|event| event.statistics.as_ref());
    let median = statistics.map(|found| format!(", median {}", text::time(found.median_ms)));
    match now.map_or(view.trials_done, |event| event.trials_done) {
        0 => "no launch has been timed yet".to_owned(),
        done => {
            let launches = text::counted(done as usize, "launch");
            format!("{launches} timed{}", median.unwrap_or_default())
        }
    }
}

fn queue(ahead: Option<u32>) -> String {
    match ahead {
        None => "not in the queue".to_owned(),
        Some(0) => "no job of the same caller is before it".to_owned(),
        Some(ahead) if ahead >= MAX_AHEAD => {
            format!("{} or more jobs of the same caller before it", text::grouped(MAX_AHEAD.into()))
        }
        Some(ahead) => {
            format!("{} of the same caller before it", text::counted(ahead as usize, "job"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job;
    use crate::script::PageScript;
    use crate::tests::{HOSTILE, Parsed};
    use serde_json::json;

    fn view(kind: &str) -> JobView {
        let view = json!({
            "job_id": HOSTILE, "kind": kind, "state": "queued", "created_at": 1767225600.0,
            "trials_done": 0, "attempt": 1, "label": HOSTILE,
        });
        serde_json::from_value(view).unwrap()
    }

    fn event(more: &serde_json::Value) -> JobEvent {
        let mut event = json!({
            "job_id": HOSTILE, "state": "queued", "stage": "waiting", "attempt": 2,
            "trials_done": 0, "elapsed_s": 1.0,
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn shown(kind: &str, more: &serde_json::Value) -> String {
        let links = Links { root: Some("../"), ..Links::none() };
        job(&view(kind), Some(&event(more)), &links)
    }

    #[test]
    fn a_page_without_scripts_has_stage_progress_and_place_in_the_queue() {
        let text = |kind: &str, more: serde_json::Value| Parsed::of(&shown(kind, &more)).text;
        let waiting = text("evaluate", json!({"ahead": 3}));
        assert!(waiting.contains("3 jobs of the same caller before it"), "{waiting}");
        assert!(waiting.contains("no launch has been timed yet") && waiting.contains("2 times"));
        let next = text("evaluate", json!({"ahead": 0}));
        assert!(next.contains("no job of the same caller is before it"), "{next}");
        let many = text("evaluate", json!({"ahead": 1000}));
        assert!(many.contains("1\u{202f}000 or more jobs"), "{many}");
        let statistics =
            json!({"trials": 120, "median_ms": 0.0072, "ci_lower_ms": 0.007, "ci_upper_ms": 0.008});
        let running = json!({"stage": "running", "trials_done": 1200, "statistics": statistics});
        let running = text("evaluate", running);
        assert!(running.contains("running on the device"), "{running}");
        assert!(
            running.contains("1\u{202f}200 launches timed, median 7.200\u{202f}µs"),
            "{running}"
        );
        assert!(running.contains("not in the queue"), "{running}");
        let gate = text("gate", json!({"points": 12, "points_done": 3}));
        assert!(gate.contains("3 of 12 comparisons done"), "{gate}");
        let sweep = text("sweep", json!({"points": 1, "points_done": 0}));
        assert!(sweep.contains("0 of 1 point done"), "{sweep}");
    }

    #[test]
    fn only_the_page_of_a_server_that_knows_the_event_has_the_script() {
        let html = shown("evaluate", &json!({}));
        let path = PageScript::Job.path();
        let script = format!("<script type=\"module\" src=\"../{path}\"></script>");
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        assert!(html.contains(&script), "{html}");
        let reload = "<noscript><meta http-equiv=\"refresh\" content=\"3\"></noscript>";
        assert!(html.contains(reload), "{html}");
        assert_eq!(html.matches("http-equiv=\"refresh\"").count(), 1, "{html}");
        assert!(html.contains("<noscript>This page reloads every"), "{html}");
        // A hostile id neither leaves its attribute nor its place in the address.
        let address = "data-events=\"../jobs/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E";
        assert!(html.contains(address) && !html.contains("<img"), "{html}");
        let file = job(&view("evaluate"), Some(&event(&json!({}))), &Links::none());
        assert!(!file.contains("<script") && !file.contains("http-equiv=\"refresh\""), "{file}");
        let links = Links { root: Some("../"), ..Links::none() };
        let plain = job(&view("evaluate"), None, &links);
        assert!(!plain.contains("<script") && !plain.contains("<noscript"), "{plain}");
        assert!(plain.contains("http-equiv=\"refresh\""), "{plain}");
    }

    #[test]
    fn the_script_knows_every_stage() {
        let words: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&stages()).unwrap();
        assert_eq!((words.len(), &words["running"]), (8, &json!("running on the device")));
    }
}
