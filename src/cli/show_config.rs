//! `warpgauge config`.

use super::CliError;
use super::terminal::Terminal;
use crate::config::settings::{Kind, SETTINGS};
use crate::config::{DEFAULT_TOML, Effective, Origin};
use crate::exit::Exit;

/// Prints every setting with its origin. The output is a configuration file that means the same,
/// but for keys and secrets, which it does not tell.
pub(super) fn run(effective: &Effective, terminal: Terminal) -> Result<Exit, CliError> {
    terminal.print(&listing(effective)?)?;
    Ok(Exit::Success)
}

/// Prints the commented defaults.
pub(super) fn defaults(terminal: Terminal) -> Result<Exit, CliError> {
    terminal.print(DEFAULT_TOML)?;
    Ok(Exit::Success)
}

fn listing(effective: &Effective) -> Result<String, CliError> {
    let values = toml::Value::try_from(&effective.config)
        .map_err(|error| CliError::Internal(format!("configuration to TOML: {error}")))?;
    let mut text = String::new();
    let mut current = "";
    for setting in SETTINGS {
        let Some((table, name)) = setting.key.split_once('.') else {
            continue;
        };
        if table != current {
            text.push_str(if current.is_empty() { "[" } else { "\n[" });
            text.push_str(&format!("{table}]\n"));
            current = table;
        }
        let value = values.get(table).and_then(|entries| entries.get(name));
        let line = match (setting.kind, value) {
            (Kind::Keys, Some(toml::Value::Array(keys))) if !keys.is_empty() => {
                format!("# {name}: {} given, not shown", keys.len())
            }
            (Kind::Secret, Some(toml::Value::String(secret))) if !secret.is_empty() => {
                format!("# {name}: given, not shown")
            }
            (_, Some(value)) => format!("{name} = {value}"),
            (_, None) => continue,
        };
        let origin = effective.origins.get(setting.key).unwrap_or(&Origin::Default);
        text.push_str(&format!("{line:<40} # {origin}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CliOverrides, Config};

    fn effective(vars: &[(&str, &str)]) -> Effective {
        let env = |name: &str| {
            let given = vars.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
            given.or_else(|| (name == "HOME").then(|| "/h".to_owned()))
        };
        Config::load_with_origins(None, &env, &CliOverrides::default()).unwrap()
    }

    #[test]
    fn the_listing_is_a_configuration_that_means_the_same() {
        let effective = effective(&[("PORT", "9001")]);
        let text = listing(&effective).unwrap();
        let again: Config = toml::from_str(&text).unwrap();
        assert_eq!(again, effective.config);
        let line = text.lines().find(|line| line.starts_with("port")).unwrap();
        assert_eq!(line, format!("{:<40} # environment variable PORT", "port = 9001"));
    }

    #[test]
    fn keys_are_not_shown() {
        let secret = ("WARPGAUGE_WEBHOOK_SECRET", "sesame-and-more-of-it");
        let given = effective(&[("WARPGAUGE_API_KEYS", "sesame,open"), secret]);
        let text = listing(&given).unwrap();
        assert!(!text.contains("sesame"), "{text}");
        assert!(text.contains("# webhook_secret: given, not shown"), "{text}");
        assert!(text.contains("# api_keys: 2 given, not shown"), "{text}");
    }
}
