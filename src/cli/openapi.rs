//! `warpgauge openapi`: prints the OpenAPI specification.

use warpgauge_api::openapi;

use super::CliError;
use super::args::OpenapiArgs;
use super::terminal::Terminal;
use crate::exit::Exit;

pub(super) fn run(args: &OpenapiArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let mut text = match (args.client, args.yaml) {
        (true, false) => openapi::client_json(),
        (true, true) => openapi::client_yaml(),
        (false, false) => openapi::full_json(),
        (false, true) => openapi::full_yaml(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    terminal.print(&text)?;
    Ok(Exit::Success)
}
