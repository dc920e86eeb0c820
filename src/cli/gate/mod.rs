//! `warpgauge gate`: reads files and commits. [`warpgauge_gate`] contains the rules that apply to
//! them.

mod args;
mod baseline;
mod calibrate;
pub(super) mod cases;
mod error;
pub(super) mod git;
mod kernel_places;
mod progress;
mod request;
mod run;
pub(super) mod suite_file;

pub(super) use args::GateCommand;
pub use error::GateError;

use super::CliError;
use super::terminal::Terminal;
use crate::exit::GateExit;
use warpgauge_config::Config;

/// Runs a subcommand of the gate.
pub(super) fn run(
    command: &GateCommand,
    config: &Config,
    terminal: Terminal,
) -> Result<GateExit, CliError> {
    match command {
        GateCommand::Run(args) => run::run(args, config, terminal),
        GateCommand::Calibrate(args) => calibrate::run(args, config, terminal),
        GateCommand::Schema => {
            let schema = warpgauge_gate::report::schema_json()
                .map_err(|error| CliError::Internal(format!("the schema to JSON: {error}")))?;
            terminal.print(&schema)?;
            Ok(GateExit::Pass)
        }
    }
}
