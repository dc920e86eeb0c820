//! `/mcp` with hostile or faulty clients. `crate::mcp` has the work of agents.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::fake::FakeService;
use super::http::{Answer, CONTRACT, Server, config};
use crate::mcp::agent::{initialize, request};

const TYPE: &str = "content-type: application/json";
const ACCEPT: &str = "accept: application/json, text/event-stream";
const KEY: &str = "x-api-key: key";

async fn post(server: &Server, headers: &[&str], message: &Value) -> Answer {
    let headers = [&[TYPE, ACCEPT], headers].concat();
    server.send("POST", "/mcp", &headers, message.to_string()).await
}

/// Begins a session; its header.
async fn begin(server: &Server, headers: &[&str]) -> String {
    let answer = post(server, headers, &initialize()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = answer.header("mcp-session-id").expect("a session");
    let session = format!("mcp-session-id: {id}");
    let headers = [headers, &[session.as_str()]].concat();
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(server, &headers, &begun).await.status, 202);
    session
}

/// The last message of a stream.
fn last(answer: &Answer) -> Value {
    let mut data = answer.text().lines().filter_map(|line| line.strip_prefix("data: "));
    let last = data.rfind(|data| !data.is_empty());
    serde_json::from_str(last.unwrap_or_else(|| panic!("{answer:?}"))).expect("a message")
}

async fn keyed() -> Server {
    let mut config = config();
    config.api_keys = vec!["key".into(), "other".into()];
    Server::with(config, FakeService::new()).await
}

#[tokio::test]
async fn tools_and_templates_are_listed_to_whoever_may_ask() {
    let server = keyed().await;
    for method in ["POST", "GET", "DELETE"] {
        server.send(method, "/mcp", &[ACCEPT], "").await.expect_error(401, "unauthorized");
    }
    let session = begin(&server, &[KEY]).await;
    let headers = [KEY, session.as_str()];
    let tools = post(&server, &headers, &request(2, "tools/list", json!({}))).await;
    let tools = last(&tools)["result"]["tools"].as_array().expect("tools").clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected = [
        "evaluate_kernel",
        "compare_kernels",
        "profile_kernel",
        "get_job",
        "list_devices",
        "import_report",
    ];
    assert_eq!(names, expected);
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            jsonschema::draft202012::meta::validate(&tool[schema]).expect("a schema");
        }
    }
    // An answer of the tool fits what it says of it.
    let contract: Value = serde_json::from_str(CONTRACT).expect("JSON");
    let arguments = json!({"request": contract});
    assert!(jsonschema::is_valid(&tools[0]["inputSchema"], &arguments));
    let call = request(3, "tools/call", json!({"name": "evaluate_kernel", "arguments": arguments}));
    let answer = last(&post(&server, &headers, &call).await);
    let structured = &answer["result"]["structuredContent"];
    assert!(jsonschema::is_valid(&tools[0]["outputSchema"], structured), "{answer}");
}

#[tokio::test]
async fn frames_that_are_none_are_refused() {
    let server = Server::start().await;
    let send = async |headers: &[&str], body: String| {
        let headers = [&[ACCEPT], headers].concat();
        server.send("POST", "/mcp", &headers, body).await
    };
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested =
        format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"x\", \"params\": {deep}}}");
    for (body, code) in [
        (String::new(), "truncated_body"),
        ("{".to_owned(), "truncated_body"),
        ("nonsense".to_owned(), "malformed_json"),
        (deep, "too_deep"),
        (nested, "too_deep"),
        ("{\"jsonrpc\": \"2.0\", \"id\": [], \"method\": 7}".to_owned(), "wrong_type"),
        ("{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"ping\"}".to_owned(), "malformed_json"),
        ("[1, 2]".to_owned(), "wrong_type"),
        (format!("[{}1]", "1,".repeat(1 << 20)), "too_large"),
    ] {
        let shown: String = body.chars().take(40).collect();
        let answer = send(&[TYPE], body).await;
        let error = answer.json();
        assert_eq!((answer.status, error["code"].as_str()), (400, Some(code)), "{shown}: {error}");
    }
    let huge = "x".repeat(5 << 20);
    send(&[TYPE], huge).await.expect_error(413, "body_too_large");
    let yaml = ["content-type: application/yaml"];
    send(&yaml, "a: 1".to_owned()).await.expect_error(415, "unsupported_media_type");
    let plain = ["content-type: text/plain"];
    send(&plain, initialize().to_string()).await.expect_error(415, "unsupported_media_type");
    for method in ["PUT", "PATCH", "OPTIONS"] {
        let answer = server.send(method, "/mcp", &[], "").await;
        answer.expect_error(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("DELETE, GET, POST"));
    }
}

