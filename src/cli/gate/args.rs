//! Types into which clap parses the command line of the gate.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::args::{Target, seconds};
use crate::exit::GateExit;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum GateCommand {
    /// Compare every case of a suite with a baseline; exit code 0 if none is slower
    #[command(after_help = after_help())]
    Run(RunArgs),
    /// Measure each case of a suite against itself, to find the smallest detectable differences on
    /// this machine
    #[command(after_help = "Examples:\n  \
        warpgauge gate calibrate suite.yaml\n  \
        warpgauge gate calibrate suite.yaml --server http://gpu-host:8000 --runs 10\n\n\
        Writes SUITE.calibration.json beside the suite, which belongs in the repository. It is valid for \
        one device model, one driver and one timing method; `gate run` rejects it elsewhere.")]
    Calibrate(CalibrateArgs),
    /// Print the JSON Schema of the report
    Schema,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    /// Suite: cases with their contracts and policies (YAML)
    pub suite: PathBuf,
    /// Baseline: a git ref of the suite's repository, a directory in place of the suite's, or `stored:NAME` for a
    /// baseline that the server (or this machine) stores
    #[arg(long, value_name = "REF|DIR|stored:NAME")]
    pub baseline: String,
    /// Name of the baseline that the candidate replaces if the verdict is PASS, as with `warpgauge
    /// baselines promote`
    #[arg(long, value_name = "NAME")]
    pub promote: Option<String>,
    /// Directory for the report, in every format
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Also measure cases whose machine code and launch are identical to the baseline's
    #[arg(long)]
    pub measure_identical: bool,
    /// Seconds for which to retry, each time, while the server is full, restarts or cannot be
    /// reached, 0 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, allow_negative_numbers = true, value_parser = seconds)]
    pub patience: f64,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CalibrateArgs {
    /// Suite (YAML)
    pub suite: PathBuf,
    /// Number of blocks per run
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(16..=1024))]
    pub blocks: u32,
    /// Number of runs of each case, each in fresh processes
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(3..=100))]
    pub runs: u32,
    /// Seconds for which to retry, each time, while the server is full, restarts or cannot be
    /// reached, 0 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, allow_negative_numbers = true, value_parser = seconds)]
    pub patience: f64,
    /// Print the calibration as JSON
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
