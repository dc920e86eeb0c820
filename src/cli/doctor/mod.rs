//! `warpgauge doctor`: reports which components are present and which are missing, and how to
//! install them.

mod machine;
mod page;
mod tools;
mod trial;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::terminal::Terminal;
use super::{CliError, json};
use crate::exit::Exit;
use warpgauge_compile::toolchain;
use warpgauge_config::Config;
use warpgauge_engine::toolchain_search;

#[derive(Debug, Args)]
pub(in crate::cli) struct DoctorArgs {
    /// Print JSON: `ready`, `next`, and each check with `state` and `remedy`
    #[arg(long)]
    pub json: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The component is present and works.
    Ok,
    /// The component is absent. Evaluations run without it.
    Absent,
    /// Evaluations run, but with a restriction.
    Weak,
    /// No evaluation can run without the component.
    Fault,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Check {
    /// Stable name, such as `nvrtc`.
    name: &'static str,
    state: State,
    /// Version and location of the component, or the problem.
    found: String,
    /// Purpose of the component.
    purpose: &'static str,
    /// Command or step that solves the problem; absent if there is no problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, purpose: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), purpose, remedy: None }
    }

    /// Returns a check that found a fault or a restriction, with a remedy.
    fn lacks(
        name: &'static str,
        purpose: &'static str,
        state: State,
        (found, remedy): (impl Into<String>, impl Into<String>),
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { name, state, found: found.into(), purpose, remedy }
    }
}

/// The results of all checks.
#[derive(Debug, Serialize)]
struct Diagnosis {
    /// Whether evaluations run. This is shown by a small kernel that was evaluated and is correct.
    ready: bool,
    /// First step towards working evaluations. Absent if evaluations run, or if no remedy is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    checks: Vec<Check>,
}

pub(super) fn run(
    args: &DoctorArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let found = toolchain::discover(&toolchain_search(config));
    let mut checks = vec![machine::driver()];
    let (trial, gpu) = trial::run(config)?;
    checks.push(gpu);
    checks.push(machine::emulator(config));
    checks.extend(tools::compilers(&found));
    checks.extend(tools::profilers(&found, config));
    checks.extend(machine::sandbox());
    let data_dir = PathBuf::from(config.data_dir());
    checks.push(machine::data_directory(&data_dir));
    checks.push(machine::space(&data_dir));
    checks.push(trial);
    let diagnosis = conclude(checks);
    if args.json {
        terminal.print_line(&json::text("diagnosis", &diagnosis)?)?;
    } else {
        terminal.print(&page::of(&diagnosis, terminal.style()))?;
    }
    Ok(if diagnosis.ready { Exit::Success } else { Exit::Environment })
}

fn conclude(checks: Vec<Check>) -> Diagnosis {
    let ready = checks.iter().any(|check| check.name == trial::NAME && check.state == State::Ok);
    // A fault is listed before the faults that follow from it.
    let fault = checks.iter().find(|check| check.state == State::Fault);
    let next = fault.filter(|_| !ready).and_then(|check| check.remedy.clone());
    Diagnosis { ready, next, checks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::Style;

    fn checks(trial: State) -> Vec<Check> {
        vec![
            Check::lacks("driver", "p", State::Absent, ("no driver", "get one")),
            Check::lacks(
                "nvrtc",
                "compiles",
                State::Fault,
                ("not found", "warpgauge toolchain install"),
            ),
            Check {
                state: trial,
                ..Check::lacks(trial::NAME, "p", State::Fault, ("no", "see above"))
            },
        ]
    }

    #[test]
    fn the_first_fault_is_what_to_mend() {
        let sick = conclude(checks(State::Fault));
        assert_eq!(
            (sick.ready, sick.next.as_deref()),
            (false, Some("warpgauge toolchain install"))
        );
        let text = page::of(&sick, Style::default());
        assert!(text.contains("absent  driver"), "{text}");
        assert!(text.contains("FAULT   nvrtc"), "{text}");
        assert!(text.contains("-> warpgauge toolchain install\n"), "{text}");
        assert!(text.ends_with("not ready: first `warpgauge toolchain install`\n"), "{text}");
        let well = conclude(checks(State::Ok));
        assert_eq!((well.ready, well.next), (true, None));
    }

    #[test]
    fn checks_cannot_steer_the_terminal() {
        let found = conclude(vec![Check::ok("python", "p", "/a\x1b[2J\nb")]);
        let text = page::of(&found, Style::default());
        assert!(!text.contains('\x1b') && !text.contains("\nb"), "{text}");
    }
}
