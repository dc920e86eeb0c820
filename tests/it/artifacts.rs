//! Artifacts of jobs over HTTP: which are available, when they are removed, and which errors
//! follow.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::contracts::{example, increment, single_thread};
use crate::server::{Server, data_directory, emulated};

fn id_of(report: &Value) -> String {
    report["job_id"].as_str().expect("a job").to_owned()
}

/// A stand-in for NVIDIA's disassembler, found before any other: it lists one kernel, whatever it
/// is given.
fn disassembler(directory: &Path, script: &str) -> String {
    let bin = directory.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = bin.join("nvdisasm");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    match std::env::var("WARPGAUGE_TOOLCHAIN") {
        Ok(others) => format!("{}:{others}", directory.display()),
        Err(_) => directory.display().to_string(),
    }
}

const LISTING: &str = r#"test -s "$3" || exit 3
echo "//--------------------- .text._Z21__warpgauge_signatureIPFvvEEvv ----------"
echo "        /*0000*/                   EXIT ;"
echo "//--------------------- .text.increment ----------"
echo "        /*0000*/                   FADD R1, R1, 1 ;"
echo "        /*0010*/                   EXIT ;""#;

#[test]
fn the_code_of_a_kernel_that_was_waited_for_can_be_fetched() {
    let server = Server::start();
    let report = server.evaluate(&increment());
    let job = format!("/jobs/{}", id_of(&report));
    let list = server.get(&format!("{job}/artifacts")).json;
    let find = |name: &str| {
        let all = list["artifacts"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{list}")).clone()
    };
    for (name, starts) in [("ptx", ".version"), ("log", "")] {
        let listed = find(name);
        assert_eq!(listed["available"], true, "{listed}");
        let answer = server.get(listed["url"].as_str().unwrap());
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(answer.text.contains(starts), "{}", answer.text);
    }
    let ptx = server.get(&format!("{job}/artifacts/ptx"));
    assert!(ptx.text.contains(".entry increment("), "{}", ptx.text);
    let mut cubin = ureq::get(format!("{}{job}/artifacts/cubin", server.url)).call().unwrap();
    assert_eq!(cubin.headers()["content-type"], "application/octet-stream");
    assert_eq!(cubin.headers()["content-disposition"], "attachment; filename=\"kernel.cubin\"");
    assert!(cubin.body_mut().read_to_vec().unwrap().starts_with(b"\x7fELF"));
    for name in ["ncu-rep", "nsys-rep"] {
        let answer = server.get(&format!("{job}/artifacts/{name}"));
        assert_eq!((answer.status, &answer.json["code"]), (404, &json!("no_such_artifact")));
        assert_eq!(find(name)["available"], false);
        assert!(find(name)["note"].as_str().unwrap().contains("profile.tools"), "{}", find(name));
    }
    let unknown = server.get(&format!("{job}/artifacts/ptx?kernel=nobody"));
    assert_eq!(unknown.status, 404);
    assert!(unknown.json["error"].as_str().unwrap().contains("kernel"), "{}", unknown.text);
}

#[test]
fn each_line_of_a_source_has_the_instructions_made_from_it() {
    let tools = tempfile::tempdir().unwrap();
    let listing = r#"echo "//--------------------- .text.increment ----------"
echo '	//## File "/tmp/job/kernel.cu", line 2'
echo "        /*0000*/                   FADD R1, R1, 1 ;"
echo "        /*0010*/                   EXIT ;""#;
    let path = disassembler(tools.path(), listing);
    let server = Server::start_with(&[], &[("WARPGAUGE_TOOLCHAIN", &path)]);
    let mut contract = increment();
    let source = "extern \"C\" __global__ void increment(const float* in, float* out, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = in[i] + 1.0f;\n}\n";
    contract["kernel"]["source_code"] = json!(source);
    let job = format!("/jobs/{}", id_of(&server.evaluate(&contract)));
    let code = server.get(&format!("{job}/code"));
    assert_eq!(code.status, 200, "{}", code.text);
    assert_eq!(code.json["files"], json!([{"name": "kernel.cu", "text": source}]));
    let of = |language: &str| {
        let all = code.json["listings"].as_array().unwrap();
        let found = all.iter().find(|one| one["language"] == language);
        found.unwrap_or_else(|| panic!("{}", code.text))["instructions"].as_array().unwrap()
    };
    let line_of = |language: &str, text: &str| {
        let found = of(language).iter().find(|one| one["text"].as_str().unwrap().contains(text));
        let found = found.unwrap_or_else(|| panic!("no {text}: {}", code.text));
        assert_eq!((&found["file"], &found["symbol"]), (&json!("kernel.cu"), &json!("increment")));
        found["line"].clone()
    };
    assert_eq!(line_of("ptx", "%tid.x"), 2);
    assert_eq!(line_of("ptx", "st.global"), 3);
    assert_eq!(line_of("sass", "FADD R1, R1, 1"), 2);
    let unknown = server.get(&format!("{job}/code?kernel=other"));
    assert_eq!((unknown.status, &unknown.json["code"]), (404, &json!("no_such_artifact")));
}

#[test]
fn machine_code_is_listed_where_there_is_a_disassembler() {
    let tools = tempfile::tempdir().unwrap();
    let path = disassembler(tools.path(), LISTING);
    let server = Server::start_with(&[], &[("WARPGAUGE_TOOLCHAIN", &path)]);
    let job = format!("/jobs/{}", id_of(&server.evaluate(&increment())));
    let sass = server.get(&format!("{job}/artifacts/sass"));
    assert_eq!(sass.status, 200, "{}\n{}", sass.text, server.output());
    assert!(sass.text.contains("FADD R1, R1, 1"), "{}", sass.text);
    assert!(!sass.text.contains("__warpgauge"), "{}", sass.text);
    assert_eq!(server.get(&format!("{job}/artifacts/sass")).text, sass.text);
}

/// The child may read the toolkit and its own directory, and its output has a bound.
#[test]
fn a_disassembler_that_a_hostile_image_took_over_is_confined() {
    let tools = tempfile::tempdir().unwrap();
    let secret = tools.path().join("elsewhere").join("secret");
    fs::create_dir(secret.parent().unwrap()).unwrap();
    fs::write(&secret, "the secret").unwrap();
    let bin = tempfile::tempdir().unwrap();
    let script = format!(
        "cat {0} && echo readable; echo x > {0}; cat /etc/hostname; true",
        secret.display()
    );
    let path = disassembler(bin.path(), &script);
    let server = Server::start_with(&[], &[("WARPGAUGE_TOOLCHAIN", &path)]);
    let job = format!("/jobs/{}", id_of(&server.evaluate(&increment())));
    let sass = server.get(&format!("{job}/artifacts/sass"));
    let confined = server.output().contains("landlock: fully enforced")
        || server.output().contains("landlock: files enforced");
    if confined {
        assert!(
            !sass.text.contains("readable") && !sass.text.contains("the secret"),
            "{}",
            sass.text
        );
        assert_eq!(fs::read_to_string(&secret).unwrap(), "the secret");
    }
    let failing = disassembler(bin.path(), "echo no such code >&2; exit 7");
    let server = Server::start_with(&[], &[("WARPGAUGE_TOOLCHAIN", &failing)]);
    let job = format!("/jobs/{}", id_of(&server.evaluate(&increment())));
    let answer = server.get(&format!("{job}/artifacts/sass"));
    assert_eq!(answer.status, 404);
    assert!(answer.json["error"].as_str().unwrap().contains("no such code"), "{}", answer.text);
}

#[test]
fn without_a_disassembler_there_is_a_remedy() {
    let data = data_directory();
    let shared = fs::read_link(data.path().join("toolchain")).unwrap();
    // NVRTC alone of what is installed: nvcc and Triton bring disassemblers.
    fs::remove_file(data.path().join("toolchain")).unwrap();
    fs::create_dir(data.path().join("toolchain")).unwrap();
    for part in fs::read_dir(shared).unwrap().flatten() {
        let name = part.file_name();
        if name.to_string_lossy().starts_with("nvrtc") {
            symlink(part.path(), data.path().join("toolchain").join(name)).unwrap();
        }
    }
    let nothing = ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"].map(|name| (name, ""));
    let environment = [&[("PATH", "/nonexistent")][..], &nothing].concat();
    let server = Server::start_in(data.path(), &[], &environment);
    let job = format!("/jobs/{}", id_of(&server.evaluate(&increment())));
    let answer = server.get(&format!("{job}/artifacts/sass"));
    // A toolkit in its usual place is found without PATH.
    needs!("a machine without nvdisasm", answer.status != 200);
    assert_eq!((answer.status, &answer.json["code"]), (404, &json!("no_such_artifact")));
    let error = answer.json["error"].as_str().unwrap();
    assert!(error.contains("nvdisasm was not found") && error.contains("CUDA_HOME"), "{error}");
}

#[test]
fn a_kernel_that_does_not_compile_leaves_its_log() {
    let server = Server::start();
    let mut contract = increment();
    contract["kernel"]["source_code"] =
        json!("extern \"C\" __global__ void increment() { broken }");
    let job = format!("/jobs/{}", id_of(&server.evaluate(&contract)));
    let log = server.get(&format!("{job}/artifacts/log"));
    assert!(log.status == 200 && log.text.contains("broken"), "{}", log.text);
    let ptx = server.get(&format!("{job}/artifacts/ptx"));
    assert_eq!(ptx.status, 404);
    assert!(ptx.json["error"].as_str().unwrap().contains("did not compile"), "{}", ptx.text);
}

#[test]
fn artifacts_go_with_their_job_and_with_the_budget() {
    let server = Server::start_configured("[storage]\nartifacts_max_bytes = 0\n");
    let first = id_of(&server.evaluate(&increment()));
    let path = |id: &str| format!("/jobs/{id}/artifacts");
    for path in [path(&first), format!("{}/ptx", path(&first))] {
        let gone = server.get(&path);
        assert_eq!((gone.status, &gone.json["code"]), (410, &json!("artifact_gone")), "{path}");
        assert!(gone.json["error"].as_str().unwrap().contains("artifacts_max_bytes"));
    }
    assert_eq!(server.get(&format!("/jobs/{first}")).status, 200, "the report stays");
    let cleaned = server.post("/admin/cleanup-jobs?keep=0", &[], &[]);
    assert_eq!((cleaned.status, &cleaned.json["cleaned_jobs"]), (200, &json!(1)));
    let answer = server.get(&path(&first));
    assert_eq!((answer.status, &answer.json["code"]), (404, &json!("no_such_job")));
}

#[test]
fn a_submitted_kernel_has_what_was_submitted() {
    let server = Server::start();
    let compiled = server.evaluate(&single_thread("*out = 7;"));
    let ptx = server.get(&format!("/jobs/{}/artifacts/ptx", id_of(&compiled))).text;
    let mut contract = single_thread("");
    contract["kernel"]["kernel_type"] = json!("ptx");
    contract["kernel"]["source_code"] = json!(ptx);
    let job = format!("/jobs/{}", id_of(&server.evaluate(&contract)));
    let again = server.get(&format!("{job}/artifacts/ptx"));
    assert_eq!((again.status, again.text.trim()), (200, ptx.trim()));
    let cubin = server.get(&format!("{job}/artifacts/cubin"));
    assert_eq!(cubin.status, 404);
    assert!(cubin.json["error"].as_str().unwrap().contains("submitted as PTX"), "{}", cubin.text);
}

#[test]
fn a_profiled_kernel_has_a_roofline() {
    let server = Server::start();
    let mut contract = example("saxpy");
    contract["num_trials"] = json!(3);
    let plain = id_of(&server.evaluate(&contract));
    let none = server.get(&format!("/jobs/{plain}/roofline.svg"));
    assert_eq!(none.status, 404);
    assert!(none.json["error"].as_str().unwrap().contains("profile"), "{}", none.text);

    contract["profile"] = json!({"metrics": ["explain"]});
    let report = server.evaluate(&contract);
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    let roofline = &metrics["roofline"];
    assert!(roofline["bound_reason"].is_string(), "{metrics}");
    let picture = server.get(&format!("/jobs/{}/roofline.svg", id_of(&report)));
    if report["device"]["kind"] == "emulator" {
        // It has no times, and a picture without rates shows nothing.
        assert_eq!(picture.status, 404, "{}", picture.text);
        let why = picture.json["error"].as_str().unwrap();
        assert!(why.contains("the launch has no time"), "{why}");
        emulated_roofline(metrics);
    } else {
        assert_eq!(picture.status, 200, "{}", picture.text);
        assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
        let policy = picture.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let document = roxmltree::Document::parse(&picture.text).unwrap();
        assert!(document.root_element().has_tag_name("svg"));
        assert!(!picture.text.contains("<script"));
    }
}

/// Intensities without rates.
fn emulated_roofline(metrics: &Value) {
    let roofline = &metrics["roofline"];
    // Two operations an element, and twelve bytes: two loads and a store.
    let point = |level: &str| {
        let points = roofline["points"].as_array().unwrap();
        points.iter().find(|point| point["level"] == level).unwrap().clone()
    };
    for level in ["l1", "dram"] {
        let intensity = point(level)["intensity"].as_f64().unwrap();
        assert!((intensity - 2.0 / 12.0).abs() < 1e-3, "{level}: {roofline}");
        assert!(point(level)["rate"].is_null(), "the emulator has no rates");
    }
    assert!(roofline["bound_by"].is_null() && roofline["time"].is_null(), "{roofline}");
    assert!(metrics["cross_check"].is_null());
}

#[test]
fn what_stands_out_is_said_with_its_numbers() {
    let body = "__shared__ int s[1024]; int t = threadIdx.x; s[t * 32] = t; __syncwarp(); \
                out[t * 8] = s[(t ^ 1) * 32];";
    let mut contract = single_thread(body);
    contract["kernel"]["io"]["launch"]["block"]["x"] = json!(32);
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["shape"] = json!([256]);
    contract["profile"] = json!({});
    needs!("the emulated device", emulated());
    let server = Server::start();
    let report = server.evaluate(&contract);
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    let advice = metrics["advice"].as_array().unwrap_or_else(|| panic!("{metrics}"));
    let find = |code: &str| {
        let found = advice.iter().find(|one| one["code"] == code);
        found.unwrap_or_else(|| panic!("no {code} in {advice:?}"))
    };
    for code in ["uncoalesced_access", "bank_conflicts"] {
        let found = find(code);
        assert!(found["threshold"].is_string() && found["message"].is_string(), "{found}");
        for evidence in found["evidence"].as_array().unwrap() {
            let metric = &metrics["metrics"][evidence["metric"].as_str().unwrap()];
            if metric.is_object() {
                assert_eq!(metric["value"], evidence["value"], "{found}");
            }
        }
    }
    // The multiprocessors of the emulated device are those of no GPU.
    assert!(advice.iter().all(|one| one["code"] != "small_grid"), "{advice:?}");
    let share = find("bank_conflicts")["share"].as_f64().unwrap();
    assert!((share - 62.0 / 64.0).abs() < 1e-9, "{share}");
    assert_eq!(find("uncoalesced_access")["share"], 0.875);
    let shares: Vec<f64> = advice.iter().map(|one| one["share"].as_f64().unwrap()).collect();
    assert!(shares.windows(2).all(|pair| pair[0] >= pair[1]), "{shares:?}");
}

#[test]
fn each_line_of_a_profiled_kernel_has_its_counters() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let mut contract = single_thread(
        "__shared__ int s[1024];\nint t = threadIdx.x;\ns[t * 32] = t;\n__syncwarp();\n\
         if (t < 8)\nout[t * 8] = s[(t ^ 1) * 32];\n",
    );
    contract["kernel"]["io"]["launch"]["block"]["x"] = json!(32);
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["shape"] = json!([256]);
    let code_of = |contract: &Value| {
        let report = server.evaluate(contract);
        (server.get(&format!("/jobs/{}/code", id_of(&report))).json, report)
    };
    let (code, _) = code_of(&contract);
    let reason = code["counters"]["reason"].as_str().unwrap();
    assert!(reason.contains("evaluate again with `profile: {}`"), "{code}");
    assert!(code["counters"]["total"].is_null(), "{code}");

    contract["profile"] = json!({});
    let (code, report) = code_of(&contract);
    let counters = &code["counters"];
    let source = code["files"][0]["text"].as_str().unwrap();
    let number = |text: &str| 1 + source.lines().position(|line| line.contains(text)).unwrap();
    let line = |text: &str| {
        let number = number(text);
        let lines = counters["lines"].as_array().unwrap();
        let found = lines.iter().find(|one| one["line"] == number);
        found.unwrap_or_else(|| panic!("no line {number}: {counters}"))["counts"].clone()
    };
    let (store, guarded) = (line("s[t * 32] = t"), line("out[t * 8]"));
    assert_eq!((&store["shared_requests"], &store["shared_conflicts"]), (&json!(1), &json!(31)));
    // Eight lanes store, each to a sector of its own, and load from one bank.
    assert_eq!(
        (&guarded["global_sectors"], &guarded["global_ideal_sectors"]),
        (&json!(8), &json!(1))
    );
    assert_eq!(guarded["shared_conflicts"], 7);
    let average = |counts: &Value| {
        counts["active_threads"].as_f64().unwrap() / counts["warp_instructions"].as_f64().unwrap()
    };
    assert_eq!(average(&store), 32.0);
    assert!(average(&guarded) < 32.0, "{guarded}");
    // The parts add up to the launch, and the launch is that of the report.
    for name in ["warp_instructions", "active_threads", "shared_conflicts", "global_sectors"] {
        let count = |counts: &Value| counts[name].as_u64().unwrap_or(0);
        let lines = counters["lines"].as_array().unwrap();
        let lines: u64 = lines.iter().map(|one| count(&one["counts"])).sum();
        assert_eq!(lines + count(&counters["elsewhere"]), count(&counters["total"]), "{name}");
    }
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"]["metrics"];
    let conflicts = metrics["shared_store_bank_conflicts"]["value"].as_f64();
    if let Some(conflicts) = conflicts {
        assert_eq!(conflicts, 31.0, "{metrics}");
    }
    let ptx = code["listings"][0]["instructions"].as_array().unwrap();
    for one in counters["instructions"].as_array().unwrap() {
        let text = ptx[one["index"].as_u64().unwrap() as usize]["text"].as_str().unwrap();
        let is_global = one["counts"]["global_requests"].is_u64();
        let accesses = text.contains(".global.") && !text.starts_with("cvta");
        assert_eq!(is_global, accesses, "{text}: {one}");
    }
    let path = format!("/jobs/{}/code", id_of(&report));
    let page = server.get_with(&path, &[("accept", "text/html")]);
    assert!(page.text.contains("Lines with the highest counts"), "{}", page.text);
}

