//! Compares the counts of the emulator with the hardware counters of a GPU.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::product::{self, Profile};
use crate::shell;

/// Options of `bench counts`.
#[derive(clap::Args)]
pub struct Options {
    /// CSV export of the raw page of an Nsight Compute report, recorded for `compare_counts` on a
    /// GPU (its source describes how). Without this option, only the emulator's counts are listed.
    #[arg(long)]
    ncu: Option<PathBuf>,
}

/// Builds the emulator and `compare_counts`. Runs `compare_counts`, and prints the tables.
pub fn run(options: &Options) -> Result<()> {
    shell::run(shell::cargo().args([
        "build",
        "--release",
        "-p",
        "warpgauge-emulator",
        "-p",
        "warpgauge-emulator-research",
        "--lib",
        "--bin",
        "compare_counts",
    ]))?;
    let built = product::profile_dir(Profile::Release)?;
    let mut compare = Command::new(built.join("compare_counts"));
    compare.arg("--emulator").arg(built.join("libwarpgauge_emulator.so"));
    if let Some(file) = &options.ncu {
        compare.arg("--ncu").arg(file);
    }
    shell::run(&mut compare)
}
