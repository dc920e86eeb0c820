//! The schemas agree with serde about each type.

mod check;
mod reports;

use serde_json::{Value, json};
use warpgauge_api::{
    Accepted, Batch, Capabilities, Cleaned, CudaInfo, Devices, ErrorBody, Health, Info, LegacyJob,
    Stats,
};
use warpgauge_contract::{CompareRequest, CompileRequest, EvaluateRequest, SweepRequest};
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{Baseline, GateRequest, NewBaseline};
use warpgauge_job_views::{CancelReport, JobList, JobView, KernelCodeView};
use warpgauge_metrics::import::{changes, import};
use warpgauge_metrics::select;
use warpgauge_report::{CompareResponse, CompileResponse, EvaluateResponse, SweepResponse};

use warpgauge_sparse::spmv::{
    MatrixList, MatrixReply, SpmvRequest, SpmvResponse, StoredSpmvRequest, UploadRequest,
};

use check::{check, check_around, check_written, document};
use reports::{full_report, minimal_report};

fn full_kernel() -> Value {
    let data = json!({
        "data_b64": "AACAPw==", "dtype": "float32", "shape": [1], "compress": "zlib", "format": "npy",
        "matrix": "m", "part": "values", "tensor_id": "t",
    });
    let part = json!({"matrix": "m", "part": "x"});
    let init = json!({
        "kind": "uniform", "seed": 7, "mean": 0.5, "std": 2.0, "low": -1.0, "high": 1.0,
        "fill_value": 3.0, "start": 0.0, "step": 1.0, "values": [1.0], "unique": true, "of": "x", "zeros": "z", "global": "g",
        "columns": [{"low": 0.0, "high": 1.0}], "block": [1, 32], "layout": "tiles_128x4",
    });
    let dims = json!({"x": "ceil_div(n, 256)", "y": 2, "z": 1});
    json!({
        "source_code": "…", "files": {"a.h": "…"}, "source_path": "b/c.cu", "binary_b64": "AAAA", "kernel_type": "cuda",
        "io": {
            "args": [
                {
                    "name": "x", "type": "tensor", "role": "inout", "is_meta": true, "symbol": "s", "c_type": "float*",
                    "tensor_spec": {
                        "shape": [1], "shape_of": part, "dtype": "float8_e4m3", "init": init, "data": data,
                    },
                    "descriptor": {"block_shape": [16], "padding": "nan"}, "value_of": part,
                },
                {"name": "n", "type": "int", "value": 5},
                {"name": "p", "type": "struct", "fields": {"n": 5, "x": "x", "w": [1, null]}},
                {"name": "l", "type": "pointers", "pointers": ["x", "x + 1", null]},
                {"name": "t", "type": "texture", "texture": {
                    "tensor": "x", "channels": 2, "address": "wrap", "filter": "linear", "normalized": true,
                    "read": "normalized", "layered": true, "array": true,
                }},
                {"name": "s", "type": "surface", "surface": {"tensor": "x", "channels": 2, "layered": true}},
            ],
            "launch": {
                "grid": dims, "block": dims, "cluster": dims, "shared_memory_bytes": 1024,
                "cooperative": true, "num_warps": 4, "num_stages": 2,
                "num_ctas": 1, "maxnreg": 128,
            },
        },
        "launches": [{
            "kernel": "k", "args": ["x", 1, 0.5, true], "grid": dims, "block": dims, "shared_memory_bytes": 1024,
            "cluster": dims, "cooperative": true, "memset": "x", "value": 255, "memcpy": {"from": "x", "to": "y"},
            "swap": ["x", "y"], "steps": [{"kernel": "k"}], "repeat": "n", "index": "i", "while": "x", "most": 4,
        }],
        "setup": [{"memset": "x"}],
        "metadata": {
            "kernel_name": "k", "compiler_options": ["-O3"], "backend": "nvcc",
            "name_expressions": ["k<float>"], "jitify": true, "function_name": "f",
            "class_name": "C", "method_name": "m", "entry_point": "e", "description": "d", "backward": true,
            "configuration": 1, "library": "cusparse", "function": "spmv", "arguments": ["-n"],
            "stdin": "s",
        },
    })
}

