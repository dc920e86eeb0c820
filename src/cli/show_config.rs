//! `warpgauge config`: prints the configuration and the origin of each value.

use serde_json::{Map, Value, json};

use super::args::ConfigArgs;
use super::terminal::Terminal;
use super::{CliError, json};
use crate::exit::Exit;
use warpgauge_config::settings::{SETTINGS, Setting, SettingKind};
use warpgauge_config::{DEFAULT_TOML, Effective, Origin};

/// Prints every setting with its origin. The output is a valid configuration file with the same
/// effect, except that keys and secrets are omitted.
pub(super) fn run(
    args: &ConfigArgs,
    effective: &Effective,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    if args.json {
        let settings = json::tree("configuration", &effective.config)?;
        terminal.print_line(&settings_json(effective, &settings).to_string())?;
    } else {
        terminal.print(&listing(effective)?)?;
    }
    Ok(Exit::Success)
}

/// Returns every setting by name. For keys it returns their number, and for a secret whether it is
/// set.
fn settings_json(effective: &Effective, values: &Value) -> Value {
    let entry = |setting: &Setting| {
        let (table, name) = setting.key.split_once('.')?;
        let value = values.get(table)?.get(name).cloned().unwrap_or(Value::Null);
        let origin = effective.origins.get(setting.key).unwrap_or(&Origin::Default).to_string();
        let shown = match (setting.kind, &value) {
            (SettingKind::Keys, Value::Array(keys)) => {
                json!({"given": keys.len(), "origin": origin})
            }
            (SettingKind::Secret | SettingKind::DatabaseUrl, Value::String(secret)) => {
                json!({"given": !secret.is_empty(), "origin": origin})
            }
            (SettingKind::Keys | SettingKind::Secret | SettingKind::DatabaseUrl, _) => {
                json!({"given": false, "origin": origin})
            }
            _ => json!({"value": value, "origin": origin}),
        };
        Some((setting.key.to_owned(), shown))
    };
    SETTINGS.iter().filter_map(entry).collect::<Map<_, _>>().into()
}

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
            (SettingKind::Keys, Some(toml::Value::Array(keys))) if !keys.is_empty() => {
                format!("# {name}: {} given, not shown", keys.len())
            }
            (SettingKind::Secret | SettingKind::DatabaseUrl, Some(toml::Value::String(secret)))
                if !secret.is_empty() =>
            {
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
    use warpgauge_config::{CliOverrides, Config};

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

    #[test]
    fn json_has_every_setting_and_its_origin_but_no_keys() {
        let secret = ("WARPGAUGE_WEBHOOK_SECRET", "sesame-and-more-of-it");
        let keys = ("WARPGAUGE_API_KEYS", "sesame,open");
        let database = ("WARPGAUGE_DATABASE_URL", "postgres://me:sesame@localhost/db");
        let effective = effective(&[("PORT", "9001"), keys, secret, database]);
        let values = json::tree("configuration", &effective.config).unwrap();
        let settings = settings_json(&effective, &values);
        assert_eq!(settings.as_object().unwrap().len(), SETTINGS.len());
        let port = json!({"value": 9001, "origin": "environment variable PORT"});
        assert_eq!(settings["server.port"], port);
        assert_eq!(settings["server.api_keys"]["given"], 2);
        assert_eq!(settings["server.webhook_secret"]["given"], true);
        assert_eq!(settings["storage.data_dir"]["origin"], "default");
        assert!(!settings.to_string().contains("sesame"));
    }
}
