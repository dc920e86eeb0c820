//! A server on a free port, and a minimal HTTP client that can send anything.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use warpgauge_api::{ServeError, serve};
use warpgauge_config::{Config, DEFAULT_TOML, ServerConfig};

use super::fake::FakeService;

/// The example contract.
pub const CONTRACT: &str = include_str!("contract.json");

/// The example contract with a kernel of this name, which tells the fake service what to do.
pub fn contract_named(name: &str) -> String {
    let mut contract: Value = serde_json::from_str(CONTRACT).unwrap();
    contract["kernel"]["metadata"]["kernel_name"] = name.into();
    contract.to_string()
}

pub fn config() -> ServerConfig {
    let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
    config.server.port = 0;
    config.server
}

pub struct Server {
    pub address: SocketAddr,
    pub service: Arc<FakeService>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    pub async fn start() -> Self {
        Self::with(config(), FakeService::new()).await
    }

    pub async fn with(config: ServerConfig, service: FakeService) -> Self {
        let service = Arc::new(service);
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, address) = oneshot::channel();
        let serving = tokio::spawn({
            let service = Arc::clone(&service);
            async move {
                let shutdown = async {
                    let _ = stopped.await;
                };
                serve(&config, service.services(), shutdown, |address| bound.send(address).unwrap())
                    .await
            }
        });
        Self { address: address.await.unwrap(), service, stop, serving }
    }

    /// Asks the server to go down; resolves when it has.
    pub fn stop(self) -> impl Future<Output = ()> {
        self.stop.send(()).unwrap();
        async { self.serving.await.unwrap().unwrap() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &["content-type: application/json"], body).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let mut connection = self.open(method, path, headers, body).await;
        connection.answer().await
    }

    /// Sends a request and does not wait for the answer. A body is JSON, if its headers do not say.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: impl AsRef<[u8]>,
    ) -> Connection {
        let length = format!("content-length: {}", body.as_ref().len());
        let mut headers = [headers, &[length.as_str()]].concat();
        let typed = headers.iter().any(|header| header.starts_with("content-type"));
        if !typed && !body.as_ref().is_empty() {
            headers.push("content-type: application/json");
        }
        let mut connection = self.open_head(method, path, &headers).await;
        connection.0.write_all(body.as_ref()).await.unwrap();
        connection
    }

    /// Sends the head of a request.
    pub async fn open_head(&self, method: &str, path: &str, headers: &[&str]) -> Connection {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        Connection(stream)
    }
}

pub struct Connection(pub TcpStream);

impl Connection {
    pub async fn answer(&mut self) -> Answer {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).await.unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            headers: head.lines().skip(1).map(str::to_owned).collect(),
            body: bytes.split_off(end + 4),
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Asserts status and code, and that the error has the common shape.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status, body["code"].as_str()), (status, Some(code)), "{body}");
        let who = if status < 500 && status != 404 { "client_error" } else { "error" };
        assert_eq!(body["status"], who, "{body}");
        assert!(body["error"].as_str().is_some_and(|text| text.len() > 10), "{body}");
        body
    }
}