fn full_contract() -> Value {
    let data = full_kernel()["io"]["args"][0]["tensor_spec"]["data"].clone();
    json!({
        "kernel": full_kernel(), "num_trials": 5, "timeout": 1.5,
        "expected": {"x": {
            "data": data, "kernel": full_kernel(), "bounds": data, "matrix": "m", "times": "x",
            "text": "t", "contains": "c", "code": 3,
        }},
        "tolerance": {
            "atol": 0.5, "rtol": 0.25, "required_matched_ratio": 0.5, "allow_non_finite": true,
        },
        "compare_as": full_compare_as(), "allow_weak": true, "work": {"bytes": 8.0, "flops": 1.0},
        "measure": {
            "preset": "deep", "cache": "hot", "inputs": "same", "regime": "sustained",
            "min_warmup_time": 0.5, "max_time": 2.0, "rank_unlisted_state": true,
        },
        "profile": {"tools": ["ncu"], "metrics": ["dram__bytes.sum"]},
        "sanitize": "memcheck", "return_outputs": ["x"],
        "output_encoding": {"compress": "zstd", "format": "npy"}, "isolation": "fresh", "requires": full_requirements(),
        "keep_outputs": {"x": {
            "cuda_device": -1, "sample_rate": 8000, "name": "n", "ttl_s": 1.5, "evict": true,
        }},
    })
}

fn full_compare_as() -> Value {
    json!({"x": {
        "any_order": true, "segments": "s", "equal": "e", "along": ["w"], "up_to": "n", "mask": "m", "empty": -1.0,
        "through": "t", "scales": {"of": "s", "block": [1, 32], "layout": "transposed"},
    }})
}

fn full_requirements() -> Value {
    json!({
        "device": "cuda", "architecture": "sm_90", "gpu_model": "H200", "tools": ["ncu"],
    })
}

#[test]
fn requests() {
    let minimal = json!({"kernel": {"kernel_type": "ptx"}});
    let full = full_contract();
    let mut other = minimal.clone();
    (other["sanitize"], other["return_outputs"]) = (json!(true), json!("all"));
    check::<EvaluateRequest>("EvaluateRequest", &[full, minimal.clone(), other]);
    let compile = json!({"kernel": full_kernel(), "arch": "sm_90", "return_image": true});
    check::<CompileRequest>("CompileRequest", &[compile, minimal]);
}

#[test]
fn comparison_requests() {
    let minimal = json!({"ref_kernel": {"kernel_type": "ptx"}});
    let full = json!({
        "ref_kernel": full_kernel(), "custom_kernel": full_kernel(),
        "candidates": [{"name": "a", "kernel": full_kernel()}],
        "num_trials": 5, "timeout": 1.5, "atol": 0.5, "rtol": 0.25,
        "required_matched_ratio": 0.5, "allow_non_finite": true, "allow_weak": true,
        "compare_as": full_compare_as(), "work": {"bytes": 8.0, "flops": 1.0},
        "measure": {
            "preset": "deep", "cache": "hot", "inputs": "same", "regime": "sustained",
            "min_warmup_time": 0.5, "max_time": 2.0, "rank_unlisted_state": true,
        },
        "profile": {"tools": ["ncu"], "metrics": ["dram__bytes.sum"]},
        "isolation": "fresh", "measure_identical": false, "requires": full_requirements(),
        "decision": {"margin": 0.25, "equivalence": 0.5, "alpha": 0.125, "blocks": 16},
    });
    // So have kernels, as parts of requests for evaluations.
    let others = ["/ref_kernel", "/custom_kernel", "/candidates/0/kernel"];
    check_around::<CompareRequest>("CompareRequest", &[full, minimal], &others);
}

#[test]
fn sweeps() {
    // Whatever may hold references may be anything; the points are checked as evaluations.
    let any = json!("$n");
    let full = json!({
        "axes": {"n": [1, 0.5, true, "2^4..2^8 by x2"]}, "include_reports": true, "kernel": any,
        "num_trials": any, "timeout": any, "expected": any, "tolerance": any, "work": any,
        "allow_weak": any, "compare_as": any,
        "measure": any, "profile": any, "sanitize": any, "return_outputs": any,
        "output_encoding": any, "isolation": any, "requires": full_requirements(),
    });
    check::<SweepRequest>("SweepRequest", &[full, json!({"axes": {}, "kernel": any})]);
    let real = include_str!("../../../../openapi/examples/sweep.json");
    let real = serde_json::from_str(real).unwrap();
    check::<SweepResponse>("SweepResponse", &[full_sweep(), minimal_sweep(), real]);
}

