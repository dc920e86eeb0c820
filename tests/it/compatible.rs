//! The CUDA Evaluation Server's form of requests and answers, for kernels for a device.
//! `torch/requests.rs` has the requests of its README.

use serde_json::{Value, json};

use crate::mcp::agent::Agent;
use crate::server::{Server, data_directory, device, program};

const DOUBLE: &str = r#"extern "C" __global__ void twice(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2.0f;
}"#;

const BROKEN: &str = "extern \"C\" __global__ void twice(const float* a) { b[0] = 1; }";

fn kernel(source: &str) -> Value {
    let tensor = |init: Value| json!({"shape": [256], "dtype": "float32", "init": init});
    json!({
        "source_code": source, "kernel_type": "cuda",
        "io": {
            "args": [
                {"name": "a", "type": "tensor", "tensor_spec": tensor(json!({"kind": "randn", "seed": 1}))},
                {"name": "b", "type": "tensor", "tensor_spec": tensor(Value::Null), "role": "output"},
                {"name": "n", "type": "int", "value": 256},
            ],
            "launch": {"grid": {"x": 1}, "block": {"x": 256}},
        },
    })
}

fn evaluation(source: &str) -> Value {
    json!({"kernel": kernel(source), "num_trials": 3})
}

/// The answer to a client that asks for nothing but JSON.
#[track_caller]
pub(super) fn answered(server: &Server, path: &str, body: &Value) -> Value {
    let bytes = serde_json::to_vec(body).unwrap();
    let answer = server.post(path, &[("content-type", "application/json")], &bytes);
    assert_eq!(answer.status, 200, "{path}: {}\n{}", answer.text, server.output());
    assert_has_all_fields(&answer.json, path != "/evaluate");
    answer.json
}

const STATISTICS: [&str; 7] =
    ["mean", "std", "min", "max", "median", "percentile_95", "percentile_99"];

/// Checks what the models of that system check: `EvaluationResponse` and `CompareResponse`.
#[track_caller]
fn assert_has_all_fields(answer: &Value, is_comparison: bool) {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let is_stats = |value: &Value| STATISTICS.iter().all(|name| value[name].is_number());
    for name in ["job_id", "status", "pod_name", "gpu_type"] {
        assert!(is_text(&answer[name]), "{name}: {answer:#}");
    }
    let address = answer["pod_ip"].as_str().unwrap();
    assert!(address.parse::<std::net::IpAddr>().is_ok(), "{address}");
    let result = answer["kernel_exec_result"].as_object().unwrap();
    for name in ["compiled", "correctness"] {
        assert!(result[name].is_boolean(), "{name}: {answer:#}");
    }
    assert!(result["runtime"].is_number(), "{answer:#}");
    assert!(result["runtime_stats"].is_null() || is_stats(&result["runtime_stats"]), "{answer:#}");
    for name in ["compilation_error", "validation_error"] {
        assert!(result[name].is_null() || is_text(&result[name]), "{name}: {answer:#}");
    }
    let metadata = &result["metadata"];
    assert!(metadata["gpu_id"].is_u64() && is_text(&metadata["gpu_type"]), "{answer:#}");
    assert!(!is_comparison || is_stats(&answer["ref_runtime"]), "{answer:#}");
}

#[test]
fn every_answer_has_all_fields_of_the_reference_system() {
    let server = Server::start();
    let right = answered(&server, "/evaluate", &evaluation(DOUBLE));
    let result = &right["kernel_exec_result"];
    assert!(result["runtime"].as_f64().unwrap() > 0.0, "{right:#}");
    assert_eq!(result["runtime"], result["runtime_stats"]["mean"], "{right:#}");
    // Nothing was checked, so it is not called correct.
    assert_eq!((&right["verdict"], &result["correctness"]), (&json!("not_checked"), &json!(false)));

    let broken = answered(&server, "/evaluate", &evaluation(BROKEN));
    let result = &broken["kernel_exec_result"];
    assert_eq!((&result["compiled"], &result["runtime"]), (&json!(false), &json!(0.0)));
    assert!(result["compilation_error"].is_string() && result["validation_error"].is_null());

    let compared = |reference: &str, candidate: &str| {
        let body = json!({"ref_kernel": kernel(reference), "custom_kernel": kernel(candidate)});
        answered(&server, "/compare", &body)
    };
    let right = compared(DOUBLE, DOUBLE);
    assert_eq!(right["kernel_exec_result"]["correctness"], true, "{right:#}");
    // As its README computes it.
    let mean = right["ref_runtime"]["mean"].as_f64().unwrap();
    assert!(mean / right["kernel_exec_result"]["runtime"].as_f64().unwrap() > 0.0, "{right:#}");
    let broken = compared(DOUBLE, BROKEN);
    assert_eq!(broken["kernel_exec_result"]["correctness"], false, "{broken:#}");
    assert!(broken["ref_runtime"]["mean"].as_f64().unwrap() > 0.0, "{broken:#}");
    let without = compared(BROKEN, DOUBLE);
    assert_eq!(without["kernel_exec_result"]["compiled"], true, "{without:#}");
    assert_eq!(without["ref_runtime"]["mean"], 0.0, "{without:#}");

    let minimal = server.post_json("/evaluate", &evaluation(BROKEN)).json;
    assert!(minimal.get("pod_name").is_none(), "{minimal:#}");
    assert_eq!(minimal["kernel_exec_result"]["correctness"], Value::Null);
    let stored = server.get(&format!("/jobs/{}", broken["job_id"].as_str().unwrap())).json;
    assert!(stored["result"].get("pod_ip").is_none(), "{stored:#}");
}

