//! An evaluation's report with all of its fields, and one with as few as possible.

use serde_json::{Value, json};

pub(super) fn minimal_report() -> Value {
    json!({
        "job_id": "1", "status": "error",
        "kernel_exec_result": {"compiled": false, "metadata": {}},
        "timings": {
            "queue": 0.0, "compile": 0.0, "h2d": 0.0, "execute": 0.0, "device_busy": 0.0,
            "d2h": 0.0, "verify": 0.0, "total": 0.0,
        },
        "validation": {"status": "not_run"},
    })
}

fn device_metrics() -> Value {
    let group = json!({"a": 1.0, "b": 2.5});
    let groups = json!({
        "speed_of_light": group, "detailed_metrics": group, "memory_metrics": group,
        "compute_metrics": group, "pipeline_metrics": group, "occupancy_metrics": group,
        "stall_metrics": group, "scheduler_metrics": group, "access_pattern_metrics": group,
        "roofline_metrics": group, "timing_metrics": group,
    });
    json!({
        "original_device_metrics": groups, "custom_device_metrics": groups,
        "kernel": "k", "source": "emulator", "tool": "warpgauge-emulator 0.1.0",
        "metrics": {
            "flop_count": {"value": 1.5, "unit": "operations", "source": "emulator", "note": "n"},
            "duration": {"unit": "s", "reason": "r"},
        },
        "kernels": [{
            "kernel": "k", "launches": 2,
            "metrics": {"flop_count": {"value": 1.5, "unit": "operations", "source": "ncu"}},
        }],
        "kernels_left_out": 3,
        "conditions": {
            "clock_control": "none", "cache_control": "all", "replay": "user", "passes": 9,
            "window_ms": 200, "launches": 3265,
        },
        "unavailable": {"code": "no_permission", "reason": "r", "remedy": "r"},
        "kernels": [{
            "kernel": "k", "launches": 2,
            "metrics": {
                "flop_count": {"value": 1.5, "unit": "operations", "source": "ncu", "note": "n"},
                "duration": {"unit": "s", "reason": "r"},
            },
        }],
        "kernels_left_out": 1,
        "roofline": roofline(),
        "advice": [{
            "code": "bank_conflicts", "message": "m", "share": 0.5, "share_of": "time",
            "threshold": "t",
            "evidence": [
                {"metric": "shared_load_conflicts", "value": 31.0, "unit": "conflicts"},
                {"metric": "m", "value": 1.5},
            ],
        }],
        "cross_check": {
            "profiled_seconds": 0.5, "profiled_clock_hz": 1.5e9, "unprofiled_seconds": 0.25,
            "unprofiled_clock_hz": 1.5e9, "time_ratio": 2.0, "cycle_ratio": 2.0, "bound": 0.125,
            "agrees": false, "explanations": ["e"],
        },
    })
}

fn roofline() -> Value {
    let ceiling = json!({"per_second": 2.5, "source": "profiler", "derivation": "d"});
    json!({
        "bound_by": "dram", "bound_reason": "r",
        "time": {
            "basis": "profiled", "seconds": 0.5, "clock_hz": 1.5e9, "unprofiled_seconds": 0.25,
            "unprofiled_clock_hz": 1.5e9,
        },
        "compute": [
            {"precision": "fp32", "operations": 1.5, "rate": 3.5, "ceiling": ceiling,
             "fraction": 0.5},
            {"precision": "tensor_half"},
        ],
        "memory": [
            {"level": "dram", "bytes": 1.5, "bytes_note": "n", "rate": 3.5, "ceiling": ceiling,
             "fraction": 0.5},
            {"level": "l2"},
        ],
        "points": [
            {"precision": "fp32", "level": "dram", "intensity": 0.5, "rate": 1.5,
             "attainable": 2.5, "fraction": 0.5},
            {"precision": "fp64", "level": "l1", "intensity": 0.5},
        ],
        "notes": ["n"],
    })
}

