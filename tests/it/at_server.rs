//! `eval`, `compare` and `sweep` at a server: their progress, the end of a job with its command,
//! and the continuation after a restart of the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::contracts::{endless, increment};
use crate::openmetrics;
use crate::server::{Server, data_directory, until};
use crate::support::{next_request, outcome, warpgauge};

/// A command at a server, under way.
struct Client {
    child: Child,
    news: BufReader<ChildStderr>,
    /// What standard error had so far.
    heard: String,
    _files: tempfile::TempDir,
}

impl Client {
    /// Starts a command with a contract at a server.
    fn start(command: &str, contract: &Value, url: &str, flags: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let path = files.path().join("contract.json");
        std::fs::write(&path, contract.to_string()).unwrap();
        let arguments = [&[command, path.to_str().unwrap(), "--server", url], flags].concat();
        let mut command = warpgauge(files.path(), &arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let news = BufReader::new(child.stderr.take().unwrap());
        Self { child, news, heard: String::new(), _files: files }
    }

    /// Reads on until a line has this text.
    fn hears(&mut self, text: &str) {
        loop {
            let begin = self.heard.len();
            let read = self.news.read_line(&mut self.heard).unwrap();
            assert_ne!(read, 0, "it ended without {text:?}: {}", self.heard);
            if self.heard[begin..].contains(text) {
                return;
            }
        }
    }

    fn interrupt(&self) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    /// Exit code, standard output, standard error.
    fn end(mut self) -> (i32, String, String) {
        let (code, out, _) = {
            let mut rest = String::new();
            self.news.read_to_string(&mut rest).unwrap();
            self.heard.push_str(&rest);
            outcome(self.child.wait_with_output().unwrap())
        };
        (code, out, self.heard)
    }
}

/// A kernel that keeps the device until it is cancelled.
fn occupied(server: &Server) -> String {
    let jobs = json!({"jobs": [{"request": endless(100.0), "label": "blocker"}]});
    let answer = server.post_json("/jobs", &jobs);
    assert_eq!(answer.status, 202, "{}", answer.text);
    let id = answer.json["jobs"][0]["job_id"].as_str().unwrap().to_owned();
    until("it runs", || {
        (server.get(&format!("/jobs/{id}")).json["state"] == "profiling").then_some(())
    });
    id
}

/// Jobs at a server other than the one that keeps the device.
fn jobs(server: &Server) -> Vec<Value> {
    let list = server.get("/jobs?limit=200");
    assert_eq!(list.status, 200, "{}", list.text);
    let jobs = list.json["jobs"].as_array().unwrap().iter();
    jobs.filter(|job| job["label"] != "blocker").cloned().collect()
}

fn free(server: &Server, blocker: &str) {
    assert_eq!(server.delete(&format!("/jobs/{blocker}")).status, 200);
}

/// An address that stays while servers come and go behind it.
struct Address {
    url: String,
    behind: Arc<Mutex<Option<String>>>,
}

impl Address {
    fn of(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behind = Arc::new(Mutex::new(None));
        let place = Arc::clone(&behind);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let place = place.lock().unwrap().clone();
                // Without a server the connection ends at once.
                let Some(far) = place.and_then(|place| TcpStream::connect(place).ok()) else {
                    continue;
                };
                copy(near.try_clone().unwrap(), far.try_clone().unwrap());
                copy(far, near);
            }
        });
        let address = Self { url, behind };
        address.leads_to(Some(server));
        address
    }

    fn leads_to(&self, server: Option<&Server>) {
        let place = server.map(|server| server.url.trim_start_matches("http://").to_owned());
        *self.behind.lock().unwrap() = place;
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        // However it ends, both sides are told.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = from.shutdown(std::net::Shutdown::Both);
    });
}

