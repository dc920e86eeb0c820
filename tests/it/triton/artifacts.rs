//! Artifacts of a Triton kernel: all stages of its compilation.

use serde_json::{Value, json};

use super::{ADD, available, bare, cuda, triton};
use crate::contracts::increment;
use crate::server::Server;

fn listed<'a>(list: &'a Value, name: &str, kernel: &str) -> &'a Value {
    let all = list["artifacts"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name && one["kernel"] == kernel);
    found.unwrap_or_else(|| panic!("{name} of {kernel} in {list}"))
}

/// What ran as machine code has its PTX without being compiled again, and what ran as PTX has machine
/// code, for which the compiler must know the arguments' types.
#[test]
fn every_language_on_the_way_to_machine_code_can_be_fetched() {
    needs!("Triton", available());
    let server = Server::start();
    let report = server.evaluate(&json!({"kernel": triton(ADD), "num_trials": 2}));
    let job = format!("/jobs/{}", report["job_id"].as_str().unwrap());
    let list = server.get(&format!("{job}/artifacts")).json;
    for (name, has) in [
        ("ttir", "tt.store"),
        ("ttgir", "ttg.num-warps"),
        ("llir", "define ptx_kernel void @add("),
        ("ptx", ".entry add("),
    ] {
        let listed = listed(&list, name, "kernel");
        assert_eq!(listed["available"], true, "{listed}");
        let answer = server.get(&format!("{job}/artifacts/{name}"));
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(answer.text.contains(has), "{name}: {}", answer.text);
        assert_eq!(listed["bytes"], answer.text.len(), "it is kept, and not made again");
    }
    let mut cubin = ureq::get(format!("{}{job}/artifacts/cubin", server.url)).call().unwrap();
    assert!(cubin.body_mut().read_to_vec().unwrap().starts_with(b"\x7fELF"));
    // Triton brings a disassembler.
    let sass = server.get(&format!("{job}/artifacts/sass"));
    assert_eq!(sass.status, 200, "{}", sass.text);
    assert!(sass.text.contains("EXIT") && sass.text.contains("STG"), "{}", sass.text);
}

/// A sum is a function of Triton's library, whose lines are told; where it is installed is not.
#[test]
fn places_in_the_library_are_told_and_not_where_it_lies() {
    needs!("Triton", available());
    let source = ADD.replace("x + y, mask", "x + y + tl.sum(x - x, axis=0), mask");
    let server = Server::start();
    let report = server.evaluate(&json!({"kernel": triton(&source), "num_trials": 2}));
    assert_eq!(report["kernel_exec_result"]["compiled"], true, "{report}");
    let job = format!("/jobs/{}/artifacts", report["job_id"].as_str().unwrap());
    for (name, place) in [
        ("ttir", "\"triton/language/standard.py\":"),
        ("ttgir", "\"triton/language/standard.py\":"),
        ("llir", "directory: \"triton/language\""),
        ("ptx", "\"triton/language/standard.py\""),
    ] {
        let text = server.get(&format!("{job}/{name}")).text;
        assert!(text.contains(place), "{name}: {text}");
        assert!(!text.contains("/triton/language"), "{name}: {text}");
        assert!(text.contains("kernel.py"), "{name}: {text}");
    }
    let sass = server.get(&format!("{job}/sass")).text;
    assert!(sass.contains("EXIT") && !sass.contains("/triton/language"), "{sass}");
}

#[test]
fn kernels_of_a_comparison_have_the_stages_of_their_own_languages() {
    needs!("Triton", available());
    let server = Server::start();
    let body = json!({"ref_kernel": cuda(), "custom_kernel": bare(triton(ADD)), "num_trials": 2});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let job = format!("/jobs/{}", answer.json["job_id"].as_str().unwrap());
    let list = server.get(&format!("{job}/artifacts")).json;
    assert_eq!(listed(&list, "ttir", "custom")["available"], true);
    assert_eq!(listed(&list, "ttir", "reference")["available"], false);
    let answer = server.get(&format!("{job}/artifacts/ttgir?kernel=custom"));
    assert!(answer.text.contains("ttg."), "{}", answer.text);
}

#[test]
fn other_kernels_have_no_such_stages_and_it_is_said_why() {
    let server = Server::start();
    let report = server.evaluate(&increment());
    let job = report["job_id"].as_str().unwrap();
    for name in ["ttir", "ttgir", "llir"] {
        let answer = server.get(&format!("/jobs/{job}/artifacts/{name}"));
        assert_eq!(answer.status, 404, "{}", answer.text);
        assert!(answer.text.contains("of type `triton`"), "{}", answer.text);
    }
}
