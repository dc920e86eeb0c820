//! Contracts that name shared tensors in place of data, in every request that takes a contract.

use std::thread;

use serde_json::{Value, json};

use super::*;
use crate::contracts::increment;
use crate::server::until;

/// The contract that adds one, over a shared tensor and with what must come of it.
pub(super) fn over(id: &str, values: &[f32]) -> Value {
    let mut contract = increment();
    let args = &mut contract["kernel"]["io"]["args"];
    args[0]["tensor_spec"] = json!({"data": {"tensor_id": id}});
    args[1]["tensor_spec"]["shape"] = json!([values.len()]);
    args[2]["value"] = json!(values.len());
    let expected: Vec<f32> = values.iter().map(|value| value + 1.0).collect();
    contract["expected"]["out"]["data"]["data_b64"] = base64(&bytes_of(&expected)).into();
    contract
}

pub(super) fn values(count: usize) -> Vec<f32> {
    (0..count).map(|at| at as f32 * 0.5 - 7.0).collect()
}

/// A report whose kernel is right, and that names the tensor whose content it got.
#[track_caller]
pub(super) fn right(report: &Value, id: &str, values: &[f32]) {
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    says(report, id, values);
}

#[track_caller]
fn says(report: &Value, id: &str, values: &[f32]) {
    let used = json!([{
        "tensor_id": id, "origin": "shared", "dtype": "float32", "shape": [values.len()],
        "blake3": blake3::hash(&bytes_of(values)).to_hex().to_string(),
    }]);
    assert_eq!(report["tensors"], used, "{report:#}");
}

#[track_caller]
fn refused(server: &Server, path: &str, body: &Value, status: u16, code: &str, at: &str) -> String {
    let answer = server.post_json(path, body);
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(
        (&answer.json["code"], &answer.json["path"]),
        (&json!(code), &json!(at)),
        "{}",
        answer.text
    );
    answer.json["error"].as_str().unwrap().to_owned()
}

#[test]
fn an_evaluation_reads_shared_tensors_wherever_they_are() {
    let server = Server::start();
    // The larger one goes through files, and takes several frames.
    for count in [5, (1 << 20) + 3] {
        for place in [0, -1] {
            let values = values(count);
            let id = held(&server, place, &values);
            // One that must last goes through the host (`on_device` has the others).
            let headers = [("Content-Type", "application/json"), ("Idempotency-Key", id.as_str())];
            let report =
                server.post("/evaluate", &headers, over(&id, &values).to_string().as_bytes()).json;
            right(&report, &id, &values);
            // The stored report says it too.
            let job = server.get(&format!("/jobs/{}", report["job_id"].as_str().unwrap())).json;
            assert_eq!(job["result"]["tensors"], report["tensors"]);
            // Reading is over when the request is accepted, and leaves the tensor as it was.
            let tensor = server.get(&format!("/tensors/{id}")).json;
            assert_eq!(tensor["leases"], 0, "{tensor}");
            assert_eq!(server.delete(&format!("/tensors/{id}")).status, 200);
        }
    }
    let id = held(&server, -1, &values(5));
    let mut wrong = over(&id, &values(5));
    let source = wrong["kernel"]["source_code"].as_str().unwrap().replace("+ 1.0f", "+ 1.5f");
    wrong["kernel"]["source_code"] = source.into();
    assert_eq!(server.evaluate(&wrong)["kernel_exec_result"]["correctness"], false);
}

#[test]
fn what_is_expected_can_be_a_shared_tensor() {
    let server = Server::start();
    let given = held(&server, 0, &[1.0, 2.0, 3.0]);
    let fine = held(&server, -1, &[2.0, 3.0, 4.0]);
    let other = held(&server, -1, &[2.0, 3.0, 5.0]);
    for (expected, verdict) in [(&fine, true), (&other, false)] {
        let mut contract = over(&given, &[1.0, 2.0, 3.0]);
        contract["expected"]["out"]["data"] = json!({"tensor_id": expected});
        let report = server.evaluate(&contract);
        assert_eq!(report["kernel_exec_result"]["correctness"], verdict, "{report:#}");
        let used = report["tensors"].as_array().unwrap();
        let ids: Vec<&str> = used.iter().map(|one| one["tensor_id"].as_str().unwrap()).collect();
        assert!(
            ids.len() == 2 && ids.contains(&given.as_str()) && ids.contains(&expected.as_str())
        );
    }
    let two = held(&server, -1, &[2.0, 3.0]);
    let mut contract = over(&given, &[1.0, 2.0, 3.0]);
    contract["expected"]["out"]["data"] = json!({"tensor_id": two});
    refused(
        &server,
        "/evaluate",
        &contract,
        400,
        "invalid_contract",
        "expected.out.data.tensor_id",
    );
}

