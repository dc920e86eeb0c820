//! Webhooks: delivered, signed, retried, kept over a restart, and sent to no other URL.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};
use warpgauge_service::webhook::signature;

use crate::contracts::increment;
use crate::server::{Server, data_directory, until};
use crate::stores::{Home, on_both};

on_both!(the_end_of_a_job_is_told_and_tried_again, what_is_not_delivered_survives_the_server);

const SECRET: &str = "a-secret-of-the-operator";

/// Longest wait for something to come.
const PATIENCE: Duration = Duration::from_secs(60);

const TAKEN: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// What came to a receiver.
#[derive(Debug)]
struct Hook {
    path: String,
    signature: String,
    body: String,
}

impl Hook {
    /// The message, if the signature is that of the secret.
    fn message(&self) -> Value {
        let time = self.signature.strip_prefix("t=").and_then(|rest| rest.split(',').next());
        let time = time.and_then(|time| time.parse().ok()).expect("a time");
        assert_eq!(signature(SECRET, time, self.body.as_bytes()), self.signature);
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// A receiver that gives these answers, one for each message, and then takes all.
struct Hooks {
    address: SocketAddr,
    came: Receiver<Hook>,
}

impl Hooks {
    fn start(answers: &[&str]) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), answers)
    }

    fn listen(listener: TcpListener, answers: &[&str]) -> Self {
        let address = listener.local_addr().unwrap();
        let (sender, came) = mpsc::channel();
        let mut answers = answers.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>().into_iter();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let hook = read(&mut stream);
                let answer = answers.next().unwrap_or_else(|| TAKEN.to_owned());
                let _ = stream.write_all(answer.as_bytes());
                if sender.send(hook).is_err() {
                    return;
                }
            }
        });
        Self { address, came }
    }

    fn next(&self) -> Hook {
        self.came.recv_timeout(PATIENCE).expect("a webhook")
    }

    fn url(&self) -> String {
        format!("http://{}/hook?of=a%20test", self.address)
    }
}

fn read(stream: &mut TcpStream) -> Hook {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).expect("a path").to_owned();
    let (mut signature, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "x-warpgauge-signature" => value.trim().clone_into(&mut signature),
            "content-length" => length = value.trim().parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Hook { path, signature, body: String::from_utf8(body).unwrap() }
}

/// Address that the operator gives for links to pages.
const PUBLIC: &str = "https://gpu.example.org/tools/";

fn configured(data: &Path, hosts: &str) -> PathBuf {
    let file = data.join("webhooks.toml");
    let text = format!(
        "[server]\nwebhook_secret = \"{SECRET}\"\nwebhook_hosts = {hosts}\npublic_url = \"{PUBLIC}\"\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn start(home: &Home) -> Server {
    let file = configured(home.path(), "[\"127.0.0.1:*\"]");
    home.start(&["--config", file.to_str().unwrap()])
}

fn submit(server: &Server, url: &str) -> String {
    let job = json!({"request": increment(), "webhook": url});
    let answer = server.post_json("/jobs", &json!({"jobs": [job]}));
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json["jobs"][0]["job_id"].as_str().unwrap().to_owned()
}

fn the_end_of_a_job_is_told_and_tried_again(home: &Home) {
    let hooks = Hooks::start(&[
        "HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\n\r\n",
        // Not followed: it leads where nobody may be sent.
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\r\n",
    ]);
    let server = start(home);
    let id = submit(&server, &hooks.url());
    let attempts = [hooks.next(), hooks.next(), hooks.next()];
    for hook in &attempts {
        let message = hook.message();
        assert_eq!(hook.path, "/hook?of=a%20test");
        assert_eq!(message["event"], "job.ended");
        assert_eq!(message["job_id"], id.as_str());
        assert_eq!(
            (&message["state"], &message["status"]),
            (&json!("completed"), &json!("success"))
        );
        assert_eq!(message["links"]["job"], format!("/jobs/{id}"));
        assert_eq!(message["links"]["page"], format!("https://gpu.example.org/tools/jobs/{id}"));
    }
    assert_eq!(attempts[0].body, attempts[2].body);
    let job = server.get(&format!("/jobs/{id}")).json;
    let finished = attempts[0].message()["finished_at"].as_f64().unwrap();
    assert!((finished - job["finished_at"].as_f64().unwrap()).abs() < 0.001, "{job}");
    // Also where somebody waits.
    let waited = increment();
    let path = format!("/evaluate?webhook=http%3A%2F%2F{}%2Fwaited", hooks.address);
    let report = server.post_json(&path, &waited);
    assert_eq!(report.status, 200, "{}", report.text);
    let hook = hooks.next();
    assert_eq!(
        (hook.path.as_str(), &hook.message()["job_id"]),
        ("/waited", &report.json["job_id"])
    );
}

fn what_is_not_delivered_survives_the_server(home: &Home) {
    // Nobody listens there yet; the port stays ours.
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let server = start(home);
    let id = submit(&server, &format!("http://{address}/"));
    until("the job has ended", || {
        let job = server.get(&format!("/jobs/{id}")).json;
        (job["state"] == "completed").then_some(())
    });
    // While an attempt is under way it is nobody else's for a minute.
    until("an attempt that failed", || {
        server.output().contains("a webhook is retried").then_some(())
    });
    server.kill();
    let hooks = Hooks::listen(TcpListener::bind(address).unwrap(), &[]);
    let _server = start(home);
    assert_eq!(hooks.next().message()["job_id"], id.as_str());
}

#[test]
fn other_hosts_are_refused_before_anything_runs() {
    let data = data_directory();
    let file = configured(data.path(), "[\"ci.example\", \"*.hooks.example\"]");
    let server = Server::start_in(data.path(), &["--config", file.to_str().unwrap()], &[]);
    for url in [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/",
        "https://ci.example:22/",
        "https://ci.example@127.0.0.1/",
        "file:///etc/passwd",
    ] {
        let job = json!({"request": increment(), "webhook": url});
        let good = json!({"request": increment()});
        let answer = server.post_json("/jobs", &json!({"jobs": [good, job]}));
        assert_eq!((answer.status, answer.json["code"].as_str()), (400, Some("webhook_refused")));
        assert_eq!(answer.json["path"], "jobs[1].webhook", "{url}");
    }
    let jobs = server.get("/jobs").json;
    assert_eq!(jobs["jobs"], json!([]), "none of the batch was taken");
}
