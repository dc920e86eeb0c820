//! `cargo xtask test`: every test of the workspace.

use anyhow::Result;

use crate::product::{self, Profile};
use crate::shell;

/// Options of `test`.
#[derive(clap::Args)]
pub struct Options {
    /// Arguments for `cargo nextest run` (or `cargo test`, where nextest is not installed).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds what the tests start, fetches the compiler they need, and runs them.
pub fn run(options: &Options) -> Result<()> {
    // The tests start the program, which loads the emulator from beside its executable.
    let program = product::build(Profile::Dev)?;
    product::ensure_toolchain(&program)?;

    let mut runner = shell::cargo();
    let nextest = shell::find("cargo-nextest").is_some();
    if nextest {
        runner.args(["nextest", "run", "--workspace"]);
        // nextest does not run documentation tests.
        shell::run(shell::cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    } else {
        eprintln!("cargo-nextest is not installed: running `cargo test`, which is slower");
        runner.args(["test", "--workspace"]);
    }
    runner.args(&options.arguments);
    if !shell::has_postgres() {
        eprintln!(
            "\n*** PostgreSQL is not installed: the tests that keep their jobs in it DO NOT RUN.\n\
             *** Install its package (Debian: `postgresql`) to run them.\n"
        );
        if nextest {
            runner.args(["-E", "not test(postgres)"]);
        } else {
            runner.args(["--", "--skip", "postgres"]);
        }
    }
    shell::run(&mut runner)
}
