//! `wait=false` on every operation that creates a job, and parameters that contradict it.

use serde_json::{Value, json};

use crate::contracts::increment;
use crate::server::{Server, until};

/// Each operation with a request, and where its report is in the job.
fn operations() -> [(&'static str, Value, &'static str); 5] {
    let mut execute = increment();
    execute["return_outputs"] = json!("all");
    let mut sweep = increment();
    sweep["axes"] = json!({"trials": [1, 2]});
    sweep["num_trials"] = json!("$trials");
    let kernel = increment()["kernel"].clone();
    let compare = json!({"ref_kernel": kernel, "custom_kernel": kernel});
    let case = json!({"name": "a", "contract": increment(), "baseline": increment()});
    [
        ("/evaluate", increment(), "/result"),
        ("/execute", execute, "/result"),
        ("/compare", compare, "/comparison"),
        ("/sweep", sweep, "/sweep/result"),
        ("/gate", json!({"cases": [case]}), "/gate"),
    ]
}

#[test]
fn every_operation_that_makes_a_job_can_leave_it() {
    let server = Server::start();
    for (path, body, report) in operations() {
        let answer = server.post_json(&format!("{path}?wait=false&label=left"), &body);
        assert_eq!(answer.status, 202, "{path}: {}", answer.text);
        let url = answer.json["status_url"].as_str().unwrap();
        assert_eq!(answer.header("location"), Some(url), "{path}");
        assert_eq!(answer.json["existing"], false, "{path}");
        let job = until(&format!("the end of {path}"), || {
            let job = server.get(url).json;
            (job["state"] == "completed").then_some(job)
        });
        assert_eq!((&job["job_id"], &job["label"]), (&answer.json["job_id"], &json!("left")));
        let left = job.pointer(report).unwrap_or_else(|| panic!("{path}: no report in {job}"));
        // The same report as that of whoever waits; the run, and with it the ids and times, is another.
        let waited = server.post_json(&format!("{path}?wait=true"), &body);
        assert_eq!(waited.status, 200, "{path}: {}", waited.text);
        let names = |report: &Value| {
            report.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(names(left), names(&waited.json), "{path}");
    }
}

#[test]
fn what_does_not_fit_beside_it_is_refused_and_makes_no_job() {
    let server = Server::start();
    let [_, _, _, (_, sweep, _), (_, gate, _)] = operations();
    let json = ("content-type", "application/json");
    let events = ("accept", "text/event-stream");
    for (path, body, headers, at) in [
        ("/sweep?wait=false&stream=true", &sweep, &[json][..], "stream"),
        ("/sweep?wait=false&format=csv", &sweep, &[json], "format"),
        ("/sweep?wait=false", &sweep, &[json, events], "Accept"),
        ("/gate?wait=false&format=junit", &gate, &[json], "format"),
    ] {
        let answer = server.post(path, headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        assert_eq!(answer.json["code"], "contradictory_parameters", "{path}");
        assert_eq!(answer.json["path"], at, "{path}");
        assert!(answer.json["error"].as_str().unwrap().contains("wait=false"), "{}", answer.text);
    }
    assert_eq!(server.get("/jobs").json["jobs"], json!([]));
    for (path, body) in [
        ("/sweep?wait=false&stream=false&format=json", &sweep),
        ("/gate?wait=false&format=json", &gate),
    ] {
        assert_eq!(server.post_json(path, body).status, 202, "{path}");
    }
}
