//! Checks the dependencies between the crates of the workspace. A crate with fewer dependencies is
//! easier to test and to change. Cargo forbids cycles; the table in this file makes each new
//! dependency a deliberate decision.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;

/// The folders in `crates/`, lowest first. A crate may use crates in the same folder and in lower
/// folders. The emulator is in no folder: devices load it as a library, and no crate depends on it.
const FOLDERS: [&str; 5] = ["lib", "core", "run", "server", ""];

/// For each crate, its folder, its name, and the workspace crates that it may use. Dependencies of
/// tests are not restricted. ARCHITECTURE.md describes the purpose of each crate.
const CRATES: [(&str, &str, &[&str]); 35] = [
    ("lib", "document", &[]),
    ("lib", "private-files", &[]),
    ("lib", "sandbox", &[]),
    ("lib", "svg", &[]),
    ("lib", "telemetry", &[]),
    ("lib", "turns", &[]),
    ("core", "code", &[]),
    ("core", "model", &[]),
    ("core", "config", &["model"]),
    ("core", "tensor", &[]),
    ("core", "metrics", &["model", "svg", "tensor"]),
    ("core", "contract", &["document", "metrics", "model", "tensor"]),
    ("core", "statistics", &["model"]),
    ("core", "validate", &["contract", "model", "tensor"]),
    (
        "core",
        "report",
        &["code", "contract", "metrics", "model", "statistics", "tensor", "validate"],
    ),
    ("core", "gate", &["contract", "model", "report", "statistics", "svg"]),
    ("core", "job-views", &["code", "gate", "model", "report"]),
    (
        "core",
        "page",
        &[
            "code",
            "contract",
            "gate",
            "job-views",
            "metrics",
            "model",
            "report",
            "statistics",
            "svg",
            "validate",
        ],
    ),
    ("core", "shared-tensors", &["model", "tensor"]),
    ("core", "sparse", &["contract", "model", "report", "tensor"]),
    ("run", "device", &["model", "tensor"]),
    (
        "run",
        "compile",
        &[
            "code",
            "contract",
            "device",
            "document",
            "model",
            "private-files",
            "sandbox",
            "telemetry",
            "turns",
        ],
    ),
    ("run", "executor", &["contract", "gate", "job-views", "model", "report", "turns"]),
    (
        "run",
        "worker",
        &[
            "contract",
            "device",
            "document",
            "model",
            "sandbox",
            "shared-tensors",
            "statistics",
            "telemetry",
            "tensor",
            "turns",
            "validate",
        ],
    ),
    ("run", "nsight", &["metrics", "model", "sandbox", "worker"]),
    ("run", "torch", &["document", "model", "sandbox", "tensor", "turns"]),
    (
        "run",
        "engine",
        &[
            "code",
            "compile",
            "config",
            "contract",
            "device",
            "executor",
            "gate",
            "job-views",
            "metrics",
            "model",
            "nsight",
            "report",
            "sandbox",
            "sparse",
            "statistics",
            "telemetry",
            "tensor",
            "torch",
            "turns",
            "validate",
            "worker",
        ],
    ),
    ("server", "store", &["model", "private-files"]),
    (
        "server",
        "service",
        &[
            "code",
            "config",
            "contract",
            "document",
            "executor",
            "gate",
            "job-views",
            "model",
            "private-files",
            "report",
            "sandbox",
            "shared-tensors",
            "sparse",
            "store",
            "telemetry",
            "tensor",
            "turns",
        ],
    ),
    (
        "server",
        "mcp",
        &[
            "contract",
            "document",
            "job-views",
            "metrics",
            "model",
            "report",
            "service",
            "statistics",
            "validate",
        ],
    ),
    ("server", "book", &["page", "svg"]),
    ("server", "watch", &["code", "contract", "document", "report", "sandbox"]),
    (
        "server",
        "api",
        &[
            "book",
            "code",
            "config",
            "contract",
            "document",
            "gate",
            "job-views",
            "mcp",
            "metrics",
            "model",
            "page",
            "report",
            "service",
            "shared-tensors",
            "sparse",
            "telemetry",
            "turns",
            "watch",
        ],
    ),
    ("server", "client", &["contract", "document", "gate", "job-views", "model", "report"]),
    ("", "emulator", &[]),
];

/// Crates that may contain `unsafe` code. All others must forbid it.
const UNSAFE: [&str; 3] = ["device", "emulator", "sandbox"];

