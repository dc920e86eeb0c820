//! Sweeps: every point has its row, even if others fail.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::contracts::{endless, increment, sweep_example};
use crate::server::{Server, device, emulated, program, root, until};

/// `out[i] = in[i] + ADD` where 1 is right: of six points one is correct, one wrong, one does not
/// compile, and three ask for no timed launch at all.
fn mixed() -> Value {
    let mut body = increment();
    body["axes"] = json!({"add": ["1.0f", "2.0f", "no_such_name"], "n": ["100..256 by 156"]});
    let kernel = &mut body["kernel"];
    let source = kernel["source_code"].as_str().unwrap().replace("1.0f", "ADD");
    kernel["source_code"] = source.into();
    kernel["metadata"]["compiler_options"] = json!(["-DADD=${add}"]);
    for arg in [0, 1] {
        kernel["io"]["args"][arg]["tensor_spec"]["shape"] = json!(["$n"]);
    }
    kernel["io"]["args"][2]["value"] = json!("$n");
    body["num_trials"] = json!("min(3, $n - 100)");
    body["work"] = json!({"bytes": "8 * $n"});
    body
}

const OUTCOMES: [(&str, i64, &str); 6] = [
    ("1.0f", 100, "invalid"),
    ("1.0f", 256, "correct"),
    ("2.0f", 100, "invalid"),
    ("2.0f", 256, "wrong"),
    ("no_such_name", 100, "invalid"),
    ("no_such_name", 256, "not_compiled"),
];

/// Kind and data of each event of a stream.
fn events(text: &str) -> Vec<(String, Value)> {
    let mut kind = String::new();
    let mut events = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("event: ") {
            kind = name.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((std::mem::take(&mut kind), serde_json::from_str(data).unwrap()));
        }
    }
    events
}

