//! Collects the codes in answers, reports and errors, each with its meaning and a remedy. The main
//! function is [`meanings`].

use std::collections::BTreeMap;

use serde_json::Value;

use warpgauge_api::openapi;
use warpgauge_model::{Cause, ErrorCode, FailureCode};
use warpgauge_report::KernelVerdict;

/// Remedies for codes whose meaning contains no remedy.
const REMEDIES: [(&str, &str); 22] = [
    (
        "argument_count",
        "Compare the list of `io.args` with the kernel's parameters; `warpgauge init` writes a list.",
    ),
    (
        "compilation_failed",
        "The diagnostics name file and line. `warpgauge compile FILE` shows them alone.",
    ),
    (
        "depends_on_history",
        "Initialise what the kernel reads, also in shared memory and in variables of the device.",
    ),
    ("different_arguments", "Leave `io.args` of a candidate out: it has the reference's then."),
    ("emulator_needs_ptx", "Send the source or its PTX, or use a GPU (`--device auto`)."),
    (
        "faster_than_light",
        "The kernel cannot have moved all of its data: check sizes, `work` and guards.",
    ),
    ("illegal_address", "Run it with `sanitize: true`: the report names thread, line and tensor."),
    ("invalid_contract", "The answer lists each field with its mistake."),
    ("launch_out_of_resources", "Use smaller blocks, less shared memory, or `__launch_bounds__`."),
    ("memory_fault", "Run it with `sanitize: true`: the report names thread, line and tensor."),
    ("missing_constant", "Give the compile-time constant in `io.args` with `is_meta: true`."),
    (
        "nondeterministic",
        "Look for races: `sanitize: true` finds them; order atomic additions, or widen the tolerance.",
    ),
    ("no_device", "Install a driver, or use the emulator: `--device emulator`."),
    ("not_found", "`warpgauge jobs list --server URL` lists what the server has."),
    (
        "out_of_memory",
        "Use smaller tensors, or a device with more memory: `warpgauge devices` shows it.",
    ),
    (
        "output_mismatch",
        "The report shows the first elements that differ, with their indices and the expected values.",
    ),
    ("queue_full", "Wait as long as `Retry-After` says, and send the request again."),
    ("sanitizer_fault", "The findings name the access, the line and the thread."),
    (
        "unauthorized",
        "Send the key: `--api-key`, `WARPGAUGE_API_KEY`, or the header `Authorization: Bearer KEY`.",
    ),
    (
        "unknown_kernel",
        "The message lists the kernels of the source; `metadata.kernel_name` names one.",
    ),
    (
        "unmet_requirements",
        "`warpgauge capabilities` lists what is missing, `warpgauge toolchain install` brings compilers.",
    ),
    (
        "wrong_for_other_seeds",
        "The kernel is right for one input only: check constants that hold for the contract's seed.",
    ),
];

/// Enumerations in the OpenAPI document whose values are codes, each with the words that precede a
/// meaning.
const ENUMS: [(&str, &str); 16] = [
    ("WeaknessCode", "Weakness of a contract"),
    ("ReasonCode", "Reason against a kernel"),
    ("AdviceCode", "Observation of a profile"),
    ("CancelOutcome", "Answer to a cancellation"),
    ("CountedVerdict", "Comparison of counted work"),
    ("DropReason", "Reason why a block of a comparison was dropped"),
    ("GateOutcome", "Outcome of a case of the gate"),
    ("GateReason", "Reason for the outcome of a case of the gate"),
    ("HealthFlag", "State of the GPU"),
    ("PairedReason", "Reason for the verdict of a comparison"),
    ("PairedVerdict", "Verdict of a comparison"),
    ("RejectReason", "Reason why a sample was rejected"),
    ("StopReason", "Reason why a measurement ended"),
    ("SuiteVerdict", "Verdict of the gate"),
    ("ThrottleReason", "The driver's reason for a lower clock"),
    ("TunedOutcome", "Outcome of a configuration of an autotuned kernel"),
];

/// Codes that are not in an enumeration, with their meaning and remedy.
const OTHERS: [(&str, &str); 23] = [
    (
        "checks_hang",
        "The checks of the server's readiness do not end. Look at its disk and database.",
    ),
    (
        "compile_error",
        "A watched kernel does not compile. The message has the compiler's first error.",
    ),
    (
        "contract_needed",
        "No contract can be inferred from the file. Write one beside it, NAME.yaml: `warpgauge init FILE` begins it.",
    ),
    ("database_busy", "The database is locked by another process for too long. Try again."),
    (
        "database_damaged",
        "The database has content that this version cannot read. The server's log has the details.",
    ),
    ("database_failed", "An operation of the database failed. The server's log has the reason."),
    ("database_gone", "The files of the database were removed. Restart the server."),
    (
        "database_unreachable",
        "The database does not answer. Check its address and whether it runs.",
    ),
    ("file_too_large", "The file exceeds the size limit, which the message has."),
    (
        "files_unusable",
        "The server cannot use its data directory. Check that it exists and its permissions.",
    ),
    ("no_compiler", "No CUDA compiler was found. `warpgauge toolchain install` installs NVRTC."),
    ("not_a_file", "The name is that of no regular file."),
    ("not_readable", "The file cannot be read. Check its permissions."),
    (
        "not_text",
        "The file is empty or binary, and source code is expected. Check its name and its encoding, UTF-8.",
    ),
    ("other_language", "The file is in a language that is not evaluated."),
    (
        "paths_are_visible",
        "Kernels can find out which paths exist on the server. The warning has the setting that ends this.",
    ),
    (
        "read_only",
        "The data directory cannot be written. Check its permissions and how it is mounted.",
    ),
    ("runs_as_root", "The server runs as root. Give it a user."),
    (
        "symbolic_link",
        "The file is a symbolic link, which a watched folder does not follow. Put the file itself there.",
    ),
    ("too_large", "The answer to an agent's call exceeds its limit. Ask for a part of it."),
    ("too_many_calls", "An agent has too many calls running. Wait until one ends."),
    (
        "unknown_file",
        "The file is no kernel: its name ends in none of `.cu`, `.ptx`, `.cubin`, `.fatbin` and `.py`.",
    ),
    (
        "whole_program",
        "The file is a whole program, which cannot be run here. The message has the reason.",
    ),
];

