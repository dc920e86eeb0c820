//! Comparisons: the correctness of outputs, the names of both kernels, and the verdicts on a GPU
//! and on the emulated device.

use serde_json::{Value, json};

use crate::contracts::{base64, example};
use crate::server::{Server, root, until};
use crate::support::{on_gpu, outcome, warpgauge};

/// `vector_add` of 4096 elements with each load done twice: as right, and twice the loads.
const TWICE: &str = r#"
extern "C" __global__ void vector_add(const volatile float* a, const volatile float* b, float* c,
                                      int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float first = a[i] + b[i];
        const float second = a[i] + b[i];
        c[i] = (first + second) * 0.5f;
    }
}"#;

/// Wrong in its last element.
const WRONG: &str = r#"
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] + (i == n - 1 ? 1.0f : 0.0f);
}"#;

const BROKEN: &str = "extern \"C\" __global__ void vector_add(float* a) { b[0] = 1; }";

/// The kernel of the example, smaller: the reference of every comparison here.
fn reference() -> Value {
    let mut kernel = example("vector_add")["kernel"].take();
    let args = kernel["io"]["args"].as_array_mut().unwrap();
    for tensor in &mut args[..3] {
        tensor["tensor_spec"]["shape"] = json!([4096]);
    }
    args[3]["value"] = json!(4096);
    kernel
}

/// The same contract with other code.
fn variant(source: &str) -> Value {
    let mut kernel = reference();
    kernel["source_code"] = json!(source);
    kernel
}

fn request(custom: &Value) -> Value {
    json!({"ref_kernel": reference(), "custom_kernel": custom, "num_trials": 3,
           "atol": 0.0, "rtol": 0.0})
}

