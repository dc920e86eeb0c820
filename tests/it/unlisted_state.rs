//! State that a kernel's modules keep between launches on the same inputs: the worker finds and
//! restores all of it, or the time has no rank.

use std::fs;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use warpgauge_contract::{BodyFormat, parse};

use crate::contracts::increment;
use crate::server::{self, Server, emulated};

const MODULES: &str = "variables and constants of the kernel's modules";

/// The contract of [`increment`], whose inputs are the same in each launch, with a variable that the
/// kernel counts in.
fn counting(declaration: &str) -> Value {
    let mut contract = increment();
    contract["kernel"]["source_code"] = json!(format!(
        "{declaration}\nextern \"C\" __global__ void increment(const float* in, float* out, int n) {{\n\
         int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i == 0) atomicAdd(&seen[n], 1);\n\
         if (i < n) out[i] = in[i] + 1.0f;\n}}\n"
    ));
    contract
}

fn managed() -> Value {
    counting("__managed__ unsigned seen[4096];")
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[track_caller]
fn assert_unranked(report: &Value, why: &str) {
    let (result, measured) = (&report["kernel_exec_result"], &report["measurement"]);
    assert_eq!(result["correctness"], true, "{report:#}");
    assert!(result["runtime"].is_null() && result["runtime_stats"].is_null(), "{result}");
    assert!(measured["unranked"].as_str().is_some_and(|text| text.contains(why)), "{measured}");
    assert_eq!(measured["inputs"], "same", "{measured}");
    let not_known = texts(&measured["state"]["not_known"]);
    let said = |text: &&str| text.starts_with(MODULES) && text.contains(why);
    assert!(not_known.iter().any(said), "{not_known:?}");
    // The launches were timed, and everything else about them is told.
    assert!(measured["summary"]["median"].as_f64() > Some(0.0), "{measured}");
}

#[test]
fn a_time_has_no_rank_where_state_cannot_be_listed() {
    let server = Server::start();
    let why = "variable seen is managed memory";
    assert_unranked(&server.evaluate(&managed()), why);
    let mut wanted = managed();
    wanted["measure"] = json!({"rank_unlisted_state": true});
    let report = server.evaluate(&wanted);
    assert!(report["kernel_exec_result"]["runtime"].as_f64() > Some(0.0), "{report:#}");
    let measured = &report["measurement"];
    assert!(measured["unranked"].is_null(), "{measured}");
    assert!(texts(&measured["state"]["not_known"]).iter().any(|text| text.contains(why)));
}

#[test]
fn nothing_is_compared_with_a_time_that_has_no_rank() {
    let server = Server::start();
    let (honest, keeping) = (increment()["kernel"].take(), managed()["kernel"].take());
    for (reference, custom, whose) in
        [(&honest, &keeping, "of the candidate: "), (&keeping, &honest, "of the reference: ")]
    {
        let body = json!({"ref_kernel": reference, "custom_kernel": custom, "num_trials": 3,
                          "measure_identical": true});
        let answer = server.post_json("/compare", &body);
        assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
        let why = answer.json["not_compared"].as_str().unwrap_or_default();
        assert!(why.starts_with(whose) && why.contains("managed memory"), "{why}");
        assert!(answer.json["comparison"].is_null() && answer.json["counted"].is_null());
        let candidate = &answer.json["candidates"][0]["evaluation"]["kernel_exec_result"];
        assert_eq!(candidate["correctness"], true, "{candidate}");
    }
}

#[test]
fn variables_are_found_however_they_are_declared() {
    let server = Server::start();
    for name in
        ["counter_in_a_list", "counter_in_a_list_of_constants", "counter_after_a_declaration"]
    {
        let path = server::root().join(format!("tests/exploits/{name}.yaml"));
        let mut contract: Value = parse(BodyFormat::Yaml, &fs::read(path).unwrap()).unwrap();
        // It counts so far that it stays right.
        let source = contract["kernel"]["source_code"].as_str().unwrap();
        let patient = source.replace("setp.ge.u32 %p2, %r5, 12;", "setp.ge.u32 %p2, %r5, 1000000;");
        assert_ne!(patient, source);
        contract["kernel"]["source_code"] = json!(patient);
        let report = server.evaluate(&contract);
        let measured = &report["measurement"];
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{name}: {report:#}");
        assert!(texts(&measured["state"]["put_back"]).contains(&MODULES), "{name}: {measured}");
        assert!(measured["unranked"].is_null(), "{name}: {measured}");
        let shown = if emulated() { "same_state_wiped" } else { "same" };
        assert_eq!(measured["inputs"], shown, "{name}: {measured}");
    }
}

/// Makes symbols of variables of `bytes` bytes claim to have four. Returns how many.
fn shrink(image: &mut [u8], bytes: u64) -> usize {
    let word = |image: &[u8], at: usize| {
        u64::from_le_bytes(image[at..at + 8].try_into().unwrap()) as usize
    };
    let half = |image: &[u8], at: usize| u16::from_le_bytes([image[at], image[at + 1]]) as usize;
    let (headers, count) = (word(image, 40), half(image, 60));
    let mut shrunk = 0;
    for header in (0..count).map(|index| headers + 64 * index) {
        // A table of symbols.
        if image[header + 4..header + 8] != [2, 0, 0, 0] {
            continue;
        }
        let (start, length) = (word(image, header + 24), word(image, header + 32));
        for size in (start..start + length).step_by(24).map(|symbol| symbol + 16) {
            if image[size..size + 8] == bytes.to_le_bytes() {
                image[size..size + 8].copy_from_slice(&4u64.to_le_bytes());
                shrunk += 1;
            }
        }
    }
    shrunk
}

#[test]
fn a_symbol_that_covers_less_than_its_section_hides_nothing() {
    needs!("a GPU", !emulated());
    let server = Server::start();
    let mut contract = counting("__device__ unsigned seen[4096];");
    let report = server.evaluate(&contract);
    assert!(texts(&report["measurement"]["state"]["put_back"]).contains(&MODULES), "{report:#}");
    let path = format!("/jobs/{}/artifacts/cubin", report["job_id"].as_str().unwrap());
    let mut answer = ureq::get(format!("{}{path}", server.url)).call().unwrap();
    let mut image = answer.body_mut().read_to_vec().unwrap();

    let kernel = &mut contract["kernel"];
    kernel.as_object_mut().unwrap().remove("source_code");
    kernel["kernel_type"] = json!("cubin");
    kernel["binary_b64"] = json!(BASE64_STANDARD.encode(&image));
    let honest = server.evaluate(&contract);
    assert!(texts(&honest["measurement"]["state"]["put_back"]).contains(&MODULES), "{honest:#}");
    assert!(honest["kernel_exec_result"]["runtime"].as_f64() > Some(0.0), "{honest:#}");

    assert_eq!(shrink(&mut image, 4 * 4096), 1);
    contract["kernel"]["binary_b64"] = json!(BASE64_STANDARD.encode(&image));
    // Whether or not the kernel still works with less memory, its time is not ranked.
    let report = server.evaluate(&contract);
    assert!(report["kernel_exec_result"]["runtime"].is_null(), "{report:#}");
    let not_known = report["measurement"]["state"]["not_known"].to_string();
    assert!(not_known.contains("no symbol names a part of section .nv.global"), "{report:#}");
}

#[test]
fn ptx_shows_all_of_its_variables() {
    let server = Server::start();
    let report = server.evaluate(&managed_ptx());
    assert_unranked(&report, "variable stash is managed memory");
}

/// PTX that keeps nothing, and has a managed variable among others.
fn managed_ptx() -> Value {
    let mut contract = increment();
    let kernel = &mut contract["kernel"];
    kernel["kernel_type"] = json!("ptx");
    kernel["source_code"] = json!(
        ".version 7.0\n.target sm_75\n.address_size 64\n\
         .global .align 4 .b8 other[4], more[16384];\n\
         .visible .global .attribute(.managed) .align 4 .b8 stash[16];\n\
         .visible .entry increment(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n\
         .reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<6>;\n.reg .f32 %f<3>;\n\
         ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nld.param.u32 %r1, [n];\n\
         mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n\
         mad.lo.u32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n\
         mul.wide.u32 %rd3, %r5, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n\
         ld.global.f32 %f1, [%rd4];\nadd.f32 %f2, %f1, 0f3F800000;\nst.global.f32 [%rd5], %f2;\n\
         DONE:\nret;\n}\n"
    );
    contract
}
