use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::fake::{FakeService, HANG};
use super::http::{CONTRACT, Server, config, contract_named};

fn as_yaml() -> String {
    serde_saphyr::to_string(&serde_json::from_str::<Value>(CONTRACT).unwrap()).unwrap()
}

fn as_msgpack() -> Vec<u8> {
    rmp_serde::to_vec_named(&serde_json::from_str::<Value>(CONTRACT).unwrap()).unwrap()
}

#[tokio::test]
async fn every_media_type_carries_the_same_contract() {
    let server = Server::start().await;
    let (yaml, msgpack) = (as_yaml(), as_msgpack());
    for (media_type, body) in [
        ("application/json", CONTRACT.as_bytes()),
        ("Application/JSON; charset=utf-8", CONTRACT.as_bytes()),
        ("application/yaml", yaml.as_bytes()),
        ("application/x-yaml", yaml.as_bytes()),
        ("text/yaml; charset=utf-8", yaml.as_bytes()),
        ("application/msgpack", &msgpack),
        ("application/x-msgpack", &msgpack),
    ] {
        let header = format!("content-type: {media_type}");
        let answer = server.send("POST", "/evaluate", &[&header], body).await;
        assert_eq!(answer.status, 200, "{media_type:?}: {}", answer.text());
        let metadata = &answer.json()["kernel_exec_result"]["metadata"];
        assert_eq!(metadata["kernel_name"], "vector_add", "{media_type:?}");
    }
}

#[tokio::test]
async fn a_body_without_a_type_is_json_unless_a_browser_sends_it() {
    let server = Server::start().await;
    let length = format!("content-length: {}", CONTRACT.len());
    for (headers, status) in [
        (&[][..], 200),
        (&["user-agent: Mozilla/5.0"], 200),
        (&["origin: http://localhost"], 415),
        (&["sec-fetch-site: same-origin"], 415),
        (&["sec-fetch-mode: cors"], 415),
    ] {
        let headers = [headers, &[&length]].concat();
        let mut connection = server.open_head("POST", "/evaluate", &headers).await;
        connection.0.write_all(CONTRACT.as_bytes()).await.unwrap();
        let answer = connection.answer().await;
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text());
        if status == 415 {
            let error = answer.expect_error(415, "unsupported_media_type");
            assert!(error["error"].as_str().unwrap().contains("comes from a browser"), "{error}");
        }
    }
}

#[tokio::test]
async fn other_media_types_and_codings_are_refused_with_a_list() {
    let server = Server::start().await;
    let length = format!("content-length: {}", CONTRACT.len());
    for headers in [
        &["content-type: text/csv"][..],
        // What a browser sends for any page without asking first.
        &["content-type: text/plain"],
        &["content-type: application/x-www-form-urlencoded"],
        &["content-type: multipart/form-data; boundary=x"],
        &["content-type: application/xml"],
        &["content-type: yaml"],
        &["content-type:"],
        &["content-type: application/json", "content-type: text/plain"],
    ] {
        let headers = [headers, &[&length]].concat();
        let mut connection = server.open_head("POST", "/evaluate", &headers).await;
        connection.0.write_all(CONTRACT.as_bytes()).await.unwrap();
        let answer = connection.answer().await;
        let error = answer.expect_error(415, "unsupported_media_type");
        let text = error["error"].as_str().unwrap();
        for taken in ["application/json", "text/yaml", "application/x-msgpack"] {
            assert!(text.contains(taken), "{text}");
        }
    }
    let headers = ["content-type: application/json", "content-encoding: gzip"];
    let answer = server.send("POST", "/evaluate", &headers, CONTRACT).await;
    answer.expect_error(415, "unsupported_encoding");
}

