use serde_json::json;

use super::draft::{MAX_STRUCTURED, MAX_TEXT};
use super::*;
use crate::tools::import_schema::{input, output};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../tests/fixtures/profile/", $name))
    };
}

const RAW: &str = fixture!("ncu/2025.3.1-h200-raw_full_base.csv");
const KERNELS: &str = fixture!("nsys/2025.3.1-cuda_gpu_kern_sum.txt");
const TRACE: &str = fixture!("nsys/2025.3.1-cuda_gpu_trace.txt");
const LOG: &str = fixture!("sanitizer/2025.3.1-h200.txt");

/// Reads a report, and checks what every answer promises.
async fn try_read(arguments: Value) -> Result<Reading, JobBackendError> {
    let Value::Object(given) = arguments else { panic!("an object") };
    let read = read(&CallPermits::default(), "", given).await;
    if let Ok(Reading { text, structured }) = &read {
        assert!(text.len() <= MAX_TEXT, "{} bytes", text.len());
        let size = structured.to_string().len();
        assert!(size <= MAX_STRUCTURED, "{size} bytes");
        assert!(!text.replace('\n', "").contains(warpgauge_model::is_hidden), "{text:?}");
        hidden_in(structured);
        let schema = output();
        for field in structured.as_object().expect("an object").keys() {
            assert!(schema["properties"].get(field).is_some(), "{field} is not in the schema");
        }
    }
    read
}

fn hidden_in(value: &Value) {
    match value {
        Value::String(text) => assert!(!text.contains(warpgauge_model::is_hidden), "{text:?}"),
        Value::Array(items) => items.iter().for_each(hidden_in),
        Value::Object(fields) => fields.values().for_each(hidden_in),
        _ => {}
    }
}

