//! Copies of shared tensors that stay on their device, for callers that wait for the answer.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use super::named::{ended, over, right, values};
use super::share::Stranger;
use super::*;
use crate::contracts::{endless, increment};
use crate::server::until;

/// Elements of a tensor that is large enough to stay.
const LARGE: usize = 1 << 18;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A report whose kernel is right, and got a copy that no byte of went through the host.
#[track_caller]
fn stayed(report: &Value, id: &str, count: usize) {
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let used = json!([{
        "tensor_id": id, "origin": "shared", "dtype": "float32", "shape": [count],
        "device": "cuda:0",
    }]);
    assert_eq!(report["tensors"], used, "{report:#}");
}

fn held_bytes(server: &Server) -> u64 {
    server.get("/tensors").json["held_bytes"].as_u64().unwrap()
}

/// A job that has the device until it is cancelled.
fn busy(server: &Server) -> String {
    let body = endless(600.0).to_string();
    let accepted = server.post("/evaluate?wait=false", &[JSON], body.as_bytes());
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let id = accepted.json["job_id"].as_str().unwrap().to_owned();
    until("it runs", || {
        (server.get(&format!("/jobs/{id}")).json["state"] == "profiling").then_some(())
    });
    id
}

fn cancel(server: &Server, job: &str) {
    assert!(server.delete(&format!("/jobs/{job}")).status < 300);
}

#[test]
fn a_large_input_of_a_caller_who_waits_stays_on_its_device() {
    let server = Server::start();
    let floats = values(LARGE);
    let id = held(&server, 0, &floats);
    let alone = held_bytes(&server);
    let contract = over(&id, &floats);
    for isolation in ["warm", "fresh", "sealed"] {
        let mut contract = contract.clone();
        contract["isolation"] = isolation.into();
        stayed(&server.evaluate(&contract), &id, LARGE);
    }
    let executed = server.post_json("/execute", &contract);
    assert_eq!(executed.status, 200, "{}", executed.text);
    stayed(&executed.json, &id, LARGE);
    // Another shape of as many elements; and the reference kernel gets the same.
    let mut other = contract.clone();
    other["kernel"]["io"]["args"][0]["tensor_spec"]["shape"] = json!([2, LARGE / 2]);
    other["expected"] = json!({"out": {"kernel": {
        "kernel_type": "cuda", "source_code": contract["kernel"]["source_code"],
        "metadata": {"kernel_name": "increment"},
    }}});
    stayed(&server.evaluate(&other), &id, LARGE);
    let tensors = server.get("/tensors").json;
    assert_eq!(tensors["count"], 1, "{tensors}");
    until("the copies are gone", || (held_bytes(&server) == alone).then_some(()));
    assert_eq!(floats_of(&data(&server, &id, "raw")), floats, "it is as it was");
    let source = contract["kernel"]["source_code"].as_str().unwrap();
    let mut wrong = contract.clone();
    wrong["kernel"]["source_code"] = source.replace("+ 1.0f", "+ 1.5f").into();
    assert_eq!(server.evaluate(&wrong)["kernel_exec_result"]["correctness"], false);
}

#[test]
fn a_kernel_that_changes_an_input_which_stayed_is_found_and_changes_no_tensor() {
    let server = Server::start();
    let floats = values(LARGE);
    let id = held(&server, 0, &floats);
    let mut contract = over(&id, &floats);
    contract["kernel"]["source_code"] = "extern \"C\" __global__ void increment(float* in, \
        float* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { out[i] = \
        in[i] + 1.0f; if (i == 200001) in[i] = 5.0f; } }"
        .into();
    for isolation in ["warm", "sealed"] {
        contract["isolation"] = isolation.into();
        let report = server.evaluate(&contract);
        assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report:#}");
        let text = report.to_string();
        assert!(text.contains("input_modified") && text.contains("200001"), "{report:#}");
        assert_eq!(report["tensors"][0]["device"], "cuda:0", "{report:#}");
    }
    assert_eq!(floats_of(&data(&server, &id, "raw")), floats);
}

