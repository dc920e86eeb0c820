//! A minimal agent for the protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::server::{Server, device, program};

/// An agent over HTTP, in a session.
#[derive(Clone)]
pub struct Agent {
    http: ureq::Agent,
    url: String,
    key: Option<String>,
    session: Option<String>,
}

/// What came back: the status, and every message.
pub struct Heard {
    pub status: u16,
    pub messages: Vec<Value>,
    pub text: String,
    session: Option<String>,
}

impl Heard {
    /// The answer to the request.
    #[track_caller]
    pub fn result(&self) -> &Value {
        let last = self.messages.last().unwrap_or_else(|| panic!("{}: {}", self.status, self.text));
        last.get("result").unwrap_or_else(|| panic!("{last}"))
    }

    /// The message and code of the error that is the answer.
    #[track_caller]
    pub fn error(&self) -> (i64, &str) {
        let error = &self.messages.last().unwrap_or_else(|| panic!("{}", self.text))["error"];
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap())
    }
}

impl Agent {
    /// Begins a session.
    pub fn begin(server: &Server, key: Option<&str>) -> Self {
        let mut agent = Self::without_session(server, key);
        let heard = agent.send(&initialize());
        assert_eq!(heard.status, 200, "{}", heard.text);
        agent.session = heard.session;
        assert!(agent.session.is_some());
        let begun = agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(begun.status, 202, "{}", begun.text);
        agent
    }

    pub fn without_session(server: &Server, key: Option<&str>) -> Self {
        let http = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let (url, key) = (format!("{}/mcp", server.url), key.map(str::to_owned));
        Self { http, url, key, session: None }
    }

    /// The same session, used by somebody else.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub fn send(&self, message: &Value) -> Heard {
        let mut request = self
            .http
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        for (name, value) in [("X-API-Key", &self.key), ("Mcp-Session-Id", &self.session)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let mut response = request.send(message.to_string()).unwrap();
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|id| id.to_str().unwrap().to_owned());
        let text = response.body_mut().read_to_string().unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let messages = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
        Heard { status: response.status().as_u16(), messages, text, session }
    }

    pub fn ask(&self, method: &str, params: Value) -> Heard {
        self.send(&request(7, method, params))
    }

    /// The structured answer of a tool; its text must be what agents get.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        let heard = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer(heard.result())
    }
}

pub fn initialize() -> Value {
    let client = json!({"name": "test", "version": "0"});
    request(
        1,
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
    )
}

pub fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The structured answer of a tool, with its text beside it.
#[track_caller]
pub fn answer(result: &Value) -> Value {
    let mut answer = result["structuredContent"].clone();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.len() < 5000, "{text}");
    answer["text"] = text.into();
    answer["is_error"] = result["isError"].clone();
    answer
}

/// An agent that has started the program itself.
pub struct OwnServer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl OwnServer {
    /// Begins a session with `warpgauge mcp` and these arguments.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = program()
            .args(["mcp", "--device", &device()])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut own = Self { child, input, output };
        own.send(&initialize());
        assert_eq!(own.hear()["result"]["serverInfo"]["name"], "warpgauge");
        own.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        own
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// The next message: nothing else stands on standard output.
    #[track_caller]
    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.send(&request(9, "tools/call", json!({"name": tool, "arguments": arguments})));
        loop {
            let message = self.hear();
            if message["id"] == 9 {
                return answer(&message["result"]);
            }
        }
    }

    /// Closes standard input; the exit code.
    pub fn end(mut self) -> i32 {
        self.input.take();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // Of one that has ended nobody is left to be told.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