fn full_sweep() -> Value {
    let values = json!({"block": 64, "type": "float", "x": 0.5, "on": true});
    let best = json!({"index": 0, "values": values, "value": 2.5});
    json!({
        "job_id": "1", "status": "success",
        "axes": [{"name": "block", "values": [64]}], "counts": {"correct": 1},
        "points": [{
            "index": 0, "values": values, "status": "wrong", "correctness": false,
            "runtime_stats": full_report()["kernel_exec_result"]["runtime_stats"],
            "gbps": 1.5, "gflops": 2.5,
            "counted": {"warp_instructions": 7, "global_sectors": 3},
            "reasons": [{"code": "timeout", "path": "kernel", "message": "m"}],
            "resources": full_report()["compile"]["resources"], "device": "GPU-1",
            "matrices": full_report()["matrices"], "tensors": full_report()["tensors"], "total_ms": 1.0, "report": full_report(),
        }],
        "table": {"columns": ["block"], "rows": [[64]]},
        "best": {"median_ms": best, "gbps": best, "gflops": best,
            "warp_instructions": best, "global_sectors": best, "not_ranked": "why"},
        "devices": [full_report()["device"]], "total_ms": 1.0,
    })
}

fn minimal_sweep() -> Value {
    json!({
        "job_id": "1", "status": "error", "axes": [], "counts": {}, "points": [],
        "table": {"columns": [], "rows": []}, "best": {}, "devices": [], "total_ms": 1.0,
    })
}

/// Reports of profilers are only written, so the samples are what the program writes.
#[test]
fn imported_reports() {
    let fixture = |name: &str| {
        let path = crate::server::root().join("tests/fixtures/profile").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        import(&text, &select(&[])).unwrap()
    };
    let raw = fixture("ncu/2025.3.1-h200-raw_full_base.csv");
    let source = "\"#\",\"Address\",\"Source\",\"# Samples\",\"Instructions Executed\"\n\
                  \"1\",\"0x10\",\"MOV R1, R2\",\"3\",\"4\"\n";
    let found = serde_json::to_value(changes(&raw, &raw).unwrap()).unwrap();
    check_written("Changes", &[found]);
    let reports = [
        raw,
        fixture("ncu/2025.3.1-h200-details_full.csv"),
        import(source, &select(&[])).unwrap(),
        fixture("nsys/2025.3.1-cuda_gpu_kern_sum.txt"),
        fixture("nsys/2025.3.1-cuda_gpu_trace.txt"),
        fixture("nsys/2025.3.1-cuda_kern_exec_sum.txt"),
        fixture("sanitizer/2025.3.1-h200.txt"),
    ];
    let samples = reports.map(|report| serde_json::to_value(report).unwrap());
    check_written("ImportedReport", &samples);
}

#[test]
fn jobs_and_statistics() {
    let item = json!({
        "kind": "sweep", "request": {}, "label": "l", "priority": 3, "webhook": "w",
        "idempotency_key": "k",
    });
    check::<Batch>("Batch", &[json!({"jobs": [item, {"request": {}}]})]);
    let summary = json!({
        "job_id": "1", "kind": "gate", "state": "validating", "label": "l", "priority": -1,
        "attempt": 2, "created_at": 1.0, "started_at": 2.0, "finished_at": 3.0, "error": "e",
        "code": "c", "verdict": "weak", "kernel": "k", "median_ms": 1.5, "idempotency_key": "k",
        "decision": "REGRESSION", "worst_case": {
            "name": "n", "outcome": "REGRESSION", "metric": "time", "ratio": 1.03, "ci_low": 1.02,
            "ci_high": 1.04, "margin": 0.01,
        },
    });
    check::<JobList>("JobList", &[json!({"jobs": [summary], "next_cursor": "n"})]);
    let counts = json!({
        "warp_instructions": 1, "active_threads": 2, "thread_instructions": 3, "global_requests": 4,
        "global_sectors": 5, "global_ideal_sectors": 6, "shared_requests": 7,
        "shared_wavefronts": 8, "shared_conflicts": 9, "local_requests": 10,
    });
    let code = json!({
        "job_id": "1", "kernel": "k", "files": [{"name": "kernel.cu", "text": "t"}],
        "listings": [{
            "language": "sass", "truncated": true, "reason": "r",
            "instructions": [{"text": "EXIT", "symbol": "k", "file": "kernel.cu", "line": 3}],
        }],
        "counters": {
            "language": "ptx", "total": counts, "elsewhere": counts, "reason": "r",
            "lines": [{"file": "kernel.cu", "line": 3, "counts": counts}],
            "instructions": [{"index": 0, "counts": counts}],
        },
    });
    check::<KernelCodeView>("KernelCodeView", &[code]);
    let cancelled = json!({"job_id": "1", "outcome": "stopping", "state": "profiling"});
    check::<CancelReport>("CancelReport", &[cancelled]);
    let cleaned = json!({"status": "s", "cleaned_jobs": 1, "cleaned_bytes": 2});
    check::<Cleaned>("Cleaned", &[cleaned]);
    let stats = include_str!("../../../../openapi/examples/stats.json");
    check::<Stats>("Stats", &[serde_json::from_str(stats).unwrap()]);
}