/// What must last, what somebody else reads, and what is small goes through the host.
#[test]
fn other_copies_go_through_the_host() {
    let server = Server::start();
    let floats = values(LARGE);
    let id = held(&server, 0, &floats);
    let contract = over(&id, &floats);
    let headers = [JSON, ("Idempotency-Key", "one")];
    let answer = server.post("/evaluate", &headers, contract.to_string().as_bytes());
    right(&answer.json, &id, &floats);
    let accepted =
        server.post("/evaluate?wait=false", &[JSON], contract.to_string().as_bytes()).json;
    right(&ended(&server, accepted["job_id"].as_str().unwrap())["result"], &id, &floats);
    // Named for what is expected, too: it is compared on the host.
    let mut same = contract.clone();
    same["kernel"]["source_code"] =
        contract["kernel"]["source_code"].as_str().unwrap().replace("+ 1.0f", "").into();
    same["expected"]["out"]["data"] = json!({"tensor_id": id});
    same["allow_weak"] = json!(true);
    right(&server.evaluate(&same), &id, &floats);
    // One that the kernel writes to, too.
    let mut both = increment();
    both["kernel"]["source_code"] = "extern \"C\" __global__ void increment(float* in, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) in[i] += 1.0f; }"
        .into();
    both["kernel"]["io"]["args"] = json!([
        {"name": "in", "type": "tensor", "role": "inout", "tensor_spec": {"data": {"tensor_id": id}}},
        {"name": "n", "type": "int", "value": LARGE},
    ]);
    both["expected"] = json!({"in": contract["expected"]["out"]});
    right(&server.evaluate(&both), &id, &floats);
    let mut checked = contract.clone();
    checked["sanitize"] = "memcheck".into();
    right(&server.evaluate(&checked), &id, &floats);
    let small = held(&server, 0, &floats[..1000]);
    right(&server.evaluate(&over(&small, &floats[..1000])), &small, &floats[..1000]);
    let on_host = held(&server, -1, &floats);
    right(&server.evaluate(&over(&on_host, &floats)), &on_host, &floats);
    // Where keys have a bound of their own, a request may have to wait in the store.
    let config = "[limits]\nmax_running_per_key = 3\n";
    let server = Server::start_configured(config);
    let id = held(&server, 0, &floats);
    right(&server.evaluate(&over(&id, &floats)), &id, &floats);
}

/// Copies have an eighth of a device's memory, here room for four; one whose caller goes gives its own back.
#[test]
fn copies_on_a_device_have_a_share_of_it_and_each_is_of_its_acceptance() {
    let server = Server::start_with(&[], &[("WARPGAUGE_EMULATOR_MEMORY_MB", "64")]);
    let floats = values(LARGE);
    let id = held(&server, 0, &floats);
    let alone = held_bytes(&server);
    let job = busy(&server);
    let body = over(&id, &floats[..1000]);

    let host = server.url.strip_prefix("http://").unwrap();
    let mut gone = TcpStream::connect(host).unwrap();
    let text = body.to_string();
    let head = format!(
        "POST /evaluate HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        text.len()
    );
    gone.write_all(head.as_bytes()).and_then(|()| gone.write_all(text.as_bytes())).unwrap();
    until("its copy is there", || (held_bytes(&server) == 2 * alone).then_some(()));
    drop(gone);
    until("it goes with its caller", || (held_bytes(&server) == alone).then_some(()));

    let reports = thread::scope(|scope| {
        let evaluate = || server.post_json("/evaluate", &body);
        let waiting: Vec<_> = (0..5).map(|_| scope.spawn(evaluate)).collect();
        until("all are accepted, beside the one that runs", || {
            let jobs = server.get("/jobs").json;
            let over = |job: &&Value| job["state"] == "cancelled";
            (jobs["jobs"].as_array()?.iter().filter(|job| !over(job)).count() == 6).then_some(())
        });
        // What all have is what it held, whatever is done to it now.
        let mut stranger = Stranger::open(&server, &id, 2.0);
        stranger.turn();
        let lease = stranger.handle["lease_id"].as_str().unwrap();
        assert_eq!(server.delete(&format!("/tensor-leases/{lease}")).status, 200);
        assert_eq!(server.delete(&format!("/tensors/{id}")).status, 200);
        cancel(&server, &job);
        waiting.into_iter().map(|one| one.join().unwrap().json).collect::<Vec<Value>>()
    });
    let there = reports.iter().filter(|report| report["tensors"][0]["device"] == "cuda:0");
    // A GPU's memory has room for all of them.
    let emulated = reports[0]["device"]["kind"] == "emulator";
    assert_eq!(there.count(), if emulated { 4 } else { 5 }, "{reports:#?}");
    for report in &reports {
        match report["tensors"][0]["device"].is_null() {
            true => right(report, &id, &floats),
            false => stayed(report, &id, LARGE),
        }
    }
    until("nothing is left", || (held_bytes(&server) == 0).then_some(()));
}