#[test]
fn points_that_fail_leave_the_others() {
    let server = Server::start();
    let mut body = mixed();
    body["include_reports"] = json!(true);
    let answer = server.post_json("/sweep", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    let sweep = answer.json;
    assert_eq!(sweep["status"], "success", "{sweep}");
    assert_eq!(sweep["counts"], json!({"correct": 1, "invalid": 3, "not_compiled": 1, "wrong": 1}));
    let points = sweep["points"].as_array().unwrap();
    assert_eq!(points.len(), OUTCOMES.len());
    for (index, (point, (add, n, status))) in points.iter().zip(OUTCOMES).enumerate() {
        assert_eq!(point["index"], index);
        assert_eq!(point["values"], json!({"add": add, "n": n}));
        assert_eq!(point["status"], status, "{point}");
        // Only what is not wrong has a time, and only what ran has a report.
        assert_eq!(point["runtime_stats"].is_object(), status == "correct", "{point}");
        assert_eq!(point["report"].is_object(), status != "invalid", "{point}");
        assert_eq!(point["reasons"].is_array(), status != "correct", "{point}");
    }
    assert_eq!(points[0]["reasons"][0]["path"], "num_trials");
    assert_eq!(points[1]["runtime_stats"]["samples"], 3);
    assert_eq!(points[1]["report"]["kernel_exec_result"]["correctness"], true);
    assert_eq!(points[3]["reasons"][0]["code"], "output_mismatch", "{}", points[3]);
    assert!(points[5]["reasons"][0]["message"].as_str().unwrap().contains("no_such_name"));

    let table = &sweep["table"];
    assert_eq!(table["columns"][0], "add");
    assert_eq!(
        table["rows"][3].as_array().unwrap()[..3],
        [json!("2.0f"), json!(256), json!("wrong")]
    );
    assert_eq!(table["rows"][1][3], points[1]["runtime_stats"]["median"]);
    in_part!(if emulated() { "a GPU" } else { "the emulated device" });
    if emulated() {
        let why = sweep["best"]["not_ranked"].as_str().unwrap();
        assert!(why.contains("emulator"), "{why}");
        assert!(points[1]["gbps"].is_null(), "an emulated time is no throughput");
        assert!(sweep["best"]["median_ms"].is_null());
        for count in ["warp_instructions", "global_sectors"] {
            assert!(points[1]["counted"][count].as_u64() > Some(0), "{}", points[1]);
            // The only point that is correct.
            assert_eq!(sweep["best"][count]["index"], 1, "{}", sweep["best"]);
            assert_eq!(
                sweep["best"][count]["value"].as_f64(),
                points[1]["counted"][count].as_f64()
            );
        }
        let columns = table["columns"].as_array().unwrap();
        assert_eq!(columns[columns.len() - 1], "global_sectors");
        let row = table["rows"][1].as_array().unwrap();
        assert_eq!(row[row.len() - 1], points[1]["counted"]["global_sectors"]);
    } else {
        assert_eq!(sweep["best"]["median_ms"]["index"], 1, "{}", sweep["best"]);
    }

    let job = server.get(&format!("/jobs/{}", sweep["job_id"].as_str().unwrap())).json;
    assert_eq!(
        (job["state"].as_str(), job["status"].as_str()),
        (Some("completed"), Some("success"))
    );
    assert_eq!((&job["sweep"]["points"], &job["sweep"]["points_done"]), (&json!(6), &json!(6)));
    assert_eq!(job["sweep"]["result"]["counts"], sweep["counts"]);
    assert!(job["sweep"]["result"]["points"][1]["report"].is_null(), "reports are not kept");
}

#[test]
fn a_sweep_can_be_followed_and_had_as_a_table() {
    let server = Server::start();
    let answer = server.post_json("/sweep?stream=true", &mixed());
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events = events(&answer.text);
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["started", "point", "point", "point", "point", "point", "point", "done"]);
    let (started, done) = (&events[0].1, &events[7].1);
    assert_eq!(started["points"], 6);
    assert_eq!(started["axes"][1], json!({"name": "n", "values": [100, 256]}));
    assert_eq!(started["job_id"], done["job_id"]);
    for ((_, point), whole) in events[1..7].iter().zip(done["points"].as_array().unwrap()) {
        assert_eq!(point, whole);
    }

    let csv = server.post_json("/sweep?format=csv", &mixed());
    assert_eq!(csv.status, 200, "{}", csv.text);
    assert!(csv.header("content-type").unwrap().starts_with("text/csv"), "{:?}", csv.headers);
    let lines: Vec<&str> = csv.text.lines().collect();
    assert!(lines[0].starts_with("add,n,status,median_ms,"), "{}", lines[0]);
    assert!(lines[2].starts_with("1.0f,256,correct,"), "{}", lines[2]);
    assert!(csv.text.matches("\n1.0f,").count() == 2, "{}", csv.text);
}

#[test]
fn sweeps_are_bounded_and_refused_as_a_whole_where_nothing_can_run() {
    let server = Server::start_configured("[limits]\nmax_sweep_points = 5\n");
    let refused = |body: &Value, path: &str, part: &str| {
        for route in ["/sweep", "/sweep?stream=true"] {
            let answer = server.post_json(route, body);
            assert_eq!(answer.status, 400, "{}", answer.text);
            assert_eq!(answer.json["path"], path, "{}", answer.text);
            let message = answer.json["error"].as_str().unwrap();
            assert!(message.contains(part), "{message}");
        }
    };
    refused(&mixed(), "axes", "6 combinations");
    let mut body = mixed();
    body["axes"]["n"] = json!([100]);
    refused(&body, "num_trials", "no other point is valid");
    body["axes"] = json!({"n": [256]});
    refused(&body, "kernel.metadata.compiler_options[0]", "`$add`");
    let answer =
        server.post_json("/sweep", &json!({"axes": {"n": [1]}, "kernel": 1, "kernels": 1}));
    assert_eq!((answer.status, answer.json["code"].as_str()), (400, Some("unknown_field")));
    let status = server.get("/info").json;
    assert_eq!(status["queue_depth"], 0, "{status}");
}

/// Points that end at their timeout.
fn slow(points: usize, timeout: f64) -> Value {
    let mut body = endless(timeout);
    body["axes"] = json!({"point": [format!("1..{points}")]});
    body["kernel"]["metadata"]["description"] = json!("$point");
    body
}