#[test]
fn reports() {
    check::<EvaluateResponse>("EvaluateResponse", &[full_report(), minimal_report()]);
    let compile = json!({
        "job_id": "1", "status": "success", "compiled": true, "compilation_error": "e",
        "diagnostics": full_report()["compile"]["diagnostics"], "compile": full_report()["compile"],
        "image_b64": "AAAA", "image_format": "cubin", "total_ms": 1.0,
        "signatures": [
            {"name": "k", "symbol": "_Z1kPfi", "parameters": [
                {"name": "x", "c_type": "float*", "bytes": 8}, {"c_type": "int", "bytes": 4},
            ]},
            {"name": "other", "symbol": "other"},
        ],
    });
    let failed = json!({"job_id": "1", "status": "success", "compiled": false, "total_ms": 1.0});
    check::<CompileResponse>("CompileResponse", &[compile, failed]);
    let job = json!({
        "job_id": "1", "kind": "gate", "state": "profiling", "status": "success",
        "verdict": "weak",
        "created_at": 1.0, "finished_at": 2.0, "trials_done": 3, "attempt": 2, "label": "l",
        "error": "e", "code": "c", "result": full_report(), "comparison": full_comparison(),
        "sweep": {"points": 2, "points_done": 1, "result": full_sweep()},
        "gate": gate_report(),
    });
    let new = json!({"job_id": "1", "state": "submitted", "created_at": 1.0, "trials_done": 0});
    check::<GateReport>("GateReport", &[gate_report()]);
    let others = ["/result", "/comparison", "/sweep/result", "/gate"];
    check_around::<JobView>("JobView", &[job, new], &others);
    let legacy = json!({
        "job_id": "1", "status": "failed", "created_at": 1.0, "error": "e", "finished_at": 2.0,
        "trials_done": 3, "status_url": "/jobs/1",
    });
    check::<LegacyJob>("LegacyJob", &[legacy]);
    let accepted = json!({
        "job_id": "1", "status": "submitted", "status_url": "/jobs/1", "existing": true,
    });
    check::<Accepted>("Accepted", &[accepted]);
}

fn gate_report() -> Value {
    let mut report: Value =
        serde_json::from_str(include_str!("../../../../openapi/examples/gate.json")).unwrap();
    report["method"]["driver"] = json!("1");
    report["notes"] = json!(["n"]);
    report["job_id"] = json!("1");
    report["branch"] = json!("b");
    report["matrices"] = full_report()["matrices"].clone();
    report["tensors"] = full_report()["tensors"].clone();
    let comparison = &document()["paths"]["/compare"]["post"]["responses"]["200"];
    let comparison = &comparison["content"]["application/json"]["example"]["comparison"];
    let case = &mut report["cases"][0];
    for (name, value) in [
        ("file", json!("k.cu")),
        ("line", json!(1)),
        ("adjusted_p", json!(0.5)),
        ("baseline_ms", json!(0.5)),
        ("candidate_ms", json!(0.25)),
        ("candidate_ci_ms", json!([0.25, 0.5])),
        ("weaker_for", json!(["local memory"])),
        ("candidate_counts", json!({"warp_instructions": 5})),
        ("identical_code", json!(true)),
        ("comparison", comparison.clone()),
        ("confirmation", comparison.clone()),
    ] {
        case[name] = value;
    }
    case["calibration"] =
        json!({"floor": 0.5, "minimum_detectable_effect": 0.25, "advisory": ["why"]});
    report["page"] = json!("https://gpu.example.org/jobs/1");
    report
}

