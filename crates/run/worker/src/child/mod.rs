//! A device worker: the process that owns a CUDA context and runs jobs in it.
//!
//! The server starts `warpgauge __worker` with a socket as its standard input ([`session`]). A tool
//! that watches the worker starts it with `--socket` ([`profile`]). With `--probe` the process
//! lists devices and exits. With `--self-test` it tests itself on device 0 or the emulator.
//!
//! - `session`: the worker's life: greeting, built-in kernels, jobs, end; `args`: its command line
//! - `job`: runs one job and describes its end; `run`: the state that every task uses
//! - `tasks/`: evaluation, paired timing, sealed launches, launches for a judge
//! - `profile/`: untimed runs for counters, monitoring and traces
//! - `verify/`: checks of a launch's results: comparison, guard bands, references
//! - `timing/`: timed launches: warm-up, batches, inputs, load
//! - `launch/`: a program, loaded and bound to buffers
//! - `device/`: the device, all state that outlives a job, and the removal of a job's data
//! - `memory/`: buffers, their content, variables of modules
//! - `io/`: the socket to the server, and the output of kernels
//! - `failure`: failures of a job; `secret`: random choices; `emulator_limits`: failures due to
//!   limits of the emulated device; `places`: names of arguments in messages

mod args;
mod device;
mod emulator_limits;
mod failure;
mod io;
mod job;
mod launch;
mod memory;
mod places;
mod profile;
mod run;
mod secret;
mod session;
mod tasks;
mod timing;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

pub use args::WorkerArgs;

use super::selftest;
use crate::protocol::ProbeReport;
use warpgauge_device::{GpuMonitor, loader};
use warpgauge_model::DeviceInfo;

/// Runs the hidden subcommand with the arguments after `__worker`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match WorkerArgs::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    // Every call may run foreign code. A panic must end only this process, with a message.
    let run = || match &args.images {
        Some(images) if args.self_test => {
            selftest::main(images, args.emulator.clone(), args.run_dir())
        }
        _ if args.probe => probe(&args),
        _ => match &args.plan {
            Some(chip) => profile::plan::main(&args.cupti, chip),
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
        info.unmonitored = device::executor::monitoring_refusal(&GpuMonitor::of(&info));
        Ok(info)
    };
    (0..count).map(info).collect()
}
