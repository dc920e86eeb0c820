//! Jobs that survive their server or their caller, and jobs that do not.

use std::time::Duration;

use serde_json::{Value, json};

use crate::contracts::{endless, increment, single_thread};
use crate::server::{Answer, Server, data_directory, try_post, until};
use crate::stores::{Home, on_both};

on_both!(
    cancelling_ends_what_waits_and_what_runs,
    the_same_key_is_the_same_job_also_after_a_restart,
);

const ENDED: [&str; 4] = ["completed", "failed", "cancelled", "timed_out"];

fn submit(server: &Server, body: &Value) -> String {
    let answer = server.post_json("/evaluate?wait=false", body);
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json["job_id"].as_str().expect("a job id").to_owned()
}

fn job(server: &Server, id: &str) -> Answer {
    let answer = server.get(&format!("/jobs/{id}"));
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer
}

fn job_in(server: &Server, id: &str, states: &[&str]) -> Value {
    until(&format!("{id} in {states:?}"), || {
        let job = job(server, id).json;
        states.contains(&job["state"].as_str().expect("a state")).then_some(job)
    })
}

fn start_in(data: &tempfile::TempDir) -> Server {
    Server::start_in(data.path(), &[], &[])
}

/// A comparison of a kernel with itself.
fn comparison() -> Value {
    let contract = increment();
    json!({
        "ref_kernel": contract["kernel"],
        "custom_kernel": contract["kernel"],
        "num_trials": 3
    })
}

#[test]
fn reports_outlive_the_server() {
    let data = data_directory();
    let server = start_in(&data);
    let mut wanted = increment();
    wanted["return_outputs"] = json!("all");
    let waited = server.evaluate(&wanted);
    let waited_id = waited["job_id"].as_str().unwrap().to_owned();
    let detached_id = submit(&server, &wanted);
    let compared = server.post_json("/compare", &comparison());
    assert_eq!(compared.status, 200, "{}", compared.text);
    let compared_id = compared.json["job_id"].as_str().unwrap().to_owned();
    job_in(&server, &detached_id, &["completed"]);
    let ids = [waited_id, detached_id, compared_id];
    let before = ids.each_ref().map(|id| job(&server, id).text);
    let ptx = server.get(&format!("/jobs/{}/artifacts/ptx", ids[0]));
    server.kill();

    let server = start_in(&data);
    let after = ids.each_ref().map(|id| job(&server, id).text);
    assert_eq!(before, after, "byte for byte");
    let [waited_job, detached_job, compared_job] = ids.each_ref().map(|id| job(&server, id).json);
    let mut answer = waited;
    for output in answer["outputs"].as_object_mut().unwrap().values_mut() {
        let content = output.as_object_mut().unwrap().remove("data_b64");
        assert!(content.is_some_and(|content| content.is_string()));
    }
    assert_eq!(waited_job["result"], answer, "who waited has the content of outputs");
    let content = &detached_job["result"]["outputs"]["out"]["data_b64"];
    assert!(content.is_string(), "nobody else has it: {detached_job}");
    assert_eq!(compared_job["comparison"], compared.json);
    assert_eq!(compared_job["kind"], "compare");
    assert_eq!(ptx.status, 200, "{}", ptx.text);
    let again = server.get(&format!("/jobs/{}/artifacts/ptx", ids[0]));
    assert_eq!((again.status, again.text), (200, ptx.text));
}

