//! Contracts that name matrices of the caller, or generated matrices, in every request that takes a
//! contract.

use serde_json::{Value, json};

use super::KERNEL;
use super::matrices::{GENERAL, SYMMETRIC, upload};
use crate::server::{Server, emulated};

/// A contract of the CSR kernel and a matrix, whose vector is generated.
pub fn contract(matrix: &str) -> Value {
    let of = |part: &str| json!({"matrix": matrix, "part": part});
    let array =
        |name: &str| json!({"name": name, "type": "tensor", "tensor_spec": {"data": of(name)}});
    json!({
        "kernel": {
            "kernel_type": "cuda", "source_code": KERNEL, "metadata": {"kernel_name": "csr_spmv_kernel"},
            "io": {
                "args": [
                    {"name": "num_rows", "type": "int", "value_of": of("num_rows")},
                    array("values"), array("col_indices"), array("row_ptr"),
                    {"name": "x", "type": "tensor", "tensor_spec": {
                        "shape_of": of("x"), "init": {"kind": "randn", "seed": 7}}},
                    {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape_of": of("y")}},
                ],
                "launch": {"grid": {"x": "ceil_div(num_rows, 64)"}, "block": {"x": 64}},
            },
        },
        "expected": {"y": {"matrix": matrix, "times": "x"}},
        "num_trials": 2,
    })
}

fn wrong(mut contract: Value) -> Value {
    let source = KERNEL.replace("i < row_ptr[row + 1]", "i + 1 < row_ptr[row + 1]");
    contract["kernel"]["source_code"] = source.into();
    contract
}

/// Where a request is wrong, and what is said of it.
fn refused(server: &Server, path: &str, body: &Value) -> (String, String) {
    let answer = server.post_json(path, body);
    // 413: what comes is short, and becomes too much.
    assert!(matches!(answer.status, 400 | 413), "{}", answer.json);
    let text = |field: &str| answer.json[field].as_str().unwrap_or_default().to_owned();
    (text("path"), text("error"))
}

#[test]
fn an_evaluation_is_judged_by_the_product_and_says_what_was_multiplied() {
    let server = Server::start();
    assert_eq!(upload(&server, "s.mtx", SYMMETRIC, None).status, 200);
    let uploaded = blake3::hash(SYMMETRIC.as_bytes()).to_hex().to_string();
    for (name, origin, nnz) in [("s.mtx", "stored", 5), ("poisson2d:nx=20", "generated", 1920)] {
        let report = server.evaluate(&contract(name));
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
        let [used] = report["matrices"].as_array().unwrap().as_slice() else { panic!("{report}") };
        assert_eq!((&used["name"], &used["origin"]), (&json!(name), &json!(origin)));
        assert_eq!(used["nnz"], nnz);
        assert_eq!(used["blake3"] == json!(uploaded), name == "s.mtx", "{used}");
        // What a kernel keeps on a GPU is not all known.
        let inputs = if emulated() { "same_state_wiped" } else { "same" };
        assert_eq!(report["measurement"]["inputs"], inputs, "{report}");
        // The stored report says it too.
        let job = server.get(&format!("/jobs/{}", report["job_id"].as_str().unwrap())).json;
        assert_eq!(job["result"]["matrices"], report["matrices"]);
        let report = server.evaluate(&wrong(contract(name)));
        assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report}");
    }
}

#[test]
fn vectors_are_data_or_ones_and_products_of_double_precision() {
    let server = Server::start();
    assert_eq!(upload(&server, "s.mtx", SYMMETRIC, None).status, 200);
    let mut given = contract("s.mtx");
    for (index, dtype) in [(1, "float64"), (4, "float64"), (5, "float64")] {
        given["kernel"]["io"]["args"][index]["tensor_spec"]["dtype"] = json!(dtype);
    }
    given["kernel"]["source_code"] =
        KERNEL.replace("float", "double").replace("0.0f", "0.0").into();
    given["kernel"]["io"]["args"][4]["tensor_spec"]["data"] =
        json!({"matrix": "s.mtx", "part": "x"});
    given["kernel"]["io"]["args"][4]["tensor_spec"].as_object_mut().unwrap().remove("init");
    given["return_outputs"] = json!(["y"]);
    let report = server.evaluate(&given);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    let bytes: Vec<u8> = [3.0f64, 3.0, 2.5].iter().flat_map(|it| it.to_le_bytes()).collect();
    assert_eq!(report["outputs"]["y"]["data_b64"], crate::contracts::base64(&bytes));
    // A kernel of single precision is not precise enough for that.
    given["kernel"]["source_code"] = KERNEL
        .replace("float", "double")
        .replace("double sum = 0.0f", "float sum = 0.1f - 0.1f")
        .replace("y[row] = sum", "y[row] = (float)(sum * 1.0000001f)")
        .into();
    let report = server.evaluate(&given);
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report}");
}

