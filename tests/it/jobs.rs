//! Jobs over HTTP and from the command line: lists, batches, events, cancelling, owners, numbers.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::contracts::{endless, increment};
use crate::openmetrics;
use crate::server::{Server, data_directory, until};
use crate::stores::{Home, on_both};
use crate::support::{outcome, warpgauge};

on_both!(jobs_are_listed_page_by_page_and_by_filter);

fn batch(server: &Server, items: Value) -> Vec<String> {
    let answer = server.post_json("/jobs", &json!({"jobs": items}));
    assert_eq!(answer.status, 202, "{}", answer.text);
    let jobs = answer.json["jobs"].as_array().unwrap().iter();
    jobs.map(|job| job["job_id"].as_str().unwrap().to_owned()).collect()
}

fn ended(server: &Server, id: &str) -> Value {
    until(&format!("the end of {id}"), || {
        let job = server.get(&format!("/jobs/{id}")).json;
        let ended = ["completed", "failed", "cancelled", "timed_out"];
        ended.contains(&job["state"].as_str().unwrap()).then_some(job)
    })
}

fn listed(server: &Server, query: &str) -> (Vec<String>, Option<String>) {
    let answer = server.get(&format!("/jobs?{query}"));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let jobs = answer.json["jobs"].as_array().unwrap().iter();
    let ids = jobs.map(|job| job["job_id"].as_str().unwrap().to_owned()).collect();
    (ids, answer.json["next_cursor"].as_str().map(str::to_owned))
}

fn jobs_are_listed_page_by_page_and_by_filter(home: &Home) {
    let server = home.start(&[]);
    let items = (0..5).map(
        |index| json!({"request": increment(), "label": if index < 2 { "few" } else { "many" }}),
    );
    let mut ids = batch(&server, items.collect());
    ids.iter().for_each(|id| drop(ended(&server, id)));
    ids.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (page, next) = listed(&server, &format!("limit=2{cursor}"));
        assert!(page.len() <= 2);
        seen.extend(page);
        let Some(next) = next else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, ids, "the youngest first, each once");
    assert_eq!(listed(&server, "label=few").0, ids[3..]);
    assert_eq!(listed(&server, "state=completed&state=failed&kind=evaluate").0, ids);
    assert!(listed(&server, "kind=sweep").0.is_empty());
    assert!(listed(&server, "state=queued").0.is_empty());
    let created =
        |id: &str| server.get(&format!("/jobs/{id}")).json["created_at"].as_f64().unwrap();
    let youngest = created(&ids[0]);
    assert!(listed(&server, &format!("created_after={youngest}")).0.contains(&ids[0]));
    assert!(listed(&server, &format!("created_after={}", youngest + 100.0)).0.is_empty());
    assert_eq!(listed(&server, &format!("created_before={}", youngest + 100.0)).0, ids);
    let wrong = server.get("/jobs?cursor=nonsense");
    assert_eq!(wrong.status, 400, "{}", wrong.text);
}

#[test]
fn a_batch_is_checked_before_any_of_it_is_taken() {
    let server = Server::start();
    let mut wrong = increment();
    wrong["num_trials"] = json!(0);
    let jobs = json!([{"request": increment()}, {"request": wrong}]);
    let answer = server.post_json("/jobs", &json!({"jobs": jobs}));
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert_eq!(answer.json["path"], "jobs[1].request.num_trials", "{}", answer.text);
    assert!(listed(&server, "limit=1").0.is_empty());
}