async fn read_of(arguments: Value) -> Reading {
    try_read(arguments).await.expect("a reading")
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

/// Returns a raw page with one launch of each kernel: name, and time in nanoseconds. Each
/// nanosecond moves 64 bytes.
fn page(kernels: &[(&str, u64)]) -> String {
    let mut text = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\
                    \"\",\"\",\"ns\",\"byte\"\n"
        .to_owned();
    for (id, (name, time)) in kernels.iter().enumerate() {
        let name = name.replace('"', "\"\"");
        text.push_str(&format!("\"{id}\",\"{name}\",\"{time}\",\"{}\"\n", 64 * time));
    }
    text
}

#[tokio::test]
async fn a_page_of_nsight_compute_begins_with_the_longest_kernel() {
    let Reading { text, structured } = read_of(json!({"content": RAW})).await;
    let begin = "NSIGHT COMPUTE: 5 kernels in 6 launches; matmul_tiled(";
    assert!(text.starts_with(begin), "{text}");
    contains(&text, &["stalls: mio throttle 54 %", "occupancy limited by registers and warps: 2"]);
    contains(&text, &["bound by L1 and shared memory: L1 is the busiest unit", "advice: "]);
    let kernels = structured["kernels"].as_array().expect("a list");
    let times: Vec<f64> =
        kernels.iter().filter_map(|kernel| kernel["total_seconds"].as_f64()).collect();
    assert!(times.len() == 5 && times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let first = &kernels[0];
    assert_eq!((&structured["kind"], &first["bound_by"]), (&json!("ncu"), &json!("l1")));
    assert_eq!(first["top_stalls"][0]["metric"], "stall_mio_throttle", "{first}");
    assert_eq!(first["occupancy_limiter"]["names"], json!(["registers", "warps"]), "{first}");
    assert!(first.get("metrics").is_none(), "no values were requested: {first}");
}

#[tokio::test]
async fn requested_metrics_have_values_or_reasons() {
    let metrics = json!(["sm_throughput", "ffma_instructions"]);
    let content = fixture!("ncu/2025.3.1-h200-raw_metrics.csv");
    let Reading { text, structured } =
        read_of(json!({"content": content, "metrics": metrics})).await;
    let values = &structured["kernels"][0]["metrics"];
    assert_eq!(values["sm_throughput"]["unit"], "%", "{values}");
    assert!(values["ffma_instructions"]["reason"].is_string(), "{values}");
    contains(&text, &["metrics: sm_throughput 41.06 %, no value of ffma_instructions"]);
    let all = read_of(json!({"content": RAW, "metrics": "all"})).await.structured;
    let kernels = all["kernels"].as_array().expect("a list");
    let values = kernels.iter().filter_map(|kernel| kernel["metrics"].as_object());
    assert_eq!(values.map(|values| values.len()).sum::<usize>(), 80, "{all}");
}

#[tokio::test]
async fn changes_are_explained() {
    let arguments = json!({"content": page(&[("copy", 1_000)]), "against": page(&[("copy", 2_000), ("old", 5)])});
    let Reading { text, structured } = read_of(arguments).await;
    let begin =
        "CHANGES: 1 kernel is in both reports; copy changed most, from 2.000 µs to 1.000 µs\n";
    assert!(text.starts_with(begin), "{text}");
    contains(
        &text,
        &["0.500 × for each launch", "explained by ", "only in the earlier report: old"],
    );
    contains(&text, &["dram_bytes 125.0 KiB → 62.5 KiB (100 %)"]);
    assert_eq!(structured["kernels"][0]["time_ratio"], 0.5, "{structured}");
    assert_eq!(structured["gone"], json!(["old"]));
}

#[tokio::test]
async fn tables_of_nsight_systems_have_the_kernels_by_total_time() {
    for content in [KERNELS, TRACE] {
        let Reading { text, structured } = read_of(json!({"content": content})).await;
        contains(&text, &["NSIGHT SYSTEMS: 5 kernels, 6 launches, 2.595 ms in all; matmul_tiled("]);
        contains(
            &text,
            &["vector_add(const float *, const float *, float *, int): 128.8 µs (5.0 %)"],
        );
        assert_eq!(structured["kernels"][1]["launches"], 2, "{structured}");
    }
    let busy = read_of(json!({"content": TRACE})).await.structured;
    assert_eq!(busy["devices"][0]["gaps"], 8, "{busy}");
    let calls = fixture!("nsys/2025.3.1-cuda_api_sum.txt");
    let name = "r_cuda_api_sum.csv";
    let Reading { text, structured } = read_of(json!({"content": calls, "name": name})).await;
    contains(&text, &["no table of kernels; 9 rows of other tables", "calls of CUDA: cudaMalloc "]);
    assert_eq!(structured["left_out"]["calls"], 1, "{structured}");
}

#[tokio::test]
async fn a_log_of_the_sanitizer_has_its_findings() {
    let Reading { text, structured } = read_of(json!({"content": LOG})).await;
    contains(&text, &["COMPUTE-SANITIZER: 4 findings; the tool counted 7 errors\n"]);
    contains(&text, &["- out_of_bounds × 2 in oob(float *, int) at k.cu:9, thread [5, 0, 0] of"]);
    assert_eq!(structured["findings"][0]["source"], "k.cu:9", "{structured}");
}

#[tokio::test]
async fn a_source_page_has_the_lines_with_most_samples() {
    let page = "\"Kernel Name\",\"k\"\n\"#\",\"Address\",\"Source\",\"# Samples\"\n\
                \"1\",\"0x10\",\"LDG R1\",\"3\"\n\"2\",\"0x20\",\"FFMA R2\",\"40\"\n";
    let Reading { text, structured } = read_of(json!({"content": page})).await;
    contains(&text, &["NSIGHT COMPUTE SOURCE: k: 2 lines of code\n"]);
    let lines = &structured["kernels"][0]["lines"];
    assert_eq!((&lines[0]["source"], &lines[0]["samples"]), (&json!("FFMA R2"), &json!(40.0)));
}

/// `try_read` checks the length and the characters of the answers.
#[tokio::test]
async fn hostile_names_do_not_reach_the_answer() {
    let long = "\u{1b}[31m\u{202e}\\\"ä".repeat(3_000);
    let names: Vec<String> = (0..300).map(|index| format!("k{index}{long}")).collect();
    let kernels: Vec<(&str, u64)> =
        names.iter().take(40).map(|name| (name.as_str(), 1_000 + name.len() as u64)).collect();
    let before: Vec<(&str, u64)> = kernels.iter().map(|(name, time)| (*name, 2 * time)).collect();
    let after = read_of(json!({"content": page(&kernels), "metrics": ["all"]})).await;
    assert!(after.text.contains("k10 [31m "), "{}", after.text);
    assert!(after.structured["left_out"]["kernels"].is_u64(), "{}", after.structured);
    read_of(json!({"content": page(&kernels), "against": page(&before)})).await;
    let others: Vec<(&str, u64)> = kernels.iter().map(|(name, _)| (&name[1..], 9)).collect();
    read_of(json!({"content": page(&kernels), "against": page(&others)})).await;
    let table =
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n";
    let rows = names
        .iter()
        .map(|name| format!("1.0,5,1,5.0,5.0,5,5,0.0,\"{}\"\n", name.replace('"', "\"\"")));
    read_of(json!({"content": table.to_owned() + &rows.collect::<String>()})).await;
    let findings = names.iter().map(|name| {
        format!(
            "========= Invalid __global__ write of size 4 bytes\n\
             =========     at {name}+0x10 in {name}.cu:4\n\
             =========     by thread (1,0,0) in block (0,0,0)\n=========     {name}\n"
        )
    });
    let log = format!("========= COMPUTE-SANITIZER\n{}", findings.collect::<String>());
    read_of(json!({"content": log})).await;
    let content = format!("\"ID\",\"Kernel Name\"\n\"{long}\"");
    let refusal = try_read(json!({"content": content, "name": "a"})).await.expect_err("a refusal");
    let text = crate::answer::Outcome::refused(&refusal).text();
    assert!(text.len() < MAX_TEXT && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let base64 = "U1FMaXRlIGZvcm1hdCAz".to_owned() + &"A".repeat(80);
    let cases = [
        (json!({}), "missing_field", "content", "ncu --import FILE --csv"),
        (json!({"content": " \n"}), "invalid_value", "content", "empty"),
        (json!({"content": 7}), "wrong_type", "content", "text of a report"),
        (json!({"content": "hello"}), "invalid_value", "content", "neither a page"),
        (json!({"content": "NVR\u{0}\u{1}"}), "invalid_value", "content", "ncu --import FILE"),
        (json!({"content": "SQLite format 3\u{0}"}), "invalid_value", "content", "nsys stats"),
        (
            json!({"content": "NVIDIA Tegra Profiler Report"}),
            "invalid_value",
            "content",
            "nsys stats --format csv --force-export=true FILE",
        ),
        (json!({"content": base64}), "invalid_value", "content", "base64 of a binary file"),
        (json!({"content": LOG, "against": "x"}), "invalid_value", "against", "neither a page"),
        (json!({"content": LOG, "against": RAW}), "invalid_value", "against", "the same tool"),
        (
            json!({"content": RAW, "metrics": ["core", "dram_throughputs"]}),
            "unknown_metric",
            "metrics[1]",
            "dram_throughput",
        ),
        (json!({"content": RAW, "metrics": [7]}), "wrong_type", "metrics", "list of names"),
        (json!({"content": RAW, "metrics": "a,,b"}), "too_large", "metrics", "1 to 256 bytes"),
        (json!({"content": RAW, "name": "a\nb"}), "invalid_value", "name", "printable"),
        (json!({"content": RAW, "file": "x"}), "unknown_field", "file", "content, name, against"),
    ];
    for (arguments, code, path, part) in cases {
        let refusal = try_read(arguments).await.expect_err("a refusal");
        assert_eq!(
            (refusal.code.as_str(), refusal.path.as_deref()),
            (code, Some(path)),
            "{refusal:?}"
        );
        contains(&refusal.message, &[path, part]);
    }
}

#[test]
fn the_arguments_of_the_schema_are_those_that_are_read() {
    let schema = input();
    let properties = schema["properties"].as_object().expect("properties");
    let mut given: Map<String, Value> =
        properties.keys().map(|name| (name.clone(), json!("x"))).collect();
    assert!(call::parse(given.clone()).is_ok());
    given.remove("content");
    assert!(call::parse(given).is_err());
    assert_eq!(schema["required"], json!(["content"]));
}