#[test]
fn an_orderly_end_leaves_what_waits_to_the_next_server() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let running = submit(&server, &endless(30.0));
    job_in(&server, &running, &["profiling"]);
    let waiting = (0..4).map(|_| submit(&server, &increment())).collect::<Vec<_>>();
    let config = data.path().join("config.toml");
    std::fs::write(&config, "[server]\nshutdown_grace_s = 0\n").unwrap();
    server.kill();
    // The first attempt of the endless one is lost with its process.
    let short = ["--config", config.to_str().unwrap()];
    let server = Server::start_in(data.path(), &short, &[]);
    let job = job_in(&server, &running, &["profiling"]);
    assert_eq!(job["attempt"], 2, "{job}");
    server.terminate();
    let (status, output) = server.wait();
    assert!(status.success(), "{status}:\n{output}");
    // Ended in order, an attempt does not count: it is the second one again.
    let server = start_in(&data);
    let job = job_in(&server, &running, &["profiling"]);
    assert_eq!(job["attempt"], 2, "{job}");
    let cancelled = server.delete(&format!("/jobs/{running}"));
    assert!([200, 202].contains(&cancelled.status), "{}", cancelled.text);
    for id in waiting {
        let job = job_in(&server, &id, &ENDED);
        assert_eq!(job["state"], "completed", "{job}");
        assert_eq!(job["result"]["kernel_exec_result"]["correctness"], true, "{job}");
    }
    assert_eq!(job_in(&server, &running, &ENDED)["state"], "cancelled");
}

fn cancelling_ends_what_waits_and_what_runs(home: &Home) {
    let server = home.start(&[]);
    let running = submit(&server, &endless(60.0));
    job_in(&server, &running, &["profiling"]);
    let workers = crate::lifecycle::children_of(server.pid());
    // One is claimed to be compiled while the first one runs; the next ones wait in the store.
    let waiting = (0..3).map(|_| submit(&server, &endless(60.0))).collect::<Vec<_>>();
    for id in waiting.iter().rev().chain([&running]) {
        let answer = server.delete(&format!("/jobs/{id}"));
        assert!([200, 202].contains(&answer.status), "{}", answer.text);
        let job = job_in(&server, id, &ENDED);
        assert_eq!(job["state"], "cancelled", "{job}");
        assert!(job["error"].as_str().unwrap().contains("cancelled"), "{job}");
    }
    until("the end of the worker that ran it", || {
        workers.iter().any(|pid| !crate::lifecycle::is_alive(*pid)).then_some(())
    });
    // The device is free again.
    assert_eq!(server.evaluate(&increment())["kernel_exec_result"]["correctness"], true);
    let again = server.delete(&format!("/jobs/{running}"));
    assert!(again.text.contains("cancelled"), "{}", again.text);
    assert_eq!(server.delete("/jobs/01990000-0000-7000-8000-000000000000").status, 404);
}

#[test]
fn another_process_can_cancel() {
    let data = data_directory();
    let (first, second) = (start_in(&data), start_in(&data));
    let id = submit(&first, &endless(60.0));
    let job = job_in(&first, &id, &["profiling"]);
    assert_eq!(job["attempt"], 1);
    // One of the two runs it; asked of both, the other one passes it on.
    for server in [&first, &second] {
        let answer = server.delete(&format!("/jobs/{id}"));
        assert!([200, 202].contains(&answer.status), "{}", answer.text);
    }
    for server in [&first, &second] {
        assert_eq!(job_in(server, &id, &ENDED)["state"], "cancelled");
    }
}

fn the_same_key_is_the_same_job_also_after_a_restart(home: &Home) {
    let server = home.start(&[]);
    let key = [("content-type", "application/json"), ("idempotency-key", "build-7")];
    let body = serde_json::to_vec(&increment()).unwrap();
    let post = |server: &Server, body: &[u8]| server.post("/evaluate", &key, body);
    let first = post(&server, &body);
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(post(&server, &body).json, first.json);
    server.kill();
    let server = home.start(&[]);
    assert_eq!(post(&server, &body).json, first.json, "the same report, not another run");
    let detached = server.post("/evaluate?wait=false", &key, &body);
    assert_eq!(detached.json["job_id"], first.json["job_id"], "{}", detached.text);
    let mut other = increment();
    other["num_trials"] = json!(7);
    let refused = post(&server, &serde_json::to_vec(&other).unwrap());
    assert_eq!((refused.status, &refused.json["code"]), (409, &json!("idempotency_conflict")));
}

