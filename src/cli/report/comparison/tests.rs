use serde_json::{Value, json};

use super::*;

fn evaluation(median: f64, changes: &Value) -> Value {
    let mut whole = json!({
        "job_id": "job-1", "status": "success",
        "kernel_exec_result": {
            "compiled": true, "correctness": true, "runtime": median,
            "runtime_stats": {"mean": median, "std": 0.0001, "min": median, "max": median,
                "median": median, "percentile_95": median, "percentile_99": median,
                "samples": 100, "median_ci_low": median * 0.99, "median_ci_high": median * 1.01},
            "metadata": {"kernel_name": "k"}},
        "timings": {"queue": 0.1, "compile": 52.0, "h2d": 1.0, "execute": 12.0,
            "device_busy": 8.0, "d2h": 2.0, "verify": 0.5, "total": 67.5},
        "validation": {"status": "passed"},
    });
    for (key, value) in changes.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    whole
}

fn paired() -> Value {
    serde_json::from_str(include_str!("../../../../openapi/examples/comparison.json"))
        .expect("JSON")
}

fn page(kind: &str, candidates: Value) -> String {
    shown(kind, candidates, Beside { reference: "a.cu", diff: false }, Style::default())
}

fn shown(kind: &str, candidates: Value, beside: Beside<'_>, style: Style) -> String {
    let reference = evaluation(0.0154, &json!({}));
    let response = serde_json::from_value(json!({
        "job_id": "job-1", "status": "success", "reference": reference,
        "kernel_exec_result": reference["kernel_exec_result"], "timings": reference["timings"],
        "candidates": candidates,
        "device": {"id": 0, "kind": kind, "name": "GPU", "uuid": "GPU-0",
            "compute_capability": "9.0", "cuda_version": "13.0", "multiprocessors": 2,
            "memory_bytes": 1_073_741_824, "l2_bytes": 0},
    }));
    comparison(&response.expect("a comparison"), beside, style)
}