/// Libraries that only these crates may use, so that knowledge of each library stays in one place.
const ONLY_IN: [(&str, &[&str]); 15] = [
    ("maud", &["page"]),
    ("poem", &["api"]),
    ("poem-openapi", &["api"]),
    ("hyper", &["api"]),
    ("rmcp", &["api", "mcp"]),
    ("sqlx", &["store"]),
    ("rusqlite", &["nsight"]),
    ("object_store", &["store"]),
    ("cudarc", &["device"]),
    ("landlock", &["sandbox"]),
    ("seccompiler", &["sandbox"]),
    ("ureq", &["client", "service"]),
    ("notify", &["watch"]),
    ("rustls-native-certs", &["client"]),
    ("serde-saphyr", &["api", "contract", "document", "statistics"]),
];

/// Checks whether the manifests and the root files of all crates conform to the table.
pub fn check(root: &Path, violations: &mut Vec<Violation>) -> Result<()> {
    for folder in FOLDERS {
        let place = Path::new("crates").join(folder);
        let directory = root.join(&place);
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
                let path = place.join(&name).join("Cargo.toml").display().to_string();
                violations.push(Violation { path, line: 0, message });
            };
            check_manifest(folder, &name, &text, &mut report);
            if !UNSAFE.contains(&name.as_str())
                && !read(&entry.path().join("src/lib.rs"))?.contains("#![forbid(unsafe_code)]")
            {
                report("src/lib.rs must contain `#![forbid(unsafe_code)]`".to_owned());
            }
        }
    }
    Ok(())
}

/// Returns the directory and the name of the crate that contains a source file.
pub fn home(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("crates/")?;
    let (first, inside) = rest.split_once('/')?;
    if !FOLDERS.contains(&first) {
        return Some((&path[.."crates/".len() + first.len()], first));
    }
    let (name, _) = inside.split_once('/')?;
    Some((&path[.."crates/".len() + first.len() + 1 + name.len()], name))
}

/// Checks whether the `[dependencies]` of a manifest conform to the table.
fn check_manifest(folder: &str, name: &str, text: &str, report: &mut impl FnMut(String)) {
    let used = dependencies(text);
    for (library, homes) in ONLY_IN {
        if used.contains(&library) && !homes.contains(&name) {
            report(format!("uses `{library}`, which only {} may use", homes.join(", ")));
        }
    }
    let Some((_, _, allowed)) = CRATES.iter().find(|row| (row.0, row.1) == (folder, name)) else {
        report("has no row in xtask/src/tidy/crates.rs".to_owned());
        return;
    };
    let ours: Vec<&str> = used.iter().filter_map(|it| it.strip_prefix("warpgauge-")).collect();
    for other in &ours {
        if !allowed.contains(other) {
            report(format!(
                "uses `{other}`, which its row in xtask/src/tidy/crates.rs does not list"
            ));
        }
    }
    for other in allowed.iter().filter(|other| !ours.contains(other)) {
        report(format!(
            "does not use `{other}`: remove it from its row in xtask/src/tidy/crates.rs"
        ));
    }
}

/// Returns the names in the `[dependencies]` section of a manifest.
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
        check_manifest("core", name, manifest, &mut |message| messages.push(message));
        messages
    }

    #[test]
    fn the_table_is_ordered_so_that_there_is_no_circle() {
        for (index, (folder, name, uses)) in CRATES.iter().enumerate() {
            for used in *uses {
                let above = CRATES[..index].iter().find(|(_, other, _)| other == used);
                let Some((other, _, _)) = above else {
                    panic!("{name} uses {used}, which does not stand above it in the table");
                };
                let level = |folder| FOLDERS.iter().position(|it| it == folder);
                assert!(level(other) <= level(folder), "{name} uses {used} of a higher folder");
            }
        }
    }

    #[test]
    fn a_source_belongs_to_a_crate_in_a_folder_or_to_one_in_none() {
        assert_eq!(home("crates/run/device/src/lib.rs"), Some(("crates/run/device", "device")));
        assert_eq!(home("crates/emulator/src/lib.rs"), Some(("crates/emulator", "emulator")));
        assert_eq!(home("src/main.rs"), None);
    }

    #[test]
    fn edges_that_nobody_decided_on_are_told() {
        let manifest =
            "[dependencies]\nserde = \"1\"\n\n[dev-dependencies]\nwarpgauge-api.workspace = true\n";
        assert!(messages("model", manifest).is_empty());
        let upwards = "[dependencies]\nwarpgauge-api.workspace = true\n";
        assert!(messages("model", upwards)[0].contains("uses `api`"));
        assert!(messages("attic", manifest)[0].contains("no row"));
        assert!(
            messages("model", "[dependencies]\npoem = \"3\"\n")[0].contains("only api may use")
        );
        assert!(messages("validate", manifest).iter().any(|it| it.contains("remove it")));
    }
}