/// A key whose request met a server that lacked something is not spent.
#[test]
fn a_key_works_again_after_the_server_could_not() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    // What it needs is compiled; only a place for its files is missing.
    server.evaluate(&increment());
    let place = std::fs::read_dir(data.path().join("run"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .unwrap();
    let aside = data.path().join("aside");
    let key = [("content-type", "application/json"), ("idempotency-key", "nightly")];
    let post = |body: &Value| server.post("/evaluate", &key, &serde_json::to_vec(body).unwrap());
    std::fs::rename(&place, &aside).unwrap();
    for _ in 0..3 {
        let refused = post(&increment());
        let told = (refused.status, &refused.json["code"]);
        assert_eq!(told, (503, &json!("unavailable")), "{}", refused.text);
    }
    std::fs::rename(&aside, &place).unwrap();
    let answer = post(&increment());
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(post(&increment()).json, answer.json, "from here on it is one job");
    let mut other = increment();
    other["num_trials"] = json!(7);
    assert_eq!(post(&other).status, 409);
}

#[test]
fn a_caller_that_goes_away_takes_its_job_along_unless_it_can_ask_again() {
    let server = Server::start();
    let running = submit(&server, &endless(20.0));
    job_in(&server, &running, &["profiling"]);
    let path = format!("{}/evaluate", server.url);
    for (key, end) in [(None, "cancelled"), (Some("later"), "completed")] {
        let mut request = ureq::post(&path).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let label = key.unwrap_or("none");
        let request = request.query("label", label);
        let waiting = request.config().timeout_global(Some(Duration::from_millis(700))).build();
        let gone = waiting.send(serde_json::to_vec(&increment()).unwrap());
        assert!(gone.is_err(), "it waits for the device");
        let list = || {
            let list = server.get(&format!("/jobs?label={label}"));
            assert_eq!(list.status, 200, "{}", list.text);
            list.json["jobs"][0].clone()
        };
        if key.is_none() {
            until("the end of its job", || (list()["state"] == end).then_some(()));
        } else {
            assert_eq!(list()["state"], "queued");
            server.delete(&format!("/jobs/{running}"));
            until("the end of its job", || (list()["state"] == end).then_some(()));
        }
    }
}

#[test]
fn a_detached_comparison_and_sweep_have_their_whole_answer() {
    let server = Server::start();
    let mut sweep = increment();
    sweep["axes"] = json!({"n": [64, 128]});
    sweep["kernel"]["io"]["args"][2]["value"] = json!("$n");
    sweep.as_object_mut().unwrap().remove("expected");
    let batch = json!({"jobs": [
        {"kind": "compare", "request": comparison()},
        {"kind": "sweep", "request": sweep, "label": "grid"},
        {"kind": "execute", "request": increment()}
    ]});
    let answer = server.post_json("/jobs", &batch);
    assert!([200, 202].contains(&answer.status), "{}", answer.text);
    let ids: Vec<&str> = answer.json["jobs"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", answer.text))
        .iter()
        .map(|job| job["job_id"].as_str().unwrap())
        .collect();
    let ended = ids.iter().map(|id| job_in(&server, id, &ENDED)).collect::<Vec<_>>();
    assert!(ended.iter().all(|job| job["state"] == "completed"), "{ended:?}");
    assert_eq!(ended[0]["comparison"]["candidates"].as_array().unwrap().len(), 1);
    assert_eq!(ended[1]["sweep"]["result"]["points"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&ended[1]["sweep"]["points_done"], &ended[1]["label"]),
        (&json!(2), &json!("grid"))
    );
    assert!(ended[2]["result"]["outputs"]["out"]["data_b64"].is_string(), "{}", ended[2]);
    // One that is wrong takes the others along.
    let count = || server.get("/stats").json["job_stats"]["total_jobs"].as_u64();
    let before = count();
    let broken = json!({"jobs": [
        {"kind": "evaluate", "request": increment()},
        {"kind": "evaluate", "request": {"kernel": {"kernel_type": "cuda"}}}
    ]});
    let refused = server.post_json("/jobs", &broken);
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("jobs[1]"), "{}", refused.text);
    assert_eq!(count(), before, "all or none");
}

#[test]
fn a_kernel_that_takes_its_server_along_is_given_up() {
    let data = data_directory();
    let mut id = String::new();
    for attempt in 1..=3 {
        let server = start_in(&data);
        if attempt == 1 {
            id = submit(&server, &endless(60.0));
        }
        let job = job_in(&server, &id, &["profiling"]);
        assert_eq!(job["attempt"], attempt, "{job}");
        server.kill();
    }
    let server = start_in(&data);
    let job = job_in(&server, &id, &ENDED);
    assert_eq!((&job["state"], &job["code"]), (&json!("failed"), &json!("attempts_exhausted")));
    assert!(job["error"].as_str().unwrap().contains('3'), "{job}");
    let metrics = crate::openmetrics::parse(&server.get("/metrics").text);
    let failed = metrics["warpgauge_jobs_ended"].value("_total", &[("state", "failed")]);
    assert_eq!(failed, 1.0, "an end that no process worked towards is counted too");
}

#[test]
fn a_directory_that_cannot_be_written_is_a_clear_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("data");
    let output = crate::server::program()
        .args(["serve", "--port", "0", "--device", "emulator"])
        .env("WARPGAUGE_DATA_DIR", &below)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("data_dir") && told.contains(below.to_str().unwrap()), "{told}");
}

