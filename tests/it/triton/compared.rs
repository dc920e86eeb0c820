//! Comparisons in which one kernel or both are written in Triton.

use serde_json::{Value, json};

use super::{ADD, available, bare, block, cuda, triton};
use crate::server::Server;

/// The answer, of kernels that are right.
fn compared(server: &Server, reference: &Value, custom: &Value) -> Value {
    let body = json!({"ref_kernel": reference, "custom_kernel": custom, "num_trials": 2,
        "measure": {"preset": "quick"}});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    let evaluation = &answer.json["candidates"][0]["evaluation"];
    assert_eq!(evaluation["kernel_exec_result"]["correctness"], true, "{evaluation}");
    answer.json["candidates"][0].clone()
}

#[test]
fn triton_is_compared_with_cuda_and_cuda_with_triton() {
    needs!("Triton", available());
    let server = Server::start();
    for (reference, custom) in
        [(cuda(), bare(triton(ADD))), (triton(ADD), bare(cuda())), (cuda(), triton(ADD))]
    {
        let report = compared(&server, &reference, &custom);
        assert_ne!(report["identical_code"], true, "{report}");
        let diff = &report["code_diff"];
        // Loads, in PTX or in SASS.
        let text = diff["unified"].as_str().unwrap_or_default();
        assert!(text.contains("ld.") || text.contains("LDG"), "{diff}");
        assert!(!diff["opcodes"].to_string().contains("kernel."), "{diff}");
    }
}

#[test]
fn what_constants_change_shows_in_the_code() {
    needs!("Triton", available());
    let server = Server::start();
    let other = json!({"source_code": ADD, "kernel_type": "triton", "io": {"args": [block(128)],
        "launch": {"grid": {"x": "ceil_div(n, BLOCK)"}, "num_warps": 4}}});
    let report = compared(&server, &triton(ADD), &other);
    assert!(report["code_diff"]["unified"].is_string(), "{report}");
    // Without anything of its own it has the reference's constants and launch.
    let same = json!({"source_code": ADD, "kernel_type": "triton"});
    let report = compared(&server, &triton(ADD), &same);
    // Where the images tell that they are the same, nothing is listed.
    let diff = &report["code_diff"];
    assert!(diff.is_null() || diff["identical"] == true, "{report}");
}

/// A grid of programs is none of blocks of threads.
#[test]
fn a_launch_is_not_borrowed_from_another_language() {
    needs!("Triton", available());
    let server = Server::start();
    let without = |mut kernel: Value| {
        kernel["io"].as_object_mut().unwrap().remove("launch");
        bare(kernel)
    };
    for (reference, custom) in
        [(cuda(), without(triton(ADD))), (triton(ADD), without(bare(cuda())))]
    {
        let body = json!({"ref_kernel": reference, "custom_kernel": custom, "num_trials": 2});
        let answer = server.post_json("/compare", &body);
        assert_eq!(answer.status, 400, "{}", answer.text);
        let told = &answer.json["validation_errors"][0];
        assert_eq!(told["type"], "missing_launch", "{}", answer.text);
        assert_eq!(told["field"], "custom_kernel.io.launch", "{}", answer.text);
        assert!(told["message"].as_str().unwrap().contains("give the number"), "{told}");
    }
}