#[test]
fn the_news_of_a_job_are_shown_and_the_report_is_the_stored_one() {
    let server = Server::start();
    let blocker = occupied(&server);
    let files = tempfile::tempdir().unwrap();
    let outputs = files.path().join("out");
    let flags = ["--json", "--return-outputs", outputs.to_str().unwrap()];
    let mut client = Client::start("eval", &increment(), &server.url, &flags);
    client.hears("warpgauge: waiting for a device");
    free(&server, &blocker);
    let (code, out, heard) = client.end();
    assert_eq!(code, 0, "{heard}");
    assert!(heard.starts_with(&format!("warpgauge: evaluating at {}\n", server.url)), "{heard}");
    assert!(!heard.contains(['\r', '\x1b']), "{heard:?}");
    let after = heard.split_once("verifying").map_or("", |(_, after)| after);
    assert!(!after.contains("waiting"), "news do not go back: {heard}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let job = server.get(&format!("/jobs/{}", report["job_id"].as_str().unwrap())).json;
    assert!(report["outputs"]["out"]["data_b64"].is_string(), "{report}");
    assert_eq!(job["result"], report);
    assert_eq!(jobs(&server).len(), 1);
    assert!(outputs.join("out.npy").is_file());
}

#[test]
fn a_job_is_found_by_its_key_by_its_owner_alone() {
    let data = data_directory();
    let keys = [("WARPGAUGE_API_KEYS", "one,two"), ("WARPGAUGE_ADMIN_KEYS", "root")];
    let server = Server::start_in(data.path(), &[], &keys);
    let body = increment().to_string();
    let mut ids = Vec::new();
    for key in ["one", "two", "root"] {
        let headers =
            [("content-type", "application/json"), ("x-api-key", key), ("idempotency-key", "same")];
        let answer = server.post("/evaluate", &headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text);
        ids.push(answer.json["job_id"].clone());
    }
    for (key, id) in ["one", "two", "root"].into_iter().zip(&ids) {
        let found = |query: &str| {
            let list = server.get_with(&format!("/jobs?{query}"), &[("x-api-key", key)]);
            assert_eq!(list.status, 200, "{}", list.text);
            list.json["jobs"].as_array().unwrap().clone()
        };
        let jobs = found("idempotency_key=same");
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        assert_eq!((&jobs[0]["job_id"], &jobs[0]["idempotency_key"]), (id, &json!("same")));
        assert!(found("idempotency_key=other").is_empty());
        assert!(found("idempotency_key=same&state=queued").is_empty());
    }
}

#[test]
fn an_interrupted_command_cancels_its_job() {
    let server = Server::start();
    let mut client = Client::start("eval", &endless(100.0), &server.url, &["--json"]);
    client.hears("warpgauge: running on the device");
    client.interrupt();
    let (code, out, heard) = client.end();
    assert_eq!((code, out.as_str()), (130, ""), "{heard}");
    let job = jobs(&server).remove(0);
    let id = job["job_id"].as_str().unwrap();
    let told = format!("warpgauge: cancelled job {id} at {}\n", server.url);
    assert!(heard.contains(&told), "{heard}");
    assert_eq!(server.get(&format!("/jobs/{id}")).json["state"], "cancelled");
}

/// Kills a server and, once the client has noticed, starts another on its data at the same address.
fn killed_and_back(server: Server, data: &Path, address: &Address, client: &mut Client) -> Server {
    address.leads_to(None);
    server.kill();
    client.hears("asking for the job again");
    let server = Server::start_in(data, &[], &[]);
    address.leads_to(Some(&server));
    server
}

#[test]
fn a_server_that_restarts_has_the_job_still() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let address = Address::of(&server);
    let blocker = occupied(&server);
    let mut client = Client::start("eval", &increment(), &address.url, &[]);
    client.hears("warpgauge: waiting for a device");
    let server = killed_and_back(server, data.path(), &address, &mut client);
    free(&server, &blocker);
    let (code, out, heard) = client.end();
    assert_eq!(code, 0, "{heard}");
    assert!(out.starts_with("CORRECT  increment: "), "{out}");
    let jobs = jobs(&server);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0]["state"], "completed");
}

#[test]
fn a_sweep_has_every_row_once_also_after_a_restart() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let address = Address::of(&server);
    let blocker = occupied(&server);
    let mut sweep = increment();
    sweep["axes"] = json!({"n": [64, 128, 192]});
    sweep["kernel"]["io"]["args"][2]["value"] = json!("$n");
    sweep.as_object_mut().unwrap().remove("expected");
    let mut client = Client::start("sweep", &sweep, &address.url, &[]);
    client.hears("warpgauge: 3 points");
    // Who watches its news knows the job.
    until("its news are watched", || {
        let families = openmetrics::parse(&server.get("/metrics").text);
        (families["warpgauge_event_watchers"].value("", &[]) > 0.0).then_some(())
    });
    let server = killed_and_back(server, data.path(), &address, &mut client);
    free(&server, &blocker);
    let (code, out, heard) = client.end();
    assert_eq!(code, 0, "{heard}");
    let rows: Vec<&str> =
        out.lines().filter_map(|line| line.split_whitespace().next()).take(4).collect();
    assert_eq!(rows, ["n", "64", "128", "192"], "{out}");
    assert!(out.contains("3 points in "), "{out}");
    assert_eq!(jobs(&server).len(), 1);
}

