use serde_json::{Value, json};

use super::*;
use warpgauge_metrics::catalogue::CATALOGUE;

/// Style with all that a report can show.
const ALL: Style = Style { colour: false, verbose: true, width: None };

/// Returns a passed evaluation. `changes` replaces top-level fields.
fn response(changes: Value) -> EvaluateResponse {
    let mut whole = json!({
        "job_id": "job-1", "status": "success",
        "kernel_exec_result": {
            "compiled": true, "correctness": true, "runtime": 0.0125,
            "runtime_stats": {"mean": 0.0125, "std": 0.0001, "min": 0.0121, "max": 0.014,
                "median": 0.0124, "percentile_95": 0.0131, "percentile_99": 0.0139, "samples": 100,
                "median_ci_low": 0.0123, "median_ci_high": 0.0126},
            "metadata": {"kernel_name": "vector_add"}},
        "timings": {"queue": 0.1, "compile": 52.0, "h2d": 1.0, "execute": 12.0,
            "device_busy": 8.0, "d2h": 2.0, "verify": 0.5, "total": 67.5},
        "device": {"id": 0, "kind": "emulator", "name": "CPU", "uuid": "GPU-0",
            "compute_capability": "9.0", "cuda_version": "13.0", "multiprocessors": 2,
            "memory_bytes": 1_073_741_824, "l2_bytes": 0},
        "compile": {"compiler": "nvrtc 13.0.88", "cache_hit": true, "key": "k",
            "kernels": ["vector_add"], "symbol": "vector_add",
            "resources": {"registers": 16, "static_shared_bytes": 2048, "local_bytes": 0,
                "stack_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0,
                "const_bytes": 0, "max_threads_per_block": 1024}},
        "validation": {"status": "passed", "outputs": {"c": comparison(true)}},
    });
    for (key, value) in changes.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    serde_json::from_value(whole).expect("a response")
}

fn comparison(passed: bool) -> Value {
    let mismatch = json!({"index": [1, 2], "actual": "3", "expected": "4"});
    json!({"passed": passed, "elements": 8, "matched": if passed { 8 } else { 6 },
        "non_finite": 0, "unwritten": if passed { 0 } else { 1 }, "max_abs_error": 0.25,
        "max_rel_error": 0.125,
        "tolerance": {"atol": 1e-6, "rtol": 1e-5, "required_matched_ratio": 1.0,
            "allow_non_finite": false},
        "first_mismatches": if passed { json!([]) } else { json!([mismatch]) }})
}