#[test]
fn jobs_of_the_command_line_are_in_the_same_store() {
    let data = data_directory();
    let contract = data.path().join("contract.json");
    std::fs::write(&contract, serde_json::to_vec(&increment()).unwrap()).unwrap();
    let output = crate::server::program()
        .args(["eval", contract.to_str().unwrap(), "--json", "--device", "emulator"])
        .env("WARPGAUGE_DATA_DIR", data.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let server = start_in(&data);
    let id = report["job_id"].as_str().unwrap();
    assert_eq!(job(&server, id).json["result"], report);
}

#[test]
fn news_of_a_job_end_with_its_end() {
    let server = Server::start();
    let id = submit(&server, &single_thread("*out = 7;"));
    let events = server.get(&format!("/jobs/{id}/events"));
    assert_eq!(events.status, 200, "{}", events.text);
    let data = events.text.lines().filter_map(|line| line.strip_prefix("data:"));
    let news: Vec<Value> = data.map(|text| serde_json::from_str(text).unwrap()).collect();
    let last = news.last().expect("there is news");
    assert!(ENDED.contains(&last["state"].as_str().unwrap()), "{last}");
    assert_eq!(last["stage"], "ended", "{last}");
    assert!(news.iter().all(|event| event["job_id"] == id.as_str()));
    assert_eq!(job(&server, &id).json["state"], last["state"]);
    // Whoever comes late is told the end.
    let late = server.get(&format!("/jobs/{id}/events")).text;
    assert_eq!(late.lines().filter(|line| line.starts_with("data:")).count(), 1, "{late}");
}

#[test]
fn a_job_that_is_waited_for_and_cancelled_is_answered() {
    let server = Server::start();
    let answer = std::thread::scope(|scope| {
        let url = server.url.clone();
        let waiting = scope.spawn(move || try_post(&url, "/evaluate?label=w", &[], &endless(60.0)));
        let id = until("the job", || {
            let list = server.get("/jobs?label=w");
            let job = &list.json["jobs"][0];
            (job["state"] == "profiling").then(|| job["job_id"].as_str().unwrap().to_owned())
        });
        server.delete(&format!("/jobs/{id}"));
        waiting.join().unwrap().expect("an answer")
    });
    assert_eq!(
        (answer.status, &answer.json["code"]),
        (409, &json!("cancelled")),
        "{}",
        answer.text
    );
}
