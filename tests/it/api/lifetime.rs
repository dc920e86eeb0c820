use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fake::{FakeService, HANG};
use super::http::{Connection, Server, config, contract_named};

/// Starts an evaluation that runs until it is released.
async fn running(server: &Server) -> Connection {
    let connection = server.open("POST", "/evaluate", &[], contract_named(HANG)).await;
    let mut started = server.service.started.subscribe();
    started.wait_for(|count| *count == 1).await.unwrap();
    connection
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_evaluation() {
    let server = Server::start().await;
    let connection = running(&server).await;
    let mut cancelled = server.service.cancelled.subscribe();
    assert_eq!(*cancelled.borrow(), 0);
    drop(connection);
    cancelled.wait_for(|count| *count == 1).await.unwrap();
}

#[tokio::test]
async fn shutdown_lets_running_requests_end() {
    let server = Server::start().await;
    let address = server.address;
    let service = server.service.clone();
    let mut connection = running(&server).await;
    let stopping = tokio::spawn(server.stop());
    // The listener is gone before the request ends.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished());
    service.release.add_permits(1);
    assert_eq!(connection.answer().await.status, 200);
    stopping.await.unwrap();
    assert_eq!(*service.cancelled.borrow(), 0);
}

#[tokio::test]
async fn shutdown_fails_what_outlasts_the_grace() {
    let mut config = config();
    config.shutdown_grace_s = 0.05;
    let server = Server::with(config, FakeService::new()).await;
    let service = server.service.clone();
    let mut connection = running(&server).await;
    server.stop().await;
    connection.answer().await.expect_error(503, "shutting_down");
    assert_eq!(*service.cancelled.borrow(), 1);
}

#[tokio::test]
async fn shutdown_closes_idle_connections_at_once() {
    let server = Server::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    idle.write_all(request).await.unwrap();
    let mut byte = [0];
    idle.read_exact(&mut byte).await.unwrap();
    server.stop().await;
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(rest.starts_with(b"TTP/1.1 200"));
}

#[tokio::test]
async fn connections_are_kept_alive_between_requests() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..3 {
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}}") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
}
