//! `warpgauge openapi`.

use super::CliError;
use super::args::OpenapiArgs;
use super::terminal::Terminal;
use crate::exit::Exit;

pub(super) fn run(args: &OpenapiArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let mut text = match (args.client, args.yaml) {
        (true, false) => warpgauge_api::openapi::client_json(),
        (true, true) => to_yaml(&warpgauge_api::openapi::client_json())?,
        (false, false) => warpgauge_api::openapi::full_json(),
        (false, true) => warpgauge_api::openapi::full_yaml(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    terminal.print(&text)?;
    Ok(Exit::Success)
}

/// The same document as YAML. It is our own, so the plain YAML library will do.
fn to_yaml(json: &str) -> Result<String, CliError> {
    let broken = |error: String| CliError::Internal(format!("specification to YAML: {error}"));
    let value: serde_yaml::Value =
        serde_yaml::from_str(json).map_err(|error| broken(error.to_string()))?;
    serde_yaml::to_string(&value).map_err(|error| broken(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_keeps_order_and_values() {
        let yaml = to_yaml(r#"{"openapi": "3.0.0", "info": {"title": "x", "a": [1, null]}}"#);
        assert_eq!(yaml.unwrap(), "openapi: 3.0.0\ninfo:\n  title: x\n  a:\n  - 1\n  - null\n");
    }
}
