//! Agents: the Model Context Protocol against the real program, over HTTP and over its standard streams.

pub mod agent;

use std::thread;

use serde_json::{Value, json};

use self::agent::{Agent, OwnServer, request};
use crate::contracts::{endless, increment};
use crate::server::{Server, data_directory, emulated, until};

const KEYS: &[(&str, &str)] = &[("WARPGAUGE_API_KEYS", "ours,theirs")];

fn with_source(mut contract: Value, from: &str, to: &str) -> Value {
    let source = contract["kernel"]["source_code"].as_str().unwrap().replace(from, to);
    contract["kernel"]["source_code"] = source.into();
    contract
}

#[test]
fn the_verdict_comes_first_and_then_what_is_most_useful() {
    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let right = agent.call("evaluate_kernel", json!({"request": increment()}));
    assert!(right["text"].as_str().unwrap().starts_with("CORRECT: increment: 1 output"), "{right}");
    assert_eq!((&right["verdict"], &right["is_error"]), (&json!("correct"), &json!(false)));
    assert_eq!(right["kernel_exec_result"]["correctness"], true, "{right}");
    let time = right["facts"][0].as_str().unwrap();
    assert!(time.starts_with("time: ") && time.contains("median"), "{right}");
    assert_eq!(time.contains("does not predict times on a GPU"), emulated(), "{right}");

    let wrong = with_source(increment(), "+ 1.0f", "+ 2.0f");
    let wrong = agent.call("evaluate_kernel", json!({"request": wrong}));
    assert!(wrong["text"].as_str().unwrap().starts_with("WRONG: increment: "), "{wrong}");
    let first = wrong["facts"][0].as_str().unwrap();
    assert!(first.starts_with("out[0] is 2, expected 1; 0 of 256 elements"), "{wrong}");
    assert_eq!((&wrong["verdict"], &wrong["is_error"]), (&json!("wrong"), &json!(false)));

    let broken = with_source(increment(), "int n)", "int n");
    let text = broken.to_string();
    let broken = agent.call("evaluate_kernel", json!({"contract_yaml": text}));
    assert!(broken["text"].as_str().unwrap().starts_with("NOT COMPILED: "), "{broken}");
    let first = broken["facts"][0].as_str().unwrap();
    assert!(first.starts_with("kernel.cu:1:") && first.contains("error"), "{broken}");

    let profiled = agent.call("profile_kernel", json!({"request": increment()}));
    assert_eq!(profiled["verdict"], "correct", "{profiled}");
    let report = agent.call("get_job", json!({"job_id": profiled["job_id"]}));
    assert_eq!(report["verdict"], "correct", "{report}");
}

#[test]
fn the_reference_systems_calls_work_as_they_are() {
    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let kernel = increment()["kernel"].clone();
    let flat = json!({
        "kernel_source": kernel["source_code"], "kernel_type": "cuda", "io_contract": kernel["io"],
        "metadata": kernel["metadata"], "num_trials": 10, "num_warmup": 10,
        "enable_device_metrics": false, "rtol": 1e-5, "atol": 1e-8, "timeout": 120,
        "reference_kernel_source": null, "reference_kernel_type": null,
        "reference_kernel_metadata": null,
    });
    let answer = agent.call("evaluate_kernel", flat);
    assert_eq!(answer["verdict"], "not_checked", "{answer}");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(answer["kernel_exec_result"]["compiled"], true, "{answer}");
    let request = json!({
        "ref_kernel": kernel, "custom_kernel": kernel, "num_trials": 10, "timeout": 120,
        "atol": 0.01, "rtol": 0.01,
    });
    let answer = agent.call("compare_kernels", json!({"request": request}));
    assert!(answer["ref_runtime"]["median"].as_f64().is_some(), "{answer}");
    // A kernel as short as its launch may take more blocks than there are to be told from itself.
    let expected = if emulated() { &["same_work"][..] } else { &["same", "inconclusive"] };
    assert!(answer["verdict"].as_str().is_some_and(|it| expected.contains(&it)), "{answer}");
    let devices = agent.call("list_devices", json!({}));
    assert_eq!(devices["devices"].as_array().map(Vec::len), Some(1), "{devices}");
}

#[test]
fn bad_arguments_name_their_path() {
    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let mut contract = increment();
    contract["kernel"]["io"]["args"][0]["rolle"] = json!("input");
    let mut zero = increment();
    zero["num_trials"] = json!(0);
    for (contract, path) in [(contract, "kernel.io.args[0].rolle"), (zero, "num_trials")] {
        let answer = agent.call("evaluate_kernel", json!({"request": contract}));
        assert_eq!(answer["is_error"], true, "{answer}");
        assert_eq!(answer["error"]["path"], path, "{answer}");
        let text = answer["text"].as_str().unwrap();
        assert!(text.starts_with("REFUSED: ") && text.contains(path), "{text}");
    }
    let heard = agent.ask("tools/call", json!({"name": "rm", "arguments": {}}));
    assert!(heard.error().1.contains("there is no tool \"rm\""), "{}", heard.text);
}

