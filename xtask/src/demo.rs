//! `cargo xtask demo`: builds the program, starts a server and evaluates a kernel over HTTP.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::contract;
use crate::http::Client;
use crate::product::{self, Profile};
use crate::server::Server;
use crate::shell;

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Options {
    /// Keep the server running until Ctrl-C, which ends the server and this command.
    #[arg(long)]
    keep: bool,
    /// Device: auto, emulator, or a GPU's ordinal.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Example to evaluate: a directory in `kernels/`.
    #[arg(long, default_value = "vector_add")]
    kernel: String,
}

pub fn run(options: &Options) -> Result<()> {
    check_prerequisites()?;
    let file = shell::root().join("kernels").join(&options.kernel).join("contract.yaml");
    let body = contract::read_inlined(&file)?;

    let program = product::build(Profile::Dev)?;
    product::ensure_toolchain(&program)?;
    let log_dir = product::target_dir()?.join("xtask");
    fs::create_dir_all(&log_dir)?;
    let server = Server::start(
        &program,
        &["--device".to_owned(), options.device.clone()],
        &log_dir.join("demo-server.log"),
    )?;
    eprintln!("server listens on {}", server.url);
    eprintln!("$ POST /evaluate (kernels/{}/contract.yaml)", options.kernel);
    let answer = Client::new(&server.url).post("/evaluate", "application/yaml", body.as_bytes())?;
    if answer.status != 200 {
        bail!("POST /evaluate: status {}: {:#}", answer.status, answer.body);
    }

    println!("\n{}", verdict(&options.kernel, &answer.body));
    let correct = answer.body["kernel_exec_result"]["correctness"] == true;
    if !correct {
        bail!("the example's result is not correct");
    }
    if options.keep {
        println!("API documentation: {}/docs — Ctrl-C stops the server", server.url);
        return server.wait();
    }
    println!("API documentation: /docs of a running server:");
    println!("  cargo xtask demo --keep     or     {} serve", program.display());
    Ok(())
}

/// Reports missing programs before the compilation, which takes several minutes.
fn check_prerequisites() -> Result<()> {
    if ["cc", "gcc", "clang"].iter().all(|c| shell::find(c).is_none()) {
        bail!("no C compiler was found; install one (Debian, Ubuntu: apt-get install gcc)");
    }
    let python = shell::require(
        "python3",
        "its pip installs the CUDA compiler (Debian, Ubuntu: apt-get install python3-pip)",
    )?;
    let pip = Command::new(python).args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|output| output.status.success()) {
        bail!("python3 has no pip; install it (Debian, Ubuntu: apt-get install python3-pip)");
    }
    Ok(())
}

/// Returns the report of an evaluation as text.
fn verdict(kernel: &str, report: &Value) -> String {
    let result = &report["kernel_exec_result"];
    let device = &report["device"];
    let kind = device["kind"].as_str().unwrap_or("unknown");
    let mut lines = vec![format!(
        "{kernel} on {} ({kind}, compute capability {})",
        text(&device["name"]),
        text(&device["compute_capability"]),
    )];
    lines.push(match result["compiled"].as_bool() {
        Some(true) => format!(
            "  compiled   yes, by {}{}",
            text(&report["compile"]["compiler"]),
            if report["compile"]["cache_hit"] == true { " (cached)" } else { "" },
        ),
        _ => format!("  compiled   NO: {}", text(&result["compilation_error"])),
    });
    lines.push(match result["correctness"].as_bool() {
        Some(true) => format!("  correct    yes{}", matched(report)),
        Some(false) => format!("  correct    NO: {}", text(&result["validation_error"])),
        None => format!("  correct    unknown: {}", text(&report["failure"]["message"])),
    });
    if let Some(line) = runtime(&result["runtime_stats"]) {
        let note = if kind == "emulator" {
            "; emulated; not comparable with the time on a GPU"
        } else {
            ""
        };
        lines.push(format!("  runtime    {line}{note}"));
    }
    if let Some(total) = report["timings"]["total"].as_f64() {
        lines.push(format!("  answered   in {total:.0} ms"));
    }
    lines.join("\n")
}

fn matched(report: &Value) -> String {
    let outputs = report["validation"]["outputs"].as_object();
    let parts: Vec<String> = outputs
        .into_iter()
        .flatten()
        .map(|(name, c)| format!("{name}: {} of {} elements match", c["matched"], c["elements"]))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Returns the median with its confidence interval: in microseconds below one millisecond,
/// otherwise in milliseconds.
fn runtime(stats: &Value) -> Option<String> {
    let median_ms = stats["median"].as_f64()?;
    let (scale, unit) = if median_ms < 1.0 { (1e3, "µs") } else { (1.0, "ms") };
    let scaled = |field: &str| stats[field].as_f64().map(|ms| ms * scale);
    let interval = scaled("median_ci_low")
        .zip(scaled("median_ci_high"))
        .map(|(low, high)| format!(", 95 % CI {low:.2}–{high:.2} {unit}"))
        .unwrap_or_default();
    Some(format!("median {:.2} {unit}{interval}, {} launches", median_ms * scale, stats["samples"]))
}

/// Returns the content of a JSON string without quotes, and any other value as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::verdict;

    #[test]
    fn a_report_reads_as_a_verdict() {
        let report = json!({
            "kernel_exec_result": {
                "compiled": true, "correctness": true,
                "runtime_stats": {
                    "median": 0.00576, "median_ci_low": 0.00574, "median_ci_high": 0.0058,
                    "samples": 20
                }
            },
            "device": {"kind": "cuda", "name": "NVIDIA H200", "compute_capability": "9.0"},
            "compile": {"compiler": "nvrtc 13.0.88", "cache_hit": false},
            "validation": {"outputs": {"c": {"matched": 1048576, "elements": 1048576}}},
            "timings": {"total": 31.4}
        });
        assert_eq!(
            verdict("vector_add", &report),
            "vector_add on NVIDIA H200 (cuda, compute capability 9.0)\n\
             \x20 compiled   yes, by nvrtc 13.0.88\n\
             \x20 correct    yes (c: 1048576 of 1048576 elements match)\n\
             \x20 runtime    median 5.76 µs, 95 % CI 5.74–5.80 µs, 20 launches\n\
             \x20 answered   in 31 ms"
        );
    }

    #[test]
    fn a_wrong_kernel_says_why() {
        let report = json!({
            "kernel_exec_result": {
                "compiled": true, "correctness": false, "validation_error": "c: 3 elements differ"
            },
            "device": {"kind": "emulator", "name": "emulated", "compute_capability": "9.0"}
        });
        assert!(verdict("k", &report).contains("correct    NO: c: 3 elements differ"));
    }
}
