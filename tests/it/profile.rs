//! Device metrics: exact counts of one launch, and reasons for absent values.

use serde_json::{Value, json};

use crate::contracts::{example, increment, single_thread};
use crate::server::{Server, emulated};

/// What the emulator counts of a contract, or nothing on a GPU, which it cannot profile.
fn profiled(server: &Server, mut contract: Value) -> Option<Value> {
    contract["num_trials"] = json!(3);
    contract["profile"] = json!({"tools": ["emulator"]});
    let report = server.evaluate(&contract);
    let profile = &report["profile"];
    if report["device"]["kind"] == "cuda" {
        assert_eq!(profile["available"], false, "{profile}");
        assert!(profile["reason"].is_string());
        return None;
    }
    assert_eq!(profile["available"], true, "{profile}");
    let metrics = report["kernel_exec_result"]["metadata"]["device_metrics"].clone();
    assert_eq!(metrics["source"], "emulator");
    assert!(metrics["tool"].as_str().unwrap().starts_with("warpgauge-emulator "));
    Some(metrics)
}

fn value(metrics: &Value, id: &str) -> f64 {
    let metric = &metrics["metrics"][id];
    metric["value"].as_f64().unwrap_or_else(|| panic!("{id}: {metric}"))
}

fn assert_values(metrics: &Value, expected: &[(&str, f64)]) {
    for (id, expected) in expected {
        assert_eq!(value(metrics, id), *expected, "{id}");
    }
}

/// Four launches, a reference kernel and the worker's own kernels run too; one launch is counted.
#[test]
fn vector_addition_is_counted_exactly() {
    let server = Server::start();
    let metrics =
        the_rest_needs_some!("the emulated device", profiled(&server, example("vector_add")));
    let n = f64::from(1 << 20);
    assert_eq!(metrics["kernel"], "vector_add");
    assert_values(
        &metrics,
        &[
            ("global_load_requests", 2.0 * n / 32.0),
            ("global_load_sectors", 2.0 * n / 8.0),
            ("sectors_per_global_load", 4.0),
            ("global_store_requests", n / 32.0),
            ("global_store_sectors", n / 8.0),
            ("l2_sectors_global_excessive", 0.0),
            ("ideal_read_bytes", 8.0 * n),
            ("ideal_write_bytes", 4.0 * n),
            ("fadd_instructions", n),
            ("flop_count", n),
            ("divergent_branches", 0.0),
            ("threads_per_instruction", 32.0),
            ("block_size", 256.0),
            ("grid_size", n / 256.0),
        ],
    );
    let groups = &metrics["original_device_metrics"];
    assert_eq!(groups["access_pattern_metrics"]["l1_load_sectors_per_req"], 4.0);
    assert_eq!(groups["roofline_metrics"]["flop_count_total"], n);
    assert_eq!(groups["occupancy_metrics"]["block_size"], 256.0);
    for id in ["dram_throughput", "duration", "stall_barrier", "l2_hit_rate"] {
        let metric = &metrics["metrics"][id];
        assert!(metric["value"].is_null() && metric["reason"].is_string(), "{id}: {metric}");
    }
    assert!(groups["speed_of_light"].is_null(), "{groups}");
    assert!(metrics["metrics"]["registers_per_thread"]["note"].is_string());
}

#[test]
fn matrix_multiplication_does_the_work_of_its_tiles() {
    let server = Server::start();
    let metrics =
        the_rest_needs_some!("the emulated device", profiled(&server, example("matmul_tiled")));
    // 120 × 200 by tiles of 16 × 16, along k = 150 in steps of 16.
    let (blocks, threads, steps) = (8.0 * 13.0, 256.0, 10.0);
    assert_values(
        &metrics,
        &[
            ("ffma_instructions", blocks * threads * steps * 16.0),
            ("shared_store_requests", blocks * threads / 32.0 * steps * 2.0),
            ("shared_load_conflicts", 0.0),
            ("shared_store_conflicts", 0.0),
            ("global_store_sectors", 120.0 * 200.0 / 8.0),
            ("grid_size", blocks),
        ],
    );
}

