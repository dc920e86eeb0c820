use super::fake::PANIC;
use super::http::{CONTRACT, Server, contract_named};

#[tokio::test]
async fn service_errors_have_one_status_each() {
    let server = Server::start().await;
    for (name, status, code) in [
        ("invalid", 400, "invalid_contract"),
        ("queue_full", 429, "queue_full"),
        ("unavailable", 503, "unavailable"),
        ("internal", 500, "internal"),
    ] {
        for path in ["/evaluate", "/evaluate?wait=false", "/execute"] {
            let answer = server.post(path, &contract_named(name)).await;
            answer.expect_error(status, code);
            let retry = answer.header("retry-after");
            assert_eq!(retry, (status == 429).then_some("3"), "{path} {name}");
        }
    }
}

#[tokio::test]
async fn every_problem_of_a_contract_is_listed() {
    let server = Server::start().await;
    let answer = server.post("/evaluate", &contract_named("invalid")).await;
    let error = answer.expect_error(400, "invalid_contract");
    assert_eq!(error["path"], "kernel.io.args[0].tensor_spec.shape[0]");
    let problems = error["validation_errors"].as_array().unwrap();
    assert_eq!(problems.len(), 2);
    assert_eq!(problems[1]["field"], "num_trials");
    assert_eq!(problems[1]["type"], "out_of_range");
    assert_eq!(problems[1]["message"], "must be 1–10000, is 0");
}

#[tokio::test]
async fn internal_errors_name_the_log_line_only() {
    let server = Server::start().await;
    let answer = server.post("/evaluate", &contract_named("internal")).await;
    let error = answer.expect_error(500, "internal");
    assert!(error["details"].as_str().unwrap().contains("abc123"), "{error}");
}

#[tokio::test]
async fn a_panic_costs_its_own_request_only() {
    let server = Server::start().await;
    let answer = server.post("/evaluate", &contract_named(PANIC)).await;
    let error = answer.expect_error(500, "internal");
    let id = answer.header("x-request-id").unwrap();
    assert!(error["details"].as_str().unwrap().contains(id), "{error}");
    assert_eq!(server.post("/evaluate", CONTRACT).await.status, 200);
}

#[tokio::test]
async fn unknown_paths_methods_and_parameters_answer_in_json() {
    let server = Server::start().await;
    for path in ["/nothing", "/jobs/", "/jobs/1/2", "/docs/x", "/EVALUATE", "//health"] {
        server.get(path).await.expect_error(404, "not_found");
    }
    for (method, path, allow) in [
        ("GET", "/evaluate", "POST"),
        ("PUT", "/compile", "POST"),
        ("PUT", "/jobs/7", "DELETE, GET"),
        ("POST", "/health", "GET"),
        ("PATCH", "/docs", "GET"),
        ("OPTIONS", "/", "GET, POST"),
    ] {
        let answer = server.send(method, path, &[], "").await;
        answer.expect_error(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
    let answer = server.post("/evaluate?wait=perhaps", CONTRACT).await;
    let error = answer.expect_error(400, "invalid_parameter");
    assert_eq!(error["path"], "wait");
}