/// Quotas count copies, and one without room goes through the host.
#[test]
fn a_copy_without_room_goes_through_the_host() {
    let floats = values(LARGE);
    for bound in ["max_bytes_per_key = 3000000", "max_count_per_key = 1"] {
        let server = Server::start_configured(&format!("[tensors]\n{bound}\n"));
        let id = held(&server, 0, &floats);
        right(&server.evaluate(&over(&id, &floats)), &id, &floats);
    }
}

/// The process that holds a copy dies before it is used: told as what it is, and the next one is fine.
#[test]
fn a_copy_that_dies_with_its_holder_costs_its_request() {
    let server = Server::start();
    let floats = values(LARGE);
    let id = held(&server, 0, &floats);
    let alone = held_bytes(&server);
    let job = busy(&server);
    let body = over(&id, &floats[..1000]);
    let report = thread::scope(|scope| {
        let waiting = scope.spawn(|| server.post_json("/evaluate", &body));
        // Which is after copying.
        until("it is accepted", || {
            (server.get("/jobs").json["jobs"].as_array()?.len() == 2).then_some(())
        });
        assert_eq!(held_bytes(&server), 2 * alone);
        for process in super::holder::holders(&server) {
            super::holder::kill(process);
        }
        until("that is noticed", || (held_bytes(&server) == 0).then_some(()));
        // On an emulated device the memory of the dead stays until the next shares some.
        let other = held(&server, 0, &[1.0]);
        assert_eq!(server.get(&format!("/tensors/{other}/handle")).status, 200);
        cancel(&server, &job);
        waiting.join().unwrap()
    });
    assert_eq!(report.json["kernel_exec_result"]["correctness"], Value::Null, "{}", report.text);
    assert!(report.text.contains("input_unreadable"), "{}", report.text);
    assert!(report.text.contains("shared tensor"), "{}", report.text);
    let id = held(&server, 0, &floats);
    stayed(&server.evaluate(&over(&id, &floats)), &id, LARGE);
}

/// A server that is killed takes the copy with it: the job ends, and says why.
#[test]
fn a_job_whose_copy_went_with_the_server_says_so() {
    let data = crate::server::data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let floats = values(LARGE);
    let id = held(&server, 0, &floats);
    let alone = held_bytes(&server);
    let blocking = busy(&server);
    let body = over(&id, &floats[..1000]);
    let job = thread::scope(|scope| {
        // Its connection ends with the server.
        scope.spawn(|| {
            let request = ureq::post(format!("{}/evaluate", server.url));
            let _ = request.header("Content-Type", "application/json").send(body.to_string());
        });
        until("its copy is there", || (held_bytes(&server) == 2 * alone).then_some(()));
        let job = until("it is accepted", || {
            let jobs = server.get("/jobs").json;
            let other = |job: &&Value| job["job_id"] != blocking.as_str();
            let job = jobs["jobs"].as_array()?.iter().find(other)?;
            Some(job["job_id"].as_str()?.to_owned())
        });
        let process = rustix::process::Pid::from_raw(server.pid().cast_signed()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        job
    });
    drop(server);
    let server = Server::start_in(data.path(), &[], &[]);
    cancel(&server, &blocking);
    let ended = ended(&server, &job);
    assert_eq!(ended["state"], "failed", "{ended:#}");
    assert!(ended.to_string().contains("is in device memory"), "{ended:#}");
}
