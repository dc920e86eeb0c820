//! Contracts require properties of their device and of the installed software.

use serde_json::{Value, json};

use crate::contracts::increment;
use crate::server::{Server, emulated};

fn requiring(requires: Value) -> Value {
    let mut contract = increment();
    contract["requires"] = requires;
    contract
}

#[test]
fn what_is_required_is_there_or_the_contract_is_refused_with_the_reason() {
    let server = Server::start();
    let kind = if emulated() { "emulator" } else { "cuda" };
    let report = server.evaluate(&requiring(json!({"device": kind})));
    assert_eq!(report["device"]["kind"], kind, "{report}");
    let name = report["device"]["name"].as_str().unwrap();
    let model = name.rsplit(' ').next().unwrap().to_lowercase();
    let report = server.evaluate(&requiring(json!({"gpu_model": model})));
    assert_eq!(report["status"], "success", "{report}");

    for requires in [
        json!({"device": if emulated() { "cuda" } else { "emulator" }}),
        json!({"architecture": "sm_10"}),
        json!({"gpu_model": "Z9000"}),
    ] {
        for path in ["/evaluate", "/evaluate?wait=false"] {
            let answer = server.post_json(path, &requiring(requires.clone()));
            assert_eq!(answer.status, 400, "{path} {requires}: {}", answer.text);
            let text = answer.json.to_string();
            assert!(text.contains("unmet_requirements"), "{text}");
            assert!(text.contains("requires") && text.contains(name), "{text}");
        }
    }
}

#[test]
fn requirements_that_mean_nothing_are_refused() {
    let server = Server::start();
    for (requires, path) in [
        (json!({"architecture": "hopper"}), "requires.architecture"),
        (json!({"gpu_model": " "}), "requires.gpu_model"),
        (json!({"tools": ["gdb"]}), "requires.tools"),
        (json!({"colour": "red"}), "requires.colour"),
        (json!({"device": "tpu"}), "requires.device"),
    ] {
        let answer = server.post_json("/evaluate", &requiring(requires.clone()));
        assert_eq!(answer.status, 400, "{requires}: {}", answer.text);
        assert!(answer.text.contains(path), "{requires}: {}", answer.text);
    }
}