/// A comparison that the server must accept.
fn compare(server: &Server, body: &Value) -> Value {
    let answer = server.post_json("/compare", body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer.json
}

fn is_gpu(report: &Value) -> bool {
    on_gpu(&report["device"]["kind"])
}

/// Nothing was compared, and it says why.
#[track_caller]
fn assert_not_compared(report: &Value, why: &str) {
    assert!(report["comparison"].is_null(), "{}", report["comparison"]);
    let said = report["not_compared"].as_str().unwrap_or_default();
    assert!(said.contains(why), "{said:?}");
}

/// Told apart by what one launch was counted to do, which is no verdict on times.
#[track_caller]
fn assert_counted(report: &Value, verdict: &str) {
    assert_not_compared(report, "times of the emulated device are not compared");
    assert_eq!(report["counted"]["verdict"], verdict, "{}", report["counted"]);
}

/// A sound comparison whose verdict is one of `verdicts`.
#[track_caller]
fn assert_compared(report: &Value, verdicts: &[&str]) {
    let comparison = &report["comparison"];
    let brief = json!({"not_compared": report["not_compared"], "verdict": comparison["verdict"],
        "reasons": comparison["reasons"], "speedup": comparison["speedup"],
        "dropped": comparison["dropped"]});
    assert!(report["not_compared"].is_null(), "{brief}");
    assert!(verdicts.contains(&comparison["verdict"].as_str().unwrap_or("none")), "{brief}");
    let (used, dropped) = (&comparison["blocks_used"], &comparison["blocks_dropped"]);
    let (used, dropped) = (used.as_u64().unwrap(), dropped.as_u64().unwrap());
    assert!(used + dropped >= 8, "{brief}");
    assert_eq!(comparison["blocks"].as_array().unwrap().len() as u64, used + dropped, "{brief}");
    if comparison["verdict"] != "inconclusive" {
        assert!(used >= 8, "{brief}");
        let number = |name: &str| comparison[name].as_f64().unwrap();
        let (low, speedup, high) =
            (number("speedup_ci_low"), number("speedup"), number("speedup_ci_high"));
        assert!(low <= speedup && speedup <= high, "{brief}");
    }
}

/// The ratio of one count, candidate over reference.
fn ratio(candidate: &Value, count: &str) -> f64 {
    let counts = candidate["counts"].as_array().unwrap();
    let found = counts.iter().find(|one| one["count"] == count);
    found.unwrap_or_else(|| panic!("no {count} in {counts:?}"))["ratio"].as_f64().unwrap()
}

/// Every device becomes ready for the next evaluation: cleaning up goes on after the answer.
fn assert_ready(server: &Server) {
    until("every device is ready", || {
        let devices = server.get("/devices").json["devices"].take();
        devices.as_array()?.iter().all(|device| device["state"] == "ready").then_some(())
    });
    let devices = server.get("/devices").json;
    assert!(devices["devices"].as_array().is_some_and(|all| !all.is_empty()), "{devices}");
    assert_eq!(devices["devices"][0]["restarts"], 0, "a comparison costs no worker: {devices}");
}

#[test]
fn a_right_variant_is_compared_in_times_or_in_counts() {
    let server = Server::start();
    let report = compare(&server, &request(&variant(TWICE)));
    assert_eq!(report["status"], "success");
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    assert!(report["kernel_exec_result"]["runtime"].as_f64().is_some_and(|ms| ms > 0.0));
    for field in ["mean", "std", "min", "max", "median", "percentile_95", "percentile_99"] {
        assert!(report["ref_runtime"][field].is_number(), "ref_runtime.{field}");
    }
    assert_eq!(report["ref_runtime"]["samples"], 3);
    let candidate = &report["candidates"][0];
    assert_eq!(candidate["name"], "custom");
    assert!(report["ranking"].is_null(), "one candidate has no order");
    if is_gpu(&report) {
        assert_eq!(report["verdict_by"], "times");
        assert!(report["counted"].is_null(), "what a GPU did is not counted");
        assert_eq!(candidate["identical_code"], false);
        assert_compared(&report, &["faster", "slower", "same", "inconclusive"]);
        assert_eq!(report["comparison"], candidate["comparison"]);
    } else {
        assert_eq!(report["verdict_by"], "counts");
        assert_counted(&report, "more_work");
        assert_eq!(report["counted"], candidate["counted"]);
        // Two loads of each element and one store of it, where there were one and one.
        assert_eq!(candidate["counted"]["global_sectors"].as_f64(), Some(5.0 / 3.0));
        assert_eq!(ratio(candidate, "global_load_sectors"), 2.0);
        assert_eq!(ratio(candidate, "global_store_sectors"), 1.0);
        assert!(ratio(candidate, "warp_instructions") > 1.0);
    }
    assert_ready(&server);
    // It stands among the jobs like any other.
    let id = report["job_id"].as_str().unwrap();
    let job = server.get(&format!("/jobs/{id}")).json;
    assert_eq!(job["state"], "completed");
    assert_eq!(job["result"]["kernel_exec_result"]["correctness"], true);
}

#[test]
fn the_same_kernel_twice_is_the_same() {
    let server = Server::start();
    let report = compare(&server, &request(&reference()));
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
    let candidate = &report["candidates"][0];
    if is_gpu(&report) {
        assert_eq!(candidate["identical_code"], true);
        assert_compared(&report, &["same", "inconclusive"]);
    } else {
        assert_counted(&report, "same_work");
        assert_eq!(ratio(candidate, "warp_instructions"), 1.0);
        assert_eq!(ratio(candidate, "global_load_sectors"), 1.0);
    }
}

#[test]
fn a_comparison_names_the_options_in_which_its_sides_differ() {
    let server = Server::start();
    let mut custom = reference();
    custom["metadata"]["compiler_options"] = json!(["--fmad=false"]);
    let report = compare(&server, &request(&custom));
    let [first, second] = [&report["reference"], &report["candidates"][0]["evaluation"]];
    let options = |side: &Value| side["compile"]["options"].as_array().unwrap().clone();
    assert!(options(first)[0].as_str().unwrap().starts_with("-arch="), "{first}");
    assert!(!options(first).contains(&json!("--fmad=false")), "{first}");
    assert!(options(second).contains(&json!("--fmad=false")), "{second}");
    assert_eq!(first["launch"], second["launch"]);
    let launch = &first["launch"];
    assert!(launch["grid"][0].as_u64() > Some(0) && launch["block"][0].as_u64() > Some(0));
    let path = format!("/jobs/{}", report["job_id"].as_str().unwrap());
    let page = server.get_with(&path, &[("accept", "text/html")]).text;
    let (first_view, _) = page.split_once("<details").unwrap();
    assert!(first_view.contains("The compiler options differ: only"), "{first_view}");
    assert!(first_view.contains("<code><bdi>--fmad=false</bdi></code>"), "{first_view}");
}

#[test]
fn metrics_are_told_of_both_sides() {
    let server = Server::start();
    let mut body = request(&variant(TWICE));
    body["profile"] = json!({"metrics": ["global_load_requests"]});
    let report = compare(&server, &body);
    let value = |one: &Value| {
        let metrics = &one["kernel_exec_result"]["metadata"]["device_metrics"]["metrics"];
        metrics["global_load_requests"]["value"].as_f64().unwrap_or_else(|| panic!("{one:#}"))
    };
    let (reference, candidate) =
        (value(&report["reference"]), value(&report["candidates"][0]["evaluation"]));
    assert!(reference > 0.0);
    assert_eq!(candidate, 2.0 * reference);
    // What stands at the top is the candidate, with both in the groups.
    assert_eq!(value(&report), candidate);
    let metadata = &report["kernel_exec_result"]["metadata"];
    let groups = &metadata["device_metrics"];
    let alone = |one: &Value| {
        one["kernel_exec_result"]["metadata"]["device_metrics"]["original_device_metrics"].clone()
    };
    assert_eq!(groups["original_device_metrics"], alone(&report["reference"]));
    assert_eq!(groups["custom_device_metrics"], alone(&report["candidates"][0]["evaluation"]));
    // A name that nobody knows is refused as in an evaluation.
    body["profile"] = json!({"metrics": ["global_laod_requests"]});
    let refused = server.post_json("/compare", &body);
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.json["validation_errors"][0]["field"], "profile.metrics[0]",
        "{}",
        refused.json
    );
}