#[test]
fn gates() {
    let policy = json!({
        "margin": 0.25, "delta": 0.5, "alpha": 0.125, "count_margin": 0.5,
        "on_inconclusive": "warn", "advisory": true,
    });
    let (contract, bare) = (full_contract(), json!({"kernel": {"kernel_type": "ptx"}}));
    let conditions = json!({
        "device": "d", "driver": "1", "cuda": "13.0", "method": "m", "method_version": 1,
        "preset": "ci",
    });
    let case = json!({
        "cache": "cold", "floor": 0.5, "block_sd": 0.25, "minimum_detectable_effect": 0.125,
        "advisory": ["why"],
    });
    let calibration = json!({
        "version": 1, "conditions": conditions, "blocks": 64, "runs": 5, "cases": {"a": case},
    });
    let full = json!({
        "suite": "s", "preset": "deep", "on_missing": "warn", "defaults": policy,
        "cases": [{
            "name": "a", "metric": "barriers", "policy": policy, "contract": contract,
            "baseline": contract,
        }],
        "baseline": "main", "calibration": calibration, "measure_identical": true, "commit": "c",
        "branch": "b",
        "baseline_origin": {"kind": "git", "name": "main", "commit": "c"},
        "removed": [{"name": "b", "metric": "barriers", "policy": policy}], "notes": ["n"],
    });
    let minimal = json!({"cases": [{"name": "a", "contract": bare}]});
    // Contracts have a check of their own.
    let others = ["/cases/0/contract", "/cases/0/baseline"];
    check_around::<GateRequest>("GateRequest", &[full, minimal], &others);
    let pin = json!({
        "device": "d", "driver": "1", "cuda": "13.0", "method": "m", "method_version": 1,
    });
    let cases = json!([{"name": "a", "contract": contract}]);
    let new = json!({"name": "main", "suite": "s", "cases": cases, "pin": pin, "commit": "c"});
    let minimal = json!({"name": "main", "cases": [{"name": "a", "contract": bare}]});
    check_around::<NewBaseline>("NewBaseline", &[new, minimal], &others);
    let baseline = json!({
        "name": "main", "pin": pin, "suite": "s", "commit": "c", "promoted_from": "j",
        "stored_unix_s": 1.0, "cases": {"a": contract},
    });
    check_around::<Baseline>("Baseline", &[baseline], &["/cases/a"]);
    let history = serde_json::from_str(include_str!("../../../../openapi/examples/history.json"));
    let mut history: Value = history.unwrap();
    history["series"][0]["points"][0]["job_id"] = json!("j");
    history["series"][0]["points"][0]["commit"] = json!("c");
    history["series"][0]["points"][0]["branch"] = json!("b");
    check::<HistoryAnswer>("HistoryAnswer", &[history]);
}

fn full_comparison() -> Value {
    let document = document();
    let answer = &document["paths"]["/compare"]["post"]["responses"]["200"];
    let example = &answer["content"]["application/json"]["example"];
    let mut full = example.clone();
    full["not_compared"] = json!("why");
    full["kernel_exec_result"] = full_report()["kernel_exec_result"].clone();
    full["reference"] = full_report();
    full["matrices"] = full_report()["matrices"].clone();
    for name in ["warnings", "pod_name", "pod_ip"] {
        full[name] = full_report()[name].clone();
    }
    full["tensors"] = full_report()["tensors"].clone();
    full["verdict_by"] = json!("counts");
    let counted = json!({"verdict": "mixed", "warp_instructions": 0.5, "global_sectors": 2.0});
    full["counted"] = counted.clone();
    full["counted_ranking"] = json!([
        {"index": 1, "rank": 1, "counted": {"warp_instructions": 7, "global_sectors": 3}},
    ]);
    full["ranking"] = json!({
        "candidates": [{"index": 1, "rank": 1, "relative_time": 0.5}, {"index": 0, "rank": 2}],
        "pairs": [
            {"reference": 0, "candidate": 1, "verdict": "same", "p_adjusted": 0.5, "speedup": 2.0},
            {"reference": 0, "candidate": 2, "verdict": "slower", "p_adjusted": 1.0},
        ],
    });
    let candidate = &mut full["candidates"][0];
    candidate["evaluation"] = full_report();
    candidate["not_compared"] = json!("why");
    candidate["same_image"] = json!(true);
    candidate["counted"] = counted;
    candidate["no_code_diff"] = json!("why");
    candidate["code_diff"] = json!({
        "language": "sass", "identical": false, "reference_instructions": 8,
        "candidate_instructions": 9, "added": 2, "removed": 1, "unified": "-a\n+b\n",
        "truncated": false, "opcodes": [{"opcode": "FADD", "reference": 1, "candidate": 2}],
    });
    candidate["counts"] = json!([
        {"count": "barriers", "reference": 2, "candidate": 1, "ratio": 0.5},
        {"count": "warp_instructions", "reference": 0, "candidate": 1},
    ]);
    full
}