#[test]
fn a_faster_kernel() {
    let candidate = json!({"name": "b.cu", "evaluation": evaluation(0.0125, &json!({})),
        "comparison": paired(), "identical_code": false});
    insta::assert_snapshot!(page("cuda", json!([candidate])), @r"
FASTER  b.cu is 1.231 × ± 0.007 faster than a.cu

  reference a.cu: 15.40 µs median (95 % CI 15.25 µs to 15.55 µs), n = 100
  candidate b.cu: 12.50 µs median (95 % CI 12.38 µs to 12.62 µs), n = 100
  speed-up  1.231 (98 % CI 1.224 to 1.238)
  device    0 GPU, compute 9.0, 2 SMs, 1.0 GiB, CUDA 13.0
    ");
}

#[test]
fn every_verdict_comes_first() {
    let cases = [
        (
            "slower",
            json!({"speedup": 0.5, "speedup_ci_low": 0.45, "speedup_ci_high": 0.8}),
            "SLOWER  c is 2.00 × ± 0.49 slower than a.cu",
        ),
        ("same", json!({}), "SAME  c is as fast as a.cu: 1.231 × ± 0.007, within 2 %"),
        (
            "inconclusive",
            json!({}),
            "INCONCLUSIVE  c is 1.231 × ± 0.007 as fast as a.cu; a difference below 1.8 % could not be \
             seen",
        ),
        (
            "inconclusive",
            json!({"speedup": null, "speedup_ci_low": null, "blocks_used": 0}),
            "INCONCLUSIVE  c compared with a.cu: no block is valid; a difference below 1.8 % could not be seen",
        ),
    ];
    for (verdict, changes, expected) in cases {
        let mut comparison = paired();
        comparison["verdict"] = json!(verdict);
        for (key, value) in changes.as_object().expect("an object") {
            comparison[key] = value.clone();
        }
        let own = evaluation(0.01, &json!({}));
        let candidate = json!({"name": "c", "evaluation": own, "comparison": comparison});
        let text = page("cuda", json!([candidate]));
        assert_eq!(text.lines().next(), Some(expected), "{text}");
    }
}

#[test]
fn every_reason_is_in_words() {
    let mut comparison = paired();
    comparison["clock_induced"] = json!(true);
    comparison["reasons"] = json!(["difference_unresolved", "clock_induced"]);
    let candidate = json!({"name": "c", "evaluation": evaluation(0.01, &json!({})),
        "comparison": comparison, "identical_code": true});
    let text = shown(
        "cuda",
        json!([candidate]),
        Beside::unnamed(),
        Style { colour: false, verbose: true, width: None },
    );
    assert!(text.contains("  because   the interval includes"), "{text}");
    assert!(text.contains("            times and cycles disagree"), "{text}");
    assert!(
        text.contains("the difference in time is due to the clock, not to the kernel"),
        "{text}"
    );
    assert!(text.contains("  code      identical to the reference's machine code"), "{text}");
}

#[test]
fn several_kernels_of_all_kinds() {
    let wrong = json!({
        "kernel_exec_result": {"compiled": true, "correctness": false, "metadata": {},
            "validation_error": "y: 3 of 8 elements differ"},
        "validation": {"status": "failed", "reasons": [
            {"code": "output_mismatch", "message": "y: 3 of 8 elements differ"}]},
    });
    let broken = json!({
        "kernel_exec_result": {"compiled": false, "metadata": {}, "compilation_error": "boom"},
        "validation": {"status": "not_run"},
    });
    let counts = json!([
        {"count": "warp_instructions", "reference": 100, "candidate": 150, "ratio": 1.5},
        {"count": "barriers", "reference": 0, "candidate": 2},
        {"count": "global_atomic_operations", "reference": 0, "candidate": 0},
    ]);
    let text = page(
        "emulator",
        json!([
            {"name": "fine.cu", "evaluation": evaluation(1.5, &json!({})), "counts": counts,
             "not_compared": "times of the emulated device are not compared; see the counts"},
            {"name": "lean.cu", "evaluation": evaluation(1.5, &json!({})), "not_compared": "why",
             "counted": {"verdict": "less_work", "warp_instructions": 0.25}},
            {"name": "wrong.cu", "evaluation": evaluation(1.5, &wrong), "not_compared": "wrong"},
            {"name": "broken.cu", "evaluation": evaluation(1.5, &broken), "not_compared": "no"},
        ]),
    );
    insta::assert_snapshot!(text, @r"
CORRECT, NOT COMPARED  fine.cu: times of the emulated device are not compared; see the counts
LESS WORK  lean.cu takes 0.250 × the warp instructions of a.cu; counted, not timed
WRONG  wrong.cu: y: 3 of 8 elements differ [output_mismatch]
NOT COMPILED  broken.cu: the compiler rejected it

  reference a.cu: 15.40 µs median (95 % CI 15.25 µs to 15.55 µs), n = 100
  candidate fine.cu: 1.500 ms median (95 % CI 1.485 ms to 1.515 ms), n = 100
  counts    of one launch: reference, candidate, ratio
            warp_instructions                    100           150    1.500
            barriers                               0             2        –
  candidate lean.cu: 1.500 ms median (95 % CI 1.485 ms to 1.515 ms), n = 100
  candidate wrong.cu: no time: the kernel is not correct
  candidate broken.cu: no time: the kernel does not compile
    boom
  device    emulator (not a GPU: times are of the emulation): 0 GPU, compute 9.0, 2 SMs, 1.0 GiB, CUDA 13.0
    ");
}

#[test]
fn a_ranking_names_its_kernels() {
    let mut response: CompareResponse = serde_json::from_value(json!({
        "job_id": "j", "status": "success", "reference": evaluation(1.0, &json!({})),
        "kernel_exec_result": {"compiled": true, "metadata": {}},
        "timings": evaluation(1.0, &json!({}))["timings"],
        "candidates": [
            {"name": "a", "evaluation": evaluation(1.0, &json!({})), "comparison": paired()},
            {"name": "b\u{1b}[2J", "evaluation": evaluation(1.0, &json!({})),
             "comparison": paired()},
        ],
        "device": {"id": 0, "kind": "cuda", "name": "GPU", "uuid": "GPU-0",
            "compute_capability": "9.0", "cuda_version": "13.0", "multiprocessors": 2,
            "memory_bytes": 1, "l2_bytes": 0},
    }))
    .expect("a comparison");
    let ranking = json!({"pairs": [], "candidates": [{"index": 2, "rank": 1, "relative_time": 0.5},
        {"index": 0, "rank": 2, "relative_time": 1.0}, {"index": 1, "rank": 2}]});
    response.ranking = Some(serde_json::from_value(ranking).expect("a ranking"));
    response.counted_ranking = serde_json::from_value(json!([
        {"index": 1, "rank": 1, "counted": {"warp_instructions": 7, "global_sectors": 3}},
        {"index": 0, "rank": 2, "counted": {"warp_instructions": 8, "global_sectors": 3}},
    ]))
    .expect("a ranking");
    let beside = Beside { reference: "ref.cu", diff: false };
    let text = comparison(&response, beside, Style::default());
    let counted = "  by counts 1. a, 7 warp instructions, 3 sectors\n            2. ref.cu, 8 warp \
                   instructions, 3 sectors\n";
    assert!(text.contains(counted), "{text}");
    let rows = "  ranking   1. b\u{fffd}[2J, 0.5000 of the reference's time\n            2. ref.cu\n            \
                2. a\n";
    assert!(text.contains(rows), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// Differences of code are shown on demand only, the error of a right kernel always.
#[test]
fn differences_of_code_are_shown_on_demand() {
    let output = json!({"passed": true, "elements": 8, "matched": 8, "non_finite": 0, "unwritten": 0,
        "max_abs_error": 0.25, "max_rel_error": 0.125, "first_mismatches": [],
        "tolerance": {"atol": 1e-6, "rtol": 1e-5, "required_matched_ratio": 1.0,
            "allow_non_finite": false}});
    let validation = json!({"validation": {"status": "passed", "outputs": {"y": output}}});
    let diff = json!({"language": "ptx", "identical": false, "reference_instructions": 3,
        "candidate_instructions": 2, "added": 1, "removed": 2, "unified": "-add.f32", "opcodes": [],
        "truncated": false});
    let candidates = json!([{"name": "b.cu", "evaluation": evaluation(0.01, &validation),
        "comparison": paired(), "code_diff": diff}]);
    let text = page("cuda", candidates.clone());
    assert!(
        text.contains("  error     b.cu: `y` at most 2.500e-1 absolute, 1.250e-1 relative\n"),
        "{text}"
    );
    assert!(!text.contains("add.f32") && !text.contains("instructions"), "{text}");
    let beside = Beside { reference: "a.cu", diff: true };
    let text = shown("cuda", candidates, beside, Style::default());
    assert!(text.contains("PTX: 3 instructions, the candidate has 2"), "{text}");
    assert!(text.contains("    -add.f32\n"), "{text}");
}
