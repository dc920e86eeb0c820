//! A torch kernel requires an executor with PyTorch; other kernels do not.

use serde_json::{Value, json};

use super::{bare, expecting, on_cpu, vector};
use crate::server::Server;

/// An interpreter that can have no PyTorch.
const NO_PYTHON: &str = "/nonexistent/python3";

const COPY: &str = "def f(x):\n    return x";

#[test]
fn without_pytorch_an_order_is_refused_with_what_would_help() {
    let server = Server::start_with(&[], &[("WARPGAUGE_PYTHON", NO_PYTHON)]);
    let found = server.get("/capabilities").json;
    assert!(!found["kernel_types"].as_array().unwrap().contains(&json!("torch")), "{found}");
    let tools = found["tools"].as_array().unwrap();
    let torch = tools.iter().find(|tool| tool["name"] == "torch").unwrap();
    assert_eq!(torch["available"], false, "{torch}");
    assert!(torch["remedy"].as_str().unwrap().contains("install --with torch"), "{torch}");
    let comparison =
        json!({"ref_kernel": bare(COPY)["kernel"], "custom_kernel": bare(COPY)["kernel"]});
    for (path, body) in [
        ("/evaluate", &expecting(COPY, COPY)),
        ("/evaluate", &bare(COPY)),
        ("/execute", &vector(COPY)),
        ("/compare", &comparison),
    ] {
        let answer = server.post_json(path, body);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        for word in ["unmet_requirements", "`torch`", NO_PYTHON, "install --with torch"] {
            assert!(answer.text.contains(word), "{path}: {word} in {}", answer.text);
        }
    }
}

#[test]
fn what_is_not_served_yet_is_refused_with_a_reason() {
    let server = on_cpu();
    let refused = |path: &str, body: &Value, parts: &[&str]| {
        let answer = server.post_json(path, body);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        for part in parts {
            assert!(answer.text.contains(part), "{path}: {part} in {}", answer.text);
        }
    };
    let mut request = vector(COPY);
    request["requires"] = json!({"device": "emulator"});
    refused("/evaluate", &request, &["requires.device", "on the CPU"]);
    request = vector(COPY);
    request["kernel"]["metadata"] = json!({"function_name": "f", "class_name": "Model"});
    refused("/evaluate", &request, &["conflicting_fields", "not both"]);
    request = bare(COPY);
    request["expected"] = json!({"y": {"kernel": {"kernel_type": "torch", "source_code": COPY}}});
    refused("/evaluate", &request, &["missing_io", "compare two kernels"]);
    request = expecting(COPY, COPY);
    request["expected"]["y"]["kernel"]["kernel_type"] = json!("ptx");
    refused("/evaluate", &request, &["expected.y.kernel.io.launch"]);
    let ptx = json!({"kernel_type": "ptx", "source_code": "x"});
    let mixed = json!({"ref_kernel": bare(COPY)["kernel"], "custom_kernel": ptx});
    refused("/compare", &mixed, &["ref_kernel.io", "missing_io", "io.args"]);
    refused("/compile", &json!({"kernel": bare(COPY)["kernel"]}), &["run and not compiled"]);
}