#[test]
fn the_command_line_watches_waits_and_cancels() {
    let server = Server::start();
    let home = tempfile::tempdir().unwrap();
    let jobs = |args: &[&str]| {
        let command = [&["jobs"], args, &["--server", &server.url]].concat();
        outcome(warpgauge(home.path(), &command).output().unwrap())
    };
    let ids = batch(&server, json!([{"request": endless(60.0), "label": "long"}]));
    let long = ids[0].as_str();
    until("it runs", || {
        let job = server.get(&format!("/jobs/{long}")).json;
        (job["state"] == "profiling").then_some(())
    });
    // States reach the store a moment later than those who ask for the job.
    until("it is listed", || {
        let (code, text, _) = jobs(&["list", "--state", "profiling"]);
        assert_eq!(code, 0);
        (text.contains(long) && text.contains("long")).then_some(())
    });
    let mut watching = warpgauge(home.path(), &["jobs", "events", long, "--json", "--server"]);
    let mut watching =
        watching.arg(&server.url).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut news = BufReader::new(watching.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&news.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["state"], "profiling", "{first}");
    let (code, text, _) = jobs(&["cancel", long]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("stopping") || text.contains("cancelled"), "{text}");
    let last = news.last().unwrap().unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["state"], "cancelled", "{last}");
    assert!(watching.wait().unwrap().success());
    let (code, text, error) = jobs(&["cancel", long]);
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("ended") && text.contains("cancelled"), "{text}");
    let (code, ..) = jobs(&["wait", long]);
    assert_eq!(code, 1, "it has no report");

    let id = batch(&server, json!([{"request": increment()}])).remove(0);
    let (code, text, error) = jobs(&["wait", &id, "--json"]);
    assert_eq!(code, 0, "{error}");
    let view: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(view["result"]["kernel_exec_result"]["correctness"], true, "{view}");
    let (code, text, _) = jobs(&["show", &id]);
    assert_eq!(code, 0);
    assert!(text.contains("completed") && text.contains("CORRECT"), "{text}");
    let (code, _, error) = jobs(&["show", "nobody"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("no_such_job"), "{error}");
}

#[test]
fn a_stream_of_events_ends_with_the_job() {
    let server = Server::start();
    let ids = batch(&server, json!([{"request": increment()}]));
    let stream = server.get(&format!("/jobs/{}/events", ids[0]));
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.text.matches("event: end\n").count(), 1, "{}", stream.text);
    let last = stream.text.trim_end().lines().last().unwrap();
    let last: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&last["state"], &last["job_id"]), (&json!("completed"), &json!(ids[0])));
    assert!(stream.text.starts_with("retry: 1000\n\nid: "), "{}", stream.text);
}

#[test]
fn keys_see_their_own_jobs_and_administrators_all() {
    let data = data_directory();
    let keys = [("WARPGAUGE_API_KEYS", "one,two"), ("WARPGAUGE_ADMIN_KEYS", "root")];
    let server = Server::start_in(data.path(), &[], &keys);
    let body = increment().to_string();
    let json = ("content-type", "application/json");
    let submitted =
        server.post("/evaluate?wait=false", &[("x-api-key", "one"), json], body.as_bytes());
    assert_eq!(submitted.status, 202, "{}", submitted.text);
    let id = submitted.json["job_id"].as_str().unwrap();
    let get = |path: &str, key: &str| server.get_with(path, &[("x-api-key", key)]);
    let job = format!("/jobs/{id}");
    until("it has ended", || (get(&job, "one").json["state"] == "completed").then_some(()));
    let below = ["", "/artifacts", "/artifacts/ptx", "/code", "/roofline.svg", "/events"];
    for path in below.map(|below| format!("{job}{below}")).iter().chain([&format!("/job/{id}")]) {
        let answer = get(path, "two");
        assert_eq!(
            (answer.status, answer.json["code"].as_str()),
            (404, Some("no_such_job")),
            "{path}"
        );
        assert_ne!(get(path, "root").json["code"], "no_such_job", "{path}");
    }
    assert_eq!(get("/jobs", "two").json["jobs"], json!([]));
    assert_eq!(get("/jobs", "root").json["jobs"].as_array().unwrap().len(), 1);
    for path in ["/stats", "/metrics"] {
        let refused = get(path, "one");
        assert_eq!((refused.status, refused.json["code"].as_str()), (403, Some("forbidden")));
    }
    assert_eq!(get("/stats", "root").json["job_stats"]["total_jobs"], 1);
    assert_eq!(get("/health", "root").json["job_stats"]["total_jobs"], 1);
    for health in [server.get("/health"), get("/health", "one"), get("/health", "wrong")] {
        assert_eq!((health.status, &health.json["status"]), (200, &json!("healthy")));
        assert_eq!(health.json.get("job_stats").or(health.json.get("queue_depth")), None);
    }
    assert_eq!(server.get("/health").json.get("device_count"), None);
    assert_eq!(
        get("/health", "one").json["device_count"],
        get("/devices", "one").json["devices"].as_array().unwrap().len()
    );
    let cleanup = "/admin/cleanup-jobs?older_than_s=0";
    assert_eq!(server.post(cleanup, &[("x-api-key", "one")], b"").status, 403);
    let cleaned = server.post(cleanup, &[("x-api-key", "root")], b"");
    assert_eq!(cleaned.json["cleaned_jobs"], 1, "{}", cleaned.text);
    assert_eq!(get(&job, "one").status, 404);
}

