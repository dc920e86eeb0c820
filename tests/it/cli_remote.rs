//! `eval` and `compile` at a server, which is a stub that answers one request as the test
//! prescribes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::support::{outcome, warpgauge};

/// A request as a server sees it.
struct Seen {
    head: String,
    body: Value,
}

/// Answers one request with this status line, headers and body, and gives back the request.
fn serve_once(status: &str, headers: &str, body: String) -> (String, JoinHandle<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let server = std::thread::spawn(move || {
        let (stream, head) = loop {
            let (stream, _) = listener.accept().unwrap();
            let head = head_of(&mut BufReader::with_capacity(1, &stream));
            if !head.starts_with("GET /jobs") {
                break (stream, head);
            }
            // The client looks for its job where the request takes a while to be sent.
            let none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            (&stream).write_all(none.as_bytes()).unwrap();
        };
        let mut reader = BufReader::new(&stream);
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
            })
            .expect("a length");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
        Seen { head, body: serde_json::from_slice(&body).unwrap() }
    });
    (url, server)
}

/// The head of the next request. Nothing of its body is read.
fn head_of(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ends early");
    }
    head
}

fn report(result: Value, validation: &str) -> Value {
    json!({
        "job_id": "job-7", "status": "success", "kernel_exec_result": result,
        "timings": {"queue": 0.0, "compile": 1.0, "h2d": 0.0, "execute": 2.0, "device_busy": 1.0,
                    "d2h": 0.0, "verify": 0.0, "total": 3.0},
        "validation": {"status": validation},
        "a_field_of_a_newer_server": true,
    })
}

fn correct() -> Value {
    report(
        json!({"compiled": true, "correctness": true, "metadata": {"kernel_name": "k"}}),
        "passed",
    )
}

/// A directory with a contract that refers to its source by file.
fn contract() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("kernel.cu"), "__global__ void k() {}").unwrap();
    std::fs::write(
        directory.path().join("contract.yaml"),
        "kernel: {source_file: kernel.cu, kernel_type: cuda}\nnum_trials: 3\n",
    )
    .unwrap();
    directory
}

fn eval_at(url: &str, flags: &[&str]) -> (i32, String, String) {
    let directory = contract();
    let path = directory.path().join("contract.yaml");
    let args = [&["eval", path.to_str().unwrap(), "--server", url], flags].concat();
    outcome(warpgauge(directory.path(), &args).output().unwrap())
}

