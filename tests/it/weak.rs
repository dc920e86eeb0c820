//! Kernels that pass although a useless kernel would pass too. The verdict is `weak`, and
//! conclusions that require a correct kernel are absent unless the request allows it.

use serde_json::{Value, json};

use crate::contracts::{base64, increment};
use crate::server::{Server, program, until};
use crate::spmv::readme_request;
use crate::support::outcome;

/// `increment` of zeros: writing nothing but ones would pass.
fn constant() -> Value {
    let mut contract = increment();
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["init"] = json!({"kind": "zeros"});
    let ones: Vec<u8> = [1.0_f32; 256].into_iter().flat_map(f32::to_le_bytes).collect();
    contract["expected"]["out"] = json!({"data": {"data_b64": base64(&ones)}});
    contract
}

fn allowed(mut request: Value) -> Value {
    request["allow_weak"] = json!(true);
    request
}

fn post(server: &Server, path: &str, body: &Value) -> Value {
    let answer = server.post_json(path, body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer.json
}

#[test]
fn an_evaluation_is_weak_unless_that_is_allowed() {
    let server = Server::start();
    let report = server.evaluate(&constant());
    let result = &report["kernel_exec_result"];
    assert_eq!((&report["verdict"], &result["correctness"]), (&json!("weak"), &Value::Null));
    assert_eq!(
        (&report["status"], &report["validation"]["status"]),
        (&json!("success"), &json!("passed"))
    );
    assert!(result["runtime"].is_number() && result["validation_error"].is_null(), "{result}");
    let weakness = &report["validation"]["weaknesses"][0];
    assert_eq!(
        (&weakness["code"], &weakness["blocks"]),
        (&json!("expected_constant"), &json!(true))
    );
    let report = server.evaluate(&allowed(constant()));
    assert_eq!(report["verdict"], "correct");
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
    assert_eq!(report["validation"]["weaknesses"][0]["code"], "expected_constant");
    // That data and an expectation stay as they are blocks nothing.
    let report = server.evaluate(&increment());
    assert_eq!(report["verdict"], "correct", "{}", report["validation"]);
    let weaknesses = &report["validation"]["weaknesses"];
    assert_eq!(weaknesses[0]["code"], "seed_invariant", "{weaknesses}");
    assert_eq!(weaknesses[0]["blocks"], false, "{weaknesses}");
}

#[test]
fn outputs_of_a_weak_kernel_are_kept() {
    let server = Server::start();
    let mut contract = constant();
    contract["keep_outputs"] = json!({"out": {"cuda_device": -1}});
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "weak");
    let kept = &report["kept_outputs"]["out"];
    assert!(kept["tensor_id"].is_string(), "{kept}");
}

#[test]
fn a_product_that_is_the_same_everywhere_is_no_success() {
    let server = Server::start();
    let (mut request, _) = readme_request();
    let x = request["matrix_data"]["x"].as_array().unwrap().len();
    request["matrix_data"]["x"] = json!(vec![0.0; x]);
    let answer = post(&server, "/execute_spmv", &request);
    assert_eq!((&answer["success"], &answer["verdict"]), (&json!(false), &json!("weak")));
    assert_eq!(answer["code"], "weak_contract");
    assert!(answer["error"].as_str().unwrap().contains("allow_weak"), "{answer}");
    request["options"]["allow_weak"] = json!(true);
    let answer = post(&server, "/execute_spmv", &request);
    assert_eq!((&answer["success"], &answer["verdict"]), (&json!(true), &json!("correct")));
}

#[test]
fn a_weak_kernel_is_not_compared() {
    let server = Server::start();
    let kernel = constant()["kernel"].clone();
    let request = json!({"ref_kernel": kernel, "num_trials": 3, "candidates": [
        {"name": "a", "kernel": kernel}, {"name": "b", "kernel": kernel}]});
    let report = post(&server, "/compare", &request);
    assert_eq!((&report["verdict"], &report["status"]), (&json!("weak"), &json!("success")));
    for name in ["comparison", "counted", "ranking", "counted_ranking"] {
        assert!(report[name].is_null(), "{name}: {}", report[name]);
    }
    let why = report["candidates"][1]["not_compared"].as_str().unwrap();
    assert!(why.contains("useless") && why.contains("constant"), "{why}");
    let report = post(&server, "/compare", &allowed(request));
    assert_eq!(report["verdict"], "correct", "{}", report["not_compared"]);
}

#[test]
fn a_point_and_a_job_have_the_verdict() {
    let server = Server::start();
    let mut sweep = constant();
    sweep["axes"] = json!({"weak": [true, false]});
    sweep["allow_weak"] = json!("$weak");
    let answer = post(&server, "/sweep", &sweep);
    let points = &answer["points"];
    assert_eq!(
        (&points[0]["status"], &points[0]["verdict"]),
        (&json!("correct"), &json!("correct"))
    );
    assert_eq!((&points[1]["status"], &points[1]["verdict"]), (&json!("weak"), &json!("weak")));
    assert_eq!(points[1]["reasons"][0]["code"], "weak_contract", "{points}");
    assert_eq!((&answer["verdict"], &answer["counts"]["weak"]), (&json!("weak"), &json!(1)));
    let accepted = server.post_json("/evaluate?wait=false", &constant());
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let url = accepted.header("location").unwrap().to_owned();
    let job = until("the job's end", || {
        let job = server.get(&url).json;
        job["finished_at"].is_number().then_some(job)
    });
    assert_eq!((&job["verdict"], &job["result"]["verdict"]), (&json!("weak"), &json!("weak")));
    let listed = server.get("/jobs").json;
    let verdicts = listed["jobs"].as_array().unwrap().iter().map(|job| job["verdict"].as_str());
    assert_eq!(verdicts.collect::<Vec<_>>(), [Some("weak"), Some("weak")]);
}

#[test]
fn a_case_of_a_gate_is_invalid() {
    let server = Server::start();
    let suite = |contract: Value| {
        let beside = json!({"name": "beside", "contract": contract, "baseline": contract});
        json!({"cases": [{"name": "alone", "contract": contract}, beside]})
    };
    let report = post(&server, "/gate", &suite(constant()));
    assert_eq!((&report["verdict"], &report["exit_code"]), (&json!("INVALID"), &json!(4)));
    for case in report["cases"].as_array().unwrap() {
        assert_eq!(
            (&case["outcome"], &case["kernel_verdict"]),
            (&json!("INVALID"), &json!("weak"))
        );
        let detail = case["detail"].as_str().unwrap();
        assert!(detail.contains("allow_weak") && detail.contains("constant"), "{detail}");
    }
    let report = post(&server, "/gate", &suite(allowed(constant())));
    assert_eq!(report["verdict"], "PASS", "{report}");
    assert_eq!(report["cases"][1]["kernel_verdict"], "correct");
}

#[test]
fn the_command_line_says_what_would_pass_and_ends_with_a_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("constant.json");
    std::fs::write(&path, constant().to_string()).unwrap();
    let exit = |flags: &[&str]| {
        let mut command = program();
        outcome(command.args(["eval", path.to_str().unwrap()]).args(flags).output().unwrap())
    };
    let (code, stdout, stderr) = exit(&[]);
    assert_eq!(code, 6, "{stdout}{stderr}");
    let first = stdout.lines().next().unwrap();
    assert!(first.starts_with("WEAK  increment") && first.contains("choose inputs"), "{stdout}");
    let (code, stdout, stderr) = exit(&["--allow-weak"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.starts_with("CORRECT"), "{stdout}");
}
