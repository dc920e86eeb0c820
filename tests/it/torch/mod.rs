//! Torch kernels: a Python process computes, and the judge verifies from outside. Each test uses
//! one server, because the first torch kernel waits for the import of PyTorch.

use serde_json::{Value, json};

use crate::server::Server;

mod alone;
mod attacks;
mod backward;
mod beside;
mod compared;
mod evaluated;
mod expected;
mod extensions;
mod hostile;
mod inductor;
mod inputs;
mod judged;
mod mixed;
mod on_gpu;
mod requests;
mod required;
mod stopped;
mod structures;
mod verdicts;

pub(super) use crate::support::has_torch as available;

/// The compiler of what Python processes ask for.
fn there_is_gxx() -> bool {
    ["/usr/bin/g++", "/usr/local/bin/g++"].iter().any(|path| std::path::Path::new(path).exists())
}

/// A server whose torch kernels run on the CPU, also where there is a GPU.
fn on_cpu() -> Server {
    Server::start_with(&["--device", "emulator"], &[])
}

/// A contract with a float32 vector in and one out.
fn vector(source: &str) -> Value {
    let tensor = json!({"shape": [1000], "dtype": "float32"});
    let mut input = tensor.clone();
    input["init"] = json!({"kind": "randn", "seed": 1});
    json!({
        "kernel": {
            "kernel_type": "torch", "source_code": source,
            "io": {"args": [
                {"name": "x", "type": "tensor", "tensor_spec": input},
                {"name": "y", "type": "tensor", "role": "output", "tensor_spec": tensor},
            ]},
        },
        "num_trials": 3, "timeout": 60.0,
    })
}

/// The same, whose output must be what another function makes of the input.
fn expecting(source: &str, reference: &str) -> Value {
    let mut request = vector(source);
    request["expected"] =
        json!({"y": {"kernel": {"kernel_type": "torch", "source_code": reference}}});
    request
}

/// A kernel without a contract.
fn bare(source: &str) -> Value {
    json!({"kernel": {"kernel_type": "torch", "source_code": source}, "num_trials": 3})
}

/// A report on a kernel that is right.
#[track_caller]
fn right(server: &Server, what: &str, request: &Value) -> Value {
    let report = server.evaluate(request);
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], true, "{what}: {report:#}\n{}", server.output());
    assert!(result["runtime"].as_f64().unwrap() > 0.0, "{what}: {report:#}");
    report
}

/// A report on a kernel that is not, with what speaks against it in the first reason and the message.
#[track_caller]
fn wrong(server: &Server, what: &str, request: &Value, reason: &str, part: &str) -> Value {
    let report = server.evaluate(request);
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], false, "{what}: {report:#}");
    assert!(result["runtime"].is_null() && result["runtime_stats"].is_null(), "{what}: {report:#}");
    let first = &report["validation"]["reasons"][0];
    assert_eq!(first["code"], reason, "{what}: {report:#}");
    let message = result["validation_error"].as_str().unwrap();
    assert!(message.contains(part), "{what}: {message}");
    report
}

/// A report on a kernel that could not be loaded.
#[track_caller]
fn unloaded(server: &Server, what: &str, request: &Value, code: &str, part: &str) -> Value {
    let report = server.evaluate(request);
    let result = &report["kernel_exec_result"];
    assert_eq!(result["compiled"], false, "{what}: {report:#}");
    assert_eq!(report["failure"]["code"], code, "{what}: {report:#}");
    let message = result["compilation_error"].as_str().unwrap();
    assert!(message.contains(part), "{what}: {message}");
    report
}
