//! The command line of the gate.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::args::{Target, seconds};
use crate::exit::GateExit;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum GateCommand {
    /// Compare every case of a suite with a baseline: exit code 0 if none got slower
    #[command(after_help = after_help())]
    Run(RunArgs),
    /// Measure each case of a suite against itself: how finely it can be judged here
    #[command(after_help = "Examples:\n  \
        warpgauge gate calibrate suite.yaml\n  \
        warpgauge gate calibrate suite.yaml --server http://gpu-host:8000 --runs 10\n\n\
        Writes SUITE.calibration.json beside the suite, to be kept in the repository. It holds for \
        one model of device, one driver and one method of timing; `gate run` refuses it elsewhere.")]
    Calibrate(CalibrateArgs),
    /// Print the JSON Schema of the report
    Schema,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    /// The suite: cases with their contracts and policies (YAML)
    pub suite: PathBuf,
    /// What to compare with: a git ref of the suite's repository, a directory that stands for
    /// the suite's, or `stored:NAME`, a baseline that the server (or this machine) keeps
    #[arg(long, value_name = "REF|DIR|stored:NAME")]
    pub baseline: String,
    /// If the verdict is PASS, keep the candidate as the baseline of this name; as
    /// `warpgauge baselines promote`
    #[arg(long, value_name = "NAME")]
    pub promote: Option<String>,
    /// Write the report into this directory, in every format
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Measure cases whose machine code and launch did not change, too
    #[arg(long)]
    pub measure_identical: bool,
    /// How long to wait for a server that is full, restarting or away, each time, 0 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = seconds)]
    pub patience: f64,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CalibrateArgs {
    /// The suite
    pub suite: PathBuf,
    /// Blocks of each run
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(16..=1024))]
    pub blocks: u32,
    /// Runs of each case, each in processes of its own
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(3..=100))]
    pub runs: u32,
    /// How long to wait for a server that is full, restarting or away, each time, 0 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = seconds)]
    pub patience: f64,
    /// Print what was written, as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: Target,
}

fn after_help() -> String {
    let mut text = String::from(
        "Examples:\n  \
         warpgauge gate run suite.yaml --baseline origin/main\n  \
         warpgauge gate run suite.yaml --baseline HEAD~1 --report out/\n  \
         warpgauge gate run suite.yaml --baseline ../old --server http://gpu-host:8000\n  \
         warpgauge gate run suite.yaml --baseline stored:main --server http://gpu-host:8000\n  \
         warpgauge gate run suite.yaml --baseline HEAD~1 --promote main   # on the main branch\n  \
         warpgauge --device emulator gate run suite.yaml --baseline main   # exact counts\n\n\
         Exit codes:\n",
    );
    for (exit, meaning) in GateExit::TABLE {
        text.push_str(&format!("  {:>3}  {meaning}\n", exit.code()));
    }
    text
}
