//! Arguments of the hidden subcommand `__worker`.

use std::path::PathBuf;

use clap::Parser;
use warpgauge_device::DriverChoice;

/// Arguments of the hidden subcommand `__worker`.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true)]
pub struct WorkerArgs {
    /// CUDA ordinal of the device to hold.
    #[arg(long, default_value_t = 0)]
    pub device: u32,
    /// Use the emulator in this file instead of NVIDIA's driver.
    #[arg(long)]
    pub emulator: Option<PathBuf>,
    /// Directory for files that are kept until the server ends.
    #[arg(long)]
    pub run_dir: Option<PathBuf>,
    /// Connect to the server at this socket instead of standard input, run one job, and exit. For
    /// tools that start this process and use its standard input themselves.
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// Read hardware counters; do not time launches.
    #[arg(long)]
    pub counters: bool,
    /// Judge launches that other processes make, and run no submitted code.
    #[arg(long, conflicts_with = "counters")]
    pub judge: bool,
    /// Path of a CUPTI library to try; the first that works is used.
    #[arg(long, requires = "counters")]
    pub cupti: Vec<PathBuf>,
    /// Path of a library with functions to compare kernels with, or of a library that such a
    /// library depends on.
    #[arg(long)]
    pub library: Vec<PathBuf>,
    /// Plan the collection of the metrics named on standard input for this chip, print the plan and
    /// exit.
    #[arg(long, requires = "counters")]
    pub plan: Option<String>,
    /// Print the devices as JSON and exit.
    #[arg(long)]
    pub probe: bool,
    /// Test the worker on device 0 or the emulator, print a table and exit.
    #[arg(long, requires = "images")]
    pub self_test: bool,
    /// Folder with the kernel images that the self-test needs.
    #[arg(long)]
    pub images: Option<PathBuf>,
}

impl WorkerArgs {
    pub(super) fn choice(&self) -> DriverChoice {
        match &self.emulator {
            Some(path) => DriverChoice::Emulator(path.clone()),
            None => DriverChoice::Cuda,
        }
    }

    pub(super) fn run_dir(&self) -> PathBuf {
        self.run_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}