#[tokio::test]
async fn malformed_bodies_say_where() {
    let server = Server::start().await;
    let cases: [(&str, &str, &str, Option<&str>, bool); 6] = [
        ("application/json", "{\n  \"kernel\": {]\n}", "malformed_json", Some("kernel"), true),
        ("application/json", "", "truncated_body", None, false),
        ("application/json", "{\"kernel\": ", "truncated_body", Some("kernel"), true),
        (
            "application/yaml",
            "kernel: {kernel_type: ]",
            "malformed_yaml",
            Some("kernel.kernel_type"),
            true,
        ),
        (
            "application/json",
            "{\"kernel\": {\"kernel_type\": \"cuda\", \"io\": {\"arg\": []}}}",
            "unknown_field",
            Some("kernel.io.arg"),
            true,
        ),
        (
            "application/yaml",
            "kernel:\n  kernel_type: cuda\n  io:\n    args:\n      - {name: x, type: tensr}\n",
            "invalid_value",
            Some("kernel.io.args[0].type"),
            true,
        ),
    ];
    for (media_type, body, code, path, has_line) in cases {
        let header = format!("content-type: {media_type}");
        let answer = server.send("POST", "/evaluate", &[&header], body).await;
        let error = answer.expect_error(400, code);
        assert_eq!(error["path"].as_str(), path, "{error}");
        assert_eq!(error["line"].is_u64() && error["column"].is_u64(), has_line, "{error}");
    }
    let header = ["content-type: application/msgpack"];
    let msgpack = as_msgpack();
    let answer = server.send("POST", "/evaluate", &header, &msgpack[..msgpack.len() / 2]).await;
    answer.expect_error(400, "truncated_body");
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body_comes() {
    let mut config = config();
    config.body_limit_bytes = 1000;
    let server = Server::with(config, FakeService::new()).await;
    let mut connection = server
        .open_head("POST", "/evaluate", &["content-type: application/json", "content-length: 1001"])
        .await;
    // Not one byte of the body was sent.
    let mut head = [0; 12];
    tokio::io::AsyncReadExt::read_exact(&mut connection.0, &mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
}

#[tokio::test]
async fn a_stream_over_the_limit_is_refused() {
    let mut config = config();
    config.body_limit_bytes = CONTRACT.len() as u64;
    let server = Server::with(config, FakeService::new()).await;
    let exact = server.post("/evaluate", CONTRACT).await;
    assert_eq!(exact.status, 200, "{}", exact.text());
    let over = server.post("/evaluate", &format!("{CONTRACT} ")).await;
    over.expect_error(413, "body_too_large");

    let chunked = ["content-type: application/json", "transfer-encoding: chunked"];
    let mut connection = server.open_head("POST", "/evaluate", &chunked).await;
    let chunk = format!("{:x}\r\n{CONTRACT}\r\n", CONTRACT.len());
    connection.0.write_all(chunk.repeat(2).as_bytes()).await.unwrap();
    connection.0.write_all(b"0\r\n\r\n").await.unwrap();
    connection.answer().await.expect_error(413, "body_too_large");
}

#[tokio::test]
async fn a_body_cut_off_half_way_is_told_so() {
    let server = Server::start().await;
    let length = format!("content-length: {}", CONTRACT.len());
    let mut connection =
        server.open_head("POST", "/evaluate", &["content-type: application/json", &length]).await;
    connection.0.write_all(&CONTRACT.as_bytes()[..100]).await.unwrap();
    connection.0.shutdown().await.unwrap();
    let error = connection.answer().await.expect_error(400, "truncated_body");
    assert!(error["error"].as_str().unwrap().contains("after 100 of"), "{error}");
}

#[tokio::test]
async fn large_bodies_together_are_bounded() {
    let mut config = config();
    config.body_limit_bytes = 16 << 20;
    let server = Server::with(config, FakeService::new()).await;
    let padding = " ".repeat(15 << 20);
    let body = contract_named(HANG) + &padding;
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(server.open("POST", "/evaluate", &[], &body).await);
    }
    let mut started = server.service.started.subscribe();
    started.wait_for(|count| *count == 4).await.unwrap();

    let refused = server.post("/evaluate", &body).await;
    refused.expect_error(429, "too_many_large_bodies");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let small = server.post("/evaluate", CONTRACT).await;
    assert_eq!(small.status, 200);

    server.service.release.add_permits(4);
    for mut connection in running {
        assert_eq!(connection.answer().await.status, 200);
    }
    let again = server.post("/evaluate", &(CONTRACT.to_owned() + &padding)).await;
    assert_eq!(again.status, 200, "the memory is not given back");
}
