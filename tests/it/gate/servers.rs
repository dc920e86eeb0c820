//! The gate at a server that works, is full, or becomes unreachable.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use super::*;
use crate::server::{Server, data_directory, root};
use crate::support::next_request;

#[test]
fn directories_and_servers_serve_as_well() {
    needs!("the emulated device", emulated());
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
        "annotations.txt",
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
    // It was one job there, which both name, and its cases are in the history there.
    let jobs = server.get("/jobs").json["jobs"].clone();
    let jobs = jobs.as_array().unwrap();
    assert_eq!((jobs.len(), &jobs[0]["kind"]), (1, &"gate".into()));
    assert_eq!(jobs[0]["job_id"], report["job_id"]);
    assert!(stdout.contains(report["job_id"].as_str().unwrap()), "{stdout}");
    let history = ["history", "repeat", "--json", "--server", &address];
    let (_, history, _) = outcome(warpgauge(new.path(), &history).output().unwrap());
    let history: Value = serde_json::from_str(&history).unwrap();
    assert_eq!(history["series"][0]["points"][0]["job_id"], report["job_id"], "{history}");
    for file in ["comment.md", "junit.xml", "gate.html"] {
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains("emulated device"), "{file} does not say what it rests on");
    }
}

/// A report without what differs from run to run.
fn timeless(mut report: Value) -> Value {
    for field in ["job_id", "started_unix_s", "duration_s"] {
        assert!(report.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    for case in report["cases"].as_array_mut().unwrap() {
        case.as_object_mut().unwrap().remove("duration_s");
    }
    report
}

#[test]
fn a_server_says_what_this_machine_would() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    // The baseline has a case that informs, and that the suite has no more.
    let gone =
        "{name: gone, contract: k/contract.yaml, metric: barriers, policy: {advisory: true}}";
    repository.write("perf/suite.yaml", &format!("{SUITE}  - {gone}\n"));
    repository.commit("with a case");
    repository.change(MORE);
    let new = "{name: new, contract: k/new.yaml, policy: {count_margin: 0.5}}";
    repository.write("perf/k/new.yaml", &format!("{CONTRACT}profile: {{}}\n"));
    repository.write("perf/suite.yaml", &format!("{SUITE}  - {new}\n"));
    let server = Server::start();
    for flags in [&["--baseline", "HEAD"][..], &["--baseline", "HEAD", "--measure-identical"]] {
        let json = |more: &[&str]| {
            let all = [flags, &["--json", "--quiet"], more].concat();
            let (exit, stdout, stderr) = repository.gate(&all);
            assert_eq!(exit, 2, "{stdout}\n{stderr}");
            timeless(serde_json::from_str(&stdout).unwrap())
        };
        let (here, mut there) = (json(&[]), json(&["--server", &server.url]));
        // Only a server has pages.
        let page = there.as_object_mut().unwrap().remove("page").expect("a page");
        assert!(page.as_str().unwrap().starts_with(&format!("{}/jobs/", server.url)), "{page}");
        assert_eq!(here["baseline"]["kind"], "git");
        assert!(here["commit"].as_str().unwrap().ends_with("-dirty"), "{here}");
        assert_eq!(outcomes(&here), ["REGRESSION", "NEW", "MISSING"]);
        assert_eq!(
            (&here["cases"][2]["metric"], &here["cases"][2]["blocking"]),
            (&"barriers".into(), &false.into())
        );
        assert_eq!(here, there);
    }
}

/// What a gateway does with a connection.
enum Act {
    /// Answers as a server does that has no place.
    Refuse(&'static str),
    /// Takes the request and goes down.
    HangUp,
    /// Passes the request on, and goes down before the answer.
    Swallow,
}

/// What stands between the gate and a server: it plays its acts with the first connections, and
/// passes on all others. Gives its address.
fn gateway(server: &Server, acts: Vec<Act>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let upstream = server.url.strip_prefix("http://").unwrap().to_owned();
    std::thread::spawn(move || {
        let mut acts = acts.into_iter();
        for stream in listener.incoming() {
            let (stream, upstream) = (stream.unwrap(), upstream.clone());
            let act = acts.next();
            std::thread::spawn(move || play(stream, act, &upstream));
        }
    });
    url
}

fn play(mut stream: TcpStream, act: Option<Act>, upstream: &str) {
    match act {
        None => {
            let Ok(server) = TcpStream::connect(upstream) else { return };
            let (mut from, mut to) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
            let there = std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
            let _ = std::io::copy(&mut &server, &mut stream);
            let _ = stream.shutdown(Shutdown::Both);
            let _ = there.join();
        }
        Some(Act::Refuse(status)) => {
            drop(request(&stream));
            let text = r#"{"error": "no place", "code": "queue_full"}"#;
            let head = format!(
                "HTTP/1.1 {status}\r\nRetry-After: 0\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n",
                text.len()
            );
            stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
        }
        Some(Act::HangUp) => drop(request(&stream)),
        Some(Act::Swallow) => {
            let bytes = request(&stream);
            let mut server = TcpStream::connect(upstream).unwrap();
            server.write_all(&bytes).unwrap();
            let mut line = String::new();
            BufReader::new(&server).read_line(&mut line).unwrap();
            assert!(line.starts_with("HTTP/1.1 202 "), "{line}");
        }
    }
}

/// The next request of a connection, all of it.
fn request(stream: &TcpStream) -> Vec<u8> {
    let (head, body) = next_request(stream);
    [head.into_bytes(), body].concat()
}

/// A contract whose kernel takes a while.
fn long_contract() -> String {
    CONTRACT.replace("1024", "32768").replace("x: 4", "x: 128")
}

/// A repository whose suite takes so many cases, all of them unchanged.
fn cases(count: usize, contract: &str) -> Repository {
    let repository = Repository::new();
    repository.write("perf/k/contract.yaml", contract);
    let case = |index| format!("  - {{name: case{index}, contract: k/contract.yaml}}\n");
    let cases = (0..count).map(case).collect::<String>();
    repository.write("perf/suite.yaml", &format!("version: 1\ncases:\n{cases}"));
    repository.commit("cases");
    repository
}

fn outcomes(report: &Value) -> Vec<&str> {
    let cases = report["cases"].as_array().unwrap();
    cases.iter().map(|case| case["outcome"].as_str().unwrap()).collect()
}

fn jobs(server: &Server) -> Vec<Value> {
    server.get("/jobs").json["jobs"].as_array().unwrap().clone()
}

#[test]
fn a_server_that_is_full_or_breaks_off_is_asked_again() {
    needs!("the emulated device", emulated());
    let repository = cases(3, CONTRACT);
    let server = Server::start();
    let acts = vec![
        Act::Refuse("429 Too Many Requests"),
        Act::Refuse("503 Service Unavailable"),
        Act::HangUp,
        // The job is there, and nobody has heard of it.
        Act::Swallow,
        Act::HangUp,
    ];
    let url = gateway(&server, acts);
    let (exit, stdout, stderr) =
        repository.gate(&["--baseline", "HEAD", "--server", &url, "--json"]);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    assert_eq!(outcomes(&serde_json::from_str(&stdout).unwrap()), ["PASS"; 3]);
    assert_eq!(stderr.matches("trying again").count(), 5, "{stderr}");
    assert_eq!(jobs(&server).len(), 1, "sent again, it is the same job");
    // Where nobody has patience, it is an error that says why.
    let url = gateway(&server, vec![Act::Refuse("429 Too Many Requests")]);
    let (exit, _, stderr) =
        repository.gate(&["--baseline", "HEAD", "--server", &url, "--patience", "0"]);
    assert!(exit == 1 && stderr.contains("no place"), "{exit} {stderr}");
}

/// A gate under way, that has come to its second case.
struct UnderWay {
    child: Child,
    said: Arc<Mutex<String>>,
    listening: std::thread::JoinHandle<()>,
}

impl UnderWay {
    fn start(repository: &Repository, more: &[&str]) -> Self {
        let mut command = repository.command(&[&["--baseline", "HEAD", "--json"], more].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let second = lines.by_ref().find(|line| line.starts_with("warpgauge: 2 of "));
        assert!(second.is_some(), "it ended before its second case");
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let listening = std::thread::spawn(move || {
            for line in lines {
                let mut said = heard.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        Self { child, said, listening }
    }

    /// Waits until it says this.
    fn says(&self, what: &str) {
        crate::server::until(what, || self.said.lock().unwrap().contains(what).then_some(()));
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }

    fn end(self) -> (i32, String, String) {
        let (exit, stdout, _) = outcome(self.child.wait_with_output().unwrap());
        self.listening.join().unwrap();
        let said = self.said.lock().unwrap().clone();
        (exit, stdout, said)
    }
}

fn port(server: &Server) -> String {
    server.url.rsplit(':').next().unwrap().to_owned()
}

#[test]
fn a_server_killed_half_way_and_started_again_ends_the_same_job() {
    needs!("the emulated device", emulated());
    let repository = cases(6, &long_contract());
    repository.change(MORE);
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let port = port(&server);
    let gate = UnderWay::start(&repository, &["--server", &server.url]);
    server.kill();
    gate.says("trying again");
    let server = Server::start_in(data.path(), &["--port", &port], &[]);
    let (exit, stdout, stderr) = gate.end();
    assert_eq!(exit, 2, "{stdout}\n{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(outcomes(&report), ["REGRESSION"; 6]);
    assert!(stderr.contains("restarted, attempt 2"), "{stderr}");
    let jobs = jobs(&server);
    assert_eq!((jobs.len(), &jobs[0]["attempt"]), (1, &2.into()), "{jobs:?}");
    assert_eq!(jobs[0]["job_id"], report["job_id"]);
}

#[test]
fn a_server_that_stays_away_is_an_error_that_says_how_to_read_the_report_later() {
    needs!("the emulated device", emulated());
    let repository = cases(6, &long_contract());
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let (port, url) = (port(&server), server.url.clone());
    let gate = UnderWay::start(&repository, &["--server", &url, "--patience", "1"]);
    server.kill();
    let (exit, stdout, stderr) = gate.end();
    assert_eq!(exit, 1, "{stderr}");
    assert!(
        stdout.contains("\"exit_code\":1") && stdout.contains("the connection to job"),
        "{stdout}"
    );
    let server = Server::start_in(data.path(), &["--port", &port], &[]);
    let id = jobs(&server)[0]["job_id"].as_str().unwrap().to_owned();
    let advice = format!("`warpgauge jobs show {id} --server {url}`");
    assert!(stderr.contains("the connection to job") && stderr.contains(&advice), "{stderr}");
    assert!(stderr.contains("no server answers"), "{stderr}");
    // It is as it says: the job goes on, and can be waited for with the gate's exit code.
    let run = |words: &[&str]| {
        let words = [&["jobs"], words, &[&id, "--server", &url]].concat();
        outcome(warpgauge(repository.path(), &words).output().unwrap())
    };
    assert_eq!(run(&["wait", "--quiet"]).0, 0);
    let (exit, stdout, _) = run(&["show"]);
    assert!(exit == 0 && stdout.contains("PASS: 6 pass"), "{stdout}");
}

#[test]
fn an_interrupted_run_is_cancelled_at_the_server() {
    needs!("the emulated device", emulated());
    let repository = cases(6, &long_contract());
    let server = Server::start();
    let gate = UnderWay::start(&repository, &["--server", &server.url]);
    gate.interrupt();
    let (exit, stdout, stderr) = gate.end();
    assert_eq!((exit, stdout.as_str()), (130, ""), "{stderr}");
    let id = jobs(&server)[0]["job_id"].as_str().unwrap().to_owned();
    assert!(stderr.contains(&format!("cancelled job {id} at {}", server.url)), "{stderr}");
    assert_eq!(jobs(&server)[0]["state"], "cancelled");

    // What others end there is an error of the tool, and no regression.
    let gate = UnderWay::start(&repository, &["--server", &server.url]);
    let id = jobs(&server)[0]["job_id"].as_str().unwrap().to_owned();
    assert_eq!(server.delete(&format!("/jobs/{id}")).status, 200);
    let (exit, stdout, stderr) = gate.end();
    assert_eq!(exit, 1, "{stderr}");
    assert!(stdout.contains("\"exit_code\":1") && stdout.contains(&id), "{stdout}");
    let told = format!("job {id} ended as cancelled (cancelled)");
    assert!(stderr.contains(&told) && stderr.contains("not a verdict"), "{stderr}");
}

#[test]
fn a_suite_that_does_not_fit_into_a_request_is_told_with_the_limit() {
    needs!("the emulated device", emulated());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    std::fs::write(&file, "[server]\nbody_limit_bytes = 20000\n").unwrap();
    let server = Server::start_with(&["--config", file.to_str().unwrap()], &[]);
    // Enough that the server answers before it has all of it.
    let repository = cases(200, CONTRACT);
    let (exit, _, stderr) = repository.gate(&["--baseline", "HEAD", "--server", &server.url]);
    assert_eq!(exit, 1, "{stderr}");
    for part in ["200 cases", "split the suite", "20000 bytes", "server.body_limit_bytes"] {
        assert!(stderr.contains(part), "{part}\n{stderr}");
    }
    // By default a suite of as many cases as there may be fits many times.
    let server = Server::start();
    let gate = UnderWay::start(&repository, &["--server", &server.url]);
    gate.interrupt();
    assert_eq!(gate.end().0, 130);
    assert_eq!(jobs(&server)[0]["state"], "cancelled");
}
