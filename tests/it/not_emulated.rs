//! A feature that the emulated device lacks is reported as such, and not as a fault of the kernel.

use serde_json::{Value, json};

use crate::contracts::{increment, single_thread};
use crate::server::{Server, emulated, program, until};
use crate::support;

const SAYS: &str = "not supported on the emulated device: ";

/// Valid PTX for every GPU, which the emulator does not implement.
const LACKING: &str = "int x = *out, y; asm(\"vavrg4.u32.u32.u32 %0, %1, %1, %1;\" : \"=r\"(y) : \"r\"(x)); *out = y;";

/// No PTX for any device.
const INVALID: &str =
    "int x = *out, y; asm(\"vavrg5.u32 %0, %1;\" : \"=r\"(y) : \"r\"(x)); *out = y;";

/// An evaluation that ended without a verdict, for a reason of the machine.
fn assert_no_verdict(report: &Value, names: &str) {
    assert_eq!(report["status"], "error", "{report}");
    let result = &report["kernel_exec_result"];
    assert!(result["correctness"].is_null() && result["runtime"].is_null(), "{report}");
    assert!(result["validation_error"].is_null(), "{report}");
    assert_eq!(report["validation"]["status"], "not_run", "{report}");
    assert!(report["validation"]["reasons"].as_array().is_none_or(Vec::is_empty), "{report}");
    assert_eq!(report["failure"]["code"], "not_supported", "{report}");
    let message = report["failure"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(SAYS) && message.contains(names), "{message}");
}

#[test]
fn an_instruction_that_the_emulator_lacks_is_no_fault_of_the_kernel() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let report = server.evaluate(&single_thread(LACKING));
    assert_no_verdict(&report, "`vavrg4`");
    assert_eq!(report["kernel_exec_result"]["compiled"], true, "{report}");
    // What is no PTX stays the kernel's fault.
    let report = server.evaluate(&single_thread(INVALID));
    assert_eq!(report["status"], "success", "{report}");
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report}");
    // As a job, it is stored as it was told.
    let body = json!({"jobs": [{"kind": "evaluate", "request": single_thread(LACKING)}]});
    let answer = server.post_json("/jobs", &body);
    assert!(answer.status < 300, "{}", answer.text);
    let id = answer.json["jobs"][0]["job_id"].as_str().expect("an id").to_owned();
    let view = until("the end of the job", || {
        let view = server.get(&format!("/jobs/{id}")).json;
        (view["state"] == "completed" || view["state"] == "failed").then_some(view)
    });
    assert_eq!(view["status"], "error", "{view}");
    assert_no_verdict(&view["result"], "`vavrg4`");
}

#[test]
fn a_launch_that_the_emulator_cannot_make_is_no_fault_of_the_kernel() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let mut clusters = increment();
    clusters["kernel"]["io"]["launch"]["cluster"] = json!({"x": 2});
    assert_no_verdict(&server.evaluate(&clusters), "clusters of 2 × 1 × 1 blocks");
    // More local memory than the emulator gives to calls, in functions that do not recurse.
    let mut deep = single_thread("*out = f(*out);");
    let source = deep["kernel"]["source_code"].as_str().unwrap_or_default().to_owned();
    let function = "__device__ __noinline__ int f(int x) { volatile int a[40000]; \
                    for (int i = 0; i < 40000; i += 999) a[i + x] = i; return a[x] + 1; }\n";
    deep["kernel"]["source_code"] = json!(format!("{function}{source}"));
    assert_no_verdict(&server.evaluate(&deep), "stack");
    assert_eq!(server.evaluate(&increment())["kernel_exec_result"]["correctness"], true);
}

#[test]
fn of_several_kernels_only_the_one_that_lacks_something_has_no_verdict() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let right = increment()["kernel"].take();
    let lacking = {
        let mut kernel = right.clone();
        let source = kernel["source_code"].as_str().unwrap_or_default();
        let asm =
            "asm volatile(\"vavrg4.u32.u32.u32 %0, %1, %1, %1;\" : \"=r\"(n) : \"r\"(n)); if (i";
        kernel["source_code"] = json!(source.replacen("if (i", asm, 1));
        kernel
    };
    let body = json!({"ref_kernel": right, "num_trials": 3, "candidates": [
        {"name": "lacking", "kernel": lacking}, {"name": "right", "kernel": right}]});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_no_verdict(&answer.json["candidates"][0]["evaluation"], "`vavrg4`");
    let other = &answer.json["candidates"][1]["evaluation"];
    assert_eq!(other["kernel_exec_result"]["correctness"], true, "{other}");
    // Without a reference there is nothing to compare with, through no fault of the request.
    let body = json!({"ref_kernel": lacking, "custom_kernel": right, "num_trials": 3});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(answer.text.contains(SAYS), "{}", answer.text);
    // A sweep has the point, and the others.
    let mut sweep = increment();
    let source = lacking["source_code"].as_str().unwrap_or_default();
    let source = source.replacen("asm", "if (LACKS) asm", 1);
    sweep["kernel"]["source_code"] = json!(source.replace("if (LACKS)", "#if LACKS\n").replacen(
        "; if (i",
        ";\n#endif\n if (i",
        1
    ));
    sweep["kernel"]["metadata"]["compiler_options"] = json!(["-DLACKS=${lacks}"]);
    sweep["axes"] = json!({"lacks": [0, 1]});
    let answer = server.post_json("/sweep", &sweep);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let points = &answer.json["points"];
    assert_eq!((&points[0]["status"], &points[1]["status"]), (&json!("correct"), &json!("error")));
    assert_eq!(points[1]["reasons"][0]["code"], "not_supported", "{points}");
    assert!(points[1]["correctness"].is_null(), "{points}");
}

#[test]
fn the_command_line_ends_as_for_any_lack_of_the_machine() {
    needs!("the emulated device", emulated());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lacking.json");
    let exit = |contract: &Value| {
        std::fs::write(&path, contract.to_string()).unwrap();
        let arguments = ["--device", "emulator", "eval", path.to_str().unwrap()];
        support::outcome(program().args(arguments).output().unwrap())
    };
    let (code, stdout, stderr) = exit(&single_thread(LACKING));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("ERROR") && stdout.contains(SAYS), "{stdout}{stderr}");
    let (code, stdout, stderr) = exit(&single_thread(INVALID));
    assert_eq!(code, 4, "{stdout}{stderr}");
}
