//! Dependent launches: here each launch runs after the launch before it.

use serde_json::{Value, json};

use super::{ADD, available, bare, cuda, triton};
use crate::server::{Server, emulated};

/// Waits for the launch before it, and lets the one after it begin.
fn dependent() -> Value {
    let source = ADD
        .replace(
            "import triton.language as tl\n",
            "import triton.language as tl\nfrom triton.language.extra.cuda import (\n    \
             gdc_launch_dependents,\n    gdc_wait,\n)\n",
        )
        .replace("    x = tl.load", "    gdc_wait()\n    x = tl.load")
        .replace("    tl.store", "    gdc_launch_dependents()\n    tl.store");
    assert_ne!(source, ADD);
    let mut kernel = triton(&source);
    kernel["metadata"] = json!({"compiler_options": ["arch=sm_90", "launch_pdl=true"]});
    kernel
}

/// Were the launch begun early, it would find the poison of its output's memory or half of its inputs.
#[test]
fn a_dependent_launch_finds_all_that_was_written_before_it() {
    needs!("Triton", available());
    let server = Server::start();
    let device = server.get("/capabilities").json["devices"][0].clone();
    let capability = device["compute_capability"].as_str().unwrap_or_default();
    needs!(
        "a GPU of compute capability 9.0, or the emulated device",
        emulated() || capability.starts_with("9."),
    );
    let kernel = dependent();
    for isolation in ["warm", "sealed"] {
        let report = server.evaluate(&json!({"kernel": kernel, "num_trials": 12,
            "isolation": isolation, "expected": {"out": {"kernel": bare(cuda())}}}));
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
        let job = report["job_id"].as_str().unwrap();
        let ptx = server.get(&format!("/jobs/{job}/artifacts/ptx")).text;
        for instruction in ["griddepcontrol.wait", "griddepcontrol.launch_dependents"] {
            assert!(ptx.contains(instruction), "{ptx}");
        }
    }
}
