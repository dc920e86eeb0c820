//! Evaluations that succeed, and verdicts that differ.

use serde_json::{Value, json};

use crate::contracts::{example, from_base64, increment, reference_readme_example};
use crate::server::Server;

/// Every example, and a change to its kernel that makes it wrong.
const EXAMPLES: [(&str, &str, &str); 15] = [
    ("vector_add", "a[i] + b[i]", "a[i] - b[i]"),
    ("saxpy", "fmaf(a, xv.z, yv.z)", "fmaf(a, xv.w, yv.z)"),
    ("transpose", "tile[threadIdx.x][threadIdx.y + step]", "tile[threadIdx.y + step][threadIdx.x]"),
    ("matmul_naive", "i < k; ++i", "i + 1 < k; ++i"),
    ("matmul_tiled", "start < k", "start + TILE <= k"),
    ("reduce_sum", "offset > 0", "offset > 1"),
    ("softmax", "in[i] - largest", "in[i]"),
    ("layernorm", "gamma[i], beta[i]", "gamma[i], 0.0f"),
    ("spmv_csr", "i < row_ptr[row + 1]", "i + 1 < row_ptr[row + 1]"),
    ("spmv_coo", "i < nnz", "i + 1 < nnz"),
    ("spmv_csc", "i < col_ptr[col + 1]", "i + 1 < col_ptr[col + 1]"),
    ("spmv_ell", "k < width", "k + 1 < width"),
    ("spmv_bsr", "c < BLOCK", "c + 1 < BLOCK"),
    ("spmv_spasm", "cell < CELLS", "cell + 1 < CELLS"),
    ("histogram", "atomicAdd(&counts[data[i]], 1)", "counts[data[i]] = 1"),
];

/// A report in short, for messages of failed assertions.
fn brief(report: &Value) -> String {
    format!(
        "result {}\nvalidation {}\nfailure {}",
        report["kernel_exec_result"], report["validation"], report["failure"]
    )
}

#[test]
fn every_example_is_correct_and_its_expectation_tells_a_wrong_kernel() {
    let server = Server::start();
    for (name, right, wrong) in EXAMPLES {
        let mut contract = example(name);
        // Correctness is the matter here; the emulator takes its time for each launch.
        contract["num_trials"] = json!(3);
        let report = server.evaluate(&contract);
        let result = &report["kernel_exec_result"];
        assert_eq!(result["compiled"], true, "{name}: {}", brief(&report));
        assert_eq!(result["correctness"], true, "{name}: {}", brief(&report));
        assert_eq!(report["validation"]["status"], "passed", "{name}: {}", brief(&report));
        assert!(result["runtime"].as_f64().is_some_and(|ms| ms > 0.0), "{name}");
        assert_eq!(result["runtime_stats"]["samples"], contract["num_trials"], "{name}");

        let source = contract["kernel"]["source_code"].as_str().unwrap();
        assert!(source.contains(right), "{name} has no `{right}`");
        contract["kernel"]["source_code"] = source.replace(right, wrong).into();
        let report = server.evaluate(&contract);
        let result = &report["kernel_exec_result"];
        assert_eq!(result["compiled"], true, "{name}, broken: {}", brief(&report));
        assert_eq!(result["correctness"], false, "{name}, broken: {}", brief(&report));
        assert!(result["runtime"].is_null(), "{name}: a wrong kernel has no rank");
        assert!(result["validation_error"].is_string(), "{name}, broken: {}", brief(&report));
    }
}