#[test]
fn bank_conflicts_and_scattered_stores_are_counted() {
    let body = "__shared__ int s[1024]; int t = threadIdx.x; s[t * 32] = t; __syncwarp(); \
                out[t * 8] = s[(t ^ 1) * 32];";
    let mut contract = single_thread(body);
    contract["kernel"]["io"]["launch"]["block"]["x"] = json!(32);
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["shape"] = json!([256]);
    let server = Server::start();
    let metrics = the_rest_needs_some!("the emulated device", profiled(&server, contract));
    assert_values(
        &metrics,
        &[
            ("shared_load_conflicts", 31.0),
            ("shared_store_conflicts", 31.0),
            ("sectors_per_global_store", 32.0),
            ("l2_sectors_global_ideal", 4.0),
            ("l2_sectors_global_excessive", 28.0),
            ("l2_sectors_global_excess", 0.875),
        ],
    );
    let none = &metrics["metrics"]["sectors_per_global_load"];
    assert!(none["value"].is_null() && none["reason"].is_string(), "{none}");
}

#[test]
fn metrics_are_chosen_and_asked_for() {
    let server = Server::start();
    let mut contract = increment();
    let metadata = |report: &Value| report["kernel_exec_result"]["metadata"].clone();
    assert!(metadata(&server.evaluate(&contract))["device_metrics"].is_null());

    contract["profile"] = json!({"metrics": ["fadd_instructions", "barriers"]});
    let report = server.evaluate(&contract);
    the_rest_needs!("the emulated device", report["device"]["kind"] == "emulator");
    let metrics = metadata(&report)["device_metrics"]["metrics"].clone();
    assert_eq!(metrics.as_object().unwrap().len(), 2, "{metrics}");
    assert_eq!(metrics["fadd_instructions"]["value"], 256.0);

    contract["profile"] = json!({"metrics": ["core", "fadd_instruction"]});
    for path in ["/evaluate", "/profile/plan"] {
        let refused = server.post_json(path, &contract);
        assert_eq!(refused.status, 400, "{path}");
        let text = refused.json.to_string();
        for word in ["profile.metrics[1]", "unknown_metric", "similar names are fadd_instructions"]
        {
            assert!(text.contains(word), "{word} in {text}");
        }
    }

    contract["profile"] = json!({"tools": ["ncu"]});
    let report = server.evaluate(&contract);
    assert_eq!(report["profile"]["available"], false);
    assert!(report["profile"]["reason"].as_str().unwrap().contains("ncu"));
    assert!(metadata(&report)["device_metrics"].is_null());
    let plan = server.post_json("/profile/plan", &contract).json;
    assert_eq!(plan["metrics"], json!([]), "{plan}");
    let refused = plan["unavailable"]["reason"].as_str().unwrap();
    assert!(refused.starts_with("ncu cannot profile the emulated device"), "{plan}");
}

/// The plan lists what a profile then has, and the reason for each other metric.
#[test]
fn a_plan_names_what_the_emulated_device_can_have() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let mut contract = increment();
    contract["profile"] = json!({});
    let plan = server.post_json("/profile/plan", &contract).json;
    let report = server.evaluate(&contract);
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"]["metrics"];
    for (id, metric) in metrics.as_object().unwrap() {
        let planned = plan["metrics"].as_array().unwrap().iter().any(|one| one == id);
        assert_ne!(planned, plan["missing"][id].is_string(), "{id}: one or the other");
        assert!(planned || metric["value"].is_null(), "{id} has a value: {metric}");
    }
}

/// Counting changes neither the verdict nor the outputs nor the number of timed launches.
#[test]
fn the_environment_can_ask_for_every_evaluation() {
    let plain = Server::start().evaluate(&increment());
    let server = Server::start_with(&[], &[("ENABLE_DEVICE_METRICS", "true")]);
    let report = server.evaluate(&increment());
    assert!(!report["profile"].is_null());
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
    assert_eq!(report["outputs"], plain["outputs"]);
    assert_eq!(report["kernel_exec_result"]["runtime_stats"]["samples"], 3);
    the_rest_needs!("the emulated device", report["device"]["kind"] == "emulator");
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    assert_eq!(value(metrics, "global_store_requests"), 8.0);
}

#[test]
fn a_kernel_that_faults_has_no_metrics() {
    let server = Server::start();
    let mut contract = single_thread("out[1 << 28] = 1;");
    contract["profile"] = json!({});
    let report = server.evaluate(&contract);
    assert_eq!(report["profile"]["available"], false, "{report}");
    assert!(report["kernel_exec_result"]["metadata"]["device_metrics"].is_null());
}

#[test]
fn an_emulated_device_has_no_timeline() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let mut contract = increment();
    contract["profile"] = json!({"tools": ["emulator", "nsys"]});
    let report = server.evaluate(&contract);
    let timeline = &report["timeline"];
    assert_eq!(timeline["available"], false, "{timeline}");
    assert_eq!(timeline["unavailable"]["code"], "unsupported_device", "{timeline}");
    assert_eq!(report["profile"]["available"], true, "{report}");
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
}
