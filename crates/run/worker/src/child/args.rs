//! Arguments of the hidden subcommand.

use std::path::PathBuf;

use clap::Parser;
use warpgauge_device::DriverChoice;

/// Arguments of the hidden subcommand.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true)]
pub struct WorkerArgs {
    /// CUDA ordinal of the device to hold.
    #[arg(long, default_value_t = 0)]
    pub device: u32,
    /// Use the emulator in this file in place of NVIDIA's driver.
    #[arg(long)]
    pub emulator: Option<PathBuf>,
    /// Directory for files that live as long as the server.
    #[arg(long)]
    pub run_dir: Option<PathBuf>,
    /// Connect to the server at this socket in place of standard input, take one job, and end. For
    /// tools that start this process and have plans of their own for its standard input.
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// Read hardware counters, and time nothing.
    #[arg(long)]
    pub counters: bool,
    /// Judge launches that other processes make, and run no stranger's code.
    #[arg(long, conflicts_with = "counters")]
    pub judge: bool,
    /// A library of CUPTI to try; the first that works is taken.
    #[arg(long, requires = "counters")]
    pub cupti: Vec<PathBuf>,
    /// Path of a library with functions to compare kernels with, or of a library that it needs.
    #[arg(long)]
    pub library: Vec<PathBuf>,
    /// Plan the collection of the metrics on standard input on this chip, print the plan and end.
    #[arg(long, requires = "counters")]
    pub plan: Option<String>,
    /// Print the devices as JSON and end.
    #[arg(long)]
    pub probe: bool,
    /// Check the worker on the device at hand, print a table and end.
    #[arg(long, requires = "images")]
    pub self_test: bool,
    /// Folder with the images that the self-test needs.
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