#[test]
fn comparisons_sweeps_gates_and_jobs_take_names_too() {
    let server = Server::start();
    assert_eq!(upload(&server, "s.mtx", SYMMETRIC, None).status, 200);
    let kernel = contract("s.mtx")["kernel"].clone();
    let mut custom = kernel.clone();
    custom.as_object_mut().unwrap().remove("io");
    let compared = json!({"ref_kernel": kernel, "custom_kernel": custom, "num_trials": 2});
    let answer = server.post_json("/compare", &compared);
    assert_eq!(answer.status, 200, "{}", answer.json);
    assert_eq!(answer.json["kernel_exec_result"]["correctness"], true, "{}", answer.json);
    assert_eq!(answer.json["matrices"][0]["name"], "s.mtx");

    let mut sweep = contract("$m");
    sweep["axes"] =
        json!({"m": ["s.mtx", "poisson2d:nx=5", "poisson2d:nx=999999999", "diagonal:n=9"]});
    let answer = server.post_json("/sweep", &sweep);
    assert_eq!(answer.status, 200, "{}", answer.json);
    let points = answer.json["points"].as_array().unwrap();
    let statuses: Vec<&str> = points.iter().map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["correct", "correct", "invalid", "correct"], "{}", answer.json);
    assert_eq!(points[0]["matrices"][0]["origin"], "stored");
    assert_eq!(points[1]["matrices"][0]["nnz"], 105);
    let reason = &points[2]["reasons"][0];
    assert!(reason["message"].as_str().unwrap().contains("at most"), "{reason}");
    sweep["axes"] = json!({"m": ["s.mtx", "t.mtx"]});
    let (path, message) = refused(&server, "/sweep", &sweep);
    assert_eq!(path, "kernel.io.args[0].value_of.matrix");
    assert!(message.contains("there is no matrix t.mtx"), "{message}");

    let case = json!({"name": "a", "contract": contract("s.mtx"), "baseline": contract("s.mtx")});
    let gate = json!({"suite": "s", "cases": [case]});
    let answer = server.post_json("/gate", &gate);
    assert_eq!(answer.status, 200, "{}", answer.json);
    assert_eq!(answer.json["matrices"][0]["name"], "s.mtx", "{}", answer.json);

    let job = json!({"kind": "evaluate", "request": contract("no.mtx")});
    let jobs = json!({"jobs": [{"kind": "evaluate", "request": contract("s.mtx")}, job]});
    let (path, _) = refused(&server, "/jobs", &jobs);
    assert_eq!(path, "jobs[1].request.kernel.io.args[0].value_of.matrix");
}

/// What a name stood for when the job was taken is what it multiplies, whatever comes after.
#[test]
fn a_job_that_waits_has_the_matrix_of_its_acceptance() {
    let server = Server::start();
    assert_eq!(upload(&server, "s.mtx", SYMMETRIC, None).status, 200);
    let body = contract("s.mtx").to_string();
    let accepted = server.post(
        "/evaluate?wait=false",
        &[("Content-Type", "application/json")],
        body.as_bytes(),
    );
    assert_eq!(accepted.status, 202, "{}", accepted.json);
    assert_eq!(upload(&server, "s.mtx", GENERAL, None).status, 200);
    let id = accepted.json["job_id"].as_str().unwrap();
    let job = crate::server::until("the end of the job", || {
        let job = server.get(&format!("/jobs/{id}")).json;
        matches!(job["state"].as_str(), Some("completed" | "failed")).then_some(job)
    });
    assert_eq!(job["state"], "completed", "{job}");
    assert_eq!(job["result"]["kernel_exec_result"]["correctness"], true, "{job}");
    assert_eq!(job["result"]["matrices"][0]["nnz"], 5);
    let now = server.evaluate(&contract("s.mtx"));
    assert_eq!(now["matrices"][0]["nnz"], 3, "{now}");
}

