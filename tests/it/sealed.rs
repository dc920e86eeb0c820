//! Sealed launches: all of them if the contract requests that, and some in every timed run.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::lifecycle::children_of;
use crate::server::{Server, until};

/// Elements of the small contract.
const N: u32 = 1024;

/// How many processes are killed.
const KILLS: usize = 200;

/// Addition of two vectors, by a kernel with this statement in it.
fn addition(statement: &str) -> Value {
    let tensor = |name: &str, role: &str, seed: Option<u32>| {
        let mut spec = json!({"shape": [N], "dtype": "float32"});
        if let Some(seed) = seed {
            spec["init"] = json!({"kind": "randn", "seed": seed});
        }
        json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
    };
    let kernel = |name: &str, statement: &str| {
        let source = format!(
            "extern \"C\" __global__ void {name}(const float* a, const float* b, float* c, int n) {{
                int i = blockIdx.x * blockDim.x + threadIdx.x;
                {statement}
            }}"
        );
        json!({"kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": name}})
    };
    let mut candidate = kernel("add", statement);
    candidate["io"] = json!({
        "args": [
            tensor("a", "input", Some(1)), tensor("b", "input", Some(2)), tensor("c", "output", None),
            {"name": "n", "type": "int", "value": N},
        ],
        "launch": {"grid": {"x": N / 256}, "block": {"x": 256}},
    });
    let reference = kernel("reference", "if (i < n) c[i] = a[i] + b[i];");
    json!({"kernel": candidate, "expected": {"c": {"kernel": reference}}, "num_trials": 12})
}

fn right() -> Value {
    addition("if (i < n) c[i] = a[i] + b[i];")
}

fn sealed(mut contract: Value) -> Value {
    contract["isolation"] = json!("sealed");
    contract
}

fn reasons(report: &Value) -> Vec<&str> {
    let reasons = report["validation"]["reasons"].as_array().unwrap();
    reasons.iter().filter_map(|reason| reason["code"].as_str()).collect()
}

/// Children that were started with this argument.
fn started_with(server: &Server, argument: &[u8]) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|other| other == argument)
    };
    children_of(server.pid()).into_iter().filter(is_one).collect()
}

/// Processes that judge.
fn judges(server: &Server) -> Vec<u32> {
    started_with(server, b"--judge")
}

/// Processes that run kernels or judge.
fn workers(server: &Server) -> Vec<u32> {
    started_with(server, b"__worker")
}

#[test]
fn every_launch_of_a_sealed_evaluation_is_judged_apart() {
    let server = Server::start();
    let report = server.evaluate(&sealed(right()));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    let measured = &report["measurement"];
    assert_eq!((&measured["sealed"]["launches"], &measured["audited"]), (&json!(12), &json!(12)));
    assert_eq!(measured["inputs"], "fresh");
    assert_eq!(judges(&server).len(), 1);

    // Faults come to their owner, who is told in which process they came up no more than elsewhere.
    let beyond = server.evaluate(&sealed(addition("*(volatile float*)(4096ull + 4 * i) = a[i];")));
    assert_eq!(beyond["kernel_exec_result"]["correctness"], false);
    let code = &beyond["failure"]["code"];
    assert!(["illegal_address", "memory_fault"].iter().any(|known| code == known), "{beyond}");
    let printed = server.evaluate(&sealed(addition(
        "if (i == 0) printf(\"seen\\n\"); if (i < n) c[i] = a[i] + b[i];",
    )));
    assert!(printed.to_string().contains("seen"), "{printed}");
    let wrong = server.evaluate(&sealed(addition("if (i < n) c[i] = a[i] - b[i];")));
    assert_eq!(reasons(&wrong), ["output_mismatch"]);
    assert_eq!(server.evaluate(&sealed(right()))["kernel_exec_result"]["correctness"], true);
}