#[test]
fn a_wrong_candidate_has_a_verdict_and_no_comparison() {
    let server = Server::start();
    let report = compare(&server, &request(&variant(WRONG)));
    assert_eq!(report["status"], "success");
    let result = &report["kernel_exec_result"];
    assert_eq!((&result["compiled"], &result["correctness"]), (&json!(true), &json!(false)));
    assert!(result["runtime"].is_null(), "a wrong kernel has no time");
    assert_not_compared(&report, "the candidate is not right");
    assert!(report["counted"].is_null(), "a wrong kernel has no verdict on its work");
    let check = &report["candidates"][0]["evaluation"]["validation"]["outputs"]["c"];
    assert_eq!(check["elements"].as_u64().unwrap() - check["matched"].as_u64().unwrap(), 1);
    assert_eq!(report["reference"]["kernel_exec_result"]["correctness"], true);
    // The default tolerance is the reference server's: an error of 1 is still an error.
    let mut loose = request(&variant(WRONG));
    loose.as_object_mut().unwrap().remove("atol");
    assert_eq!(compare(&server, &loose)["kernel_exec_result"]["correctness"], false);
    assert_ready(&server);
}

#[test]
fn candidates_keep_their_order_and_do_not_harm_each_other() {
    let server = Server::start();
    let candidates =
        [("same", reference()), ("broken", variant(BROKEN)), ("twice", variant(TWICE))];
    let candidates = candidates.map(|(name, kernel)| json!({"name": name, "kernel": kernel}));
    let report = compare(
        &server,
        &json!({"ref_kernel": reference(), "candidates": candidates, "num_trials": 3,
                "atol": 0.0, "rtol": 0.0}),
    );
    let found = report["candidates"].as_array().unwrap();
    let names: Vec<_> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["same", "broken", "twice"]);
    let verdicts = found.iter().map(|one| {
        let result = &one["evaluation"]["kernel_exec_result"];
        (result["compiled"].as_bool().unwrap(), result["correctness"].as_bool())
    });
    let verdicts: Vec<_> = verdicts.collect();
    assert_eq!(verdicts, [(true, Some(true)), (false, None), (true, Some(true))]);
    let diagnostic = &found[1]["evaluation"]["compile"]["diagnostics"][0];
    assert_eq!(diagnostic["severity"], "error", "{}", found[1]["evaluation"]);
    assert_not_compared(&found[1], "the candidate is not right");
    // The first one speaks for all in the reference server's fields.
    assert_eq!(report["kernel_exec_result"], found[0]["evaluation"]["kernel_exec_result"]);
    if is_gpu(&report) {
        assert_compared(&found[0], &["same", "inconclusive"]);
        assert_compared(&found[2], &["faster", "slower", "same", "inconclusive"]);
        let pairs = report["ranking"]["pairs"].as_array().unwrap();
        let pairs = pairs.iter().map(|pair| json!([pair["reference"], pair["candidate"]]));
        assert_eq!(Value::Array(pairs.collect()), json!([[0, 1], [0, 3], [1, 3]]));
        let ranked = report["ranking"]["candidates"].as_array().unwrap();
        let mut ranked: Vec<_> = ranked.iter().map(|one| one["index"].as_u64().unwrap()).collect();
        ranked.sort();
        assert_eq!(ranked, [0, 1, 3], "what does not compile has no rank");
    } else {
        assert!(report["ranking"].is_null(), "no times, no order by them");
        let order = report["counted_ranking"].as_array().unwrap().iter();
        let order = order.map(|one| json!([one["index"], one["rank"]]));
        // What does not compile has no rank.
        assert_eq!(Value::Array(order.collect()), json!([[0, 1], [1, 1], [3, 3]]));
        assert_eq!(ratio(&found[2], "global_load_sectors"), 2.0);
        assert!(found[1].get("counts").is_none(), "what does not compile counts nothing");
    }
    assert_ready(&server);
}

