//! What one key may use of a shared service: quotas, and turns.

use serde_json::{Value, json};

use crate::contracts::{endless, increment};
use crate::server::{Answer, Server, emulated, until};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A server with two keys and an administrator's.
fn start(limits: &str) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    std::fs::write(&file, format!("[limits]\n{limits}")).unwrap();
    let keys = [("WARPGAUGE_API_KEYS", "one,two"), ("WARPGAUGE_ADMIN_KEYS", "root")];
    Server::start_with(&["--config", file.to_str().unwrap()], &keys)
}

fn post(server: &Server, key: &str, path: &str, body: &Value) -> Answer {
    server.post(path, &[("x-api-key", key), JSON], body.to_string().as_bytes())
}

fn submit(server: &Server, key: &str, body: &Value) -> String {
    let answer = post(server, key, "/evaluate?wait=false", body);
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json["job_id"].as_str().unwrap().to_owned()
}

fn job(server: &Server, id: &str) -> Value {
    let answer = server.get_with(&format!("/jobs/{id}"), &[("x-api-key", "root")]);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json
}

fn runs(server: &Server, id: &str) {
    until("it runs", || (job(server, id)["state"] == "profiling").then_some(()));
}

fn ended(server: &Server, id: &str) -> Value {
    until("its end", || {
        let job = job(server, id);
        job["finished_at"].is_number().then_some(job)
    })
}

fn cancel(server: &Server, id: &str) {
    let path = format!("{}/jobs/{id}", server.url);
    let answer = ureq::delete(&path).header("x-api-key", "root").call().unwrap();
    assert!(answer.status().is_success());
}

/// A refusal by quota that says all that its reader needs.
fn refused(answer: &Answer, words: &str) {
    assert_eq!((answer.status, &answer.json["code"]), (429, &json!("quota_exceeded")));
    let told = answer.json["error"].as_str().unwrap_or_else(|| panic!("{}", answer.text));
    assert!(told.contains(words), "{told}");
    let wait = answer.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(wait.is_some_and(|seconds| seconds >= 1), "{:?}", answer.headers);
}

#[test]
fn a_key_that_has_enough_waiting_is_refused_more() {
    let server = start("max_queued_per_key = 3\nmax_running_per_key = 1\n");
    let running = submit(&server, "one", &endless(60.0));
    runs(&server, &running);
    let waiting = [(); 3].map(|()| submit(&server, "one", &increment()));
    let more = || post(&server, "one", "/evaluate?wait=false", &increment());
    refused(&more(), "3 of your jobs are waiting, and at most 3 are allowed");
    // A batch is all or none.
    let batch = json!({"jobs": [{"request": increment()}, {"request": increment()}]});
    refused(&post(&server, "one", "/jobs", &batch), "3 of your jobs are waiting");
    // Others are not concerned, and have their own count.
    let others = submit(&server, "two", &endless(60.0));
    until("its turn", || (job(&server, &others)["attempt"] == 1).then_some(()));
    let behind = [(); 3].map(|()| submit(&server, "two", &increment()));
    let full = post(&server, "two", "/evaluate?wait=false", &increment());
    refused(&full, "3 of your jobs are waiting");
    cancel(&server, &others);
    cancel(&server, &running);
    for id in waiting.iter().chain(&behind) {
        assert_eq!(ended(&server, id)["state"], "completed");
    }
    let again = more();
    assert_eq!(again.status, 202, "{}", again.text);
}

#[test]
fn a_key_that_has_enough_running_is_refused_more() {
    let server = start("max_running_per_key = 1\n");
    let running = submit(&server, "one", &endless(60.0));
    runs(&server, &running);
    let waited = post(&server, "one", "/evaluate", &increment());
    refused(&waited, "1 of your jobs are running, and at most 1 are allowed");
    // What nobody waits for takes its turn later.
    let later = submit(&server, "one", &increment());
    // The other key's is taken in, and waits for the device.
    let others = submit(&server, "two", &endless(60.0));
    until("its turn", || (job(&server, &others)["attempt"] == 1).then_some(()));
    assert_eq!(job(&server, &later)["state"], "queued", "its key has one that runs");
    cancel(&server, &running);
    cancel(&server, &others);
    assert_eq!(ended(&server, &later)["state"], "completed");
    let again = post(&server, "one", "/evaluate", &increment());
    assert_eq!(again.status, 200, "{}", again.text);
}

#[test]
fn one_job_runs_beside_another_key_on_the_emulated_device() {
    needs!("the emulated device", emulated());
    let server = start("");
    let running = submit(&server, "one", &endless(60.0));
    runs(&server, &running);
    let many: Vec<_> = (0..12).map(|_| submit(&server, "one", &increment())).collect();
    let one = submit(&server, "two", &increment());
    assert_eq!(ended(&server, &one)["state"], "completed");
    assert_eq!(job(&server, &running)["state"], "profiling");
    let waits = |id: &String| job(&server, id)["finished_at"].is_null();
    assert!(many.iter().all(waits), "the others have their turn after the first");
    cancel(&server, &running);
    for id in &many {
        assert_eq!(ended(&server, id)["state"], "completed");
    }
}

#[test]
fn one_job_does_not_wait_for_the_many_of_another_key() {
    needs!("a GPU", !emulated());
    let server = start("");
    let running = submit(&server, "one", &endless(60.0));
    runs(&server, &running);
    let many: Vec<_> = (0..12).map(|_| submit(&server, "one", &increment())).collect();
    let one = submit(&server, "two", &increment());
    cancel(&server, &running);
    let end = |id: &String| ended(&server, id)["finished_at"].as_f64().unwrap();
    let mut ends: Vec<(f64, &String)> =
        many.iter().chain([&running, &one]).map(|id| (end(id), id)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let place = ends.iter().position(|(_, id)| **id == one).unwrap();
    // Before it: what ran, and what was claimed to be compiled meanwhile.
    assert!(place <= 2, "it ended as number {place} of {}", ends.len());
}