#[test]
fn comparisons_sweeps_gates_baselines_and_batches_take_tensors_too() {
    let server = Server::start();
    let floats = values(64);
    let id = held(&server, 0, &floats);
    let contract = over(&id, &floats);

    let executed = server.post_json("/execute", &contract);
    assert_eq!(executed.status, 200, "{}", executed.text);
    right(&executed.json, &id, &floats);

    let mut custom = contract["kernel"].clone();
    let compared =
        json!({"ref_kernel": contract["kernel"], "custom_kernel": custom, "num_trials": 2});
    let answer = server.post_json("/compare", &compared);
    assert_eq!(answer.status, 200, "{}", answer.text);
    right(&answer.json, &id, &floats);
    custom.as_object_mut().unwrap().remove("io");
    let compared =
        json!({"ref_kernel": contract["kernel"], "custom_kernel": custom, "num_trials": 2});
    right(&server.post_json("/compare", &compared).json, &id, &floats);

    let other = held(&server, -1, &values(32));
    let mut sweep = contract.clone();
    sweep["kernel"]["io"]["args"][0]["tensor_spec"] =
        json!({"data": {"tensor_id": "$t"}, "shape": ["$n"]});
    sweep["kernel"]["io"]["args"][1]["tensor_spec"]["shape"] = json!(["$n"]);
    sweep["kernel"]["io"]["args"][2]["value"] = json!("$n");
    sweep["expected"] = json!({"out": {"kernel": {
        "kernel_type": "cuda", "source_code": contract["kernel"]["source_code"],
        "metadata": {"kernel_name": "increment"},
    }}});
    sweep["axes"] = json!({"t": [id, other], "n": [32, 64]});
    let answer = server.post_json("/sweep", &sweep);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let points = answer.json["points"].as_array().unwrap();
    let statuses: Vec<&str> = points.iter().map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["invalid", "correct", "correct", "invalid"], "{}", answer.text);
    says(&points[1], &other, &values(32));
    says(&points[2], &id, &floats);
    let none = "00000000-0000-4000-8000-000000000000";
    sweep["axes"] = json!({"t": [id, none], "n": [64]});
    let at = "kernel.io.args[0].tensor_spec.data.tensor_id";
    refused(&server, "/sweep", &sweep, 404, "no_such_tensor", at);

    let case = json!({"name": "a", "contract": contract, "baseline": contract});
    let answer = server.post_json("/gate", &json!({"suite": "s", "cases": [case]}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    says(&answer.json, &id, &floats);
    let case = json!({"name": "a", "contract": over(none, &floats)});
    let gate = json!({"suite": "s", "cases": [case]});
    refused(&server, "/gate", &gate, 404, "no_such_tensor", &format!("cases[0].contract.{at}"));

    let job = |id: &str| json!({"kind": "evaluate", "request": over(id, &floats)});
    let jobs = json!({"jobs": [job(&id), job(none)]});
    refused(&server, "/jobs", &jobs, 404, "no_such_tensor", &format!("jobs[1].request.{at}"));
    let accepted = server.post_json("/jobs", &json!({"jobs": [job(&id), job(&id)]}));
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    for job in accepted.json["jobs"].as_array().unwrap() {
        right(&ended(&server, job["job_id"].as_str().unwrap())["result"], &id, &floats);
    }
}

pub(super) fn ended(server: &Server, id: &str) -> Value {
    until("the end of the job", || {
        let job = server.get(&format!("/jobs/{id}")).json;
        matches!(job["state"].as_str(), Some("completed" | "failed")).then_some(job)
    })
}

/// A baseline is promoted with the content in it, and judged by that when the tensor is long gone.
#[test]
fn a_stored_baseline_keeps_what_its_tensors_held() {
    let server = Server::start();
    let id = held(&server, 0, &values(64));
    let case = json!({"name": "a", "contract": over(&id, &values(64))});
    let stored =
        server.post_json("/baselines", &json!({"name": "main", "suite": "s", "cases": [case]}));
    assert_eq!(stored.status, 200, "{}", stored.text);
    assert_eq!(server.delete(&format!("/tensors/{id}")).status, 200);
    let now = held(&server, -1, &values(64));
    let case = json!({"name": "a", "contract": over(&now, &values(64))});
    let gate = json!({"suite": "s", "baseline": "main", "cases": [case]});
    let answer = server.post_json("/gate", &gate);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_ne!(answer.json["verdict"], "ERROR", "{}", answer.text);
    says(&answer.json, &now, &values(64));
}

/// A job has the content of its acceptance, whatever is done to the tensor, and after a restart.
#[test]
fn a_job_that_waits_has_the_tensor_of_its_acceptance() {
    let data = crate::server::data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let floats = values(1 << 19);
    let id = held(&server, 0, &floats);
    let busy = crate::contracts::endless(600.0).to_string();
    let headers = [("Content-Type", "application/json")];
    let blocked = server.post("/evaluate?wait=false", &headers, busy.as_bytes());
    assert_eq!(blocked.status, 202, "{}", blocked.text);
    let body = over(&id, &floats).to_string();
    let accepted = server.post("/evaluate?wait=false", &headers, body.as_bytes());
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let mut stranger = super::share::Stranger::open(&server, &id, 2.0);
    stranger.turn();
    assert_eq!(server.delete(&format!("/tensors/{id}")).status, 200);
    server.kill();
    let server = Server::start_in(data.path(), &[], &[]);
    let blocked = blocked.json["job_id"].as_str().unwrap();
    assert!(server.delete(&format!("/jobs/{blocked}")).status < 300);
    right(&ended(&server, accepted.json["job_id"].as_str().unwrap())["result"], &id, &floats);
}

#[test]
fn a_tensor_that_is_not_there_is_told_where_it_is_named() {
    let keys = ["one-0123456789abcdef", "two-0123456789abcdef"];
    let config = format!("[server]\napi_keys = [\"{}\", \"{}\"]\n", keys[0], keys[1]);
    let server = Server::start_configured(&config);
    let post = |key: &str, path: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("X-API-Key", key)];
        server.post(path, &headers, body.to_string().as_bytes())
    };
    let uploaded = |more: Value| {
        let mut body = json!({"data_b64": base64(&bytes_of(&[1.0])), "cuda_device": -1});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = post(keys[0], "/tensors/from-array", &body);
        answer.json["tensor_id"].as_str().unwrap().to_owned()
    };
    let id = uploaded(json!({}));
    assert_eq!(post(keys[0], "/evaluate", &over(&id, &[1.0])).status, 200);
    let at = "kernel.io.args[0].tensor_spec.data.tensor_id";
    let long = "x".repeat(100_000);
    for (key, id) in [
        (keys[1], id.as_str()),
        (keys[0], "00000000-0000-4000-8000-000000000000"),
        (keys[0], "no id"),
        (keys[0], "../../etc/passwd"),
        (keys[0], ""),
        (keys[0], &long),
    ] {
        let answer = post(key, "/evaluate", &over(id, &[1.0]));
        let told = (answer.status, &answer.json["code"], &answer.json["path"]);
        assert_eq!(told, (404, &json!("no_such_tensor"), &json!(at)), "{}", answer.text);
        assert!(answer.text.len() < 1000);
    }
    let short = uploaded(json!({"ttl_s": 0.2}));
    let gone = until("it expires", || {
        let get = server.get_with(&format!("/tensors/{short}"), &[("X-API-Key", keys[0])]);
        (get.status == 410).then(|| post(keys[0], "/evaluate", &over(&short, &[1.0])))
    });
    let told = (gone.status, &gone.json["code"], &gone.json["path"]);
    assert_eq!(told, (410, &json!("tensor_gone"), &json!(at)), "{}", gone.text);
}