#[test]
fn a_passed_evaluation() {
    insta::assert_snapshot!(evaluation(&response(json!({})), Style::default()), @r"
CORRECT  vector_add: 1 output checked

  runtime   12.40 µs median (95 % CI 12.30 µs to 12.60 µs), n = 100
  error     `c` at most 2.500e-1 absolute, 1.250e-1 relative
  uses      16 registers, 2.0 KiB shared memory, 0 B local memory, no spills
  device    emulator (not a GPU: times are of the emulation): 0 CPU, compute 9.0, 2 SMs, 1.0 GiB, CUDA 13.0
    ");
}

#[test]
fn all_of_a_passed_evaluation() {
    insta::assert_snapshot!(evaluation(&response(json!({})), ALL), @r"
CORRECT  vector_add: 1 output checked

  runtime   12.40 µs median (95 % CI 12.30 µs to 12.60 µs), n = 100
            p95 13.10 µs, mean 12.50 µs ± 100.0 ns
            min 12.10 µs, max 14.00 µs
  error     `c` at most 2.500e-1 absolute, 1.250e-1 relative
  device    emulator (not a GPU: times are of the emulation): 0 CPU, compute 9.0, 2 SMs, 1.0 GiB, CUDA 13.0
  check     c ok: 8 of 8 elements match
            largest error 2.500e-1 absolute, 1.250e-1 relative; tolerance atol 1e-6, rtol 1e-5
  compiled  nvrtc 13.0.88 in 52.00 ms, from the cache
            kernel vector_add
            16 registers, 2.0 KiB shared memory, 0 B local memory, no spills
  timings   67.50 ms in total: queue 100.0 µs, compile 52.00 ms, inputs 1.000 ms
            execute 12.00 ms (device busy 8.000 ms), outputs 2.000 ms, checks 500.0 µs
  job       job-1
    ");
}

/// Returns the report of the example with `--verbose`, after changes of its measurement.
fn measured(changes: Value) -> String {
    let report: Value =
        serde_json::from_str(include_str!("../../../openapi/examples/report.json")).expect("JSON");
    let mut measurement = report["measurement"].clone();
    for (key, value) in changes.as_object().expect("an object") {
        measurement[key] = value.clone();
    }
    evaluation(&response(json!({"measurement": measurement})), ALL)
}

#[test]
fn how_it_was_measured() {
    let text = measured(json!({"rates": {
        "bytes": 12_582_912.0, "bytes_from": "declared", "bytes_per_second": 1.5634e12,
        "peak_bytes_per_second": 4.916736e12, "flops": 1_048_576.0, "flops_per_second": 1.3e11,
        "least_ms": 0.00256, "limit": "memory", "of_speed_of_light": 0.3181}}));
    let rows = "  measured  3 launches, as precise as requested; L2 cold; fresh inputs each launch
            median known to ± 2.08 %
            3 timed launches verified; clock 1980 MHz (1980 to 1980)
";
    assert!(text.contains(rows), "{text}");
    let rows = "  achieved  1.56 TB/s, of 12.6 MB (declared); 130 GFLOP/s, of 1.05 MFLOP (declared)
            31.8 % of the speed of light: those bytes at the peak of device memory, 4.92 TB/s, take 2.560 µs
";
    assert!(text.contains(rows), "{text}");
    let text = measured(json!({"rates": {
        "bytes": 12_582_912.0, "bytes_from": "buffers", "bytes_per_second": 6e12,
        "peak_bytes_per_second": 4.916736e12, "least_ms": 0.00256, "limit": "memory",
        "of_speed_of_light": 1.25}}));
    assert!(text.contains("6 TB/s, of 12.6 MB (assumed: each tensor moved once)\n"), "{text}");
    assert!(
        text.contains("125 % of the speed of light") && text.contains("not all of them"),
        "{text}"
    );
}

/// The catalogue has metrics of one group in several places.
#[test]
fn a_profile_has_each_group_once_and_a_readable_name() {
    let metrics: serde_json::Map<String, Value> = CATALOGUE
        .iter()
        .map(|info| {
            let metric = json!({"value": 1.0, "unit": info.unit.name(), "source": "ncu"});
            (info.id.to_owned(), metric)
        })
        .collect();
    let device_metrics = json!({"kernel": "_ZN2ns10vector_addIfEEvPKT_S3_PS1_i", "source": "ncu",
        "tool": "t", "original_device_metrics": {}, "metrics": metrics});
    let result = json!({"compiled": true, "correctness": true,
        "metadata": {"kernel_name": "vector_add", "device_metrics": device_metrics}});
    let text = profile(&response(json!({"kernel_exec_result": result})), Style::default());
    assert!(text.contains("of one launch of ns::vector_add<float>, by t\n"), "{text}");
    for info in CATALOGUE {
        let group = info.group.name();
        let headings = text.lines().filter(|line| line.trim() == group).count();
        assert_eq!(headings, 1, "{group} in\n{text}");
        let rows = text.lines().filter(|line| line.split_whitespace().next() == Some(info.id));
        // No metric of the group `speed_of_light` has that name.
        assert!(rows.count() >= 1, "{}", info.id);
    }
}

#[test]
fn what_makes_times_doubtful_is_said() {
    let text = measured(json!({
        "state": {"put_back": ["outputs"], "not_known": ["local memory", "the heap"]},
        "at_floor": true, "inputs": "same", "stopped": "time_budget", "audited": 0,
        "sm_clock": null, "rejected": [{"reason": "clock_drop", "count": 4}], "notes": ["mind"],
        "gpu": {"power_w": [], "temperature_c": [], "throttle_reasons": [],
            "flags": ["power_cap", "contention"]},
    }));
    for words in [
        "  note      out of time, less precise than requested\n            the same inputs each time: a kernel",
        "memory in which results could be kept: local memory, the heap",
        "            no timed launch was verified\n",
        "  floor     this is the time of the launch itself (an empty kernel takes 2.700 µs)",
        "4 samples do not count: clock_drop",
        "            the GPU ran at its power limit\n            other processes used the GPU, too\n",
        "            mind\n",
    ] {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
    assert!(!text.contains("achieved"), "no rates, no row: {text}");
}

#[test]
fn reasons_and_weaknesses_are_rows() {
    let text = evaluation(
        &response(json!({"validation": {"status": "failed",
            "reasons": [{"code": "output_unwritten", "message": "c: 8 never written"},
                        {"code": "depends_on_history", "message": "c changes"}],
            "weaknesses": [{"code": "zeros_pass", "output": "c", "message": "zeros would do"}]}})),
        Style::default(),
    );
    let reasons = "  reason    c: 8 never written [output_unwritten]\n  reason    c changes \
                   [depends_on_history]\n";
    assert!(text.contains(reasons), "{text}");
    assert!(text.contains("  weak      c: zeros would do [zeros_pass]\n"), "{text}");
}

#[test]
fn a_wrong_one_shows_its_first_mismatches_once() {
    let failed = serde_json::from_value(comparison(false)).expect("a comparison");
    let said = warpgauge_validate::validation_error("c", &failed);
    let text = evaluation(
        &response(json!({
            "kernel_exec_result": {"compiled": true, "correctness": false,
                "validation_error": "2 of 8 elements differ",
                "metadata": {"kernel_name": "k"}},
            "compile": null,
            "validation": {"status": "failed", "outputs": {"c": comparison(false)},
                "reasons": [{"code": "output_unwritten", "message": said}]},
        })),
        Style::default(),
    );
    insta::assert_snapshot!(text, @r"
WRONG  k: `c`: 2 of 8 elements differ, 1 never written [output_unwritten]

  mismatch  c[1, 2] is 3, expected 4
            largest error 2.500e-1 absolute, 1.250e-1 relative; tolerance atol 1e-6, rtol 1e-5
  device    emulator (not a GPU: times are of the emulation): 0 CPU, compute 9.0, 2 SMs, 1.0 GiB, CUDA 13.0
    ");
    assert!(!text.contains("runtime"), "a wrong kernel has no time: {text}");
}

#[test]
fn every_verdict_comes_first() {
    let failure = json!({"stage": "execute", "code": "timeout", "message": "still running"});
    let result = |correctness: Value| json!({"compiled": true, "correctness": correctness, "metadata": {"kernel_name": "k"}});
    let cases = [
        (json!({}), "CORRECT  vector_add: 1 output checked\n"),
        (json!({"kernel_exec_result": result(Value::Null)}), "NOT CHECKED  k ran; the contract"),
        (
            json!({"failure": failure, "kernel_exec_result": result(Value::Null)}),
            "FAILED  k: still running [timeout]\n",
        ),
        (json!({"failure": failure, "status": "error"}), "ERROR  vector_add: still running"),
        (
            json!({"kernel_exec_result": {"compiled": false, "metadata": {}}}),
            "NOT COMPILED  the kernel: the compiler rejected it\n",
        ),
    ];
    for (changes, expected) in cases {
        let text = evaluation(&response(changes), Style::default());
        assert!(text.starts_with(expected), "{expected:?} in\n{text}");
    }
}

#[test]
fn compile_errors_are_located() {
    let diagnostic = json!({"severity": "error", "file": "kernel.cu", "line": 3, "column": 5,
                            "message": "identifier \"x\" is undefined"});
    let compile = json!({"compiler": "nvrtc", "cache_hit": false, "key": "", "kernels": [],
                         "symbol": "", "diagnostics": [diagnostic]});
    let changes = json!({"kernel_exec_result": {"compiled": false, "metadata": {}},
                         "compile": compile});
    let text = evaluation(&response(changes), Style::default());
    assert!(text.contains("  kernel.cu:3:5: error: identifier \"x\" is undefined\n"), "{text}");
}

#[test]
fn kernels_cannot_steer_the_terminal_or_flood_it() {
    let printed = format!("\x1b]0;title\x07{}", "line\n".repeat(100));
    let text = evaluation(&response(json!({"printed": printed})), Style::default());
    assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text}");
    assert!(text.contains("… and 60 more lines"), "{text}");
}

#[test]
fn colour_is_an_option() {
    assert!(
        evaluation(&response(json!({})), Style { colour: true, verbose: false, width: None })
            .starts_with("\x1b[1;32mCORRECT\x1b[0m")
    );
    assert!(!evaluation(&response(json!({})), Style::default()).contains('\x1b'));
}

#[test]
fn compilations() {
    let compiled: CompileResponse = serde_json::from_value(json!({
        "job_id": "j", "status": "success", "compiled": true, "total_ms": 12.0,
        "compile": {"compiler": "nvrtc 13.0.88", "cache_hit": false, "key": "k",
            "kernels": ["a"], "symbol": "a"}}))
    .expect("a response");
    let text = compilation(&compiled, Style::default());
    assert_eq!(text, "COMPILED\n\n  compiled  nvrtc 13.0.88 in 12.00 ms\n            kernel a\n");
    let several: CompileResponse = serde_json::from_value(json!({
        "job_id": "j", "status": "success", "compiled": true, "total_ms": 12.0,
        "compile": {"compiler": "nvrtc 13.0.88", "cache_hit": false, "key": "k",
            "kernels": ["a", "b<float>"], "symbol": ""},
        "signatures": [{"name": "a", "symbol": "a"}, {"name": "b<float>", "symbol": "_Z1bIfEvPT_",
            "resources": {"registers": 8, "static_shared_bytes": 1024, "local_bytes": 0,
                "const_bytes": 0, "max_threads_per_block": 1024}}]}))
    .expect("a response");
    let lines = "  compiled  nvrtc 13.0.88 in 12.00 ms\n  kernel    a\n  kernel    b<float>\n            8 registers, 1.0 KiB shared memory, 0 B local memory\n";
    assert_eq!(compilation(&several, Style::default()), format!("COMPILED\n\n{lines}"));
    let failed: CompileResponse = serde_json::from_value(json!({
        "job_id": "j", "status": "success", "compiled": false, "total_ms": 12.0,
        "compilation_error": "boom"}))
    .expect("a response");
    assert_eq!(compilation(&failed, Style::default()), "NOT COMPILED\n\n    boom\n");
}

/// The pattern of wrong elements says more than their values.
#[test]
fn a_mismatch_is_shown_by_its_pattern() {
    let wrong = |changes: Value| {
        let mut output = comparison(false);
        for (key, value) in changes.as_object().expect("an object") {
            output[key] = value.clone();
        }
        let text = evaluation(
            &response(json!({"compile": null, "device": null,
                "kernel_exec_result": {"compiled": true, "correctness": false,
                    "metadata": {"kernel_name": "k"}},
                "validation": {"status": "failed", "outputs": {"c": output}}})),
            Style::default(),
        );
        text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        wrong(json!({"pattern": "rows 1 to 2", "unwritten": 2})),
        "  mismatch  `c`: rows 1 to 2 never written: does the grid cover them?\n            \
         c[1, 2] was not written, expected 4"
    );
    let text = wrong(json!({"pattern": "column 3", "unwritten": 0}));
    assert!(
        text.starts_with("  mismatch  `c`: column 3\n            c[1, 2] is 3, expected 4\n"),
        "{text}"
    );
    let text = wrong(json!({"matched": 0, "unwritten": 8}));
    assert!(text.starts_with("  mismatch  `c`: nothing was written\n"), "{text}");
}

/// A note on several values of the emulated device is written once, and zeros are left out.
#[test]
fn a_profile_has_footnotes_and_no_zeros() {
    let metrics = json!({
        "registers_per_thread": {"value": 16.0, "unit": "registers", "source": "emulator", "note": "estimated"},
        "occupancy_theoretical": {"value": 0.5, "unit": "", "source": "emulator", "note": "estimated"},
        "shared_load_conflicts": {"value": 0.0, "unit": "conflicts", "source": "emulator"},
    });
    let device_metrics = json!({"kernel": "k", "source": "emulator", "tool": "t",
        "original_device_metrics": {}, "metrics": metrics});
    let result = json!({"compiled": true, "correctness": true,
        "metadata": {"kernel_name": "k", "device_metrics": device_metrics}});
    let response = response(json!({"kernel_exec_result": result}));
    let text = profile(&response, Style::default());
    assert_eq!(text.matches("estimated").count(), 1, "{text}");
    assert_eq!(text.matches("  [1]\n").count(), 2, "{text}");
    assert!(text.contains("1 metric is zero (--verbose shows it)"), "{text}");
    assert!(!text.contains("shared_load_conflicts"), "{text}");
    assert!(profile(&response, ALL).contains("shared_load_conflicts"));
}
