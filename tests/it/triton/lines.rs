//! Findings and messages name lines of the source in Python.

use serde_json::{Value, json};

use super::{ADD, available, triton};
use crate::server::Server;

/// Line of some code, from 1.
fn line(source: &str, code: &str) -> usize {
    1 + source.lines().position(|line| line.contains(code)).unwrap()
}

/// Whether accesses are checked here: by the emulated device, or by compute-sanitizer.
fn are_checked(server: &Server) -> bool {
    server.get("/capabilities").json["devices"][0]["sanitize"]["available"] == true
}

/// What is found in the kernel's accesses.
fn first_finding(server: &Server, kernel: &Value) -> Value {
    let body = json!({"kernel": kernel, "num_trials": 2, "sanitize": "memcheck"});
    let report = server.evaluate(&body);
    let found = report["sanitize"]["findings"][0].clone();
    assert_eq!(found["check"], "out_of_bounds", "{report}");
    found
}

#[test]
fn a_store_out_of_bounds_is_found_in_its_line() {
    needs!("Triton", available());
    let source = ADD.replace("x + y, mask=mask", "x + y");
    let server = Server::start();
    needs!("a check of memory accesses", are_checked(&server));
    let found = first_finding(&server, &triton(&source));
    assert_eq!(found["source"], format!("kernel.py:{}", line(&source, "tl.store")));
    assert_eq!(found["kernel"], "add");
}

/// A helper's line, and not that of its call.
#[test]
fn a_line_within_a_helper_is_named() {
    needs!("Triton", available());
    let helper = "@triton.jit\ndef put(at, value):\n    tl.store(at, value)  # here\n\n\n";
    let source = ADD
        .replacen("@triton.jit", &format!("{helper}@triton.jit"), 1)
        .replace("tl.store(out_ptr + offsets, x + y, mask=mask)", "put(out_ptr + offsets, x + y)");
    let mut kernel = triton(&source);
    kernel["metadata"] = json!({"kernel_name": "add"});
    let server = Server::start();
    needs!("a check of memory accesses", are_checked(&server));
    let found = first_finding(&server, &kernel);
    assert_eq!(found["source"], format!("kernel.py:{}", line(&source, "# here")), "{found}");
}

#[test]
fn diagnostics_name_the_line() {
    needs!("Triton", available());
    let source = ADD.replace("mask = offsets < n", "mask = offsets < no_such_name");
    let server = Server::start();
    let answer = server.post_json("/compile", &json!({"kernel": triton(&source)}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["compiled"], false, "{}", answer.text);
    let diagnostic = &answer.json["diagnostics"][0];
    assert_eq!(diagnostic["file"], "kernel.py", "{}", answer.text);
    assert_eq!(diagnostic["line"], line(&source, "no_such_name"), "{}", answer.text);
}
