//! `warpgauge toolchain`: the one place where the command line asks for compilers.

use super::CliError;
use super::args::{ToolchainCommand, ToolchainInstall};
use super::terminal::Terminal;
use crate::config::Config;
use crate::exit::Exit;
use crate::pipeline::ServiceError;

pub(super) fn run(
    command: &ToolchainCommand,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let text = match command {
        ToolchainCommand::Show => show(config)?,
        ToolchainCommand::Install(args) => install(config, args)?,
    };
    terminal.print(&text)?;
    Ok(Exit::Success)
}

/// What was found, a line each, best first.
fn show(_config: &Config) -> Result<String, CliError> {
    Err(not_built())
}

/// Installs into the data directory; says what is there now.
fn install(_config: &Config, _args: &ToolchainInstall) -> Result<String, CliError> {
    Err(not_built())
}

fn not_built() -> CliError {
    CliError::Service(ServiceError::Unavailable(
        "this build of warpgauge has no toolchain discovery".to_owned(),
    ))
}