/// Starts a sweep as a stream and returns the connection and the job's id.
fn begin(server: &Server, body: &Value) -> (BufReader<TcpStream>, String) {
    let body = body.to_string();
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /sweep HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "{}", server.output());
        if let Some(data) = line.strip_prefix("data: ") {
            let started: Value = serde_json::from_str(data).unwrap();
            return (reader, started["job_id"].as_str().unwrap().to_owned());
        }
    }
}

#[test]
fn a_client_that_goes_away_cancels_its_sweep() {
    let server = Server::start();
    let (connection, job_id) = begin(&server, &slow(8, 300.0));
    let job = || server.get(&format!("/jobs/{job_id}")).json;
    until("the first point on the device", || (job()["state"] == "profiling").then_some(()));
    assert_eq!(job()["sweep"], json!({"points": 8, "points_done": 0}));
    drop(connection);
    let job = until("the sweep's end", || Some(job()).filter(|job| job["state"] == "cancelled"));
    assert!(job["error"].as_str().unwrap().contains("disconnected"), "{job}");
    // Its device is free again.
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
}

#[test]
fn others_are_served_while_a_sweep_runs() {
    // Room for one on the device and three that wait.
    let server = Server::start_configured("[devices]\nqueue_capacity = 3\n");
    let (_connection, job_id) = begin(&server, &slow(8, 1.0));
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
    let job = server.get(&format!("/jobs/{job_id}")).json;
    assert_eq!(job["finished_at"], Value::Null, "{job}");
    assert!(job["sweep"]["points_done"].as_u64().unwrap() < 8, "{job}");
}

#[test]
fn the_example_sweeps_are_correct_at_every_point() {
    let server = Server::start();
    for (name, points) in [("vector_add", 9), ("matmul_tiled", 6)] {
        let mut body = sweep_example(name);
        body["num_trials"] = json!(2);
        let answer = server.post_json("/sweep", &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json["counts"], json!({"correct": points}), "{}", answer.json["points"]);
    }
}

#[test]
fn the_command_line_prints_the_table_here_and_from_a_server() {
    let server = Server::start();
    let directory = crate::server::data_directory();
    let file = directory.path().join("sweep.json");
    std::fs::write(&file, mixed().to_string()).unwrap();
    let file = file.to_str().unwrap();
    let run = |flags: &[&str]| {
        let mut command = program();
        command.env("WARPGAUGE_DATA_DIR", directory.path());
        let output = command.args(["--device", &device(), "sweep", file]).args(flags).output();
        let output = output.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for flags in [&["--server", server.url.as_str()][..], &[]] {
        let (code, out, error) = run(flags);
        // The worst point decides: a contract that is not valid.
        assert_eq!(code, Some(2), "{error}");
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].contains("add    n  verdict"), "{out}");
        for (line, (add, n, status)) in lines[1..].iter().zip(OUTCOMES) {
            let words: Vec<&str> = line.split_whitespace().take(3).collect();
            assert_eq!(words, [add, n.to_string().as_str(), status], "{out}");
        }
        assert!(out.contains("\n6 points in "), "{out}");
        assert!(out.contains("1 correct, 3 invalid, 1 not_compiled, 1 wrong"), "{out}");
        assert!(!out.contains('\x1b'), "no colour where there is no terminal");
        let page = lines.last().unwrap().split_whitespace().collect::<Vec<_>>();
        let links =
            matches!(page[..], ["page", url] if url.starts_with(&format!("{}/jobs/", server.url)));
        assert_eq!(links, !flags.is_empty(), "{out}");
    }
    let (_, out, _) = run(&["--server", &server.url, "--json", "--quiet"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["points"].as_array().unwrap().len(), 6);
    let (_, out, error) = run(&["--csv", "--quiet"]);
    assert!(out.starts_with("add,n,status,"), "{out}{error}");
    assert_eq!(error, "");

    let example = root().join("kernels/vector_add/sweep.yaml");
    let mut command = program();
    command.env("WARPGAUGE_DATA_DIR", directory.path());
    command.args(["--device", &device(), "sweep", example.to_str().unwrap(), "--quiet"]);
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert_eq!(out.lines().filter(|line| line.contains(" correct ")).count(), 9, "{out}");
}
