use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::fake::HANG;
use super::http::{CONTRACT, Server, contract_named};

/// The example contract with an axis of three values.
fn sweep(contract: &str) -> String {
    let mut contract: Value = serde_json::from_str(contract).unwrap();
    contract["axes"] = json!({"trials": [1, 2, 3]});
    contract["num_trials"] = json!("$trials");
    contract.to_string()
}

#[tokio::test]
async fn the_answer_has_the_form_that_is_asked_for() {
    let server = Server::start().await;
    let body = sweep(CONTRACT);
    let whole = server.post("/sweep", &body).await.json();
    assert_eq!(whole["points"].as_array().unwrap().len(), 3);
    let accept = ["content-type: application/json", "accept: text/csv"];
    let csv = server.send("POST", "/sweep", &accept, &body).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(csv.text().lines().count(), 4, "{}", csv.text());
    let events = server.post("/sweep?stream=true", &body).await;
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    assert_eq!(events.header("cache-control"), Some("no-store"));
    let wrong = server.post("/sweep?format=xml", &body).await;
    wrong.expect_error(400, "invalid_parameter");
}

#[tokio::test]
async fn what_keeps_a_sweep_from_starting_is_an_error_in_every_form() {
    let server = Server::start().await;
    let none = CONTRACT.replacen('{', "{\"axes\": {}, ", 1);
    let full = sweep(&contract_named("queue_full"));
    for query in ["", "?format=csv", "?stream=true"] {
        let path = format!("/sweep{query}");
        let error = server.post(&path, &none).await.expect_error(400, "invalid_contract");
        assert_eq!(error["path"], "axes");
        server.post(&path, &full).await.expect_error(429, "queue_full");
    }
    let panics = server.post("/sweep?stream=true", &sweep(&contract_named("panic"))).await;
    panics.expect_error(500, "internal");
}

#[tokio::test]
async fn points_come_while_others_run_and_going_away_cancels_them() {
    let server = Server::start().await;
    for query in ["?stream=true", ""] {
        let before = *server.service.cancelled.borrow();
        let mut started = server.service.started.subscribe();
        started.mark_unchanged();
        let path = format!("/sweep{query}");
        let headers = ["content-type: application/json"];
        let body = sweep(&contract_named(HANG));
        let mut connection = server.open("POST", &path, &headers, body).await;
        started.changed().await.unwrap();
        server.service.release.add_permits(1);
        started.changed().await.unwrap();
        if !query.is_empty() {
            // The first point is there, although the second one is not done.
            let mut text = String::new();
            while !text.contains("event: point") {
                let mut piece = [0; 1024];
                let read = connection.0.read(&mut piece).await.unwrap();
                assert_ne!(read, 0, "{text}");
                text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
            }
            assert!(text.contains("event: started") && !text.contains("\"index\":1"), "{text}");
        }
        drop(connection);
        let mut cancelled = server.service.cancelled.subscribe();
        cancelled.wait_for(|count| *count == before + 1).await.unwrap();
    }
}