#[test]
fn a_job_is_told_of_while_it_runs_and_a_cancelled_call_ends_it() {
    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let call = request(
        21,
        "tools/call",
        json!({
            "name": "evaluate_kernel", "_meta": {"progressToken": "p"},
            "arguments": {"request": endless(120.0), "label": "long"},
        }),
    );
    let calling = thread::spawn({
        let agent = agent.clone();
        move || agent.send(&call)
    });
    let id = until("it runs", || {
        let jobs = server.get("/jobs?label=long").json;
        let id = jobs["jobs"][0]["job_id"].as_str()?.to_owned();
        let job = agent.call("get_job", json!({"job_id": id}));
        (job["verdict"] == "running" && job["state"] == "profiling").then_some(id)
    });
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 21, "reason": "enough"},
    });
    assert_eq!(agent.send(&cancel).status, 202);
    let ended = agent.call("get_job", json!({"job_id": id, "wait_s": 60}));
    assert_eq!((&ended["state"], &ended["verdict"]), (&json!("cancelled"), &json!("cancelled")));
    let heard = calling.join().unwrap();
    let progress: Vec<&Value> =
        heard.messages.iter().filter(|it| it["method"] == "notifications/progress").collect();
    assert!(!progress.is_empty(), "{}", heard.text);
    let numbers = progress.iter().map(|it| it["params"]["progress"].as_f64().unwrap());
    assert!(numbers.is_sorted_by(|a, b| a < b), "{}", heard.text);
    assert!(progress.iter().all(|it| it["params"]["progressToken"] == "p"), "{}", heard.text);
}

#[test]
fn what_is_not_waited_for_goes_on_and_is_read_later() {
    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let begun = agent.call("evaluate_kernel", json!({"request": increment(), "wait_s": 0}));
    let id = begun["job_id"].as_str().unwrap();
    let ended = agent.call("get_job", json!({"job_id": id, "wait_s": 120}));
    assert_eq!(ended["verdict"], "correct", "{ended}");
    let templates = agent.ask("resources/templates/list", json!({}));
    assert_eq!(templates.result()["resourceTemplates"].as_array().map(Vec::len), Some(2));
    let uri = ended["resources"][0].as_str().unwrap();
    let heard = agent.ask("resources/read", json!({"uri": uri}));
    let content = &heard.result()["contents"][0];
    assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("application/json")));
    let report: Value = serde_json::from_str(content["text"].as_str().unwrap()).unwrap();
    assert_eq!(report["result"]["kernel_exec_result"]["correctness"], true, "{report}");
    let heard =
        agent.ask("resources/read", json!({"uri": format!("warpgauge://jobs/{id}/artifacts/ptx")}));
    assert!(heard.result()["contents"][0]["text"].as_str().unwrap().contains(".entry increment"));
    let read = agent.ask(
        "tools/call",
        json!({
            "name": "get_job", "arguments": {"job_id": id, "read": "log"},
        }),
    );
    assert_eq!(read.result()["content"].as_array().map(Vec::len), Some(2), "{}", read.text);
}

#[test]
fn jobs_and_sessions_of_other_keys_do_not_exist() {
    let server = Server::start_with(&[], KEYS);
    let stranger = Agent::without_session(&server, None);
    assert_eq!(stranger.send(&agent::initialize()).status, 401);
    let (ours, theirs) =
        (Agent::begin(&server, Some("ours")), Agent::begin(&server, Some("theirs")));
    let done = ours.call("evaluate_kernel", json!({"request": increment()}));
    let uri = done["resources"][0].as_str().unwrap();
    assert!(ours.ask("resources/read", json!({"uri": uri})).result()["contents"].is_array());
    let heard = theirs.ask("resources/read", json!({"uri": uri}));
    let (code, message) = heard.error();
    assert!(code == -32002 && message.starts_with("there is no job"), "{}", heard.text);
    let answer = theirs.call("get_job", json!({"job_id": done["job_id"], "read": "report"}));
    assert_eq!(
        (&answer["is_error"], &answer["error"]["code"]),
        (&json!(true), &json!("no_such_job"))
    );
    let heard = ours.with_key("theirs").ask("tools/list", json!({}));
    assert_eq!(heard.status, 404, "{}", heard.text);
    assert!(heard.text.contains("no_such_session"), "{}", heard.text);
}