pub(super) fn full_report() -> Value {
    let mut report: Value =
        serde_json::from_str(include_str!("../../../../openapi/examples/report.json")).unwrap();
    report["kernel_exec_result"]["compilation_error"] = json!("no");
    report["kernel_exec_result"]["validation_error"] = json!("no");
    report["compile"]["log"] = json!("log");
    report["launch"]["cluster"] = json!([2, 1, 1]);
    report["launch"]["cooperative"] = json!(true);
    report["compile"]["diagnostics"] = json!([
        {"severity": "note", "file": "kernel.cu", "line": 1, "column": 2, "message": "m"},
        {"severity": "error", "file": null, "line": null, "column": null, "message": "m"},
    ]);
    report["validation"]["unchecked"] = json!(["d"]);
    report["validation"]["outputs"]["c"]["first_mismatches"] =
        json!([{"index": [0, 1], "actual": "1", "expected": "2"}]);
    report["validation"]["outputs"]["c"]["tied"] = json!(2);
    report["validation"]["outputs"]["c"]["pattern"] = json!("rows 1 to 2");
    report["validation"]["outputs"]["c"]["mismatch_map"] =
        json!({"matrix": [1, 4], "counts": [[0, 1, 1, 0]]});
    report["validation"]["outputs"]["c"]["half_precision"] = json!(true);
    report["validation"]["outputs"]["c"]["non_finite_matched"] = json!(3);
    report["validation"]["outputs"]["c"]["outliers"] = json!(1);
    report["validation"]["outputs"]["c"]["tolerance"]["outliers"] =
        json!({"share": 0.004, "atol": 0.5});
    report["validation"]["outputs"]["c"]["tolerance"]["computes_in"] = json!("bfloat16");
    report["validation"]["reasons"] = json!([{"code": "timeout", "message": "m"}]);
    report["validation"]["weaknesses"] =
        json!([{"code": "zeros_pass", "output": "c", "message": "m", "blocks": true}]);
    report["kernel_exec_result"]["runtime_stats"]["ranked_by"] = json!("mean");
    let measurement = &mut report["measurement"];
    measurement["samples_ms"] = json!([0.5, 0.25]);
    measurement["rejected"] = json!([{"reason": "clock_drop", "count": 1}]);
    measurement["notes"] = json!(["n"]);
    measurement["unranked"] = json!("why");
    measurement["grid_blocks"] = json!(7);
    measurement["input_sets"] = json!(16);
    measurement["state"] =
        json!({"put_back": ["outputs"], "looked_at": ["inputs"], "not_known": ["local memory"]});
    measurement["sealed"] = json!({
        "launches": 5, "median_ms": 0.5, "others_median_ms": 0.25, "agree": false,
        "unavailable": "u",
    });
    measurement["regime"] = json!("sustained");
    measurement["load"] = json!({
        "launches": 40, "verified": 16, "share": 0.875, "median_ms": 0.5, "agree": false,
    });
    measurement["rates"] = json!({
        "bytes": 1024.0, "bytes_from": "declared", "bytes_per_second": 2048.0,
        "peak_bytes_per_second": 4096.0, "flops": 512.0, "flops_per_second": 1024.0,
        "least_ms": 0.25, "limit": "memory", "of_speed_of_light": 0.5,
    });
    measurement["gpu"]["throttle_reasons"] = json!(["sw_power_cap"]);
    measurement["gpu"]["flags"] = json!(["power_cap"]);
    measurement["summary"]["effective_n"] = json!(2);
    measurement["summary"]["modes"] = json!({"fast_ms": 0.5, "slow_ms": 0.75, "slow_share": 0.5});
    report["outputs"]["c"]["data_b64"] = json!("AACAPw==");
    report["outputs"]["c"]["compress"] = json!("none");
    report["outputs"]["c"]["format"] = json!("raw");
    report["failure"] = json!({"stage": "execute", "code": "timeout", "message": "m"});
    report["printed"] = json!("hello");
    report["kernel_exec_result"]["metadata"]["configuration"] = json!({"BLOCK": 128});
    report["launches"] = json!([{
        "step": "launches[0]", "action": "k", "count": 3, "median_ms": 0.5, "total_ms": 1.5,
        "counted": {"warp_instructions": 5, "global_sectors": 7},
    }]);
    report["tuning"] = tuning();
    report["torch"] = torch();
    let printed = json!({"text": "t", "left_out_bytes": 5});
    report["program"] = json!({
        "exit_code": 3, "signal": "SIGSEGV", "stdout": printed, "stderr": printed, "wall_ms": 1.5,
        "kernels": [{"name": "k", "launches": 2, "total_ms": 1.5, "share_pct": 50.5}],
        "messages": ["m"], "confinement": "c",
    });
    report["matrices"] = json!([{
        "name": "m", "origin": "stored", "blake3": "00", "num_rows": 2, "num_cols": 3, "nnz": 4,
    }]);
    report["tensors"] = json!([{
        "tensor_id": "t", "origin": "shared", "blake3": "00", "dtype": "int8", "shape": [1],
    }]);
    report["warnings"] = json!([{"path": "p", "message": "m"}]);
    (report["pod_name"], report["pod_ip"]) = (json!("host"), json!("10.0.0.1"));
    report["kept_outputs"] = json!({"y": {"tensor_id": "t", "device": "cuda:0", "reason": "r"}});
    for entry in ["start", "load", "profile", "report", "other"] {
        report["timings"][entry] = json!(1.5);
    }
    report["profile"] = json!({"available": false, "reason": "no ncu"});
    report["kernel_exec_result"]["metadata"]["device_metrics"] = device_metrics();
    report["sanitize"] = json!({
        "available": true, "reason": "r", "source": "emulator",
        "findings": [{
            "check": "out_of_bounds", "kernel": "k", "block": [0, 0, 0], "thread": [1, 0, 0],
            "source": "kernel.cu:3", "message": "m", "count": 4,
        }],
        "checks": [
            {"tool": "memcheck", "available": true, "version": "v", "wall_ms": 1.5, "left_out": 3},
            {"tool": "racecheck", "available": false, "unavailable": unavailable()},
        ],
    });
    report["counted"] = json!({"warp_instructions": 7, "global_sectors": 3});
    report["timings"]["profile"] = json!(1.5);
    report["timeline"] = timeline();
    report
}