#[test]
fn eval_at_a_server_sends_the_contract_and_shows_the_verdict() {
    let (url, server) = serve_once("200 OK", "", correct().to_string());
    let (code, out, error) = eval_at(&url, &["--trials", "9", "--api-key", "sesame"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with("CORRECT  k: "), "{out}");
    assert!(!out.contains('\x1b'), "no colour where there is no terminal");
    assert_eq!(error, format!("warpgauge: evaluating at {url}\n"));
    let seen = server.join().unwrap();
    assert!(seen.head.starts_with("POST /evaluate HTTP/1.1\r\n"), "{}", seen.head);
    assert!(seen.head.to_ascii_lowercase().contains("x-api-key: sesame\r\n"), "{}", seen.head);
    assert_eq!(
        seen.body,
        json!({"kernel": {"source_code": "__global__ void k() {}", "kernel_type": "cuda"},
               "num_trials": 9})
    );
}

#[test]
fn json_is_the_answer_verbatim_and_quiet_is_quiet() {
    let body = serde_json::to_string_pretty(&correct()).unwrap();
    let (url, server) = serve_once("200 OK", "", body.clone());
    let (code, out, error) = eval_at(&url, &["--json", "--quiet"]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(out, format!("{body}\n"));
    server.join().unwrap();
}

#[test]
fn exit_codes_follow_the_verdict() {
    let cases = [
        (report(json!({"compiled": false, "metadata": {}}), "not_run"), 3),
        (report(json!({"compiled": true, "correctness": false, "metadata": {}}), "failed"), 4),
        (report(json!({"compiled": true, "metadata": {}}), "not_checked"), 0),
    ];
    for (body, expected) in cases {
        let (url, server) = serve_once("200 OK", "", body.to_string());
        assert_eq!(eval_at(&url, &[]).0, expected, "{body}");
        server.join().unwrap();
    }
}

#[test]
fn refusals_of_a_server_are_shown_readably() {
    let problem = json!({"field": "kernel.io", "message": "missing", "type": "missing"});
    let invalid = json!({"status": "client_error", "code": "invalid_contract",
        "error": "the contract is not valid", "validation_errors": [problem]});
    let cases = [
        (
            "400 Bad Request",
            invalid,
            2,
            "the contract is not valid [invalid_contract]\n  kernel.io: missing",
        ),
        ("401 Unauthorized", json!({"error": "no key"}), 2, "WARPGAUGE_API_KEY"),
        ("429 Too Many Requests", json!({"error": "the queue is full"}), 5, "the queue is full"),
        (
            "500 Internal Server Error",
            json!({"error": "internal error 12"}),
            70,
            "internal error 12",
        ),
    ];
    for (status, body, expected, message) in cases {
        let (url, server) = serve_once(status, "", body.to_string());
        let (code, out, error) = eval_at(&url, &["--json"]);
        assert_eq!(code, expected, "{status}: {error}");
        assert!(error.contains(message), "{status}: {error}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert!(answer["error"]["message"].as_str().unwrap().contains(message), "{out}");
        server.join().unwrap();
    }
}

#[test]
fn redirects_are_shown_not_followed() {
    let (url, server) =
        serve_once("307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", String::new());
    let (code, _, error) = eval_at(&url, &[]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("it redirects to http://127.0.0.1:1/"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_or_no_server_of_ours() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let (code, _, error) = eval_at(&url, &[]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains(&format!("no server answers at {url}/evaluate")), "{error}");
    assert!(error.contains("warpgauge serve"), "{error}");

    let (url, server) = serve_once("200 OK", "", "<html>".to_owned());
    let (code, _, error) = eval_at(&url, &[]);
    assert_eq!(code, 1);
    assert!(error.contains("is it a warpgauge server?"), "{error}");
    server.join().unwrap();

    assert_eq!(eval_at("gpu-host:8000", &[]).0, 2);
}

#[test]
fn returned_outputs_become_files() {
    let raw = [0_u8, 0, 128, 63];
    let mut answer = correct();
    answer["outputs"] = json!({"y": {"dtype": "float32", "shape": [1], "compress": "none",
        "format": "raw", "data_b64": "AACAPw==", "blake3": blake3::hash(&raw).to_hex().to_string()}});
    let (url, server) = serve_once("200 OK", "", answer.to_string());
    let out = tempfile::tempdir().unwrap();
    let directory = out.path().join("new");
    let (code, _, error) = eval_at(&url, &["--return-outputs", directory.to_str().unwrap()]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(std::fs::read(directory.join("y.bin")).unwrap(), raw);
    let body = server.join().unwrap().body;
    assert_eq!(body["return_outputs"], "all");
    assert_eq!(body["output_encoding"], json!({"compress": "zstd", "format": "npy"}));
}

#[test]
fn compile_at_a_server_writes_the_image() {
    let directory = contract();
    let kernel = directory.path().join("kernel.cu");
    let image = directory.path().join("kernel.cubin");
    let answer = json!({"job_id": "j", "status": "success", "compiled": true, "total_ms": 1.0,
                        "image_b64": "AAE=", "image_format": "cubin"});
    let (url, server) = serve_once("200 OK", "", answer.to_string());
    let args = [
        "compile",
        kernel.to_str().unwrap(),
        "--arch",
        "sm_90",
        "-o",
        image.to_str().unwrap(),
        "--server",
        &url,
    ];
    let (code, out, error) = outcome(warpgauge(directory.path(), &args).output().unwrap());
    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with("COMPILED\n"), "{out}");
    assert_eq!(std::fs::read(image).unwrap(), [0, 1]);
    let seen = server.join().unwrap();
    assert!(seen.head.starts_with("POST /compile "), "{}", seen.head);
    assert_eq!(seen.body["arch"], "sm_90");
}

#[test]
fn a_contract_may_come_by_standard_input() {
    let (url, server) = serve_once("200 OK", "", correct().to_string());
    let home = tempfile::tempdir().unwrap();
    let mut child = warpgauge(home.path(), &["eval", "-", "--server", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"kernel\": {\"kernel_type\": \"cuda\"}}").unwrap();
    let (code, _, error) = outcome(child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{error}");
    assert_eq!(server.join().unwrap().body, json!({"kernel": {"kernel_type": "cuda"}}));
}