#[test]
fn a_name_is_the_callers_own() {
    let keys = ["one-0123456789abcdef", "two-0123456789abcdef"];
    let server = Server::start_configured(&format!(
        "[server]\napi_keys = [\"{}\", \"{}\"]\n",
        keys[0], keys[1]
    ));
    assert_eq!(upload(&server, "s.mtx", SYMMETRIC, Some(keys[0])).status, 200);
    let body = contract("s.mtx").to_string();
    let evaluated = |key: &str| {
        let headers = [("Content-Type", "application/json"), ("X-API-Key", key)];
        server.post("/evaluate", &headers, body.as_bytes())
    };
    assert_eq!(evaluated(keys[0]).status, 200);
    let other = evaluated(keys[1]);
    assert_eq!(other.status, 400, "{}", other.json);
    assert_eq!(other.json["path"], "kernel.io.args[0].value_of.matrix");
}

#[test]
fn what_does_not_fit_is_refused_where_it_stands() {
    let server = Server::start();
    assert_eq!(upload(&server, "s.mtx", SYMMETRIC, None).status, 200);
    let empty = "%%MatrixMarket matrix coordinate real general\n2 2 0\n";
    assert_eq!(upload(&server, "empty.mtx", empty, None).status, 200);
    let args = "/kernel/io/args";
    let nan = crate::contracts::base64(&[f32::NAN.to_le_bytes(); 3].concat());
    let short = crate::contracts::base64(&[1f32.to_le_bytes(); 2].concat());
    let cases: [(String, Value, &str, &str); 17] = [
        (
            format!("{args}/0/value_of/part"),
            json!("values"),
            "kernel.io.args[0].value_of.part",
            "array",
        ),
        (
            format!("{args}/0/value_of/part"),
            json!("rows"),
            "kernel.io.args[0].value_of.part",
            "array",
        ),
        (
            format!("{args}/0/value_of/part"),
            json!("nothing"),
            "kernel.io.args[0].value_of.part",
            "no part",
        ),
        (format!("{args}/0/type"), json!("float"), "kernel.io.args[0].value_of", "`int`"),
        (
            format!("{args}/0/value_of/matrix"),
            json!("../s.mtx"),
            "kernel.io.args[0].value_of.matrix",
            "is not a valid matrix name",
        ),
        (
            format!("{args}/0/value_of/matrix"),
            json!("/etc/passwd"),
            "kernel.io.args[0].value_of.matrix",
            "is not a valid matrix name",
        ),
        (
            format!("{args}/1/tensor_spec/data/part"),
            json!("nnz"),
            "kernel.io.args[1].tensor_spec.data.part",
            "number",
        ),
        (
            format!("{args}/1/tensor_spec/dtype"),
            json!("int32"),
            "kernel.io.args[1].tensor_spec.dtype",
            "float32 or float64",
        ),
        (
            format!("{args}/1/tensor_spec/dtype"),
            json!("float16"),
            "kernel.io.args[1].tensor_spec.dtype",
            "float32 or float64",
        ),
        (
            format!("{args}/2/tensor_spec/dtype"),
            json!("int64"),
            "kernel.io.args[2].tensor_spec.dtype",
            "int32",
        ),
        (
            format!("{args}/1/tensor_spec/shape"),
            json!([4]),
            "kernel.io.args[1].tensor_spec.shape",
            "5",
        ),
        (
            format!("{args}/4/tensor_spec/shape_of/part"),
            json!("values"),
            "kernel.io.args[4].tensor_spec.shape_of.part",
            "`x`",
        ),
        (
            format!("{args}/4/tensor_spec"),
            json!({"shape": [4], "init": {"kind": "ones"}}),
            "kernel.io.args[4].tensor_spec.shape",
            "columns",
        ),
        (
            format!("{args}/4/tensor_spec"),
            json!({"shape": [3], "data": {"data_b64": nan}}),
            "kernel.io.args[4].tensor_spec[0]",
            "finite",
        ),
        (
            format!("{args}/4/tensor_spec"),
            json!({"shape": [3], "data": {"data_b64": short}}),
            "kernel.io.args[4].tensor_spec.data",
            "bytes",
        ),
        ("/expected/y/times".to_owned(), json!("z"), "expected.y.times", "no tensor"),
        (
            "/expected/y/matrix".to_owned(),
            json!("poisson2d:nx=999999999"),
            "expected.y.matrix",
            "at most",
        ),
    ];
    for (pointer, value, path, message) in cases {
        let mut body = contract("s.mtx");
        match pointer.rsplit_once('/') {
            Some((parent, field)) => body.pointer_mut(parent).unwrap()[field] = value.clone(),
            None => unreachable!(),
        }
        let (at, said) = refused(&server, "/evaluate", &body);
        assert_eq!(at, path, "{pointer} = {value}: {said}");
        assert!(said.contains(message), "{pointer} = {value}: {said}");
    }
    let (at, said) = refused(&server, "/evaluate", &contract("empty.mtx"));
    assert_eq!(at, "kernel.io.args[0].value_of.matrix");
    assert!(said.contains("no non-zeros"), "{said}");
    let mut both = contract("s.mtx");
    both["kernel"]["io"]["args"][0]["value"] = json!(3);
    assert_eq!(refused(&server, "/evaluate", &both).0, "kernel.io.args[0].value_of");
    let mut both = contract("s.mtx");
    both["expected"]["y"]["kernel"] = both["kernel"].clone();
    assert_eq!(refused(&server, "/evaluate", &both).0, "expected.y");
    let mut both = contract("s.mtx");
    both["kernel"]["io"]["args"][1]["tensor_spec"]["data"]["data_b64"] = json!("AAAA");
    assert!(refused(&server, "/evaluate", &both).1.contains("cannot be combined"));
    let mut neither = contract("s.mtx");
    neither["kernel"]["io"]["args"][1]["tensor_spec"] = json!({"dtype": "float32"});
    assert!(refused(&server, "/evaluate", &neither).1.contains("`shape`"));
    let large = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1e39\n";
    assert_eq!(upload(&server, "large.mtx", large, None).status, 200);
    let (at, said) = refused(&server, "/evaluate", &contract("large.mtx"));
    assert_eq!(at, "kernel.io.args[1].tensor_spec.data.part[0]");
    assert!(said.contains("finite"), "{said}");
    let long = format!("poisson2d:nx=4{}", ",".repeat(300));
    assert!(refused(&server, "/evaluate", &contract(&long)).1.contains("longer than"));
    // A width that no row but one needs.
    let mut padded = contract("random:rows=200000,nnz_per_row=1,long_rows=1");
    padded["kernel"]["io"]["args"][1]["tensor_spec"]["data"]["part"] = json!("ell_values");
    let (at, said) = refused(&server, "/evaluate", &padded);
    assert_eq!(at, "kernel.io.args[1].tensor_spec.data.part");
    assert!(said.contains("ELL would hold"), "{said}");
}