#[test]
fn a_comparison_tells_how_the_codes_differ() {
    let server = Server::start();
    let reference = increment()["kernel"].take();
    let mut custom = reference.clone();
    let source = reference["source_code"].as_str().unwrap();
    custom["source_code"] = json!(source.replace("in[i] + 1.0f", "in[i] * 1.0f + 1.0f"));
    let mut slower = reference.clone();
    slower["source_code"] = json!(source.replace("in[i] + 1.0f", "sqrtf(in[i] * in[i]) + 1.0f"));
    let body = json!({"ref_kernel": reference, "num_trials": 3, "candidates": [
        {"name": "same", "kernel": custom}, {"name": "slower", "kernel": slower}]});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    let candidates = answer.json["candidates"].as_array().unwrap();
    let diff = &candidates[1]["code_diff"];
    assert_eq!(diff["identical"], false, "{}", candidates[1]["no_code_diff"]);
    let unified = diff["unified"].as_str().unwrap();
    assert!(unified.starts_with("--- reference\n+++ candidate\n@@"), "{unified}");
    let opcodes = diff["opcodes"].as_array().unwrap();
    let is_root = |one: &&Value| {
        let name = one["opcode"].as_str().unwrap().to_ascii_lowercase();
        name.starts_with("sqrt") || name.starts_with("mufu")
    };
    let root = opcodes.iter().find(is_root).unwrap_or_else(|| panic!("{diff}"));
    assert_eq!(root["reference"], 0);
    assert!(root["candidate"].as_u64().unwrap() > 0);
    // The code of each can be fetched by its name.
    let job = format!("/jobs/{}", id_of(&answer.json));
    let ptx = |name: &str| server.get(&format!("{job}/artifacts/ptx?kernel={name}")).text;
    assert!(ptx("slower").contains("sqrt") && !ptx("reference").contains("sqrt"));
}
