//! Many requests of one key do not block another key. In each test one key uses all of a resource
//! and still does so when the other key is served.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::contracts::{endless, increment, single_thread};
use crate::functions;
use crate::server::{Answer, Server, until};
use crate::support::has_torch;

const JSON: (&str, &str) = ("content-type", "application/json");

/// A server with two keys, and one that may have functions run.
fn start(config: &str) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let keys = [("WARPGAUGE_API_KEYS", "one,two"), ("WARPGAUGE_FUNCTION_KEYS", "three")];
    Server::start_with(&["--config", file.to_str().unwrap(), "--device", "emulator"], &keys)
}

fn post(server: &Server, key: &str, path: &str, body: &Value) -> Answer {
    server.post(path, &[("x-api-key", key), JSON], body.to_string().as_bytes())
}

fn submit(server: &Server, key: &str, body: &Value) -> String {
    let answer = post(server, key, "/evaluate?wait=false", body);
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json["job_id"].as_str().unwrap().to_owned()
}

fn job(server: &Server, key: &str, id: &str) -> Value {
    let answer = server.get_with(&format!("/jobs/{id}"), &[("x-api-key", key)]);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json
}

fn is_in(server: &Server, key: &str, id: &str, state: &str) {
    until(state, || (job(server, key, id)["state"] == state).then_some(()));
}

fn cancel(server: &Server, key: &str, id: &str) {
    let path = format!("{}/jobs/{id}", server.url);
    assert_eq!(ureq::delete(&path).header("x-api-key", key).call().unwrap().status(), 200);
}

/// A request that is sent, and whose answer nobody reads yet. Dropping it hangs up.
fn caller(server: &Server, key: &str, request: &str, body: &str) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// A kernel whose compilation does not end by itself.
fn bomb(number: usize) -> Value {
    let mut request = single_thread("A40");
    let source = request["kernel"]["source_code"].as_str().unwrap();
    let defines: String =
        (1..=40).map(|n| format!("#define A{n} A{} A{}\n", n - 1, n - 1)).collect();
    let source = format!("#define A0 *out += {number};\n{defines}{source}");
    request["kernel"]["source_code"] = source.into();
    request["timeout"] = json!(100);
    request
}

/// A kernel that nobody has compiled.
fn new_kernel() -> Value {
    let mut request = increment();
    let source = request["kernel"]["source_code"].as_str().unwrap();
    request["kernel"]["source_code"] = format!("{source}// {}", uuid::Uuid::new_v4()).into();
    request
}

fn is_correct(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["kernel_exec_result"]["correctness"], true, "{}", answer.text);
}

#[test]
fn compilers_that_do_not_end_keep_no_other_key_waiting() {
    let server = start("[compile]\nparallelism = 1\n");
    let bombs: Vec<String> = (0..3).map(|number| submit(&server, "one", &bomb(number))).collect();
    is_in(&server, "one", &bombs[0], "compiling");
    is_correct(&post(&server, "two", "/evaluate", &new_kernel()));
    let compiled = post(&server, "two", "/compile", &json!({"kernel": new_kernel()["kernel"]}));
    assert_eq!(compiled.json["compiled"], true, "{}", compiled.text);
    // One that nobody waits for, too: the first key has all places of such jobs.
    let left = submit(&server, "two", &new_kernel());
    is_in(&server, "two", &left, "completed");
    let ended = |id: &String| job(&server, "one", id)["finished_at"].is_number();
    assert!(!bombs.iter().any(ended), "a compilation has ended before the other key had its turn");
    for bomb in &bombs {
        cancel(&server, "one", bomb);
    }
}

/// A torch kernel that sleeps for so many seconds, and then does what it should.
fn sleeper(seconds: u32) -> Value {
    let source = format!(
        "import threading\ndef f(x):\n    threading.Event().wait({seconds}); return x\n\
                          def get_inputs(): return [torch.zeros(2)]\n"
    );
    json!({
        "kernel": {
            "kernel_type": "torch", "source_code": source, "metadata": {"function_name": "f"},
        },
        "num_trials": 1, "timeout": 100,
    })
}

