//! Runs the crash test of the test suite with a larger number of kills.

use anyhow::{Result, bail};

use crate::product::{self, Profile};
use crate::shell;

/// Options of `bench crash`.
#[derive(clap::Args)]
pub struct Options {
    /// Number of processes to kill.
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// Seed of the random events. Another seed results in another sequence of events.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Store the jobs in a temporary PostgreSQL server. PostgreSQL must be installed.
    #[arg(long)]
    postgres: bool,
}

/// Runs the test. It prints the figures, and fails if a job was lost or ran twice.
pub fn run(options: &Options) -> Result<()> {
    if options.postgres && !shell::has_postgres() {
        bail!("PostgreSQL is not installed; install its package (Debian: `postgresql`) first");
    }
    let program = product::build(Profile::Test)?;
    product::ensure_toolchain(&program)?;
    let mut test = shell::cargo();
    let name = if options.postgres { "crash::on_postgres" } else { "crash::on_sqlite" };
    test.args(["test", "--workspace", "--test", "it", name, "--", "--nocapture"])
        .env("WARPGAUGE_CRASH_KILLS", options.kills.to_string())
        .env("WARPGAUGE_CRASH_SEED", options.seed.to_string());
    shell::run(&mut test)
}