/// An evaluation with fields that only that system has, and without some that this one needs.
fn lenient() -> Value {
    let mut body = evaluation(DOUBLE);
    body["collect_device_metrics"] = json!(false);
    body["num_trials"] = json!("4");
    body["kernel"]["metadata"] = json!({"author": "a"});
    let io = &mut body["kernel"]["io"];
    io["args"][0]["index"] = json!(0);
    io["args"][0]["tensor_spec"]["init"] = Value::Null;
    io.as_object_mut().unwrap().remove("launch");
    body
}

#[test]
fn what_the_reference_system_ignores_or_fills_in_is_a_warning() {
    let server = Server::start();
    let mut body = lenient();
    let report = answered(&server, "/evaluate", &body);
    let warnings = report["warnings"].as_array().unwrap().iter();
    let warnings = warnings.map(|one| format!("{}: {}", one["path"], one["message"]));
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    for told in [
        "`collect_device_metrics` is not a field here",
        "\"kernel.metadata.author\"",
        "\"kernel.io.args[0].index\"",
        "neither `init` nor `data`",
        "`grid` is missing",
        "`block` is missing",
    ] {
        assert!(warnings.contains(told), "{told}: {warnings}");
    }
    assert_eq!(report["kernel_exec_result"]["runtime_stats"]["samples"], 4, "{report:#}");

    // The launch of one block of 256 threads covers all elements: the output is twice zero.
    body["expected"] = json!({"b": {"data": {
        "data_b64": "AAAA".repeat(341) + "AA==", "dtype": "float32", "shape": [256]}}});
    let report = answered(&server, "/evaluate", &body);
    assert_eq!(report["validation"]["outputs"]["b"]["passed"], true, "{report:#}");

    let mut body = evaluation(DOUBLE);
    body["num_trial"] = json!(4);
    let refused = server.post_json("/evaluate", &body);
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("did you mean `num_trials`?"), "{}", refused.text);
}

/// The JSON that a command writes about a request in a file.
#[track_caller]
fn commanded(command: &str, request: &Value) -> (Option<i32>, Value, String) {
    let directory = data_directory();
    let path = directory.path().join("request.json");
    std::fs::write(&path, request.to_string()).unwrap();
    let done = program()
        .arg(command)
        .arg(&path)
        .args(["--json", "--device", &device()])
        .env("WARPGAUGE_DATA_DIR", directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or_default(), said)
}

#[test]
fn files_and_agents_requests_are_read_as_bodies_are() {
    let (code, report, said) = commanded("eval", &lenient());
    assert_eq!(code, Some(0), "{report:#}{said}");
    assert_eq!(report["kernel_exec_result"]["runtime_stats"]["samples"], 4, "{report:#}");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(6), "{report:#}");
    let mut misspelt = lenient();
    misspelt["num_trial"] = json!(4);
    let (code, _, said) = commanded("eval", &misspelt);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("did you mean `num_trials`?"), "{said}");

    let mut candidate = kernel(DOUBLE);
    candidate["io"].as_object_mut().unwrap().remove("launch");
    let comparison = json!({
        "ref_kernel": kernel(DOUBLE), "custom_kernel": candidate, "num_trials": "4",
        "collect_device_metrics": true,
    });
    let (code, report, said) = commanded("compare", &comparison);
    assert_eq!(code, Some(0), "{report:#}{said}");
    assert_eq!(report["warnings"][0]["path"], "collect_device_metrics", "{report:#}");

    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let answer = agent.call("evaluate_kernel", json!({"request": lenient()}));
    assert_eq!(answer["verdict"], "not_checked", "{answer}");
    assert!(answer["text"].as_str().unwrap().contains("`warnings`"), "{answer}");
    let answer = agent.call("compare_kernels", json!({"request": comparison}));
    assert!(answer["text"].as_str().unwrap().contains("collect_device_metrics"), "{answer}");
}
