//! The crates of the workspace, lowest first, and what each may use: whoever knows less can be tested
//! and changed alone. Cargo forbids circles; this table forbids edges that nobody decided on.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;

/// A crate in `crates/`, and those of the workspace that it may use. Dependencies of tests are free.
/// ARCHITECTURE.md says what each is for.
const CRATES: [(&str, &[&str]); 42] = [
    ("model", &[]),
    ("source", &[]),
    ("infer", &["source"]),
    ("svg", &[]),
    ("elf", &[]),
    ("files", &[]),
    ("functions", &[]),
    ("process", &[]),
    ("threads", &["process"]),
    ("telemetry", &[]),
    ("tensor", &[]),
    ("turns", &[]),
    ("tensors", &["model", "tensor"]),
    ("listing", &[]),
    ("sparse", &["tensor"]),
    ("profile", &["model", "svg", "tensor"]),
    ("contract", &["model", "profile", "tensor"]),
    ("measure", &["model"]),
    ("validate", &["contract", "model", "tensor"]),
    ("report", &["contract", "listing", "measure", "model", "profile", "tensor", "validate"]),
    ("spmv", &["contract", "model", "report", "sparse", "tensor"]),
    ("gate", &["contract", "measure", "model", "report", "svg"]),
    ("history", &["contract", "gate", "measure", "model", "report", "svg"]),
    ("jobs", &["gate", "model", "report"]),
    ("executor", &["contract", "functions", "gate", "jobs", "model", "report", "turns"]),
    ("client", &["contract", "gate", "history", "jobs", "model", "report"]),
    ("device", &["elf", "model", "tensor"]),
    (
        "compile",
        &[
            "contract",
            "device",
            "files",
            "listing",
            "model",
            "process",
            "source",
            "telemetry",
            "threads",
            "turns",
        ],
    ),
    (
        "worker",
        &[
            "contract",
            "device",
            "measure",
            "model",
            "process",
            "telemetry",
            "tensor",
            "turns",
            "validate",
        ],
    ),
    ("holder", &["device", "model", "process", "tensors", "worker"]),
    ("tools", &["model", "process", "profile", "worker"]),
    ("torch", &["process", "tensor", "threads", "turns"]),
    ("program", &["process", "threads"]),
    ("config", &["model"]),
    (
        "exec",
        &[
            "compile",
            "config",
            "contract",
            "device",
            "executor",
            "functions",
            "gate",
            "jobs",
            "listing",
            "measure",
            "model",
            "process",
            "profile",
            "program",
            "report",
            "sparse",
            "spmv",
            "telemetry",
            "tensor",
            "tools",
            "torch",
            "turns",
            "validate",
            "worker",
        ],
    ),
    ("store", &["files", "model"]),
    ("webhook", &["model", "report", "store", "telemetry"]),
    (
        "service",
        &[
            "config",
            "contract",
            "executor",
            "files",
            "functions",
            "gate",
            "history",
            "jobs",
            "model",
            "report",
            "sparse",
            "spmv",
            "store",
            "telemetry",
            "tensor",
            "tensors",
            "turns",
            "webhook",
        ],
    ),
    ("mcp", &["contract", "jobs", "measure", "model", "report", "service", "validate"]),
    (
        "api",
        &[
            "config",
            "contract",
            "functions",
            "gate",
            "history",
            "jobs",
            "mcp",
            "model",
            "profile",
            "report",
            "service",
            "spmv",
            "telemetry",
            "tensors",
            "turns",
            "webhook",
        ],
    ),
    ("watch", &["contract", "infer", "process", "report"]),
    ("emulator", &[]),
];

/// Crates that may have `unsafe` code: all others forbid it.
const UNSAFE: [&str; 3] = ["device", "emulator", "threads"];

/// Libraries that only these crates may use: what they are for shall be known in one place.
const ONLY_IN: [(&str, &[&str]); 13] = [
    ("poem", &["api"]),
    ("poem-openapi", &["api"]),
    ("hyper", &["api"]),
    ("rmcp", &["api", "mcp"]),
    ("sqlx", &["store"]),
    ("object_store", &["store"]),
    ("cudarc", &["device"]),
    ("landlock", &["process"]),
    ("seccompiler", &["process"]),
    ("ureq", &["client", "webhook"]),
    ("notify", &["watch"]),
    ("rustls-native-certs", &["client"]),
    ("serde-saphyr", &["api", "contract", "measure"]),
];

/// Checks the manifests and roots of all crates against the table.
pub fn check(root: &Path, violations: &mut Vec<Violation>) -> Result<()> {
    let directory = root.join("crates");
    let entries = fs::read_dir(&directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    for entry in entries {
        let manifest = entry.path().join("Cargo.toml");
        let name = entry.file_name().to_string_lossy().into_owned();
        if !manifest.is_file() {
            continue;
        }
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let text = read(&manifest)?;
        let mut report = |message: String| {
            let path = format!("crates/{name}/Cargo.toml");
            violations.push(Violation { path, line: 0, message });
        };
        check_manifest(&name, &text, &mut report);
        if !UNSAFE.contains(&name.as_str())
            && !read(&entry.path().join("src/lib.rs"))?.contains("#![forbid(unsafe_code)]")
        {
            report("its lib.rs does not `#![forbid(unsafe_code)]`".to_owned());
        }
    }
    Ok(())
}

/// Checks what a manifest's `[dependencies]` name.
fn check_manifest(name: &str, text: &str, report: &mut impl FnMut(String)) {
    let used = dependencies(text);
    for (library, homes) in ONLY_IN {
        if used.contains(&library) && !homes.contains(&name) {
            report(format!("uses `{library}`, which belongs to {} only", homes.join(", ")));
        }
    }
    let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
        report("has no row in xtask/src/tidy/crates.rs".to_owned());
        return;
    };
    let ours: Vec<&str> = used.iter().filter_map(|it| it.strip_prefix("warpgauge-")).collect();
    for other in &ours {
        if !allowed.contains(other) {
            report(format!(
                "uses `{other}`, which its row in xtask/src/tidy/crates.rs does not have"
            ));
        }
    }
    for other in allowed.iter().filter(|other| !ours.contains(other)) {
        report(format!(
            "does not use `{other}`: take it out of its row in xtask/src/tidy/crates.rs"
        ));
    }
}

/// Names in a manifest's `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(name: &str, manifest: &str) -> Vec<String> {
        let mut messages = Vec::new();
        check_manifest(name, manifest, &mut |message| messages.push(message));
        messages
    }

    #[test]
    fn the_table_is_ordered_so_that_there_is_no_circle() {
        for (index, (name, uses)) in CRATES.iter().enumerate() {
            for used in *uses {
                let below = CRATES[..index].iter().any(|(other, _)| other == used);
                assert!(below, "{name} uses {used}, which does not stand above it in the table");
            }
        }
    }

    #[test]
    fn edges_that_nobody_decided_on_are_told() {
        let manifest =
            "[dependencies]\nserde = \"1\"\n\n[dev-dependencies]\nwarpgauge-api.workspace = true\n";
        assert!(messages("model", manifest).is_empty());
        let upwards = "[dependencies]\nwarpgauge-api.workspace = true\n";
        assert!(messages("model", upwards)[0].contains("uses `api`"));
        assert!(messages("attic", manifest)[0].contains("no row"));
        assert!(messages("model", "[dependencies]\npoem = \"3\"\n")[0].contains("belongs to api"));
        assert!(messages("history", manifest).iter().any(|it| it.contains("take it out")));
    }
}
