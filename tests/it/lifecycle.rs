//! Jobs, the queue, keys, and the server's shutdown.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::contracts::{endless, increment};
use crate::server::{Server, data_directory, emulated, program, until};

/// Submits without waiting and returns the job's id and its location.
fn submit(server: &Server, body: &Value) -> (String, String) {
    let answer = server.post_json("/evaluate?wait=false", body);
    assert_eq!(answer.status, 202, "{}", answer.text);
    let location = answer.header("location").expect("a location").to_owned();
    let id = answer.json["job_id"].as_str().expect("a job id").to_owned();
    assert!(location.contains(&id), "{location} does not name {id}");
    (id, location)
}

/// The job once it is in one of the states.
fn job_in(server: &Server, location: &str, states: &[&str]) -> Value {
    let path = location.strip_prefix(&server.url).unwrap_or(location);
    until(&format!("{location} in {states:?}"), || {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let state = answer.json["state"].as_str().expect("a state");
        states.contains(&state).then(|| answer.json.clone())
    })
}

const ENDED: [&str; 4] = ["completed", "failed", "cancelled", "timed_out"];

#[test]
fn a_job_can_be_polled_to_its_report() {
    let server = Server::start();
    let (id, location) = submit(&server, &increment());
    let job = job_in(&server, &location, &ENDED);
    assert_eq!(job["state"], "completed", "{job}");
    assert_eq!(job["job_id"], id.as_str());
    assert_eq!(job["result"]["job_id"], id.as_str());
    assert_eq!(job["result"]["kernel_exec_result"]["correctness"], true, "{job}");
    assert!(job["finished_at"].as_f64() >= job["created_at"].as_f64(), "{job}");

    // The reference system's path and fields.
    let legacy = server.get(&format!("/job/{id}"));
    assert_eq!(legacy.status, 200, "{}", legacy.text);
    assert_eq!(legacy.json["job_id"], id.as_str());
    assert_eq!(legacy.json["status"], "completed", "{}", legacy.text);

    assert_eq!(server.get("/jobs/00000000-0000-0000-0000-000000000000").status, 404);
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let server = Server::start_configured("[devices]\nqueue_capacity = 1\n");
    // One on the device, one in the queue: no room is left.
    let (_, running) = submit(&server, &endless(4.0));
    job_in(&server, &running, &["profiling"]);
    let (_, waiting) = submit(&server, &endless(0.5));
    job_in(&server, &waiting, &["queued"]);

    let answer = server.post_json("/evaluate", &increment());
    assert_eq!(answer.status, 429, "{}", answer.text);
    assert_eq!(answer.json["code"], "queue_full");
    let seconds = answer.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 1), "{:?}", answer.headers);

    // The time in the queue did not count against the second one's timeout.
    for location in [running, waiting] {
        let job = job_in(&server, &location, &ENDED);
        let told = job.to_string().to_lowercase();
        assert!(told.contains("time"), "{told}");
    }
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
}

#[test]
fn a_key_is_asked_for_where_one_is_set() {
    let server = Server::start_with(&[], &[("WARPGAUGE_API_KEYS", "first-key,second-key")]);
    let body = serde_json::to_vec(&increment()).unwrap();
    let json = ("content-type", "application/json");
    for (headers, status) in [
        (vec![json], 401),
        (vec![json, ("x-api-key", "wrong")], 401),
        (vec![json, ("x-api-key", "first")], 401),
        (vec![json, ("authorization", "Basic first-key")], 403),
        (vec![json, ("x-api-key", "first-key")], 200),
        (vec![json, ("x-api-key", "second-key")], 200),
        (vec![json, ("authorization", "Bearer second-key")], 200),
    ] {
        let answer = server.post("/evaluate", &headers, &body);
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text);
        if status == 401 {
            assert!(answer.json["code"].is_string(), "{}", answer.text);
            assert!(answer.header("www-authenticate").is_some(), "{:?}", answer.headers);
            assert!(!answer.text.contains("first-key"), "the answer tells a key");
        }
    }
    assert!(!server.output().contains("second-key"), "the log tells a key");
    // A load balancer has no key.
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get("/live").status, 200);
}

#[test]
fn without_a_key_only_loopback_is_served() {
    let data = data_directory();
    let output = program()
        .args(["serve", "--host", "0.0.0.0", "--port", "0", "--device", "emulator"])
        .env("WARPGAUGE_DATA_DIR", data.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("export WARPGAUGE_API_KEYS=$(openssl rand -hex 16)"), "{told}");
}

#[test]
fn an_idle_server_ends_at_once() {
    let server = Server::start();
    server.evaluate(&increment());
    let start = Instant::now();
    server.terminate();
    let (status, output) = server.wait();
    assert!(status.success(), "{status}:\n{output}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn shutdown_finishes_what_runs_and_refuses_what_comes() {
    let server = Server::start();
    let (_, location) = submit(&server, &endless(2.0));
    job_in(&server, &location, &["profiling"]);
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.post_json("/evaluate", &increment()));
        // Accepted before the end is asked for.
        until("the second job in the queue", || {
            let health = server.get("/health");
            (health.json["queue_depth"].as_u64() >= Some(1)).then_some(())
        });
        server.terminate();
        waiting.join().unwrap()
    });
    // Finished, or refused with the reason: never a connection that just breaks.
    match answer.status {
        200 => assert_eq!(answer.json["kernel_exec_result"]["correctness"], true),
        503 => assert_eq!(answer.json["code"], "shutting_down", "{}", answer.text),
        other => panic!("status {other}: {}", answer.text),
    }
    let (status, output) = server.wait();
    assert!(status.success(), "{status}:\n{output}");
}

#[test]
fn a_server_that_is_killed_leaves_no_worker_behind() {
    let server = Server::start();
    server.evaluate(&increment());
    let children = children_of(server.pid());
    assert!(!children.is_empty(), "kernels run in processes of their own");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(server.pid() as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let (status, _) = server.wait();
    assert!(!status.success());
    for pid in children {
        until(&format!("the end of worker {pid}"), || (!is_alive(pid)).then_some(()));
    }
}

pub fn children_of(pid: u32) -> Vec<u32> {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')))
}

#[test]
fn the_machine_describes_itself() {
    let server = Server::start();
    let health = server.get("/health");
    assert_eq!(health.status, 200);
    for field in ["status", "version"] {
        assert!(health.json[field].is_string(), "{field}: {}", health.text);
    }
    let devices = server.get("/devices").json["devices"].as_array().map_or(0, Vec::len) as u64;
    assert!(devices >= 1);
    assert_eq!(health.json["device_count"], devices, "{}", health.text);
    // The emulator is a device, and no GPU.
    let gpus = if emulated() { 0 } else { devices };
    assert_eq!(health.json["gpu_count"], gpus, "{}", health.text);
    assert_eq!(health.json["gpu_available"], gpus > 0, "{}", health.text);
    for path in ["/info", "/devices", "/cuda/info", "/capabilities", "/openapi.json", "/docs"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
    assert_eq!(server.get("/no/such/path").status, 404);
}