#[test]
fn torch_kernels_and_functions_that_sleep_keep_no_other_key_waiting() {
    needs!("PyTorch", has_torch());
    let server = start("[devices]\ntorch_places = 1\nfunction_idle_s = 0.0\n");
    let sleeping: Vec<String> = (0..3).map(|_| submit(&server, "one", &sleeper(90))).collect();
    is_in(&server, "one", &sleeping[0], "profiling");
    let awake = post(&server, "two", "/evaluate", &sleeper(0));
    assert_eq!(awake.status, 200, "{}", awake.text);
    // Functions have places of their own, also those of a key that has torch kernels.
    assert_eq!(functions::status_of(&server, "three", "x = x"), "ended");
    let ended = |id: &String| job(&server, "one", id)["finished_at"].is_number();
    assert!(!sleeping.iter().any(ended), "a kernel has ended before the other key had its turn");
    for id in &sleeping {
        cancel(&server, "one", id);
    }
}

#[test]
fn callers_of_one_key_leave_room_for_those_of_another() {
    // Room for one on the device and seven that wait.
    let server = start("[devices]\nqueue_capacity = 7\n");
    let body = endless(100.0).to_string();
    let mut held = Vec::new();
    let refused = until("its share", || {
        held.push(caller(&server, "one", "POST /evaluate", &body));
        let answer = post(&server, "one", "/compile", &json!({"kernel": increment()["kernel"]}));
        (answer.status == 429).then_some(answer)
    });
    assert!(held.len() >= 3, "{}", refused.text);
    assert_eq!(refused.json["code"], "queue_full", "{}", refused.text);
    assert!(refused.text.contains("evaluations of this key"), "{}", refused.text);
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    let compiled = post(&server, "two", "/compile", &json!({"kernel": increment()["kernel"]}));
    assert_eq!(compiled.status, 200, "{}", compiled.text);
    drop(held);
    until("room", || {
        let answer = post(&server, "one", "/compile", &json!({"kernel": increment()["kernel"]}));
        (answer.status == 200).then_some(())
    });
}

#[test]
fn streams_of_one_key_leave_room_for_those_of_another() {
    // A quarter of them may be streams.
    let server = start("[server]\nmax_connections = 32\n");
    let id = submit(&server, "one", &endless(100.0));
    let others = submit(&server, "two", &endless(100.0));
    let opened = |key: &str, id: &str| {
        let mut stream = caller(&server, key, &format!("GET /jobs/{id}/events"), "");
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (String::from_utf8(head.to_vec()).unwrap(), stream)
    };
    let streams: Vec<_> = (0..4).map(|_| opened("one", &id)).collect();
    assert!(streams.iter().all(|(head, _)| head == "HTTP/1.1 200"), "{streams:?}");
    let path = format!("/jobs/{id}/events");
    let refused = server.get_with(&path, &[("x-api-key", "one")]);
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert_eq!(refused.json["code"], "too_many_watchers", "{}", refused.text);
    assert!(refused.text.contains("4 streams of events of this key"), "{}", refused.text);
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    assert_eq!(opened("two", &others).0, "HTTP/1.1 200");
    drop(streams);
    until("room", || (opened("one", &id).0 == "HTTP/1.1 200").then_some(()));
    cancel(&server, "one", &id);
    cancel(&server, "two", &others);
}

#[test]
fn on_the_emulated_device_a_key_that_has_nothing_there_runs_beside_another() {
    let server = start("");
    let running = submit(&server, "one", &endless(100.0));
    is_in(&server, "one", &running, "profiling");
    let body = increment().to_string();
    let callers = |key: &str, count: usize| -> Vec<TcpStream> {
        (0..count).map(|_| caller(&server, key, "POST /evaluate", &body)).collect()
    };
    let answered = |mut stream: &TcpStream| {
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
    };
    let ones = callers("one", 6);
    until("those that wait", || {
        let info = server.get_with("/info", &[("x-api-key", "one")]).json;
        (info["queue_depth"] == 6).then_some(())
    });
    callers("two", 12).iter().for_each(answered);
    assert_eq!(job(&server, "one", &running)["state"], "profiling", "it goes on");
    let info = server.get_with("/info", &[("x-api-key", "one")]).json;
    assert_eq!(info["queue_depth"], 6, "the key that has the device waits for it");
    cancel(&server, "one", &running);
    ones.iter().for_each(answered);
}
