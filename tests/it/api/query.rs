use serde_json::Value;
use warpgauge_api::openapi;

use super::fake::FakeService;
use super::http::{CONTRACT, Server, config};

#[tokio::test]
async fn every_operation_refuses_a_parameter_that_it_does_not_know() {
    let server = Server::start().await;
    let document: Value = serde_json::from_str(&openapi::full_json()).unwrap();
    let mut asked = 0;
    for (template, operations) in document["paths"].as_object().unwrap() {
        let path = template.replace("{job_id}", "7").replace("{name}", "main");
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let headers = ["content-type: application/json"];
            let answer = server.send(&method, &format!("{path}?wiat=1"), &headers, "{}").await;
            let error = answer.expect_error(400, "unknown_parameter");
            assert_eq!(error["path"], "wiat", "{error}");
            let text = error["error"].as_str().unwrap();
            assert!(text.contains(&format!("{method} {template}")), "{text}");
            asked += 1;
        }
    }
    assert!(asked >= 30);
    assert_eq!(server.send("HEAD", "/health?x=1", &[], "").await.status, 400);
}

#[tokio::test]
async fn the_error_says_what_is_known_and_what_may_be_meant() {
    let server = Server::start().await;
    for (path, parts) in [
        ("/evaluate?wiat=false", &["`wait`?", "known: wait, priority, label, webhook"][..]),
        ("/evaluate?wait=false&idempotency_key=k", &["header `Idempotency-Key`"]),
        ("/sweep?Stream=true", &["`stream`?", "wait, stream, format"]),
        ("/compile?wait=false", &["`wait`", "it has no query parameters"]),
        ("/jobs?wait=false", &["`wait`", "it has no query parameters"]),
    ] {
        let error = server.post(path, CONTRACT).await.expect_error(400, "unknown_parameter");
        for part in parts {
            assert!(error["error"].as_str().unwrap().contains(part), "{path}: {error}");
        }
    }
    let error = server.post("/evaluate?wait=true&wait=false", CONTRACT).await;
    assert_eq!(error.expect_error(400, "repeated_parameter")["path"], "wait");
    assert_eq!(server.get("/jobs").await.json()["jobs"], serde_json::json!([]));
}

#[tokio::test]
async fn pages_take_anything_and_other_errors_go_first() {
    let mut config = config();
    config.api_keys = vec!["user".into()];
    let server = Server::with(config, FakeService::new()).await;
    let key = ["x-api-key: user"];
    for page in ["/docs?v=1#/Kernels", "/openapi.json?v=1", "/evaluate/nothing?v=1"] {
        let answer = server.send("GET", page, &key, "").await;
        assert_eq!(answer.status, if page.starts_with("/evaluate") { 404 } else { 200 }, "{page}");
    }
    assert_eq!(server.get("/evaluate?v=1").await.status, 401);
    server.send("GET", "/evaluate?v=1", &key, "").await.expect_error(405, "method_not_allowed");
    server.send("GET", "/health?v=1", &key, "").await.expect_error(400, "unknown_parameter");
}
