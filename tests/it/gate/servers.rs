//! The gate at a server: one that is there, one that is full, one that goes away.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use super::*;
use crate::server::{Server, root};

#[test]
fn directories_and_servers_serve_as_well() {
    if !emulated() {
        return;
    }
    let (old, new) = (Repository::new(), Repository::new());
    new.change(MORE);
    let server = Server::start();
    let baseline = old.path().join("perf");
    let address = server.url.clone();
    let reports = tempfile::tempdir().unwrap();
    let out = reports.path().join("deep/er");
    let (exit, stdout, stderr) = new.gate(&[
        "--baseline",
        baseline.to_str().unwrap(),
        "--server",
        &address,
        "--report",
        out.to_str().unwrap(),
    ]);
    assert_eq!(exit, 2, "{stdout}\n{stderr}");
    assert!(stdout.contains("REGRESSION") && stdout.contains("Exact counts"), "{stdout}");
    // Not a terminal: a line per case.
    assert!(stderr.contains("warpgauge: 1 of 1: repeat"), "{stderr}");
    let mut files: Vec<_> =
        std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    let expected = [
        "benchmark.json",
        "bmf.json",
        "comment.md",
        "gate.csv",
        "gate.html",
        "gate.json",
        "junit.xml",
    ];
    assert_eq!(files, expected);
    let schema: Value = serde_json::from_str(
        &std::fs::read_to_string(root().join("openapi/gate-report.schema.json")).unwrap(),
    )
    .unwrap();
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("gate.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(report["baseline"]["kind"], "directory");
    for file in ["comment.md", "junit.xml", "gate.html"] {
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains("emulated device"), "{file} does not say what it rests on");
    }
}

/// What stands between the gate and a server.
struct Gateway {
    listener: TcpListener,
    server: Server,
}

impl Gateway {
    fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap(), server: Server::start() }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    /// The next request.
    fn next(&self) -> (TcpStream, Vec<u8>) {
        let (stream, _) = self.listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ends early");
        }
        assert!(head.starts_with("POST /compare "), "{head}");
        let lengths = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
        });
        let mut body = vec![0; lengths.expect("a length")];
        reader.read_exact(&mut body).unwrap();
        (stream, body)
    }

    fn answer(&self, mut stream: TcpStream, body: &[u8]) {
        let answer = self.server.post("/compare", &[("Content-Type", "application/json")], body);
        reply(&mut stream, "200 OK", "", &answer.text);
    }

    /// Passes the next request on.
    fn pass(&self) {
        let (stream, body) = self.next();
        self.answer(stream, &body);
    }

    /// Refuses the next request as a server does that has no place.
    fn refuse(&self, status: &str) {
        let (mut stream, _) = self.next();
        let text = r#"{"error": "no place", "code": "queue_full"}"#;
        reply(&mut stream, status, "Retry-After: 0\r\n", text);
    }

    /// Takes the next request and goes down.
    fn hang_up(&self) {
        drop(self.next());
    }
}

fn reply(stream: &mut TcpStream, status: &str, more: &str, text: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
}

/// A repository with three cases, all of them unchanged.
fn three_cases() -> Repository {
    let repository = Repository::new();
    let more = |name: &str| format!("  - {{name: {name}, contract: k/contract.yaml}}\n");
    let suite = format!("{SUITE}{}{}", more("second"), more("third"));
    repository.write("perf/suite.yaml", &suite);
    repository.commit("three cases");
    repository
}

fn outcomes(report: &Value) -> Vec<&str> {
    let cases = report["cases"].as_array().unwrap();
    cases.iter().map(|case| case["outcome"].as_str().unwrap()).collect()
}

#[test]
fn a_server_that_goes_away_half_way_is_an_error_that_keeps_what_was_measured() {
    if !emulated() {
        return;
    }
    let repository = three_cases();
    let gateway = Gateway::new();
    let url = gateway.url();
    let passing = std::thread::spawn(move || {
        let (stream, body) = gateway.next();
        // Nobody listens any more once the answer is there.
        let Gateway { listener, server } = gateway;
        drop(listener);
        let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
        Gateway { listener: elsewhere, server }.answer(stream, &body);
    });
    let (exit, stdout, stderr) = repository.gate(&[
        "--baseline",
        "HEAD",
        "--server",
        &url,
        "--json",
        "--quiet",
        "--patience",
        "0",
    ]);
    passing.join().unwrap();
    assert_eq!(exit, 1, "{stdout}\n{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(outcomes(&report), ["PASS", "ERROR", "ERROR"]);
    let detail = |index: usize| report["cases"][index]["detail"].as_str().unwrap();
    assert!(detail(1).contains("no server answers"), "{}", detail(1));
    assert!(detail(2).contains("not measured, because"), "{}", detail(2));
}

#[test]
fn a_server_that_is_full_or_restarts_is_asked_again() {
    if !emulated() {
        return;
    }
    let repository = three_cases();
    let gateway = Gateway::new();
    let url = gateway.url();
    let passing = std::thread::spawn(move || {
        gateway.refuse("429 Too Many Requests");
        gateway.pass();
        gateway.refuse("503 Service Unavailable");
        gateway.hang_up();
        gateway.pass();
        gateway.pass();
    });
    let (exit, stdout, stderr) =
        repository.gate(&["--baseline", "HEAD", "--server", &url, "--json"]);
    passing.join().unwrap();
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    assert_eq!(outcomes(&serde_json::from_str(&stdout).unwrap()), ["PASS"; 3]);
    assert_eq!(stderr.matches("trying again").count(), 3, "{stderr}");
    // Where nobody has patience, it is an error that says why.
    let gateway = Gateway::new();
    let url = gateway.url();
    let refusing = std::thread::spawn(move || gateway.refuse("429 Too Many Requests"));
    let (exit, _, stderr) =
        repository.gate(&["--baseline", "HEAD", "--server", &url, "--patience", "0"]);
    refusing.join().unwrap();
    assert!(exit == 1 && stderr.contains("no place"), "{exit} {stderr}");
}

#[test]
fn the_run_goes_on_when_a_server_comes_back() {
    if !emulated() {
        return;
    }
    let repository = three_cases();
    let gateway = Gateway::new();
    let (url, address) = (gateway.url(), gateway.listener.local_addr().unwrap());
    let mut command = repository.command(&["--baseline", "HEAD", "--server", &url, "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    gateway.pass();
    let Gateway { listener, server } = gateway;
    // It may have connected already: that connection breaks.
    drop(listener);
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    let met = messages.find(|line| line.as_ref().unwrap().contains("no server answers"));
    assert!(met.is_some(), "the gate ended without waiting");
    let gateway = Gateway { listener: TcpListener::bind(address).unwrap(), server };
    gateway.pass();
    gateway.pass();
    let rest = std::thread::spawn(move || messages.map(Result::unwrap).collect::<Vec<_>>());
    let (exit, stdout, _) = outcome(child.wait_with_output().unwrap());
    assert_eq!(exit, 0, "{stdout}\n{:?}", rest.join().unwrap());
    assert_eq!(outcomes(&serde_json::from_str(&stdout).unwrap()), ["PASS"; 3]);
}