#[test]
fn the_examples_are_all_listed() {
    let mut found: Vec<String> = std::fs::read_dir(crate::server::root().join("kernels"))
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        // Those in Python need Triton or PyTorch, and have tests of their own.
        .filter(|name| !name.starts_with("triton_") && !name.starts_with("torch_"))
        .collect();
    found.sort();
    let mut listed = EXAMPLES.map(|(name, _, _)| name);
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn the_reference_example_runs_unchanged_and_has_every_reference_field() {
    let server = Server::start();
    let report = server.evaluate(&reference_readme_example());
    assert_eq!(report["status"], "success");
    assert!(report["job_id"].is_string());
    let result = &report["kernel_exec_result"];
    assert_eq!(result["compiled"], true, "{}", brief(&report));
    // It gives no expectation, so there is no verdict.
    assert!(result["correctness"].is_null(), "{}", brief(&report));
    assert_eq!(report["validation"]["status"], "not_checked");
    assert!(result["runtime"].as_f64().is_some_and(|ms| ms > 0.0));
    let stats = &result["runtime_stats"];
    for field in ["mean", "std", "min", "max", "median", "percentile_95", "percentile_99"] {
        assert!(stats[field].is_number(), "runtime_stats.{field} in {stats}");
    }
    for (smaller, larger) in [("min", "median"), ("median", "percentile_95"), ("mean", "max")] {
        assert!(stats[smaller].as_f64() <= stats[larger].as_f64(), "{smaller} > {larger}: {stats}");
    }
    assert_eq!(report["measurement"]["samples_ms"].as_array().unwrap().len(), 100);
    for field in ["queue", "compile", "h2d", "execute", "d2h", "verify", "total"] {
        assert!(report["timings"][field].as_f64().is_some_and(|ms| ms >= 0.0), "timings.{field}");
    }
    for field in ["kind", "name", "uuid", "compute_capability", "cuda_version"] {
        assert!(report["device"][field].is_string(), "device.{field}");
    }
    // PTX for the emulator has virtual registers only.
    the_rest_needs!("a GPU", report["device"]["kind"] == "cuda");
    assert!(report["compile"]["resources"]["registers"].is_number(), "{}", report["compile"]);
}

#[test]
fn a_second_evaluation_finds_the_compiled_kernel() {
    let server = Server::start();
    let mut contract = increment();
    let source = contract["kernel"]["source_code"].as_str().unwrap();
    // New to a cache that outlives this test.
    contract["kernel"]["source_code"] = format!("{source}// {}\n", uuid::Uuid::new_v4()).into();
    let first = server.evaluate(&contract);
    let second = server.evaluate(&contract);
    assert_eq!(first["compile"]["cache_hit"], false);
    assert_eq!(second["compile"]["cache_hit"], true);
    assert_eq!(first["compile"]["key"], second["compile"]["key"]);
    assert_eq!(second["kernel_exec_result"]["correctness"], true, "{}", brief(&second));
}

#[test]
fn no_key_learns_what_another_key_had_compiled() {
    let keys = [("WARPGAUGE_API_KEYS", "one,two")];
    let server = Server::start_with(&[], &keys);
    let mut contract = increment();
    let source = contract["kernel"]["source_code"].as_str().unwrap();
    contract["kernel"]["source_code"] = format!("{source}// {}\n", uuid::Uuid::new_v4()).into();
    let mut compile = contract.clone();
    for field in ["io", "expected"] {
        compile["kernel"].as_object_mut().unwrap().remove(field);
    }
    let compile = serde_json::json!({"kernel": compile["kernel"]});
    let hit = |path: &str, body: &serde_json::Value, key: &str| {
        let headers = [("x-api-key", key), ("content-type", "application/json")];
        let answer = server.post(path, &headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json["compile"]["cache_hit"].as_bool().expect("whether it was found")
    };
    assert!(!hit("/evaluate", &contract, "one"));
    assert!(hit("/evaluate", &contract, "one"));
    assert!(!hit("/evaluate", &contract, "two"), "the other key's was found");
    assert!(hit("/compile", &compile, "two"), "its own is");
}

/// On a GPU, the device judges and hashes the first launch if the caller does not want its outputs;
/// otherwise the host does.
#[test]
fn device_and_host_judge_the_first_launch_alike() {
    let server = Server::start();
    let types =
        [("float32", "float"), ("float64", "double"), ("int32", "int"), ("uint8", "unsigned char")];
    let bodies = [
        ("out[i] = x[i] + x[i];", true),
        ("out[i] = i == 77 ? x[i] : x[i] + x[i];", false),
        ("if (i != 77) out[i] = x[i] + x[i];", false),
    ];
    let close = ("out[i] = (x[i] + x[i]) * 1.00001f;", true);
    for (dtype, name) in types {
        let source = |body: &str| {
            let body = body.replace("x[i]", &format!("({name})x[i]"));
            format!(
                "extern \"C\" __global__ void k(const {name}* x, {name}* out, int n) {{\n    \
                 int i = blockIdx.x * 256 + threadIdx.x;\n    if (i < n) {{ {body} }}\n}}"
            )
        };
        let kernel = |body: &str| json!({"kernel_type": "cuda", "source_code": source(body), "metadata": {"kernel_name": "k"}});
        let tensor = |init: Value| json!({"shape": [2000], "dtype": dtype, "init": init});
        let is_float = dtype.contains("float");
        let init = match is_float {
            true => json!({"kind": "randn", "seed": 3}),
            false => json!({"kind": "randint", "seed": 3, "low": 1, "high": 100}),
        };
        for (body, right) in bodies.into_iter().chain(is_float.then_some(close)) {
            let mut candidate = kernel(body);
            candidate["io"] = json!({
                "args": [
                    {"name": "x", "type": "tensor", "role": "input", "tensor_spec": tensor(init.clone())},
                    {"name": "out", "type": "tensor", "role": "output",
                     "tensor_spec": {"shape": [2000], "dtype": dtype}},
                    {"name": "n", "type": "int", "value": 2000},
                ],
                "launch": {"grid": {"x": 8}, "block": {"x": 256}},
            });
            let tolerance = if is_float { json!({"atol": 1e-3, "rtol": 1e-3}) } else { json!({}) };
            let mut contract = json!({
                "kernel": candidate, "num_trials": 3, "tolerance": tolerance,
                "expected": {"out": {"kernel": kernel(bodies[0].0)}},
            });
            let without = server.evaluate(&contract);
            contract["return_outputs"] = json!("all");
            let with = server.evaluate(&contract);
            let result = |report: &Value| report["kernel_exec_result"]["correctness"].clone();
            assert_eq!(result(&without), right, "{dtype}, {body}: {}", brief(&without));
            assert_eq!(result(&with), right, "{dtype}, {body}: {}", brief(&with));
            // The filling of an element that was not written is random.
            if body.starts_with("if") {
                let code = |report: &Value| report["validation"]["reasons"][0]["code"].clone();
                assert_eq!(code(&without), "output_unwritten", "{dtype}: {}", brief(&without));
                assert_eq!(code(&with), "output_unwritten", "{dtype}: {}", brief(&with));
                continue;
            }
            assert_eq!(without["validation"], with["validation"], "{dtype}, {body}");
            let hash = |report: &Value| report["outputs"]["out"]["blake3"].clone();
            assert_eq!(hash(&without), hash(&with), "{dtype}, {body}");
            if right {
                let raw =
                    from_base64(with["outputs"]["out"]["data_b64"].as_str().expect("content"));
                let expected = blake3::hash(&raw).to_hex().to_string();
                assert_eq!(hash(&with), expected.as_str(), "{dtype}, {body}");
            }
        }
    }
}

#[test]
fn outputs_come_back_in_every_encoding() {
    let server = Server::start();
    let raw: Vec<u8> = (1..=256).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let hash = blake3::hash(&raw).to_hex().to_string();
    let mut contract = increment();

    let report = server.evaluate(&contract);
    assert_eq!(report["outputs"]["out"]["blake3"], hash.as_str(), "{}", brief(&report));
    assert!(report["outputs"]["out"]["data_b64"].is_null(), "nobody asked for content");

    for wanted in [json!("all"), json!(["out"])] {
        contract["return_outputs"] = wanted;
        let report = server.evaluate(&contract);
        let out = &report["outputs"]["out"];
        assert_eq!(from_base64(out["data_b64"].as_str().unwrap()), raw);
        assert_eq!(out["dtype"], "float32");
        assert_eq!(out["shape"], json!([256]));
        assert_eq!(out["blake3"], hash.as_str());
    }

    contract["output_encoding"] = json!({"compress": "zlib"});
    let report = server.evaluate(&contract);
    let packed = from_base64(report["outputs"]["out"]["data_b64"].as_str().unwrap());
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&packed[..]), &mut unpacked)
        .unwrap();
    assert_eq!(unpacked, raw);

    contract["output_encoding"] = json!({"compress": "zstd"});
    let report = server.evaluate(&contract);
    let packed = from_base64(report["outputs"]["out"]["data_b64"].as_str().unwrap());
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), raw);

    contract["output_encoding"] = json!({"format": "npy"});
    let report = server.evaluate(&contract);
    let file = from_base64(report["outputs"]["out"]["data_b64"].as_str().unwrap());
    assert!(file.starts_with(b"\x93NUMPY"));
    assert!(file.ends_with(&raw));
}

