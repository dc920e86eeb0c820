//! The crash test of the default test run, with more kills.

use anyhow::Result;

use crate::product::{self, Profile};
use crate::shell;

/// Options of `bench crash`.
#[derive(clap::Args)]
pub struct Options {
    /// Processes to kill.
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// Another seed is another course of events.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Runs the test, which prints the figures and fails if anything was lost or doubled.
pub fn run(options: &Options) -> Result<()> {
    let program = product::build(Profile::Dev)?;
    product::ensure_toolchain(&program)?;
    let mut test = shell::cargo();
    test.args(["test", "--package", "warpgauge", "--test", "it", "crash::", "--", "--nocapture"])
        .env("WARPGAUGE_CRASH_KILLS", options.kills.to_string())
        .env("WARPGAUGE_CRASH_SEED", options.seed.to_string());
    shell::run(&mut test)
}