/// Returns the meaning and the remedy of each code. Codes are in lower case. A code with several
/// meanings has a paragraph for each of them.
pub(super) fn meanings() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |code: &str, text: String| {
        let known = all.entry(code.to_ascii_lowercase()).or_default();
        if !known.is_empty() {
            known.push_str("\n\n");
        }
        known.push_str(&text);
    };
    for verdict in KernelVerdict::ALL {
        add(verdict.name(), format!("Verdict: {}.", verdict.summary()));
    }
    let failures = FailureCode::ALL.iter().map(|code| (code.as_str(), code.meaning()));
    let errors = ErrorCode::ALL.iter().map(|code| (code.as_str(), code.meaning()));
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (code, meaning) in failures.chain(errors) {
        let texts = known.entry(code).or_default();
        let meaning = meaning.filter(|meaning| !texts.contains(meaning));
        texts.extend(meaning);
    }
    for (code, remedy) in REMEDIES {
        known.entry(code).or_default().push(remedy);
    }
    for (code, texts) in known {
        add(code, texts.join(" "));
    }
    for cause in Cause::ALL {
        add(cause.code(), format!("{} Remedy: {}.", cause.meaning(), cause.remedy()));
    }
    let document: Value = serde_json::from_str(&openapi::full_json()).unwrap_or_default();
    for (schema, heading) in ENUMS {
        for (code, text) in values(&document["components"]["schemas"][schema]) {
            add(code, format!("{heading}: {text}"));
        }
    }
    for (code, text) in OTHERS {
        add(code, text.to_owned());
    }
    all
}

/// Returns the values of an enumeration with their descriptions. The description of the enumeration
/// lists both.
fn values(schema: &Value) -> impl Iterator<Item = (&str, &str)> {
    let text = schema["description"].as_str().unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_code_is_explained() {
        let all = meanings();
        for (code, text) in &all {
            assert!(text.ends_with('.'), "{code}: {text}");
        }
        assert!(all["zeros_pass"].contains("smaller absolute tolerance"), "{}", all["zeros_pass"]);
        assert!(all["correct"].starts_with("Verdict: every checked output"), "{}", all["correct"]);
        let known = FailureCode::ALL.iter().map(FailureCode::as_str);
        let known: BTreeSet<&str> =
            known.chain(ErrorCode::ALL.iter().map(ErrorCode::as_str)).collect();
        for (code, _) in REMEDIES {
            assert!(known.contains(code), "{code}");
        }
    }

    /// Suffixes of the names of enumerations whose values are codes.
    const ENDINGS: [&str; 5] = ["Code", "Reason", "Verdict", "Outcome", "Flag"];

    #[test]
    fn every_code_of_the_apis_document_is_explained() {
        let all = meanings();
        let document: Value = serde_json::from_str(&openapi::full_json()).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut found = 0;
        for (name, schema) in schemas {
            let Some(codes) = schema["enum"].as_array() else { continue };
            if !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                continue;
            }
            let listed = ENUMS.iter().any(|(listed, _)| listed == name) || name == "KernelVerdict";
            assert!(listed, "ENUMS lacks {name}");
            for code in codes {
                let code = code.as_str().unwrap();
                found += 1;
                assert!(all.contains_key(&code.to_ascii_lowercase()), "{name}: {code}");
            }
        }
        assert!(found > 100, "{found}");
        assert!(all["baseline_broken"].contains("the gate"), "{}", all["baseline_broken"]);
    }

    /// Prefixes of expressions in which a code in quotes follows.
    const MAKERS: [&str; 4] =
        ["FileRejection::new(", "Unready::new(", "JobBackendError::new(", "code: "];

    /// Returns the codes that follow one of [`MAKERS`] in a source, except in its tests.
    fn codes_in(source: &str) -> Vec<String> {
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let is_code = |text: &&str| {
            !text.is_empty() && text.chars().all(|one| one.is_ascii_lowercase() || one == '_')
        };
        let quoted = |rest: &str| {
            let text = rest.trim_start().strip_prefix('"')?.split('"').next()?;
            Some(text).filter(is_code).map(str::to_owned)
        };
        MAKERS.iter().flat_map(|maker| source.split(maker).skip(1).filter_map(quoted)).collect()
    }

    fn sources(folder: &Path, codes: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" && name != "examples" {
                sources(&path, codes);
            } else if name.ends_with(".rs") && !name.contains("test") && name != "examples.rs" {
                codes.extend(codes_in(&fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn every_code_in_the_sources_is_explained() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut codes = BTreeSet::new();
        for folder in ["src", "crates/core", "crates/run", "crates/server"] {
            sources(&root.join(folder), &mut codes);
        }
        for known in ["too_many_calls", "contract_needed", "no_compiler", "runs_as_root"] {
            assert!(codes.contains(known), "the search finds no {known}");
        }
        let all = meanings();
        let missing = codes.iter().filter(|code| !all.contains_key(*code)).collect::<Vec<_>>();
        assert!(missing.is_empty(), "OTHERS lacks {missing:?}");
    }
}