#[test]
fn a_server_that_stays_away_leaves_the_jobs_name() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let address = Address::of(&server);
    occupied(&server);
    let flags = ["--patience", "0.6", "--json"];
    let mut client = Client::start("eval", &increment(), &address.url, &flags);
    client.hears("warpgauge: waiting for a device");
    let id = jobs(&server).remove(0)["job_id"].as_str().unwrap().to_owned();
    address.leads_to(None);
    server.kill();
    let (code, out, heard) = client.end();
    assert_eq!(code, 1, "{heard}");
    assert!(out.contains("\"exit_code\":1") && out.contains(&id), "{out}");
    let url = &address.url;
    for text in [
        format!("error: job {id} is at {url}, which does not answer"),
        format!("`warpgauge jobs wait {id} --server {url}`"),
        format!("`warpgauge jobs show {id} --server {url}`"),
    ] {
        assert!(heard.contains(&text), "{text}\n{heard}");
    }
}

/// A server of before jobs could be found: it answers once somebody has looked for one.
#[test]
fn an_older_server_is_waited_for_and_that_is_said() {
    for (status, listed) in
        [("404 Not Found", json!({"error": "no such operation"})), ("200 OK", someone_elses())]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let report = json!({
            "job_id": "job-7", "status": "success",
            "kernel_exec_result": {"compiled": true, "correctness": true, "metadata": {}},
            "timings": {"queue": 0.0, "compile": 1.0, "h2d": 0.0, "execute": 2.0,
                        "device_busy": 1.0, "d2h": 0.0, "verify": 0.0, "total": 3.0},
            "validation": {"status": "passed"},
        });
        let (heard, hears) = std::sync::mpsc::channel();
        let stub = std::thread::spawn(move || {
            // The client looks for its job while it sends the request: on a busy machine either comes first.
            let (mut requests, mut looks): (Vec<_>, Vec<_>) = [asked(&listener), asked(&listener)]
                .into_iter()
                .partition(|(_, head)| head.starts_with("POST /evaluate "));
            let ((request, _), (look, head)) =
                (requests.pop().expect("a request"), looks.pop().expect("a look"));
            assert!(head.starts_with("GET /jobs?"), "{head}");
            answer(&look, status, &listed);
            hears.recv().unwrap();
            answer(&request, "200 OK", &report);
        });
        let mut client = Client::start("eval", &increment(), &url, &[]);
        client.hears("warpgauge: this server is older and reports no progress");
        heard.send(()).unwrap();
        stub.join().unwrap();
        let (code, out, heard) = client.end();
        assert_eq!(code, 0, "{heard}");
        assert!(out.starts_with("CORRECT"), "{out}");
    }
}

/// The list of a server that takes no notice of the key.
fn someone_elses() -> Value {
    let job = json!({"job_id": "another", "kind": "evaluate", "state": "profiling", "priority": 0,
                     "attempt": 1, "created_at": 0.0});
    json!({"jobs": [job]})
}

/// The next request, and its head.
fn asked(listener: &TcpListener) -> (TcpStream, String) {
    let (stream, _) = listener.accept().unwrap();
    let (head, _) = next_request(&stream);
    (stream, head)
}

fn answer(mut stream: &TcpStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

#[test]
fn reading_the_history_is_no_work_at_the_store() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    server.evaluate(&increment());
    let history = |directory: &Path| {
        let mut command = warpgauge(directory, &["history", "--json"]);
        outcome(command.env("WARPGAUGE_DATA_DIR", directory).output().unwrap())
    };
    let locks = || std::fs::read_dir(data.path().join("instances")).unwrap().count();
    let before = locks();
    let (code, out, error) = history(data.path());
    assert_eq!(code, 0, "{error}");
    assert!(serde_json::from_str::<Value>(&out).unwrap()["series"].is_array(), "{out}");
    assert_eq!(locks(), before);
    // Where there is nothing, nothing is made.
    let empty = tempfile::tempdir().unwrap();
    let (code, out, error) = history(empty.path());
    assert_eq!(code, 0, "{error}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["series"], json!([]));
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}
