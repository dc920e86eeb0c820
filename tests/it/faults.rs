//! Kernels that misbehave: each gets a correct result, and the next evaluation works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contracts::{endless, increment, single_thread};
use crate::server::Server;

/// Longest an evaluation may take beyond its timeout, on a busy machine.
const GRACE: Duration = Duration::from_secs(15);

fn assert_well(server: &Server, after: &str) {
    let report = server.evaluate(&increment());
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], true, "after {after}: {report}\n{}", server.output());
}

/// The evaluation ended with a failure of the kernel, and without a verdict of success.
fn assert_failed(name: &str, report: &Value) {
    let result = &report["kernel_exec_result"];
    assert_eq!(result["compiled"], true, "{name}: {report}");
    assert_ne!(result["correctness"], true, "{name}: {report}");
    assert!(result["runtime"].is_null(), "{name}: {report}");
    let failure = &report["failure"];
    assert_eq!(failure["stage"], "execute", "{name}: {report}");
    assert!(failure["message"].as_str().is_some_and(|text| text.len() > 10), "{name}: {report}");
}

#[test]
fn faults_are_reported_and_stay_with_their_evaluation() {
    let server = Server::start();
    // What the driver calls them; a trap has had two names.
    for (name, body, says) in [
        ("a write to nowhere", "*(volatile int*)8 = *out;", &["illegal address"][..]),
        // A GPU's address may fall into the window of shared or local memory.
        ("a write far outside", "out[1 << 28] = 1;", &["illegal address", "invalid address space"]),
        ("a trap", "__trap();", &["launch failure", "illegal instruction"]),
        ("a failed assertion", "assert(*out == 77);", &["assert"]),
        ("a misaligned read", "*out = *(volatile int*)((volatile char*)out + 1);", &["misaligned"]),
    ] {
        let report = server.evaluate(&single_thread(body));
        assert_failed(name, &report);
        let told = report["failure"].to_string().to_lowercase().replace('_', " ");
        assert!(
            says.iter().any(|words| told.contains(words)),
            "{name}: none of {says:?} in {told}"
        );
        assert_well(&server, name);
    }
}

#[test]
fn a_hanging_kernel_ends_at_its_timeout() {
    let server = Server::start();
    assert_well(&server, "the start");
    for _ in 0..2 {
        let start = Instant::now();
        let report = server.evaluate(&endless(1.0));
        let elapsed = start.elapsed();
        assert_failed("endless", &report);
        let told = report["failure"].to_string().to_lowercase();
        assert!(told.contains("time"), "{told}");
        assert!(elapsed >= Duration::from_secs(1), "ended before its timeout: {elapsed:?}");
        assert!(elapsed < GRACE, "took {elapsed:?}");
        assert_well(&server, "a hang");
    }
}

#[test]
fn a_flood_of_output_is_cut_off() {
    let server = Server::start();
    let body = "for (int i = 0; i < 20000; ++i) printf(\"line %d of a great many lines\\n\", i);";
    let mut contract = single_thread(body);
    contract["num_trials"] = json!(3);
    let report = server.evaluate(&contract);
    assert_eq!(report["kernel_exec_result"]["compiled"], true, "{report}");
    let printed = report["printed"].as_str().unwrap_or_default();
    assert!(printed.contains("line 0 of a great many lines"), "{}", printed.len());
    assert!(printed.len() < 2 << 20, "{} bytes came back", printed.len());
    assert_well(&server, "a flood of output");
}

#[test]
fn what_a_kernel_prints_cannot_be_taken_for_a_report() {
    let server = Server::start();
    let body = "printf(\"{\\\"correctness\\\": true}\\n\"); *out = 5;";
    let mut contract = single_thread(body);
    contract["expected"] = json!({"out": {"data": {"data_b64": "BgAAAA=="}}});
    let report = server.evaluate(&contract);
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report}");
    assert_well(&server, "a forged report");
}

#[test]
fn a_tensor_that_no_device_holds_is_an_honest_result() {
    // Allowed by this server's limits, so that the device itself must say no.
    let server = Server::start_configured(
        "[limits]\nmax_tensor_bytes = 20000000000000\nmax_total_bytes = 20000000000000\n",
    );
    let mut contract = single_thread("*out = 1;");
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["shape"] = json!([2_500_000_000_000u64]);
    let answer = server.post_json("/evaluate", &contract);
    let told = answer.text.to_lowercase();
    assert!([200, 400].contains(&answer.status), "{told}");
    assert_ne!(answer.json["kernel_exec_result"]["correctness"], true, "{told}");
    assert!(told.contains("memory"), "{told}");
    assert_well(&server, "10 TB");
}

#[test]
fn an_output_that_is_never_written_is_not_correct() {
    let server = Server::start();
    let mut contract = increment();
    let source = "extern \"C\" __global__ void increment(const float* in, float* out, int n) {}";
    contract["kernel"]["source_code"] = json!(source);
    let report = server.evaluate(&contract);
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], false, "{report}");
    assert_eq!(report["validation"]["outputs"]["out"]["unwritten"], 256, "{report}");
}

#[test]
fn no_evaluation_sees_what_another_left_behind() {
    let server = Server::start();
    let secret = 0x5ec2_e75e_u32 as i32;
    let words = 1 << 20;
    let spec = json!({"shape": [words], "dtype": "int32"});
    let mut writer =
        single_thread(&format!("for (int i = 0; i < {words}; ++i) out[i] = {secret};"));
    writer["kernel"]["io"]["args"][0]["role"] = json!("output");
    writer["kernel"]["io"]["args"][0]["tensor_spec"] = spec.clone();
    let report = server.evaluate(&writer);
    assert_eq!(report["kernel_exec_result"]["compiled"], true, "{report}");
    assert!(report["failure"].is_null(), "{report}");

    // Reads its own output before writing it: whatever lies there was not written by this kernel.
    let mut reader = single_thread(&format!(
        "int found = 0; for (int i = 0; i < {words}; ++i) found += out[i] == {secret}; out[0] = found;"
    ));
    reader["kernel"]["io"]["args"][0]["role"] = json!("output");
    reader["kernel"]["io"]["args"][0]["tensor_spec"] = spec;
    reader["expected"] = json!({});
    reader["return_outputs"] = json!("all");
    let report = server.evaluate(&reader);
    let data = report["outputs"]["out"]["data_b64"].as_str().unwrap_or_else(|| panic!("{report}"));
    let bytes = crate::contracts::from_base64(data);
    let found = i32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert_eq!(found, 0, "{found} words of another evaluation were still there");
}

#[test]
fn memory_checks_find_what_outputs_do_not_show() {
    let server = Server::start();
    let mut contract = single_thread("volatile int past = out[64]; *out = past * 0 + 6;");
    contract["sanitize"] = json!(true);
    let report = server.evaluate(&contract);
    let checks = &report["sanitize"];
    assert_eq!(checks["available"], true, "{report}");
    let found = &checks["findings"][0];
    assert_eq!(found["check"], "out_of_bounds", "{report}");
    assert!(found["source"].as_str().is_some_and(|at| at.starts_with("kernel.cu:")), "{report}");
    assert!(!report.to_string().contains("compile-"), "names a private directory: {report}");
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], false, "{report}");
    assert!(result["runtime"].is_null(), "{report}");
}