#[test]
fn what_does_not_fit_is_refused_where_it_stands() {
    let server = Server::start_configured("[limits]\nmax_decoded_bytes = 1000\n");
    let id = held(&server, 0, &values(100));
    let spec = |path: &str, value: Value| {
        let mut body = over(&id, &values(100));
        body["kernel"]["io"]["args"][0]["tensor_spec"][path] = value;
        body
    };
    let at = |field: &str| format!("kernel.io.args[0].tensor_spec.{field}");
    let invalid = "invalid_contract";
    let text =
        refused(&server, "/evaluate", &spec("shape", json!([99])), 400, invalid, &at("shape"));
    assert!(text.contains("[99]") && text.contains("[100]"), "{text}");
    let text =
        refused(&server, "/evaluate", &spec("dtype", json!("int32")), 400, invalid, &at("dtype"));
    assert!(text.contains("float32"), "{text}");
    refused(
        &server,
        "/evaluate",
        &spec("init", json!({"kind": "ones"})),
        400,
        invalid,
        &at("data"),
    );
    let both = json!({"tensor_id": id, "data_b64": "AAAA"});
    refused(&server, "/evaluate", &spec("data", both), 400, invalid, &at("data"));
    right(&server.evaluate(&spec("shape", json!([10, 10]))), &id, &values(100));

    // All places together are what counts, and more than may be copied is not begun.
    let mut thrice = over(&id, &values(100));
    let argument = |name: &str| json!({"name": name, "type": "tensor", "tensor_spec": {"data": {"tensor_id": id}}});
    let args = thrice["kernel"]["io"]["args"].as_array_mut().unwrap();
    args.extend([argument("b"), argument("c")]);
    let text = refused(&server, "/evaluate", &thrice, 413, "too_much_data", &at("data.tensor_id"));
    assert!(text.contains("3 times") && text.contains("max_decoded_bytes"), "{text}");
    let job = json!({"kind": "evaluate", "request": over(&id, &values(100))});
    let batch = json!({"jobs": [job, job, job]});
    let path = format!("jobs[2].request.{}", at("data.tensor_id"));
    refused(&server, "/jobs", &batch, 413, "too_much_data", &path);

    // Where nothing is run, no tensor is known.
    let body = json!({"kernel": over(&id, &values(100))["kernel"]});
    let text = refused(&server, "/compile", &body, 400, invalid, &at("data.tensor_id"));
    assert!(text.contains("which this operation does not support"), "{text}");
    let mut plan = over(&id, &values(100));
    plan["profile"] = json!({});
    // A plan is of the contract that would be evaluated.
    let planned = server.post_json("/profile/plan", &plan);
    assert_eq!(planned.status, 200, "{}", planned.text);
    let mut told = over(&id, &values(100));
    told["tensors"] = json!([{"tensor_id": "mine", "origin": "shared", "blake3": "", "dtype": "int8", "shape": [1]}]);
    let report = server.evaluate(&told);
    assert_eq!(report["tensors"][0]["origin"], "given", "{report:#}");
}

