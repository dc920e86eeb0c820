//! `cargo xtask bench`: figures of a running service, the emulator's counts beside a GPU's, and the
//! long crash test. The figures need no cargo at run time.

mod build;
mod counts;
mod crash;
mod gate;
mod load;
mod payload;
mod process;
mod report;
mod service;
mod stats;
mod triton;
mod verdict;

use anyhow::{Result, bail};

use crate::shell;

/// What to measure.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Latency, recovery, memory and throughput of `warpgauge serve`.
    Service(service::Options),
    /// Compare the emulator's counts with Nsight Compute's.
    Counts(counts::Options),
    /// The gate: the same counts in every run, a worse kernel caught; on a GPU also its error rates.
    ///
    /// Needs python3, taskset (util-linux) and NVRTC, which is fetched if need be. `counts` runs on
    /// the emulated device: 100 runs take about 5 minutes, 2 are enough to see it work. The other
    /// parts need a GPU; docs/gate.md has what they found. The build in release comes on top, unless
    /// `--program` names one.
    #[command(verbatim_doc_comment)]
    Gate(gate::Options),
    /// Kill servers and workers at random, and look for what was lost.
    ///
    /// Needs NVRTC, which is fetched if need be, and with `--postgres` PostgreSQL's programs; runs on
    /// the emulated device. A kill takes about 2 s, so that 200 take about 7 minutes; `--kills 4` is
    /// enough to see it work. The build for development comes on top.
    #[command(verbatim_doc_comment)]
    Crash(crash::Options),
    /// Accepting, claiming and listing jobs, on SQLite and on PostgreSQL.
    Store,
    /// A kernel in Triton beside the same one in CUDA: new, cached, and tuned.
    ///
    /// Needs Triton (`warpgauge toolchain install --with triton`).
    #[command(verbatim_doc_comment)]
    Triton(triton::Options),
    /// What a developer waits for: from a fresh clone to the demo's verdict and to the end of the
    /// tests, after a change in one file; and the size of the program.
    ///
    /// Fresh clones are built in `target/bench-build`. All of it takes about 20 minutes on 2 cores.
    #[command(verbatim_doc_comment)]
    Build(build::Options),
    /// Verdicts on useless and on honest kernels, with no tolerance given: `tests/verdict`.
    ///
    /// Needs NVRTC and PyTorch, which are fetched if need be. The build in release comes on top, unless
    /// `--program` names one.
    #[command(verbatim_doc_comment)]
    Verdict(verdict::Options),
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Service(options) => service::run(options),
        Command::Counts(options) => counts::run(options),
        Command::Gate(options) => gate::run(options),
        Command::Crash(options) => crash::run(options),
        Command::Store => store(),
        Command::Triton(options) => triton::run(options),
        Command::Build(options) => build::run(options),
        Command::Verdict(options) => verdict::run(options),
    }
}

/// Runs `benches/store.rs`, which prints the table of docs/store.md.
fn store() -> Result<()> {
    if !shell::has_postgres() {
        bail!("PostgreSQL is not installed; install its package (Debian: `postgresql`) first");
    }
    shell::run(shell::cargo().args(["bench", "--package", "warpgauge", "--bench", "store"]))
}