#[tokio::test]
async fn a_session_is_one_that_was_begun_and_has_not_ended() {
    let server = Server::start().await;
    let list = request(2, "tools/list", json!({}));
    for session in ["mcp-session-id: nonsense", "mcp-session-id:", "mcp-session-id: \u{e4}"] {
        post(&server, &[session], &list).await.expect_error(404, "no_such_session");
        let get = server.send("GET", "/mcp", &[ACCEPT, session], "").await;
        get.expect_error(404, "no_such_session");
    }
    let session = begin(&server, &[]).await;
    let twice = [session.as_str(), session.as_str()];
    assert_eq!(post(&server, &twice, &list).await.status, 400);
    assert_eq!(post(&server, &[&session], &list).await.status, 200);
    assert_eq!(server.send("DELETE", "/mcp", &[session.as_str()], "").await.status, 204);
    post(&server, &[&session], &list).await.expect_error(404, "no_such_session");
    // Without one, only what begins one is taken.
    assert_eq!(post(&server, &[], &list).await.status, 400);
}

#[tokio::test]
async fn sessions_are_bounded_and_idle_ones_make_room() {
    let server = keyed().await;
    let other = ["x-api-key: other"];
    let kept = begin(&server, &other).await;
    let mut sessions = Vec::new();
    for _ in 0..260 {
        sessions.push(begin(&server, &[KEY]).await);
    }
    let list = request(2, "tools/list", json!({}));
    // The oldest of who has the most is gone, and nobody else's.
    let first = [KEY, sessions[0].as_str()];
    post(&server, &first, &list).await.expect_error(404, "no_such_session");
    let newest = [KEY, sessions[259].as_str()];
    assert_eq!(post(&server, &newest, &list).await.status, 200);
    assert_eq!(post(&server, &[other[0], &kept], &list).await.status, 200);
    let stolen = [other[0], sessions[259].as_str()];
    post(&server, &stolen, &list).await.expect_error(404, "no_such_session");
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_whatever_keys_there_are() {
    for server in [Server::start().await, keyed().await] {
        let evil = [KEY, "origin: http://evil.example"];
        post(&server, &evil, &initialize()).await.expect_error(403, "foreign_origin");
        let null = [KEY, "origin: null"];
        post(&server, &null, &initialize()).await.expect_error(403, "foreign_origin");
        let own = [KEY, "origin: http://localhost"];
        assert_eq!(post(&server, &own, &initialize()).await.status, 200);
    }
}

#[tokio::test]
async fn streams_of_a_session_end_when_the_server_goes_down() {
    let server = Server::start().await;
    let session = begin(&server, &[]).await;
    let mut stream = server.open("GET", "/mcp", &[ACCEPT, session.as_str()], "").await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.0.read_u8().await.expect("a whole head"));
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    let stopped = server.stop();
    stream.0.read_to_end(&mut head).await.expect("an end of the stream");
    stopped.await;
}

/// The protocol's newest version has no sessions: each request says for itself what it needs.
#[tokio::test]
async fn the_newest_version_needs_no_session() {
    let server = Server::start().await;
    let version = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/list"];
    let answer = post(&server, &headers, &request(1, "tools/list", json!({"_meta": meta}))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(last(&answer)["result"]["tools"].as_array().map(Vec::len), Some(6));
    assert_eq!(answer.header("mcp-session-id"), None);
}
