//! A stand-in for the part of GitHub's API that comments on pull requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The server; it answers until the process ends.
pub(super) struct GitHub {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    comments: Vec<Value>,
    /// Whether the token may write.
    may_write: bool,
    requests: Vec<String>,
}

impl GitHub {
    pub(super) fn start(may_write: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { may_write, ..State::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &shared);
            }
        });
        Self { url, state }
    }

    /// Adds a comment by another author.
    pub(super) fn add(&self, login: &str, kind: &str, body: &str) {
        self.state.lock().unwrap().add(login, kind, body);
    }

    /// Authors and texts of the comments.
    pub(super) fn comments(&self) -> Vec<(String, String)> {
        let state = self.state.lock().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        state.comments.iter().map(|one| (text(&one["user"]["login"]), text(&one["body"]))).collect()
    }

    /// Method and path of each request.
    pub(super) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }
}

impl State {
    fn add(&mut self, login: &str, kind: &str, body: &str) {
        let id = 1_000 + self.comments.len();
        let user = json!({"login": login, "type": kind});
        self.comments.push(json!({"id": id, "user": user, "body": body}));
    }

    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let comments = "/repos/o/r/issues/7/comments";
        let query = path.strip_prefix(comments).and_then(|rest| rest.strip_prefix('?'));
        match (method, query) {
            ("GET", Some(query)) => {
                let parameter = |name: &str| -> usize {
                    let found = query.split('&').find_map(|one| one.strip_prefix(name));
                    found.unwrap().strip_prefix('=').unwrap().parse().unwrap()
                };
                let (size, page) = (parameter("per_page"), parameter("page"));
                let shown = self.comments.iter().skip(size * (page - 1)).take(size);
                (200, shown.cloned().collect())
            }
            // As for the token of a workflow.
            ("GET", None) => (403, json!({"message": "Resource not accessible by integration"})),
            _ if !self.may_write => (403, json!({"message": "Resource not accessible"})),
            ("POST", _) => {
                assert_eq!(path, comments);
                self.add("github-actions[bot]", "Bot", body["body"].as_str().unwrap());
                (201, json!({}))
            }
            ("PATCH", _) => {
                let id = path.strip_prefix("/repos/o/r/issues/comments/").unwrap();
                let id: u64 = id.parse().unwrap();
                let found = self.comments.iter_mut().find(|one| one["id"] == id).unwrap();
                found["body"] = body["body"].clone();
                (200, json!({}))
            }
            _ => panic!("{method} {path}"),
        }
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length, mut token) = (String::new(), 0, false);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => token = value == "Bearer secret-token",
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut state = state.lock().unwrap();
    state.requests.push(format!("{method} {path}"));
    let (status, answer) =
        if token { state.answer(method, path, &body) } else { (401, json!({"message": "no"})) };
    drop(state);
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes())).unwrap();
}
