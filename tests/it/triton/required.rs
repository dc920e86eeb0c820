//! A kernel in Triton requires an executor that has it.

use serde_json::json;

use super::{ADD, available, bare, cuda, triton};
use crate::server::Server;

/// An interpreter that can have no Triton.
const NO_PYTHON: &str = "/nonexistent/python3";

#[test]
fn without_triton_an_order_is_refused_with_what_would_help() {
    let server = Server::start_with(&[], &[("WARPGAUGE_PYTHON", NO_PYTHON)]);
    let kinds = &server.get("/capabilities").json["kernel_types"];
    assert!(!kinds.as_array().unwrap().contains(&json!("triton")), "{kinds}");
    let evaluation = json!({"kernel": triton(ADD), "num_trials": 1});
    let mut referring = json!({"kernel": cuda(), "num_trials": 1});
    referring["expected"] = json!({"out": {"kernel": bare(triton(ADD))}});
    let comparison = json!({"ref_kernel": cuda(), "custom_kernel": bare(triton(ADD))});
    let mut sweep = evaluation.clone();
    sweep["axes"] = json!({"block": [128, 256]});
    sweep["kernel"]["io"]["args"][4]["value"] = json!("$block");
    let gate = json!({"cases": [{"name": "one", "contract": evaluation}]});
    for (path, body) in [
        ("/evaluate", &evaluation),
        ("/evaluate?wait=false", &evaluation),
        ("/evaluate", &referring),
        ("/compare", &comparison),
        ("/sweep", &sweep),
        ("/gate", &gate),
    ] {
        let answer = server.post_json(path, body);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        for word in ["unmet_requirements", "`triton`", NO_PYTHON, "install --with triton"] {
            assert!(answer.text.contains(word), "{path}: {word} in {}", answer.text);
        }
    }
    // Others are served as ever.
    server.evaluate(&json!({"kernel": cuda(), "num_trials": 1}));
}

#[test]
fn with_triton_the_language_is_offered() {
    needs!("Triton", available());
    let server = Server::start();
    let found = server.get("/capabilities").json;
    assert!(found["kernel_types"].as_array().unwrap().contains(&json!("triton")), "{found}");
    let answer = server.post_json(
        "/evaluate",
        &json!({"kernel": triton(ADD), "num_trials": 1, "requires": {"architecture": "sm_10"}}),
    );
    assert!(answer.text.contains("no device is"), "{}", answer.text);
}
