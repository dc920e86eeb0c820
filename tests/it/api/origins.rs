//! Requests that the web page of another site can have a browser send to a server without keys.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fake::FakeService;
use super::http::{CONTRACT, Connection, Server, config};

/// The answer to a request with this first line and these headers, and no body.
async fn raw(server: &Server, line: &str, headers: &[&str]) -> super::http::Answer {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let head = format!("{line}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    Connection(stream).answer().await
}

async fn keyed(allowed: &[&str]) -> Server {
    let mut config = config();
    config.api_keys = vec!["key".into()];
    config.allowed_hosts = allowed.iter().map(|name| (*name).to_owned()).collect();
    Server::with(config, FakeService::new()).await
}

#[tokio::test]
async fn a_name_that_was_made_to_point_here_is_refused_on_every_route() {
    let server = Server::start().await;
    for (method, path) in [
        ("GET", "/health"),
        ("GET", "/live"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/jobs"),
        ("POST", "/evaluate"),
        ("DELETE", "/jobs/1"),
        ("POST", "/admin/cleanup-jobs"),
        ("OPTIONS", "/evaluate"),
        ("GET", "/nothing"),
    ] {
        let line = format!("{method} {path} HTTP/1.1");
        let answer = raw(&server, &line, &["host: evil.example:8000"]).await;
        let error = answer.expect_error(403, "unknown_host");
        let told = error["error"].as_str().unwrap();
        assert!(told.contains("server.allowed_hosts"), "{error}");
        assert!(told.contains("export WARPGAUGE_ALLOWED_HOSTS="), "{error}");
        assert_eq!(answer.header("x-gpu-type"), None, "{line}");
    }
    let own = format!("host: {}", server.address);
    for host in
        ["host: localhost", "host: LOCALHOST:9000", "host: [::1]:1", "host: 127.0.0.9", &own]
    {
        assert_eq!(raw(&server, "GET /health HTTP/1.1", &[host]).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn requests_that_name_no_host_or_several_are_malformed() {
    let server = Server::start().await;
    let line = "GET /health HTTP/1.1";
    for headers in [
        &[][..],
        &["host:"],
        &["host: local host"],
        &["host: localhost@evil.example"],
        &["host: localhost", "host: localhost"],
        &["host: localhost", "host: evil.example"],
    ] {
        raw(&server, line, headers).await.expect_error(400, "invalid_host");
    }
    // A target that is a whole URL says where the request goes, whatever `Host` says.
    let target = "GET http://evil.example/health HTTP/1.1";
    raw(&server, target, &["host: localhost"]).await.expect_error(403, "unknown_host");
    let target = "GET http://localhost/health HTTP/1.1";
    raw(&server, target, &["host: evil.example"]).await.expect_error(403, "unknown_host");
    assert_eq!(raw(&server, target, &["host: localhost"]).await.status, 200);
    // Old health checks have none; browsers do not speak this version.
    assert_eq!(raw(&server, "GET /health HTTP/1.0", &[]).await.status, 200);
    let old = raw(&server, "GET /health HTTP/1.0", &["host: evil.example"]).await;
    old.expect_error(403, "unknown_host");
}

#[tokio::test]
async fn pages_of_other_sites_can_neither_run_nor_read_nor_delete() {
    let server = Server::start().await;
    let own = format!("origin: http://localhost:{}", server.address.port());
    let host = format!("host: localhost:{}", server.address.port());
    for foreign in [
        "origin: http://evil.example",
        "origin: null",
        "origin: http://localhost:1",
        "origin: http://localhost.evil.example",
        "origin:",
        "sec-fetch-site: cross-site",
        "sec-fetch-site: same-site",
    ] {
        for line in [
            "GET /jobs HTTP/1.1",
            "POST /admin/cleanup-jobs HTTP/1.1",
            "DELETE /jobs/1 HTTP/1.1",
            "OPTIONS /evaluate HTTP/1.1",
        ] {
            let answer = raw(&server, line, &[&host, foreign]).await;
            answer.expect_error(403, "foreign_origin");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let headers = ["content-type: application/json", "origin: http://evil.example"];
    let answer = server.send("POST", "/evaluate", &headers, CONTRACT).await;
    answer.expect_error(403, "foreign_origin");
    assert_eq!(*server.service.started.borrow(), 0);
    // Its own pages, tools, and somebody who follows a link.
    for headers in [
        &[host.as_str(), own.as_str()][..],
        &[&host, &own, "sec-fetch-site: same-origin"],
        &[&host, "sec-fetch-site: none", "sec-fetch-mode: navigate"],
        &[&host],
        &[
            &host,
            "sec-fetch-site: cross-site",
            "sec-fetch-mode: navigate",
            "sec-fetch-dest: document",
        ],
    ] {
        let answer = raw(&server, "GET /docs HTTP/1.1", headers).await;
        assert_eq!(answer.status, 200, "{headers:?}");
    }
    let framed =
        ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: iframe"];
    let answer =
        raw(&server, "GET /docs HTTP/1.1", &[&[host.as_str()], &framed[..]].concat()).await;
    answer.expect_error(403, "foreign_origin");
    let two = [&host, &own, "origin: http://evil.example"];
    raw(&server, "GET /jobs HTTP/1.1", &two).await.expect_error(403, "foreign_origin");
}

#[tokio::test]
async fn listed_names_are_the_servers_too() {
    let mut config = config();
    config.allowed_hosts = vec!["gpu.example.org".into()];
    let server = Server::with(config, FakeService::new()).await;
    let line = "GET /jobs HTTP/1.1";
    let page = ["host: gpu.example.org", "origin: https://gpu.example.org"];
    assert_eq!(raw(&server, line, &page).await.status, 200);
    // A proxy that asks by the server's address.
    let proxied = ["host: 127.0.0.1:8000", "origin: https://gpu.example.org"];
    assert_eq!(raw(&server, line, &proxied).await.status, 200);
    let other = ["host: gpu.example.org", "origin: https://other.example.org"];
    raw(&server, line, &other).await.expect_error(403, "foreign_origin");
    raw(&server, line, &["host: other.example.org"]).await.expect_error(403, "unknown_host");
}

#[tokio::test]
async fn with_keys_names_count_only_where_they_are_listed() {
    let server = keyed(&[]).await;
    let request = ["host: anything.example", "origin: http://evil.example", "x-api-key: key"];
    assert_eq!(raw(&server, "GET /jobs HTTP/1.1", &request).await.status, 200);
    let keyless = raw(&server, "GET /jobs HTTP/1.1", &request[..2]).await;
    keyless.expect_error(401, "unauthorized");
    let server = keyed(&["gpu.example.org"]).await;
    let answer = raw(&server, "GET /jobs HTTP/1.1", &request).await;
    answer.expect_error(403, "unknown_host");
    let answer = raw(&server, "GET /jobs HTTP/1.1", &["host: gpu.example.org", request[2]]).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn who_is_refused_with_a_body_under_way_sees_why() {
    let server = Server::start().await;
    let headers = ["origin: http://evil.example", "content-length: 30000000"];
    let mut connection = server.open_head("POST", "/evaluate", &headers).await;
    let (mut reader, mut writer) = connection.0.split();
    let send = async {
        let piece = vec![b' '; 1 << 20];
        for _ in 0..28 {
            if writer.write_all(&piece).await.is_err() {
                break;
            }
        }
    };
    let mut head = [0; 12];
    let (read, ()) = tokio::join!(reader.read_exact(&mut head), send);
    read.unwrap();
    assert_eq!(&head, b"HTTP/1.1 403");
}
