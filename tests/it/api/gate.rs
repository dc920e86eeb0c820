use serde_json::{Value, json};

use super::http::Server;

fn contract() -> Value {
    json!({"kernel": {"kernel_type": "ptx", "source_code": "x"}})
}

fn suite() -> String {
    let case = json!({"name": "a", "contract": contract(), "baseline": contract()});
    json!({"suite": "s", "cases": [case]}).to_string()
}

fn baseline(name: &str) -> String {
    json!({"name": name, "cases": [{"name": "a", "contract": contract()}]}).to_string()
}

#[tokio::test]
async fn the_report_has_the_form_that_is_asked_for() {
    let server = Server::start().await;
    let report = server.post("/gate", &suite()).await.json();
    assert_eq!((&report["verdict"], &report["exit_code"]), (&"PASS".into(), &0.into()));
    for (format, media_type, part) in [
        ("junit", "application/xml; charset=utf-8", "<testsuites"),
        ("markdown", "text/markdown; charset=utf-8", "### "),
        ("csv", "text/csv; charset=utf-8", "case,metric"),
        ("html", "text/html; charset=utf-8", "<!DOCTYPE html>"),
        ("bmf", "application/json", "vector_add"),
        ("benchmark", "application/json", "vector_add"),
    ] {
        let answer = server.post(&format!("/gate?format={format}"), &suite()).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(media_type)));
        assert!(answer.text().contains(part), "{format}: {}", answer.text());
    }
    let headers = ["content-type: application/json", "accept: application/xml"];
    let junit = server.send("POST", "/gate", &headers, suite()).await;
    assert!(junit.text().contains("<testsuites"), "{}", junit.text());
    server.post("/gate?format=pdf", &suite()).await.expect_error(400, "invalid_parameter");
}

#[tokio::test]
async fn mistakes_of_a_suite_are_found_where_they_are() {
    let server = Server::start().await;
    let none = json!({"cases": []}).to_string();
    let error = server.post("/gate", &none).await.expect_error(400, "invalid_contract");
    assert_eq!(error["path"], "cases");
    let unknown = suite().replacen("\"suite\"", "\"suit\"", 1);
    let error = server.post("/gate", &unknown).await.json();
    assert!(error["error"].as_str().unwrap().contains("suit"), "{error}");
    let stored = json!({"baseline": "nowhere", "cases": [{"name": "a", "contract": contract()}]});
    let error = server.post("/gate", &stored.to_string()).await;
    error.expect_error(404, "no_such_baseline");
}

#[tokio::test]
async fn baselines_are_stored_listed_used_and_removed() {
    let server = Server::start().await;
    for name in ["", "a/b", "-x", ".."] {
        let error = server.post("/baselines", &baseline(name)).await;
        assert_eq!(error.expect_error(400, "invalid_contract")["path"], "name");
    }
    let stored = server.post("/baselines", &baseline("main")).await.json();
    assert_eq!((&stored["name"], &stored["cases"]), (&"main".into(), &json!(["a"])));
    let list = server.get("/baselines").await.json();
    assert_eq!(list["baselines"], json!([stored]));
    let whole = server.get("/baselines/main").await.json();
    assert_eq!(whole["cases"]["a"]["kernel"]["source_code"], "x");
    // It is for another device: no verdict, and the difference is named.
    let case = json!({"name": "a", "contract": contract()});
    let body = json!({"baseline": "main", "cases": [case]}).to_string();
    let error = server.post("/gate", &body).await.expect_error(409, "conditions_differ");
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("a different device") && text.contains("H200"), "{text}");
    let job = json!({"job_id": "nobody"}).to_string();
    let error = server.post("/baselines/main/promote", &job).await;
    error.expect_error(404, "no_such_job");
    let removed = server.send("DELETE", "/baselines/main", &[], "").await.json();
    assert_eq!(removed["name"], "main");
    for method in ["GET", "DELETE"] {
        let error = server.send(method, "/baselines/main", &[], "").await;
        error.expect_error(404, "no_such_baseline");
    }
}

#[tokio::test]
async fn a_history_is_numbers_or_a_picture() {
    let server = Server::start().await;
    let all = server.get("/history").await.json();
    assert_eq!(all["series"][0]["changes"][0]["at"], 4);
    assert_eq!(server.get("/history?case=other").await.json()["series"], json!([]));
    let drawing = server.get("/history?case=scale&format=svg").await;
    assert_eq!(drawing.header("content-type"), Some("image/svg+xml"));
    let document = roxmltree::Document::parse(drawing.text()).unwrap();
    let class = |class: &str| {
        document.descendants().filter(|node| node.attribute("class") == Some(class)).count()
    };
    assert_eq!((class("p"), class("change")), (8, 1));
    for query in ["limit=0", "limit=20001", "limit=x", "format=png"] {
        let error = server.get(&format!("/history?{query}")).await;
        error.expect_error(400, "invalid_parameter");
    }
}