#[test]
fn statistics_and_metrics_count_what_happened() {
    let server = Server::start();
    let right = server.evaluate(&increment());
    server.evaluate(&increment());
    let mut broken = increment();
    broken["kernel"]["source_code"] = json!("this is no kernel");
    assert_eq!(server.evaluate(&broken)["kernel_exec_result"]["compiled"], false);
    let stats = server.get("/stats").json;
    let number = |path: &str| stats.pointer(path).and_then(Value::as_f64).expect("a number");
    assert_eq!(number("/job_stats/total_jobs"), 3.0, "{stats}");
    assert_eq!(number("/throughput/total_requests"), 3.0, "{stats}");
    assert_eq!(number("/throughput/completed_requests"), 3.0, "{stats}");
    assert_eq!(number("/profiling_metrics/total_profilings"), 2.0, "{stats}");
    assert_eq!(number("/profiling_metrics/correctness_passed"), 2.0, "{stats}");
    assert_eq!(number("/gpu_utilization/gpu_acquisitions"), 2.0, "{stats}");
    assert!(number("/compilation_metrics/failed_compilations") >= 1.0, "{stats}");
    assert!(number("/compilation_metrics/cache_hits") >= 1.0, "{stats}");
    let execute = right["timings"]["execute"].as_f64().unwrap() / 1e3;
    assert!(number("/profiling_metrics/total_time_seconds") >= execute, "{stats}");
    assert!(number("/gpu_utilization/total_gpu_time_seconds") >= execute, "{stats}");
    assert!(number("/throughput/max_end_to_end_time_seconds") >= execute, "{stats}");

    let metrics = server.get("/metrics");
    let families = openmetrics::parse(&metrics.text);
    let value = |family: &str, suffix: &str, labels: &[(&str, &str)]| {
        families[&format!("warpgauge_{family}")].value(suffix, labels)
    };
    assert_eq!(value("evaluations", "_total", &[("outcome", "correct")]), 2.0);
    assert_eq!(value("evaluations", "_total", &[("outcome", "not_compiled")]), 1.0);
    for (stage, count) in [("worker", 2.0), ("measure", 2.0), ("queue", 2.0), ("total", 3.0)] {
        let seen = value("stage_duration_seconds", "_count", &[("stage", stage)]);
        assert_eq!(seen, count, "{stage}");
    }
    assert_eq!(value("jobs_ended", "_total", &[("state", "completed")]), 3.0);
    assert_eq!(value("jobs", "", &[("state", "completed")]), 3.0);
    assert!(value("device_busy_seconds", "_total", &[("device", "0")]) >= execute);
    let evaluations = [("route", "/evaluate"), ("method", "POST")];
    assert_eq!(value("http_request_duration_seconds", "_count", &evaluations), 3.0);
}
