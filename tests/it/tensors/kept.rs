//! Outputs that become shared tensors.

use serde_json::{Value, json};

use super::*;
use crate::contracts::increment;
use crate::server::until;

/// What the contract that adds one must leave.
fn incremented() -> Vec<f32> {
    (1..=256).map(|at| at as f32).collect()
}

fn keeping(how: Value) -> Value {
    let mut contract = increment();
    contract["keep_outputs"] = json!({"out": how});
    contract
}

fn kept(report: &Value) -> &Value {
    assert_eq!(report["kept_outputs"].as_object().map(|kept| kept.len()), Some(1), "{report:#}");
    &report["kept_outputs"]["out"]
}

#[track_caller]
fn id_of(report: &Value) -> String {
    let kept = kept(report);
    assert!(kept["reason"].is_null(), "{kept}");
    kept["tensor_id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn not_kept(report: &Value, part: &str) {
    let kept = kept(report);
    assert!(kept["tensor_id"].is_null(), "{kept}");
    assert!(kept["reason"].as_str().unwrap().contains(part), "{kept}");
}

#[test]
fn an_output_becomes_a_tensor_that_the_next_kernel_reads() {
    let server = Server::start();
    for (place, device) in [(0, "cuda:0"), (-1, "cpu")] {
        let how = json!({"cuda_device": place, "name": "sums", "ttl_s": 3600, "sample_rate": 8000});
        let report = server.evaluate(&keeping(how));
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
        assert_eq!(kept(&report)["device"], device);
        assert!(report["outputs"]["out"]["data_b64"].is_null(), "it need not travel");
        let id = id_of(&report);
        assert_eq!(floats(&server, &id), incremented());
        let tensor = server.get(&format!("/tensors/{id}")).json;
        assert_eq!((&tensor["name"], &tensor["sample_rate"]), (&json!("sums"), &json!(8000)));
        assert!(tensor["expires_in_s"].as_f64().unwrap() <= 3600.0);
        let job = server.get(&format!("/jobs/{}", report["job_id"].as_str().unwrap())).json;
        assert_eq!(job["result"]["kept_outputs"], report["kept_outputs"]);

        // Run for its outputs, the next kernel keeps what it leaves, and returns what it is asked for.
        let mut next = keeping(json!({"cuda_device": place}));
        next.as_object_mut().unwrap().remove("expected");
        next["kernel"]["io"]["args"][0]["tensor_spec"] = json!({"data": {"tensor_id": id}});
        for (wanted, travels) in [(json!("none"), false), (json!(["out"]), true)] {
            next["return_outputs"] = wanted;
            let answer = server.post_json("/execute", &next);
            assert_eq!(answer.status, 200, "{}", answer.text);
            let twice: Vec<f32> = incremented().iter().map(|value| value + 1.0).collect();
            assert_eq!(floats(&server, &id_of(&answer.json)), twice);
            let data = &answer.json["outputs"]["out"]["data_b64"];
            assert_eq!(*data == json!(base64(&bytes_of(&twice))), travels, "{data}");
        }
    }
}

/// A reason in place of a tensor, and never another verdict.
#[test]
fn what_is_not_kept_says_why() {
    let server = Server::start_configured("[tensors]\nmax_count_per_key = 1\n");
    let mut wrong = keeping(json!({"cuda_device": -1}));
    let source = wrong["kernel"]["source_code"].as_str().unwrap().replace("+ 1.0f", "+ 2.0f");
    wrong["kernel"]["source_code"] = source.into();
    let report = server.evaluate(&wrong);
    assert_eq!(report["kernel_exec_result"]["correctness"], false);
    not_kept(&report, "found wrong");
    wrong["kernel"]["source_code"] = "not C".into();
    let report = server.evaluate(&wrong);
    assert_eq!(report["kernel_exec_result"]["compiled"], false);
    not_kept(&report, "found wrong");
    assert_eq!(server.get("/tensors").json["count"], 0);

    let first = id_of(&server.evaluate(&keeping(json!({"cuda_device": -1}))));
    let report = server.evaluate(&keeping(json!({"cuda_device": -1})));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    not_kept(&report, "max_count_per_key");
    let report = server.evaluate(&keeping(json!({"cuda_device": -1, "evict": true})));
    assert_eq!(floats(&server, &id_of(&report)), incremented());
    let gone = server.get(&format!("/tensors/{first}"));
    assert_eq!((gone.status, &gone.json["code"]), (410, &json!("tensor_gone")));
}

#[test]
fn a_request_that_keeps_what_cannot_be_kept_is_refused() {
    let server = Server::start();
    let refused = |body: &Value, path: &str| {
        let answer = server.post_json("/evaluate", body);
        assert_eq!((answer.status, &answer.json["path"]), (400, &json!(path)), "{}", answer.text);
    };
    refused(&keeping(json!({"cuda_device": 9})), "keep_outputs.out.cuda_device");
    refused(&keeping(json!({"ttl_s": 0})), "keep_outputs.out.ttl_s");
    refused(&keeping(json!({"tensor": 0})), "keep_outputs.out.tensor");
    let mut other = increment();
    other["keep_outputs"] = json!({"in": {}});
    refused(&other, "keep_outputs.in");
    other["keep_outputs"] = json!({"no": {}});
    refused(&other, "keep_outputs.no");
    let jobs = json!({"jobs": [{"kind": "evaluate", "request": keeping(json!({"ttl_s": -1}))}]});
    let answer = server.post_json("/jobs", &jobs);
    assert_eq!(answer.json["path"], "jobs[0].request.keep_outputs.out.ttl_s", "{}", answer.text);
    let mut sweep = keeping(json!({}));
    sweep["axes"] = json!({"n": [256]});
    let answer = server.post_json("/sweep", &sweep);
    assert_eq!((answer.status, &answer.json["path"]), (400, &json!("keep_outputs")));

    let directory = tempfile::tempdir().unwrap();
    let contract = directory.path().join("contract.json");
    std::fs::write(&contract, keeping(json!({})).to_string()).unwrap();
    let output = crate::server::program().arg("eval").arg(&contract).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("keep_outputs") && text.contains("running server"), "{text}");
}

/// The same key again is the same job again, and no second tensor; a job that is cancelled leaves none.
#[test]
fn a_tensor_is_kept_once_and_only_for_a_job_that_ends() {
    let server = Server::start();
    let body = keeping(json!({"cuda_device": -1})).to_string();
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "once")];
    let first = server.post("/evaluate", &headers, body.as_bytes());
    let again = server.post("/evaluate", &headers, body.as_bytes());
    assert_eq!((first.status, id_of(&first.json)), (again.status, id_of(&again.json)));
    assert_eq!(server.get("/tensors").json["count"], 1);

    let mut endless = crate::contracts::endless(600.0);
    endless["keep_outputs"] = json!({"out": {"cuda_device": -1}});
    let headers = [("Content-Type", "application/json")];
    let job = server.post("/evaluate?wait=false", &headers, endless.to_string().as_bytes());
    let path = format!("/jobs/{}", job.json["job_id"].as_str().unwrap());
    until("it runs", || (server.get(&path).json["state"] == "profiling").then_some(()));
    assert!(server.delete(&path).status < 300);
    until("it ends", || (server.get(&path).json["state"] == "cancelled").then_some(()));
    assert_eq!(server.get("/tensors").json["count"], 1);
}
