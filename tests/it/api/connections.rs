//! Clients that open a connection and stay idle, send slowly, or do not read.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fake::{FakeService, HANG};
use super::http::{Connection, Server, config, contract_named};

/// Longest wait for what should come at once.
const SOON: Duration = Duration::from_secs(20);

/// Connections of the servers here, and how many more are opened.
const MOST: usize = 8;
const FLOOD: usize = 5 * MOST;

async fn small() -> Server {
    let mut config = config();
    config.max_connections = MOST;
    Server::with(config, FakeService::new()).await
}

/// A server that waits for nobody.
async fn impatient() -> Server {
    let mut config = config();
    config.idle_timeout_s = 0.1;
    config.head_timeout_s = 0.1;
    config.stall_timeout_s = 0.1;
    Server::with(config, FakeService::new()).await
}

/// Connections on each of which these bytes are sent, and no more.
async fn flood(server: &Server, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..FLOOD {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // One that was closed already is part of it.
        let _ = stream.write_all(bytes).await;
        streams.push(stream);
    }
    streams
}

async fn answers(server: &Server) {
    for path in ["/health", "/live"] {
        let answer = tokio::time::timeout(SOON, server.get(path)).await.expect("an answer soon");
        assert_eq!(answer.status, 200, "{path}");
    }
}

/// Resolves when the server has closed the connection; what it sent before.
async fn closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await;
    // A reset is an end as well.
    let _ = read.expect("the end of the connection");
    bytes
}

#[tokio::test]
async fn connections_that_lie_idle_keep_nobody_away() {
    let server = small().await;
    let mut streams = flood(&server, b"").await;
    answers(&server).await;
    assert_eq!(closed(&mut streams[0]).await, b"", "the one that was idle for longest");
}

#[tokio::test]
async fn heads_that_do_not_end_keep_nobody_away() {
    let server = small().await;
    let _streams = flood(&server, b"GET /health HTTP/1.1\r\nhost: loc").await;
    answers(&server).await;
}

#[tokio::test]
async fn bodies_that_drip_keep_nobody_away() {
    let server = small().await;
    let head = b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 1000\r\n\r\n{";
    let _streams = flood(&server, head).await;
    answers(&server).await;
}

#[tokio::test]
async fn clients_that_do_not_read_keep_nobody_away() {
    let server = small().await;
    // More than the buffers between the two take.
    let requests = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(400);
    let _streams = flood(&server, &requests).await;
    answers(&server).await;
}

#[tokio::test]
async fn what_is_worked_on_is_never_closed_for_another() {
    let server = small().await;
    let mut running = Vec::new();
    for _ in 0..MOST - 1 {
        running.push(server.open("POST", "/evaluate", &[], contract_named(HANG)).await);
    }
    let mut started = server.service.started.subscribe();
    started.wait_for(|count| *count == MOST - 1).await.unwrap();
    let _streams = flood(&server, b"GET /he").await;
    answers(&server).await;
    server.service.release.add_permits(MOST - 1);
    for mut connection in running {
        assert_eq!(connection.answer().await.status, 200);
    }
    assert_eq!(*server.service.cancelled.borrow(), 0);
}

#[tokio::test]
async fn idle_connections_and_heads_without_end_are_closed() {
    let server = impatient().await;
    for sent in [&b""[..], b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-more: "] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        assert_eq!(closed(&mut stream).await, b"");
    }
    // Also after an answer.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(closed(&mut stream).await.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn a_request_that_takes_long_outlives_every_deadline_of_clients() {
    let server = impatient().await;
    let mut connection = server.open("POST", "/evaluate", &[], contract_named(HANG)).await;
    let mut started = server.service.started.subscribe();
    started.wait_for(|count| *count == 1).await.unwrap();
    for _ in 0..3 {
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        closed(&mut idle).await;
    }
    server.service.release.add_permits(1);
    assert_eq!(connection.answer().await.status, 200);
}

const HEAD: [&str; 2] = ["content-type: application/json", "content-length: 1000000"];

#[tokio::test]
async fn a_body_that_nobody_needs_costs_nobody_the_answer() {
    let server = Server::with(config(), FakeService::new()).await;
    let body = vec![b'x'; 3_000_000];
    for (asked, status) in
        [("GET /docs", "200"), ("GET /", "200"), ("PUT /jobs", "405"), ("POST /nothing", "404")]
    {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "{asked} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The answer is under way before the body is.
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        stream.write_all(&body).await.unwrap();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.get(9..12), Some(status), "{asked}");
        let (head, content) = answer.split_once("\r\n\r\n").unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(length.unwrap(), content.len().to_string(), "{asked}");
    }
}

#[tokio::test]
async fn a_body_that_stops_coming_is_answered() {
    let server = impatient().await;
    let mut connection = server.open_head("POST", "/evaluate", &HEAD).await;
    connection.0.write_all(b"{").await.unwrap();
    let error = connection.answer().await.expect_error(408, "body_timeout");
    assert!(error["error"].as_str().unwrap().contains("server.stall_timeout_s"), "{error}");
}

#[tokio::test]
async fn a_body_that_never_pauses_and_is_too_slow_is_answered() {
    let mut config = config();
    config.stall_timeout_s = 0.1;
    config.min_bytes_per_s = 1e12;
    let server = Server::with(config, FakeService::new()).await;
    let mut connection = server.open_head("POST", "/evaluate", &HEAD).await;
    let (mut reader, mut writer) = connection.0.split();
    let drip = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    let mut head = [0; 12];
    let read = async { tokio::join!(reader.read_exact(&mut head), drip).0 };
    // Both end: the answer comes, and then the connection is closed.
    tokio::time::timeout(SOON, read).await.expect("an answer soon").unwrap();
    assert_eq!(&head, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let server = impatient().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let requests = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    let write = async { while stream.write_all(&requests).await.is_ok() {} };
    tokio::time::timeout(SOON, write).await.expect("the end of the connection");
    // One that reads gets the same whole.
    let mut connection = server.open_head("GET", "/openapi.json", &[]).await;
    assert_eq!(connection.answer().await.status, 200);
}

#[tokio::test]
async fn a_stream_without_news_is_not_cut_off() {
    let server = impatient().await;
    let accepted = server.post("/evaluate?wait=false", &contract_named(HANG)).await.json();
    let path = format!("/jobs/{}/events", accepted["job_id"].as_str().unwrap());
    let Connection(mut stream) = server.open_head("GET", &path, &[]).await;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    for _ in 0..3 {
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        closed(&mut idle).await;
    }
    server.service.release.add_permits(1);
    let rest = String::from_utf8(closed(&mut stream).await).unwrap();
    assert!(rest.contains("event: progress") || rest.contains("event: end"), "{rest}");
}