/// What a name becomes has the bound of compressed data.
#[test]
fn a_short_request_becomes_no_more_than_compressed_data_may() {
    let server = Server::start_configured("[limits]\nmax_decoded_bytes = 10000\n");
    let evaluated = server.post_json("/evaluate", &contract("poisson2d:nx=8"));
    assert_eq!(evaluated.status, 200, "{}", evaluated.json);
    let (at, said) = refused(&server, "/evaluate", &contract("poisson2d:nx=16"));
    assert_eq!(at, "kernel.io.args[0].value_of.matrix");
    assert!(said.contains("limits.max_decoded_bytes"), "{said}");
    // Each fits, and all together do not: in a batch, and in one contract.
    let job = json!({"request": contract("poisson2d:nx=8")});
    let batch = json!({"jobs": vec![job; 4]});
    let (at, said) = refused(&server, "/jobs", &batch);
    assert!(at.starts_with("jobs[") && said.contains("limits.max_decoded_bytes"), "{at}: {said}");
    assert_eq!(server.get("/jobs").json["jobs"].as_array().unwrap().len(), 1, "all or none");
    let mut many = contract("diagonal:n=2");
    for index in 0..16 {
        let of = json!({"matrix": format!("diagonal:n={}", index + 3), "part": "nnz"});
        let arg = json!({"name": format!("n{index}"), "type": "int", "value_of": of});
        many["kernel"]["io"]["args"].as_array_mut().unwrap().push(arg);
    }
    assert!(refused(&server, "/evaluate", &many).1.contains("at most 16"));
}

/// What a caller says of matrices is never taken for the server's word.
#[test]
fn a_callers_word_is_told_as_such() {
    let server = Server::start();
    let mut body = contract("poisson2d:nx=4");
    body["matrices"] = json!([{"name": "mine", "origin": "stored", "blake3": "00", "num_rows": 1,
        "num_cols": 1, "nnz": 1}]);
    let report = server.evaluate(&body);
    let matrices = report["matrices"].as_array().unwrap();
    assert_eq!((&matrices[0]["name"], &matrices[0]["origin"]), (&json!("mine"), &json!("file")));
    assert_eq!(matrices[1]["origin"], "generated");
    let mut sweep = contract("$m");
    sweep["axes"] = json!({"m": ["poisson2d:nx=4"]});
    sweep["matrices"] = json!({"poisson2d:nx=4": {"used": matrices[0], "packed": ""}});
    assert_eq!(refused(&server, "/sweep", &sweep).0, "matrices");
}
