//! A device worker: the process that owns a CUDA context and runs jobs in it.
//!
//! `warpgauge __worker` is started by the server with a socket as its standard input
//! ([`session`]), or with `--socket` by a tool that watches it ([`traced`]); with `--probe` it lists devices and ends, with `--self-test` it checks itself on
//! the device at hand.

mod assigned;
mod audit;
mod buffers;
mod called;
mod captured;
mod changes;
mod compared;
mod counted;
mod counters;
mod emulated;
mod evaluate;
mod executor;
mod expected;
mod explained;
mod globals;
mod intact;
mod job;
mod link;
mod linted;
mod loaded;
mod maps;
mod monitored;
mod paired;
mod planning;
mod printed;
mod runner;
mod scrub;
mod sealed;
mod secret;
mod served;
mod session;
mod source;
mod traced;
mod trials;
mod turns;
mod verify;
mod writes;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::{Deserialize, Serialize};

pub use planning::PlanReport;

use super::selftest;
use warpgauge_device::{DriverChoice, GpuMonitor, loader};
use warpgauge_model::DeviceInfo;

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
    /// A library of ready functions that kernels can be compared with, or one that it needs.
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
    fn choice(&self) -> DriverChoice {
        match &self.emulator {
            Some(path) => DriverChoice::Emulator(path.clone()),
            None => DriverChoice::Cuda,
        }
    }

    fn run_dir(&self) -> PathBuf {
        self.run_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// What `--probe` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Devices found.
    pub devices: Vec<DeviceInfo>,
    /// Why there are none.
    pub error: Option<String>,
}

/// Runs the hidden subcommand with the arguments after `__worker`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match WorkerArgs::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    // Foreign code is behind every call: a panic here must end this process with a message, and
    // nothing else.
    let run = || match &args.images {
        Some(images) if args.self_test => {
            selftest::main(images, args.emulator.clone(), args.run_dir())
        }
        _ if args.probe => probe(&args),
        _ => match &args.plan {
            Some(chip) => planning::main(&args.cupti, chip),
            None => session::run(&args),
        },
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(ExitCode::from(101))
}

fn probe(args: &WorkerArgs) -> ExitCode {
    let report = match list_devices(args) {
        Ok(devices) => ProbeReport { devices, error: None },
        Err(error) => ProbeReport { devices: Vec::new(), error: Some(error) },
    };
    let failed = report.error.is_some();
    let written = serde_json::to_string(&report)
        .map_err(std::io::Error::from)
        .and_then(|line| writeln!(std::io::stdout(), "{line}"));
    if failed || written.is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn list_devices(args: &WorkerArgs) -> Result<Vec<DeviceInfo>, String> {
    let loaded =
        loader::load(&args.choice(), &args.run_dir()).map_err(|error| error.to_string())?;
    let count = loaded.driver.device_count().map_err(|error| error.to_string())?;
    if count == 0 {
        return Err("the CUDA driver finds no device".to_owned());
    }
    let info = |ordinal| {
        let mut info = loaded.driver.device_info(ordinal).map_err(|error| error.to_string())?;
        info.unmonitored = monitored::refusal(&GpuMonitor::of(&info));
        Ok(info)
    };
    (0..count).map(info).collect()
}
