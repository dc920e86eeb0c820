//! `cargo xtask test`: runs all tests of the workspace, then prints which tests were skipped and
//! why.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::product::{self, Profile};
use crate::shell;

#[cfg(test)]
mod silent;
mod skipped;

/// Options of `test`.
#[derive(clap::Args)]
pub struct Options {
    /// Arguments for `cargo nextest run`, or for `cargo test` if nextest is not installed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Options of `skipped`.
#[derive(clap::Args)]
pub struct SkippedOptions {
    /// File that the tests wrote: the value of `WARPGAUGE_TESTS_SKIPPED`.
    file: PathBuf,
}

/// Builds the programs that the tests need, installs the compilers, and runs the tests.
pub fn run(options: &Options) -> Result<()> {
    // The tests start the program, which loads the emulator from the program's directory.
    let program = product::build(Profile::Test)?;
    product::ensure_toolchain(&program)?;
    for package in ["triton", "torch", "nvcc"] {
        product::ensure_package(&program, package)?;
    }
    let other_triton = product::other_triton()?;

    let mut runner = shell::cargo();
    if shell::find("cargo-nextest").is_some() {
        runner.args(["nextest", "run", "--workspace"]);
    } else {
        eprintln!("cargo-nextest is not installed: running `cargo test`, which is slower");
        runner.args(["test", "--workspace"]);
    }
    runner.args(&options.arguments);
    if options.arguments.iter().any(|argument| argument == "--no-run") {
        return shell::run(&mut runner);
    }
    // Many tests wait for processes, so more tests run in parallel than there are cores.
    const THREADS: &str = "NEXTEST_TEST_THREADS";
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        runner.env(THREADS, (cores + cores.div_ceil(2)).to_string());
    }
    let record = skipped::Record::new(&product::target_dir()?)?;
    if let Some(place) = other_triton {
        runner.env("WARPGAUGE_OTHER_TRITON", place);
    }
    // In CI, short kernels are tested for all architectures, elsewhere only for one.
    if std::env::var_os("CI").is_some() {
        runner.env("WARPGAUGE_TEST_ARCHITECTURES", "all");
    }
    let tested = shell::run(runner.env(skipped::VARIABLE, record.path()));
    let told = record.tell();
    tested?;
    told
}

/// Prints which tests were skipped in a run that another program started.
pub fn skipped(options: &SkippedOptions) -> Result<()> {
    let text = std::fs::read_to_string(&options.file);
    let text = text.with_context(|| format!("cannot read {}", options.file.display()))?;
    println!("{}", skipped::summary(&text)?);
    Ok(())
}
