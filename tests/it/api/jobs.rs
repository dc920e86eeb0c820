use serde_json::{Value, json};

use super::fake::FakeService;
use super::http::{CONTRACT, Server, config};

#[tokio::test]
async fn an_evaluation_that_is_not_waited_for_can_be_fetched() {
    let server = Server::start().await;
    let accepted = server.post("/evaluate?wait=false", CONTRACT).await;
    assert_eq!(accepted.status, 202);
    let body = accepted.json();
    let job_id = body["job_id"].as_str().unwrap();
    let url = format!("/jobs/{job_id}");
    assert_eq!(accepted.header("location"), Some(url.as_str()));
    assert_eq!(body["status_url"], url);
    assert_eq!(body["status"], "submitted");

    let job = server.get(&url).await.json();
    assert_eq!(job["job_id"], job_id);
    assert_eq!(job["state"], "completed");
    assert_eq!(job["result"]["kernel_exec_result"]["compiled"], true);

    let state = server.get(&format!("/job/{job_id}")).await.json();
    assert_eq!(state["job_id"], job_id);
    assert_eq!(state["status"], "completed");
    assert_eq!(state["created_at"], 1_767_225_600.0);
    assert!(state["error"].is_null() && state.get("error").is_some(), "{state}");
}

#[tokio::test]
async fn jobs_that_are_not_there_are_404() {
    let server = Server::start().await;
    for id in ["nobody", "%00", "a%2Fb", &"x".repeat(5000)] {
        for path in [format!("/jobs/{id}"), format!("/job/{id}")] {
            let error = server.get(&path).await.expect_error(404, "no_such_job");
            assert!(error["error"].as_str().unwrap().len() < 300, "{error}");
        }
    }
}