/// Its parameters are known once it is compiled: it is a mistake in the request all the same, and is
/// told where it stands there.
#[test]
fn a_kernel_with_other_parameters_is_a_mistake_of_the_request_at_its_place() {
    let server = Server::start();
    let mut other = reference();
    other["source_code"] =
        json!("extern \"C\" __global__ void vector_add(const float* a, float* c) { c[0] = a[0]; }");
    let candidates = json!([
        {"name": "same", "kernel": reference()}, {"name": "other", "kernel": other},
    ]);
    for (body, kernel) in [
        (json!({"ref_kernel": reference(), "candidates": candidates}), "candidates[1].kernel"),
        (json!({"ref_kernel": reference(), "custom_kernel": other}), "custom_kernel"),
        (json!({"ref_kernel": other, "custom_kernel": other}), "ref_kernel"),
    ] {
        let answer = server.post_json("/compare", &body);
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert_eq!(answer.json["path"], format!("{kernel}.io.args"), "{}", answer.text);
    }
}

#[test]
fn kernels_are_compared_on_data() {
    let server = Server::start();
    let content: Vec<u8> = (0..4096).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let data = json!({"data_b64": base64(&content), "format": "raw"});
    let on_data = |mut kernel: Value| {
        let spec = &mut kernel["io"]["args"][0]["tensor_spec"];
        spec.as_object_mut().unwrap().remove("init");
        spec["data"] = data.clone();
        kernel
    };
    let candidates = [("same", on_data(reference())), ("twice", on_data(variant(TWICE)))];
    let candidates = candidates.map(|(name, kernel)| json!({"name": name, "kernel": kernel}));
    let report = compare(
        &server,
        &json!({"ref_kernel": on_data(reference()), "candidates": candidates, "num_trials": 3,
                "atol": 0.0, "rtol": 0.0}),
    );
    for candidate in report["candidates"].as_array().unwrap() {
        let result = &candidate["evaluation"]["kernel_exec_result"];
        assert_eq!(result["correctness"], true, "{candidate}");
        if is_gpu(&report) {
            assert_compared(candidate, &["faster", "slower", "same", "inconclusive"]);
        } else {
            assert_not_compared(candidate, "emulated");
        }
    }
    assert_ready(&server);
}