#[test]
fn a_command_without_a_server_knows_no_tensors() {
    let directory = tempfile::tempdir().unwrap();
    let contract = directory.path().join("contract.json");
    let id = "00000000-0000-4000-8000-000000000000";
    std::fs::write(&contract, over(id, &[1.0]).to_string()).unwrap();
    let output = crate::server::program().arg("eval").arg(&contract).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("kernel.io.args[0].tensor_spec.data.tensor_id"), "{text}");
    assert!(text.contains("--server") || text.contains("running server"), "{text}");
}

/// Copies that race with deletions are whole, or there is none.
#[test]
fn a_copy_and_a_deletion_do_not_disturb_each_other() {
    let server = Server::start();
    let floats = values((1 << 20) + 3);
    for _ in 0..3 {
        let id = held(&server, -1, &floats);
        let body = over(&id, &floats);
        let (evaluated, deleted) = thread::scope(|scope| {
            let evaluated = scope.spawn(|| server.post_json("/evaluate", &body));
            let deleted = server.delete(&format!("/tensors/{id}")).status;
            (evaluated.join().unwrap(), deleted)
        });
        assert_eq!(deleted, 200);
        match evaluated.status {
            200 => right(&evaluated.json, &id, &floats),
            status => {
                assert_eq!((status, &evaluated.json["code"]), (404, &json!("no_such_tensor")))
            }
        }
        until("its memory is free", || {
            (server.get("/tensors").json["held_bytes"] == 0).then_some(())
        });
    }
}

/// Triton and PyTorch get tensors as every kernel does, and what they leave is kept as well.
#[test]
fn kernels_in_python_read_shared_tensors() {
    needs!("Triton", crate::support::has_triton());
    let server = Server::start();
    let floats = values(1000);
    let (id, wanted) = (held(&server, 0, &floats), floats.iter().map(|value| value * 2.0));
    let wanted = held(&server, -1, &wanted.collect::<Vec<_>>());
    let contract = |kind: &str, source: &str| {
        json!({
            "kernel": {"kernel_type": kind, "source_code": source, "io": {"args": [
                {"name": "x", "type": "tensor", "tensor_spec": {"data": {"tensor_id": id}}},
                {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [1000]}},
            ]}},
            "expected": {"y": {"data": {"tensor_id": wanted}}},
            "keep_outputs": {"y": {"cuda_device": -1}},
            "num_trials": 2,
        })
    };
    let triton = "import triton\nimport triton.language as tl\n\n@triton.jit\n\
        def double(x, y):\n    at = tl.program_id(0) * 128 + tl.arange(0, 128)\n    \
        tl.store(y + at, tl.load(x + at, mask=at < 1000) * 2.0, mask=at < 1000)\n";
    let mut contracts = vec![contract("triton", triton)];
    contracts[0]["kernel"]["io"]["launch"] = json!({"grid": {"x": 8}, "num_warps": 4});
    if crate::support::has_torch() {
        contracts.push(contract("torch", "def f(x):\n    return x * 2"));
    } else {
        in_part!("PyTorch");
    }
    for contract in contracts {
        let report = server.evaluate(&contract);
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
        assert_eq!(report["tensors"].as_array().unwrap().len(), 2, "{report:#}");
        let kept = &report["kept_outputs"]["y"];
        let kept = kept["tensor_id"].as_str().unwrap_or_else(|| panic!("{report:#}"));
        assert_eq!(data(&server, kept, "raw"), data(&server, &wanted, "raw"));
        assert!(report["outputs"]["y"]["data_b64"].is_null(), "{report:#}");
        assert!(report["outputs"]["y"]["compress"].is_null(), "{report:#}");
    }
}
