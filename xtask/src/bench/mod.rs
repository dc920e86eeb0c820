//! `cargo xtask bench`: figures of a running service. Needs no cargo at run time.

mod load;
mod payload;
mod process;
mod report;
mod service;
mod stats;

use anyhow::Result;

/// What to measure.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Latency, recovery, memory and throughput of `warpgauge serve`.
    Service(service::Options),
}

/// Runs a benchmark.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Service(options) => service::run(options),
    }
}
