//! `kernel_type: example`, which only test builds have: the recipe in
//! docs/contributing/kernel-type.md works.

use serde_json::{Value, json};

use crate::server::Server;

fn request(source: &str, expected: &str) -> Value {
    json!({
        "kernel": {
            "kernel_type": "example",
            "source_code": source,
            "io": {"args": [{"name": "n", "type": "int", "value": 20}]},
        },
        "expected": {"value": {"text": expected}},
    })
}

#[test]
fn an_example_kernel_is_evaluated_by_its_own_backend() {
    let server = Server::start();
    let right = server.post_json("/evaluate", &request("ceil_div(n, 8) * 14", "42"));
    assert_eq!(right.status, 200, "{}", right.text);
    assert_eq!(right.json["kernel_exec_result"]["correctness"], true, "{}", right.text);
    assert_eq!(right.json["printed"], "42");

    let wrong = server.post_json("/evaluate", &request("n + 1", "42")).json;
    assert_eq!(wrong["kernel_exec_result"]["correctness"], false);
    assert_eq!(wrong["validation"]["reasons"][0]["code"], "output_mismatch", "{wrong}");

    let broken = server.post_json("/evaluate", &request("n +", "42")).json;
    assert_eq!(broken["kernel_exec_result"]["compiled"], false, "{broken}");
}

#[test]
fn an_example_kernel_is_neither_compiled_nor_compared() {
    let server = Server::start();
    let kernel = &request("n", "20")["kernel"];
    let compiled = server.post_json("/compile", &json!({"kernel": kernel}));
    assert_eq!(compiled.status, 400, "{}", compiled.text);
    let compared =
        server.post_json("/compare", &json!({"ref_kernel": kernel, "custom_kernel": kernel}));
    assert_eq!(compared.status, 400, "{}", compared.text);
    assert!(compared.text.contains("ref_kernel.kernel_type"), "{}", compared.text);
}
