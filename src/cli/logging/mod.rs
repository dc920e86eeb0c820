//! Writes logs to standard error, as text or JSON.

mod json;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::CliError;
use warpgauge_config::{Effective, Origin};

/// Filter for the library that implements the Model Context Protocol, unless the user sets another.
/// The library logs several lines for each request, errors for each cancelled call, and whole
/// messages with their kernels.
const UNASKED: &str = "rmcp=off";

/// The log level of a command if the user sets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// The level in the configuration.
    Service,
    /// Only warnings and errors, because more output would hide the result of a single command.
    Command,
    /// Errors only.
    Quiet,
}

/// Starts logging. The program calls this function once, before anything is logged.
pub(super) fn start(effective: &Effective, verbosity: Verbosity) -> Result<(), CliError> {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    // If a filter sets several levels for a library, the last one applies.
    let filter = EnvFilter::try_new(format!("{UNASKED},{}", level(effective, verbosity)))
        .map_err(|error| CliError::Internal(format!("the log filter does not parse: {error}")))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match effective.config.log.format.as_str() {
        "json" => log.with_ansi(false).event_format(json::JsonLines).try_init(),
        _ => log.with_ansi(std::io::stderr().is_terminal() && !no_colour).try_init(),
    };
    started.map_err(|error| CliError::Internal(format!("could not start logging: {error}")))?;
    for remark in &effective.remarks {
        tracing::info!("{remark}");
    }
    Ok(())
}

fn level(effective: &Effective, verbosity: Verbosity) -> &str {
    let nobody_set_it = effective.origins.get("log.level") == Some(&Origin::Default);
    match (nobody_set_it, verbosity) {
        (true, Verbosity::Command) => "warn",
        (true, Verbosity::Quiet) => "error",
        _ => &effective.config.log.level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_config::{CliOverrides, Config};

    #[test]
    fn commands_are_quiet_unless_somebody_sets_a_level() {
        let env = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let unset = Config::load_with_origins(None, &env, &CliOverrides::default()).unwrap();
        assert_eq!(level(&unset, Verbosity::Service), "info");
        assert_eq!(level(&unset, Verbosity::Command), "warn");
        assert_eq!(level(&unset, Verbosity::Quiet), "error");
        let flags = CliOverrides { log_level: Some("debug".to_owned()), ..CliOverrides::default() };
        let set = Config::load_with_origins(None, &env, &flags).unwrap();
        for verbosity in [Verbosity::Service, Verbosity::Command, Verbosity::Quiet] {
            assert_eq!(level(&set, verbosity), "debug");
        }
    }
}