#[test]
fn every_media_type_gives_the_same_answer() {
    let server = Server::start();
    let contract = increment();
    let yaml = serde_saphyr::to_string(&contract).unwrap().into_bytes();
    let msgpack = rmp_serde::to_vec_named(&contract).unwrap();
    for (media_type, body) in [
        ("application/json", serde_json::to_vec(&contract).unwrap()),
        ("application/json; charset=utf-8", serde_json::to_vec(&contract).unwrap()),
        ("application/yaml", yaml.clone()),
        ("application/x-yaml", yaml.clone()),
        ("text/yaml", yaml),
        ("application/msgpack", msgpack.clone()),
        ("application/x-msgpack", msgpack),
    ] {
        let answer = server.post("/evaluate", &[("content-type", media_type)], &body);
        assert_eq!(answer.status, 200, "{media_type}: {}", answer.text);
        let result = &answer.json["kernel_exec_result"];
        assert_eq!(result["correctness"], true, "{media_type}: {}", brief(&answer.json));
    }
}

#[test]
fn execute_runs_once_and_compile_does_not_run() {
    let server = Server::start();
    let mut contract = increment();
    contract["return_outputs"] = json!("all");
    let answer = server.post_json("/execute", &contract);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.json["outputs"]["out"]["data_b64"].is_string(), "{}", answer.text);

    let answer = server.post_json("/compile", &json!({"kernel": contract["kernel"]}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["compiled"], true, "{}", answer.text);

    let mut broken = contract["kernel"].clone();
    broken["source_code"] = json!("__global__ void increment(float* x) {\n    y[0] = 1;\n}\n");
    let answer = server.post_json("/compile", &json!({"kernel": broken}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["compiled"], false);
    let error = &answer.json["diagnostics"][0];
    assert_eq!(error["line"], 2, "{}", answer.text);
}