#[test]
fn a_broken_reference_is_a_result_and_other_arguments_are_the_requests_fault() {
    let server = Server::start();
    let broken = |candidate: &str| {
        let mut body = request(&variant(candidate));
        body["ref_kernel"]["source_code"] = json!(BROKEN);
        compare(&server, &body)
    };
    let report = broken(TWICE);
    assert_eq!((&report["status"], &report["verdict"]), (&json!("success"), &json!("failed")));
    assert_eq!(report["reference"]["verdict"], "not_compiled", "{report:#}");
    let result = &report["kernel_exec_result"];
    assert_eq!((&result["compiled"], &result["correctness"]), (&json!(true), &json!(false)));
    let error = result["validation_error"].as_str().unwrap();
    assert!(error.contains("the reference kernel does not compile"), "{error}");
    assert_not_compared(&report, "the reference kernel does not compile");
    let candidate = &report["candidates"][0]["evaluation"];
    assert_eq!(candidate["failure"]["code"], "reference_not_compiled", "{report:#}");
    assert_eq!(candidate["validation"]["reasons"][0]["code"], "reference_failed", "{report:#}");
    // The candidate's own errors are its own.
    let report = broken(BROKEN);
    assert_eq!(report["verdict"], "not_compiled", "{report:#}");
    assert_eq!(report["kernel_exec_result"]["compiled"], false, "{report:#}");

    let mut body = request(&reference());
    body["custom_kernel"]["io"]["args"][0]["tensor_spec"]["init"]["seed"] = json!(99);
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 400, "{}", answer.text);
    let problem = &answer.json["validation_errors"][0];
    assert_eq!(problem["field"], "custom_kernel.io.args[0]", "{}", answer.text);
    // Nothing of this kept the device.
    let report = compare(&server, &request(&reference()));
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
    assert_ready(&server);
}

#[test]
fn kernels_with_scalars_of_their_own_are_compared() {
    const STEPS: &str = r#"
extern "C" __global__ void vector_add(const float* a, const float* b, int from, float* c,
                                      int n, int step) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && step == 3 && from == 0) c[i] = a[i] + b[i];
}"#;
    let server = Server::start();
    let scalar = |name: &str, value: i32| json!({"name": name, "type": "int", "value": value});
    let mut more = variant(STEPS);
    let args = more["io"]["args"].as_array_mut().unwrap();
    args.insert(2, scalar("from", 0));
    args.push(scalar("step", 3));
    let report = compare(&server, &request(&more));
    assert_eq!(report["verdict"], "correct", "{report:#}");
    // The reference has them, and the candidate has not.
    let mut body = request(&variant(TWICE));
    body["ref_kernel"] = more;
    let report = compare(&server, &body);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    // A number that both have is the same for both.
    body["custom_kernel"]["io"]["args"][3]["value"] = json!(4095);
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert_eq!(answer.json["validation_errors"][0]["field"], "custom_kernel.io.args[3]");
}

