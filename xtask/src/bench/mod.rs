//! `cargo xtask bench`: measures a running service, the store, the build and verdicts; compares the
//! emulator's counts with a GPU's; and runs the long crash test. The measurements of a running
//! service do not call cargo if the program exists.

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

/// Measurement to run, with its options.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Latency, recovery, memory and throughput of `warpgauge serve`.
    Service(service::Options),
    /// Compare the emulator's counts with those of Nsight Compute.
    Counts(counts::Options),
    /// Check the gate: counts are equal in every run, and a slower kernel is found; on a GPU, also
    /// measure error rates.
    ///
    /// Needs python3, taskset (util-linux) and NVRTC, which is installed if absent. `counts` runs
    /// on the emulated device: 100 runs take about 5 minutes; 2 runs are enough for a first try.
    /// The other parts need a GPU; docs/gate.md lists their results. Without `--program`, the
    /// program is also built in release mode.
    #[command(verbatim_doc_comment)]
    Gate(gate::Options),
    /// Kill servers and workers at random, and check that no job is lost or runs twice.
    ///
    /// Needs NVRTC, which is installed if absent, and with `--postgres` PostgreSQL's programs. Runs
    /// on the emulated device. A kill takes about 2 s, so 200 kills take about 7 minutes;
    /// `--kills 4` is enough for a first try. The debug build of the program takes additional time.
    #[command(verbatim_doc_comment)]
    Crash(crash::Options),
    /// Time to accept, claim and list jobs, with SQLite and with PostgreSQL.
    Store,
    /// Compare a kernel in Triton with the same kernel in CUDA: new, cached, and tuned.
    ///
    /// Needs Triton (`warpgauge toolchain install --with triton`).
    #[command(verbatim_doc_comment)]
    Triton(triton::Options),
    /// Time from a fresh clone to the demo's verdict and to the end of the tests, time after a
    /// change in one file, and the size of the program.
    ///
    /// Fresh clones are built in `target/bench-build`. All parts take about 20 minutes on 2 cores.
    #[command(verbatim_doc_comment)]
    Build(build::Options),
    /// Check verdicts on useless and on honest kernels without a given tolerance (`tests/verdict`).
    ///
    /// Needs NVRTC and PyTorch, which are installed if absent. Without `--program`, the program is
    /// also built in release mode.
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