fn torch() -> Value {
    let init = json!({
        "kind": "randn", "seed": 1, "mean": 0.5, "std": 1.5, "low": 0.5, "high": 1.5, "fill_value": 0.5,
        "start": 0.5, "step": 1.5, "values": [1.5], "columns": [{"low": 0.5, "high": 1.5}], "unique": true, "of": "x",
        "zeros": "z", "global": "g", "block": [32], "layout": "transposed",
    });
    json!({
        "torch": "2.11.0", "python": "3.11.7", "clock": "cpu", "not_on_gpu": "r", "stand_in": true, "threads": 2, "device": "d",
        "clocks": {"events_ms": 1.0, "judge_ms": 2.0, "calls": 3, "overhead_ms": 0.5, "resolution_ms": 0.001, "waits": false, "agree": false},
        "entry": "Model.forward", "seed": 7, "backward": true, "traceback": "t", "reused_from": "j",
        "extensions": [{"name": "e", "kind": "extension", "seconds": 1.5, "built": true, "cached": true, "how": "h"}],
        "inputs": {
            "source": "generated", "rule": "r",
            "arguments": [{"name": "x", "dtype": "float32", "shape": [2, 3], "init": init}],
        },
        "parameters": {"count": 2, "carried_over": 1, "without_counterpart": ["w"], "made": "as_written"},
    })
}

fn tuning() -> Value {
    json!({
        "configurations": [{
            "index": 1, "meta": {"BLOCK": 128}, "num_warps": 4, "num_stages": 2, "num_ctas": 1,
            "maxnreg": 128, "outcome": "wrong", "reason": "r", "median_ms": 0.5, "launches": 5,
            "rounds": 1, "counted": {"warp_instructions": 7, "global_sectors": 3},
        }],
        "chosen": 1, "decided_by": "times", "pruned": 2, "from_cache": true, "total_ms": 1.5,
    })
}

fn unavailable() -> Value {
    json!({"code": "no_tool", "reason": "r", "remedy": "m"})
}

fn timeline() -> Value {
    let row = json!({
        "name": "k", "count": 2, "total_ms": 2.0, "mean_ms": 1.0, "median_ms": 1.0, "min_ms": 0.5,
        "max_ms": 1.5, "std_dev_ms": 0.5, "bytes": 8.0,
    });
    json!({
        "available": true, "unavailable": unavailable(), "tool": "t",
        "summary": {
            "status": "success", "hardware": "h", "execution_time_ms": 1.0,
            "gpu_utilization_pct": 50.0, "memory_used_bytes": 8, "throughput_bytes_per_s": 1.5,
            "throughput_flops_per_s": 2.5,
        },
        "gpu": {
            "span_ms": 4.0, "busy_ms": 2.0, "kernels_ms": 1.0, "idle_ms": 2.0, "gaps": 1,
            "longest_gap_ms": 0.5,
        },
        "kernels": [row], "copies": [row, {"name": "c", "count": 1, "total_ms": 0.5}],
        "calls": [row],
        "launches": [
            {
                "kernel": "k", "call": "c", "count": 2, "call_ms": 0.5, "queued_ms": 0.25,
                "kernel_ms": 1.0, "total_ms": 1.75,
            },
            {"kernel": "k", "call": "c", "count": 2},
        ],
        "missing": {"cuda_api_sum": unavailable()},
    })
}
