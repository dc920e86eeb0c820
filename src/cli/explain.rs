//! `warpgauge explain`: prints the meaning of a code of a report or an error.

use std::collections::BTreeMap;

use super::CliError;
use super::args::ExplainArgs;
use super::terminal::Terminal;
use crate::exit::Exit;
use warpgauge_model::{ErrorCode, FailureCode, nearest};
use warpgauge_report::KernelVerdict;
use warpgauge_validate::WeaknessCode;

/// Remedies for codes whose meaning contains none.
const REMEDIES: [(&str, &str); 22] = [
    (
        "argument_count",
        "Compare the list of `io.args` with the kernel's parameters; `warpgauge init` writes a list.",
    ),
    (
        "compilation_failed",
        "The diagnostics name file and line. `warpgauge compile FILE` prints only them.",
    ),
    (
        "depends_on_history",
        "Initialise everything that the kernel reads, including shared memory and device variables.",
    ),
    (
        "different_arguments",
        "Omit `io.args` of the candidate: it then has the reference's arguments.",
    ),
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
    ("not_found", "`warpgauge jobs list --server URL` lists the jobs of the server."),
    (
        "out_of_memory",
        "Use smaller tensors, or a device with more memory: `warpgauge devices` shows it.",
    ),
    (
        "output_mismatch",
        "The report shows the first elements that differ, with their indices and the expected values.",
    ),
    ("queue_full", "Wait for the time in `Retry-After`, and send the request again."),
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
        "`warpgauge capabilities` lists missing parts; `warpgauge toolchain install` installs compilers.",
    ),
    (
        "wrong_for_other_seeds",
        "The kernel is correct for one input only: check for constants that depend on the contract's seed.",
    ),
];

pub(super) fn run(args: &ExplainArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let all = meanings();
    let Some(code) = &args.code else {
        let width = all.keys().map(|code| code.len()).max().unwrap_or_default();
        let lines = all.iter().map(|(code, text)| {
            let first = text.split_inclusive(". ").next().unwrap_or(text).trim();
            format!("{code:width$}  {first}\n")
        });
        terminal.print(&lines.collect::<String>())?;
        return Ok(Exit::Success);
    };
    let wanted = code.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    // The code of a failing reference kernel is the failure's code with a prefix.
    let plain = wanted.strip_prefix("reference_").filter(|_| !all.contains_key(&wanted));
    let Some(text) = all.get(plain.unwrap_or(&wanted)) else {
        let meant = nearest(&wanted, all.keys().map(String::as_str));
        let meant =
            meant.map_or_else(|| ".".to_owned(), |code| format!("; did you mean `{code}`?"));
        return Err(CliError::Usage(format!(
            "no code is called `{wanted}`{meant} `warpgauge explain` lists all codes"
        )));
    };
    let of = if plain.is_some() { "The contract's reference kernel failed. " } else { "" };
    terminal.print_line(&format!("{wanted}\n\n{of}{text}"))?;
    Ok(Exit::Success)
}

/// Returns the meaning and the remedy of each code.
fn meanings() -> BTreeMap<String, String> {
    let failures = FailureCode::ALL.iter().map(|code| (code.as_str(), code.meaning()));
    let errors = ErrorCode::ALL.iter().map(|code| (code.as_str(), code.meaning()));
    let verdicts = KernelVerdict::ALL.map(|verdict| (verdict.name(), verdict.summary()));
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (code, text) in verdicts {
        all.insert(code.to_owned(), format!("Verdict: {text}."));
    }
    for (code, text) in WeaknessCode::meanings() {
        all.insert(code, format!("Weakness of a contract: {text}"));
    }
    for (code, meaning) in failures.chain(errors) {
        let remedy = REMEDIES.iter().find(|(name, _)| *name == code).map(|(_, remedy)| *remedy);
        let parts = meaning.into_iter().chain(remedy).collect::<Vec<_>>();
        all.insert(code.to_owned(), parts.join(" "));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained() {
        let all = meanings();
        for (code, text) in &all {
            assert!(text.ends_with('.'), "{code}: {text}");
        }
        assert!(all["zeros_pass"].contains("smaller absolute tolerance"), "{}", all["zeros_pass"]);
        assert!(all["correct"].starts_with("Verdict: every checked output"), "{}", all["correct"]);
        for (code, _) in REMEDIES {
            assert!(all.contains_key(code), "{code}");
        }
    }
}