/// A kernel whose time is that of its loop: long beside a launch, and the same however fast memory
/// is.
fn loops(rounds: u32) -> Value {
    let mut kernel = variant(&format!(
        r#"extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i] + b[i];
    #pragma unroll 1
    for (int round = 0; round < {rounds}; ++round) x = fmaf(x, 0.5f, 0.25f);
    // Always true, and not for the compiler to know.
    c[i] = x < 1e30f ? a[i] + b[i] : x;
}}"#
    ));
    kernel["metadata"]["compiler_options"] = json!([]);
    kernel
}

#[test]
fn twice_the_work_is_slower_and_half_of_it_faster() {
    let server = Server::start();
    let (one, two) = (loops(2_000), loops(4_000));
    for (reference, candidate, verdict, factor) in
        [(&one, &two, "slower", 2.0), (&two, &one, "faster", 0.5)]
    {
        let body = json!({"ref_kernel": reference, "custom_kernel": candidate, "num_trials": 3,
                          "atol": 0.0, "rtol": 0.0});
        let report = compare(&server, &body);
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
        if is_gpu(&report) {
            assert_compared(&report, &[verdict]);
            let measured = report["comparison"]["time"]["ratio"].as_f64().unwrap();
            assert!((measured / factor).ln().abs() < 0.25_f64.ln_1p(), "{measured} for {factor}");
        } else {
            let verdict = if verdict == "slower" { "more_work" } else { "less_work" };
            assert_counted(&report, verdict);
            let counted = ratio(&report["candidates"][0], "warp_instructions");
            assert!((counted / factor).ln().abs() < 0.05_f64.ln_1p(), "{counted} for {factor}");
        }
    }
    assert_ready(&server);
}

#[test]
fn the_example_of_the_specification_runs() {
    let server = Server::start();
    let document = server.get("/openapi.json").json;
    let content = &document["paths"]["/compare"]["post"]["requestBody"]["content"];
    let report = compare(&server, &content["application/json"]["example"]);
    // Its candidate brings a launch and no arguments: four elements for each thread.
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    if is_gpu(&report) {
        assert_compared(&report, &["faster", "slower", "same", "inconclusive"]);
    } else {
        let requests = ratio(&report["candidates"][0], "warp_instructions");
        assert!(requests < 1.0, "{requests}");
    }
}

#[test]
fn the_command_line_compares_files_at_a_server() {
    let server = Server::start();
    let home = tempfile::tempdir().unwrap();
    let (twice, wrong) = (home.path().join("twice.cu"), home.path().join("wrong.cu"));
    std::fs::write(&twice, TWICE).unwrap();
    std::fs::write(&wrong, WRONG.replace("n - 1", "7")).unwrap();
    let contract = root().join("kernels/vector_add/contract.yaml");
    let run = |files: &[&std::path::Path], flags: &[&str]| {
        let files = std::iter::once(contract.as_path()).chain(files.iter().copied());
        let files = files.map(|path| path.to_str().unwrap());
        let shared = ["compare", "--server", &server.url, "--trials", "2"];
        let args: Vec<&str> =
            shared.into_iter().chain(files).chain(flags.iter().copied()).collect();
        outcome(warpgauge(home.path(), &args).output().unwrap())
    };
    let (code, out, error) = run(&[&twice], &["--json"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("a comparison does not use `expected`"), "{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["kernel_exec_result"]["correctness"], true);

    let (code, out, error) = run(&[&twice, &wrong], &[]);
    assert_eq!(code, 4, "{error}");
    let lines: Vec<_> = out.lines().collect();
    let words: &[&str] = match is_gpu(&report) {
        true => &["FASTER  ", "SLOWER  ", "SAME  ", "INCONCLUSIVE  "],
        false => &["MORE WORK  "],
    };
    let starts = |line: &str, word: &str| line.starts_with(&format!("{word}twice.cu "));
    assert!(words.iter().any(|word| starts(lines[0], word)), "{out}");
    assert!(lines[1].starts_with("WRONG  wrong.cu: "), "{out}");
    assert_eq!(out.contains("global_load_sectors"), !is_gpu(&report), "{out}");
}
