//! `cargo xtask ci`: runs the checks that are not tests.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::clients;
use crate::product::{self, Profile};
use crate::shell::{self, Steps};
use crate::support_ptx;
use crate::tidy;

/// Options of `ci`.
#[derive(clap::Args)]
pub struct Options {
    /// Skip the checks with generated clients, the fuzzer and the browser.
    #[arg(long)]
    no_clients: bool,
}

/// Options of `spec`.
#[derive(clap::Args)]
pub struct SpecOptions {
    /// Write the generated specification to `openapi/warpgauge.yaml`.
    #[arg(long)]
    bless: bool,
}

/// Runs all checks and prints the time of each.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("format", || shell::run(shell::cargo().args(["fmt", "--all", "--", "--check"])))?;
    steps.step("tidy", tidy::run)?;
    steps.step("lints", || {
        shell::run(shell::cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    steps.step("PostgreSQL", tests_had_postgres)?;
    steps.step("specifications", || spec(&SpecOptions { bless: false }))?;
    steps.step("workers' kernels", || support_ptx::run(&support_ptx::Options::to_check()))?;
    steps.step("builds", product::check_builds_are_shared)?;
    if shell::find("cargo-deny").is_some() {
        steps.step("licences and advisories", || {
            shell::run(shell::cargo().args(["deny", "check"]))
        })?;
    } else {
        eprintln!("\ncargo-deny is not installed: licences and advisories are not checked here");
    }
    if !options.no_clients {
        steps.step("real clients", || clients::run(&clients::Options::all()))?;
    }
    Ok(())
}

/// Fails if PostgreSQL is not installed. `cargo xtask test` skips the tests that need it, but a
/// change is merged only if these tests ran.
fn tests_had_postgres() -> Result<()> {
    if !shell::has_postgres() {
        bail!(
            "PostgreSQL is not installed; install its package (Debian: `postgresql`) and run \
             `cargo xtask test` again"
        );
    }
    Ok(())
}

/// Compares the published specification and schema with the output that the types generate, or
/// rewrites the files.
pub fn spec(options: &SpecOptions) -> Result<()> {
    let program = product::build(Profile::Test)?;
    let generated = shell::capture(Command::new(&program).args(["openapi", "--yaml"]))?;
    let path = shell::root().join("openapi/warpgauge.yaml");
    if options.bless {
        fs::write(&path, generated).with_context(|| format!("cannot write {}", path.display()))?;
    } else {
        compare(&path, &generated)?;
    }
    gate_schema(options.bless)
}

/// Checks whether the published schema of gate reports matches the types, or writes the schema. A
/// test of the crate does both.
fn gate_schema(bless: bool) -> Result<()> {
    let mut test = shell::cargo();
    test.args(["test", "--quiet", "--package", "warpgauge-gate", "--lib", "the_published_schema"]);
    if bless {
        test.env("WARPGAUGE_UPDATE_SPEC", "1");
    }
    shell::run(&mut test)
}

fn compare(path: &Path, generated: &str) -> Result<()> {
    let stored =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    if stored.trim_end() == generated.trim_end() {
        return Ok(());
    }
    let line = 1 + stored.lines().zip(generated.lines()).take_while(|(a, b)| a == b).count();
    bail!(
        "{} differs from what the program generates, first at line {line}:\n  stored:    {}\n  \
         generated: {}\nrun `cargo xtask spec --bless` and review the difference",
        path.display(),
        stored.lines().nth(line - 1).unwrap_or("(end of file)"),
        generated.lines().nth(line - 1).unwrap_or("(end of file)"),
    );
}