/// Returns a report from `tests/fixtures/profile`.
fn profile(name: &str) -> String {
    let path = format!("{}/tests/fixtures/profile/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn reports_of_profilers_are_read_without_a_job() {
    let server = Server::start();
    let agent = Agent::begin(&server, None);
    let data = data_directory();
    let environment = [("WARPGAUGE_DATA_DIR", data.path().to_str().unwrap())];
    let mut own = OwnServer::start(&[], &environment);
    let raw = profile("ncu/2025.3.1-h200-raw_full_base.csv");
    let one = profile("ncu/2025.3.1-h200-import_raw.csv");
    // Nearly as long as a message may be.
    let log = profile("sanitizer/2025.3.1-h200.txt").repeat(500);
    let mut call = |arguments: Value| {
        let answer = agent.call("import_report", arguments.clone());
        assert_eq!(answer, own.call("import_report", arguments), "over standard streams");
        answer
    };
    let answer = call(json!({"content": raw, "metrics": ["sm_throughput"]}));
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with("NSIGHT COMPUTE: 5 kernels in 6 launches; matmul_tiled("), "{text}");
    let value = &answer["kernels"][0]["metrics"]["sm_throughput"]["value"];
    assert!(value.as_f64().is_some_and(|value| value > 90.0), "{answer}");
    assert_eq!(answer["is_error"], false, "{answer}");
    let answer = call(json!({"content": raw, "against": one}));
    assert_eq!(
        (&answer["kind"], &answer["new"][3]),
        (&json!("changes"), &json!("void tmpl<float>(T1 *, int)"))
    );
    let answer = call(json!({"content": log}));
    assert_eq!(answer["errors"], 3_500, "{answer}");
    let answer = call(json!({"content": "SQLite format 3\u{0}"}));
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with("REFUSED: content: this is an SQLite export"), "{text}");
    assert_eq!((&answer["is_error"], &answer["error"]["path"]), (&json!(true), &json!("content")));
    assert_eq!(server.get("/jobs").json["jobs"], json!([]));
    assert_eq!(own.end(), 0);
}

#[test]
fn an_agent_may_start_the_program_itself() {
    let data = data_directory();
    let environment = [("WARPGAUGE_DATA_DIR", data.path().to_str().unwrap())];
    let mut own = OwnServer::start(&[], &environment);
    own.send_line("{\"jsonrpc\": \"2.0\", \"id\"");
    let answer = own.call("evaluate_kernel", json!({"request": increment()}));
    assert_eq!(answer["verdict"], "correct", "{answer}");
    let again = own.call("get_job", json!({"job_id": answer["job_id"], "read": "report"}));
    assert_eq!(again["verdict"], "correct", "{again}");
    assert_eq!(own.end(), 0);
}

#[test]
fn an_agent_may_have_a_server_elsewhere() {
    let server = Server::start_with(&[], KEYS);
    let environment = [("WARPGAUGE_API_KEY", "ours")];
    let mut own = OwnServer::start(&["--server", &server.url], &environment);
    let answer = own.call("evaluate_kernel", json!({"request": increment(), "label": "mine"}));
    assert_eq!(answer["verdict"], "correct", "{answer}");
    let page = format!("{}/jobs/{}", server.url, answer["job_id"].as_str().unwrap());
    assert_eq!(answer["page"], page.as_str(), "{answer}");
    assert!(answer["text"].as_str().unwrap().contains(&format!("Page for people: {page}")));
    let missing = own.call("get_job", json!({"job_id": "nonsense"}));
    assert!(missing["error"]["message"].as_str().unwrap().contains("no job nonsense"), "{missing}");
    let mut zero = increment();
    zero["num_trials"] = json!(0);
    let refused = own.call("evaluate_kernel", json!({"request": zero}));
    assert!(refused["text"].as_str().unwrap().contains("num_trials"), "{refused}");

    // A job ends with the agent that waits for it.
    let arguments = json!({"request": endless(120.0), "label": "left"});
    own.send(&request(3, "tools/call", json!({"name": "evaluate_kernel", "arguments": arguments})));
    let mut listing = OwnServer::start(&["--server", &server.url], &environment);
    let id = until("the job is there", || {
        let jobs = server.get_with("/jobs?label=left", &[("X-API-Key", "ours")]).json;
        jobs["jobs"][0]["job_id"].as_str().map(str::to_owned)
    });
    assert_eq!(own.end(), 0);
    let ended = listing.call("get_job", json!({"job_id": id, "wait_s": 60}));
    assert_eq!(ended["state"], "cancelled", "{ended}");
}
