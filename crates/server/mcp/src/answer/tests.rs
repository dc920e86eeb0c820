use serde_json::{Value, json};

use super::*;
use warpgauge_job_views::JobView;

const REPORT: &str = include_str!("../../../../../openapi/examples/report.json");

fn job(state: &str, more: Value) -> JobView {
    let mut job = json!({
        "job_id": "j1", "kind": "evaluate", "state": state, "created_at": 1.0, "trials_done": 3,
    });
    for (name, value) in more.as_object().expect("an object") {
        job[name] = value.clone();
    }
    serde_json::from_value(job).expect("a job")
}

fn report(change: impl FnOnce(&mut Value)) -> Outcome {
    let mut report: Value = serde_json::from_str(REPORT).expect("JSON");
    change(&mut report);
    of_job(&job("completed", json!({"status": "success", "result": report})))
}

#[test]
fn a_right_kernel_has_its_time_first() {
    let outcome = report(|_| {});
    let text = outcome.text();
    assert!(text.starts_with("CORRECT: "), "{text}");
    assert!(
        outcome.facts[0].starts_with("time: ") && outcome.facts[0].contains("95 % CI"),
        "{text}"
    );
    assert_eq!(outcome.facts.len(), FACTS, "{text}");
    assert!(!outcome.is_error() && outcome.resources.len() == 4, "{text}");
}

#[test]
fn a_kernel_that_does_not_compile_has_the_first_error_first() {
    let outcome = report(|report| {
        report["verdict"] = json!("not_compiled");
        report["kernel_exec_result"] =
            json!({"compiled": false, "compilation_error": "no", "metadata": {}});
        report["compile"]["diagnostics"] = json!([
            {"severity": "warning", "file": "kernel.cu", "line": 1, "column": 2, "message": "unused"},
            {"severity": "error", "file": "kernel.cu", "line": 7, "column": 3, "message": "no \u{1b}[31mx"},
        ]);
    });
    assert_eq!(outcome.verdict, Verdict::NotCompiled);
    assert_eq!(outcome.facts[0], "kernel.cu:7:3: error: no  [31mx");
    assert!(
        outcome.text().starts_with("NOT COMPILED: the kernel: 1 error\n"),
        "{}",
        outcome.text()
    );
}

#[test]
fn whatever_kernels_and_compilers_say_an_answer_stays_short() {
    let outcome = report(|report| {
        let long = "ä\n".repeat(1 << 20);
        report["verdict"] = json!("not_compiled");
        report["kernel_exec_result"] = json!({"compiled": false, "compilation_error": long, "metadata": {"kernel_name": long}});
        let one =
            json!({"severity": "error", "file": long, "line": 1, "column": 1, "message": long});
        report["compile"]["diagnostics"] = json!(vec![one; 3]);
    });
    assert!(outcome.text().len() < 4 << 10, "{}", outcome.text().len());
    let structured = serde_json::to_string(&outcome).expect("JSON");
    assert!(structured.len() < 16 << 10, "{}", structured.len());
}

#[test]
fn jobs_without_a_report_say_where_they_stand() {
    let running = of_job(&job("profiling", json!({})));
    assert_eq!(running.verdict, Verdict::Running);
    assert!(running.facts[0].contains("get_job with job_id \"j1\""), "{:?}", running.facts);
    let failed = json!({"error": "the disk is full", "code": "unavailable"});
    let failed = of_job(&job("failed", failed));
    assert!(
        failed.is_error()
            && failed.text().starts_with("JOB FAILED: the disk is full [unavailable]")
    );
    assert_eq!(of_job(&job("cancelled", json!({}))).verdict, Verdict::Cancelled);
}

#[test]
fn a_refusal_names_the_argument() {
    let refusal = JobBackendError::at("kernel.io", "missing_field", "kernel.io: give it");
    let outcome = Outcome::refused(&refusal);
    let text = "REFUSED: kernel.io: give it\n- [missing_field] at kernel.io; nothing was run\n";
    assert_eq!(outcome.text(), text);
    assert!(outcome.is_error());
}