#[tokio::test]
async fn artifacts_have_their_media_types_and_errors() {
    let server = Server::start().await;
    let accepted = server.post("/evaluate?wait=false", CONTRACT).await.json();
    let job = format!("/jobs/{}", accepted["job_id"].as_str().unwrap());
    let list = server.get(&format!("{job}/artifacts")).await.json();
    assert_eq!(list["artifacts"].as_array().unwrap().len(), 9);
    let ptx = server.get(&format!("{job}/artifacts/ptx?kernel=a%20b")).await;
    assert_eq!((ptx.status, ptx.text()), (200, "// a b\n"));
    assert_eq!(ptx.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(ptx.header("content-disposition"), Some("attachment; filename=\"kernel.ptx\""));
    assert_eq!(ptx.header("x-content-type-options"), Some("nosniff"));
    server.get(&format!("{job}/artifacts/log")).await.expect_error(410, "artifact_gone");
    server.get(&format!("{job}/artifacts/sass")).await.expect_error(404, "no_such_artifact");
    let code = server.get(&format!("{job}/code?kernel=a%20b")).await.json();
    assert_eq!((&code["kernel"], &code["files"][0]["name"]), (&json!("a b"), &json!("kernel.cu")));
    assert_eq!(code["listings"][0]["instructions"][0]["line"], 2);
    let error =
        server.get(&format!("{job}/artifacts/exe")).await.expect_error(404, "no_such_artifact");
    assert!(error["error"].as_str().unwrap().contains("ncu-rep"), "{error}");
    for path in ["artifacts", "artifacts/ptx", "code", "roofline.svg"] {
        server.get(&format!("/jobs/nobody/{path}")).await.expect_error(404, "no_such_job");
    }
    let error =
        server.get(&format!("{job}/roofline.svg")).await.expect_error(404, "no_such_artifact");
    assert!(error["error"].as_str().unwrap().contains("profile"), "{error}");
}

#[tokio::test]
async fn jobs_are_listed_with_filters_that_are_checked() {
    let server = Server::start().await;
    for _ in 0..3 {
        assert_eq!(server.post("/evaluate?wait=false&label=a", CONTRACT).await.status, 202);
    }
    let list = server.get("/jobs?limit=2").await.json();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(list["jobs"][0]["job_id"], "job-3");
    assert_eq!(list["jobs"][0]["label"], "a");
    for query in [
        "state=completed&state=failed",
        "kind=compare&label=b&created_after=1.5&created_before=2e9&cursor=x",
        "limit=200",
    ] {
        assert_eq!(server.get(&format!("/jobs?{query}")).await.status, 200, "{query}");
    }
    for query in ["state=done", "kind=dance", "limit=0", "limit=201", "created_after=today"] {
        server.get(&format!("/jobs?{query}")).await.expect_error(400, "invalid_parameter");
    }
}

fn batch(items: &[Value]) -> String {
    json!({"jobs": items}).to_string()
}

#[tokio::test]
async fn batches_are_taken_whole_or_not_at_all() {
    let server = Server::start().await;
    let request: Value = serde_json::from_str(CONTRACT).unwrap();
    let item = json!({"request": request, "label": "b", "priority": -5});
    let answer = server.post("/jobs", &batch(&[item.clone(), item.clone()])).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let jobs = answer.json();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(jobs["jobs"][1]["status_url"], "/jobs/job-2");
    assert_eq!(jobs["jobs"][1]["existing"], false);

    let mut bad = item.clone();
    bad["request"]["num_trials"] = json!("many");
    let error = server.post("/jobs", &batch(&[item.clone(), bad, item.clone()])).await;
    let error = error.expect_error(400, "invalid_contract");
    assert_eq!(error["path"], "jobs[1].request.num_trials", "{error}");
    let mut bad = item.clone();
    bad["priority"] = json!(1000);
    let error = server.post("/jobs", &batch(&[item.clone(), bad])).await;
    assert_eq!(error.expect_error(400, "out_of_range")["path"], "jobs[1].priority");
    let mut bad = item.clone();
    bad["kind"] = json!("gate");
    let error = server.post("/jobs", &batch(&[bad])).await;
    // A gate takes a suite.
    let error = error.expect_error(400, "invalid_contract");
    assert!(error["path"].as_str().unwrap().starts_with("jobs[0].request."), "{error}");
    let mut bad = item.clone();
    bad["wait"] = json!(true);
    let error = server.post("/jobs", &batch(&[bad])).await;
    assert_eq!(error.expect_error(400, "unknown_field")["path"], "jobs[0].wait");
    server.post("/jobs", &batch(&[])).await.expect_error(400, "out_of_range");
    let empty = json!({"request": {}});
    let many = server.post("/jobs", &batch(&vec![empty; 1001])).await;
    many.expect_error(400, "out_of_range");
    assert_eq!(server.get("/jobs").await.json()["jobs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn how_a_job_is_to_be_taken_is_checked() {
    let server = Server::start().await;
    for (query, code, path) in [
        ("priority=101", "out_of_range", "priority"),
        ("priority=high", "invalid_parameter", "priority"),
        ("label=a%0Ab", "invalid_label", "label"),
        ("label=fast%E2%80%AEwols", "invalid_label", "label"),
        ("webhook=http%3A%2F%2F127.0.0.1%2F", "webhook_refused", "webhook"),
    ] {
        for operation in ["evaluate", "execute", "compare", "sweep"] {
            let answer = server.post(&format!("/{operation}?{query}"), "{}").await;
            let error = answer.json();
            // The body may be looked at first.
            if error["path"] == path {
                assert_eq!((answer.status, error["code"].as_str()), (400, Some(code)), "{error}");
            } else {
                assert_ne!(operation, "evaluate", "{error}");
            }
        }
    }
    let long = format!("idempotency-key: {}", "k".repeat(256));
    for key in ["idempotency-key: a b", "idempotency-key:", &long] {
        let headers = ["content-type: application/json", key];
        let answer = server.send("POST", "/evaluate", &headers, CONTRACT).await;
        let error = answer.expect_error(400, "invalid_idempotency_key");
        assert_eq!(error["path"], "Idempotency-Key");
    }
    let error = server.post("/evaluate?webhook=http%3A%2F%2Fh%2F", CONTRACT).await;
    let error = error.expect_error(400, "webhook_refused");
    assert!(error["error"].as_str().unwrap().contains("server.webhook_hosts"), "{error}");
}

#[tokio::test]
async fn a_job_that_ended_has_one_event_and_cannot_be_cancelled() {
    let server = Server::start().await;
    server.post("/evaluate?wait=false", CONTRACT).await;
    let answer = server.get("/jobs/job-1/events").await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = answer.text();
    assert_eq!(text.matches("event: ").count(), 1, "{text}");
    assert!(
        text.contains("event: end\ndata: {\"job_id\":\"job-1\",\"state\":\"completed\""),
        "{text}"
    );
    for _ in 0..2 {
        let answer = server.send("DELETE", "/jobs/job-1", &[], "").await.json();
        assert_eq!(answer, json!({"job_id": "job-1", "outcome": "ended", "state": "completed"}));
    }
    for (method, path) in [("DELETE", "/jobs/nobody"), ("GET", "/jobs/nobody/events")] {
        server.send(method, path, &[], "").await.expect_error(404, "no_such_job");
    }
}

#[tokio::test]
async fn only_administrators_clean_up() {
    let mut config = config();
    config.api_keys = vec!["user".into()];
    let server = Server::with(config.clone(), FakeService::new()).await;
    let cleanup = "/admin/cleanup-jobs";
    let error = server.send("POST", cleanup, &["x-api-key: user"], "").await;
    let error = error.expect_error(403, "forbidden");
    assert!(error["error"].as_str().unwrap().contains("WARPGAUGE_ADMIN_KEYS"), "{error}");

    config.admin_keys = vec!["root".into()];
    let server = Server::with(config, FakeService::new()).await;
    server.send("POST", cleanup, &["x-api-key: user"], "").await.expect_error(403, "forbidden");
    let headers = ["x-api-key: user", "content-type: application/json"];
    server.send("POST", "/evaluate?wait=false", &headers, CONTRACT).await;
    let cleaned = server.send("POST", cleanup, &["x-api-key: root"], "").await.json();
    assert_eq!(
        cleaned,
        json!({"status": "cleanup_completed", "cleaned_jobs": 1, "cleaned_bytes": 0})
    );
    let wrong = server.send("POST", &format!("{cleanup}?older_than_s=-1"), &headers[..1], "").await;
    wrong.expect_error(403, "forbidden");
    let wrong =
        server.send("POST", &format!("{cleanup}?older_than_s=-1"), &["x-api-key: root"], "").await;
    wrong.expect_error(400, "out_of_range");
}