#[test]
fn some_timed_launches_of_every_evaluation_are_sealed() {
    let server = Server::start();
    let report = server.evaluate(&right());
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    // Three of twelve, some of every batch.
    let sealed = report["measurement"]["sealed"]["launches"].as_u64().unwrap();
    assert!((3..=5).contains(&sealed), "{}", report["measurement"]);
    assert_eq!(report["measurement"]["audited"], 12);
    let mut few = right();
    few["num_trials"] = json!(2);
    assert_eq!(server.evaluate(&few)["measurement"]["sealed"]["launches"], 2);
    // Where nothing is expected there is nothing to judge.
    let mut unchecked = right();
    unchecked.as_object_mut().unwrap().remove("expected");
    assert_eq!(server.evaluate(&unchecked)["measurement"]["sealed"], Value::Null);
}

#[test]
fn a_reference_that_faults_is_to_blame_wherever_it_runs() {
    let server = Server::start();
    for isolation in ["warm", "sealed"] {
        let mut contract = right();
        contract["isolation"] = json!(isolation);
        contract["expected"]["c"]["kernel"]["source_code"] = json!(
            "extern \"C\" __global__ void reference(const float* a, const float* b, float* c, int n) {
                *(volatile float*)(4096ull + 4 * threadIdx.x) = a[0];
            }"
        );
        let report = server.evaluate(&contract);
        assert_eq!(reasons(&report), ["reference_failed"], "{report}");
    }
    assert_eq!(server.evaluate(&right())["kernel_exec_result"]["correctness"], true);
}

/// Numbers that look random, the same in each run: SplitMix64, Steele et al. 2014.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

#[test]
fn whoever_is_killed_costs_an_evaluation_and_never_makes_it_a_pass() {
    let server = Server::start();
    let mut dice = Dice(15);
    let contracts = [right(), sealed(right())];
    // Wrong for half of all inputs.
    let wrong = "if (i < n) c[i] = (__float_as_uint(a[0]) & 1) ? 0.0f : a[i] + b[i];";
    let wrong = [addition(wrong), sealed(addition(wrong))];
    let (mut done, mut ends) = (0, std::collections::BTreeMap::<String, u32>::new());
    let mut unavailable = 0;
    while done < KILLS {
        let kind = dice.roll(4);
        let contract = if kind < 2 { &contracts[kind] } else { &wrong[kind - 2] };
        let (over, ended) = mpsc::channel::<()>();
        let (delay, choice) = (Duration::from_millis(dice.roll(120) as u64), dice.roll(97));
        let report = thread::scope(|scope| {
            let server = &server;
            scope.spawn(move || {
                // At some moment of the evaluation, unless it ends before.
                if ended.recv_timeout(delay).is_err() {
                    let children = workers(server);
                    let pid = children.get(choice % children.len().max(1));
                    pid.into_iter().for_each(|pid| kill(*pid));
                }
            });
            let answer = server.post_json("/evaluate", contract);
            // Nobody listens where one was killed.
            let _ = over.send(());
            answer
        });
        if report.status == 503 {
            // Three were killed in a row as they started: the device counts as failed until one starts.
            assert_eq!(report.json["code"], "unavailable", "{}", report.text);
            unavailable += 1;
            until("a worker starts again", || (server.get("/health").status == 200).then_some(()));
            continue;
        }
        assert_eq!(report.status, 200, "{}\n{}", report.text, server.output());
        let report = report.json;
        let verdict = &report["kernel_exec_result"]["correctness"];
        let failed = report["failure"]["code"].as_str();
        match kind {
            0 | 1 => assert!(*verdict == true || verdict.is_null() && failed.is_some(), "{report}"),
            _ => assert!(*verdict == false || verdict.is_null() && failed.is_some(), "{report}"),
        }
        *ends.entry(failed.unwrap_or("verdict").to_owned()).or_default() += 1;
        done += 1;
    }
    // Evaluations were hit, and many.
    assert!(unavailable < KILLS / 10, "{unavailable} found no device");
    assert!(ends.get("worker_died").is_some_and(|&died| died >= 20), "{ends:?}");
    for contract in &contracts {
        let report = server.evaluate(contract);
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    }
    println!("{KILLS} kills: {ends:?}");
}

fn kill(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        // One that ended by itself is gone, which is what was wanted.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