#[test]
fn comparisons() {
    let full = full_comparison();
    let minimal = json!({
        "job_id": "1", "status": "error", "device": full["device"],
        "kernel_exec_result": {"compiled": false, "metadata": {}},
        "reference": minimal_report(), "timings": minimal_report()["timings"],
        "candidates": [{"name": "custom", "evaluation": minimal_report()}],
    });
    // Reports of evaluations have a check of their own.
    let others = ["/reference", "/candidates/0/evaluation", "/kernel_exec_result"];
    check_around::<CompareResponse>("CompareResponse", &[full, minimal], &others);
}

#[test]
fn sparse_products() {
    let any = full_contract();
    let options = json!({
        "kernel_type": "triton", "kernel_name": "k", "args": ["x", "y"], "constants": {"BLOCK": 128},
        "launch": full_kernel()["io"]["launch"], "compiler_options": ["-O3"], "dtype": "float64",
        "measure": any["measure"], "profile": any["profile"], "sanitize": "memcheck",
        "isolation": "fresh", "allow_weak": true, "timeout": 1.5,
    });
    let data = json!({
        "num_rows": 1, "num_cols": 1, "nnz": 1, "values": [1.5], "col_indices": [0],
        "row_ptr": [0, 1], "x": [2.5],
    });
    let full = json!({"kernel": "AAAA", "matrix_data": data, "num_runs": 3, "options": options});
    let minimal = json!({"kernel": "AAAA", "matrix_data": data});
    check::<SpmvRequest>("SpmvRequest", &[full, minimal]);
    let mut answer: Value =
        serde_json::from_str(include_str!("../../../../openapi/examples/spmv.json")).unwrap();
    (answer["error"], answer["code"]) = (json!("e"), json!("timeout"));
    answer["y"] = json!([1.5, null]);
    let method = json!({
        "success": true, "result": answer["result"], "y": [1.5, null], "error": "e", "code": "timeout", "job_id": "j",
    });
    answer["results"] = json!({"custom": method, "cusparse": {"success": false}});
    answer["x_of_cusparse"] = 1.5.into();
    check::<SpmvResponse>("SpmvResponse", &[answer, json!({"success": false})]);
    let stored = json!({
        "mtx_filename": "a.mtx", "x": [1.5], "method": "custom", "kernel": "AAAA", "num_runs": 3,
        "options": options,
    });
    check::<StoredSpmvRequest>("StoredSpmvRequest", &[stored, json!({"mtx_filename": "a"})]);
    let upload = json!({"filename": "a.mtx", "content": "AAAA"});
    check::<UploadRequest>("UploadRequest", &[upload]);
    let matrix: Value =
        serde_json::from_str(include_str!("../../../../openapi/examples/matrix.json")).unwrap();
    let none = json!({"success": true, "exists": false, "filename": "a"});
    let uploads = json!([{"filename": "a", "state": "reading", "bytes_read": 1, "bytes_total": 2}]);
    let mut full = matrix.clone();
    full["uploads"] = uploads.clone();
    check::<MatrixReply>("MatrixReply", &[full, none]);
    let list = json!({
        "success": true, "files": ["a"], "matrices": [matrix["matrix"]], "uploads": uploads,
    });
    check::<MatrixList>("MatrixList", &[list]);
}

#[test]
fn errors_and_views() {
    let error = json!({
        "success": false, "status": "client_error", "code": "c", "error": "e", "detail": "e", "path": "p", "line": 1,
        "column": 2,
        "validation_errors": [{"field": "f", "message": "m", "type": "t"}], "job_id": "j",
        "details": "d",
    });
    let bare = json!({"success": false, "status": "error", "code": "c", "error": "e"});
    check::<ErrorBody>("ErrorBody", &[error, bare]);
    let examples = document();
    let example = |path: &str| {
        examples["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["example"]
            .clone()
    };
    check::<Health>("Health", &[example("/health")]);
    let without_clocks = |path: &str| {
        let mut answer = example(path);
        let device = answer["devices"][0].as_object_mut().unwrap();
        device.remove("reading");
        device.insert("no_reading".to_owned(), json!("an emulated device has no clocks"));
        answer
    };
    check::<Info>("Info", &[example("/info"), without_clocks("/info")]);
    check::<Devices>("Devices", &[example("/devices"), without_clocks("/devices")]);
    check::<CudaInfo>("CudaInfo", &[example("/cuda/info")]);
    check::<Capabilities>("Capabilities", &[example("/capabilities")]);
}
