//! Merging of defaults, file, environment and flags. The main type is [`Effective`].

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::settings::{self, SETTINGS, Setting, SettingKind};
use super::{Config, ConfigError, DEFAULT_TOML, DeviceSelection, Origin};

/// Maximum size of a configuration file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum length of the part of an invalid value that a message repeats, in characters.
const MAX_SHOWN: usize = 120;

/// Settings given on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CliOverrides {
    pub host: Option<String>,
    pub port: Option<String>,
    pub device: Option<String>,
    pub log_level: Option<String>,
}

impl CliOverrides {
    fn given(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        [
            ("--host", "server.host", &self.host),
            ("--port", "server.port", &self.port),
            ("--device", "devices.use", &self.device),
            ("--log-level", "log.level", &self.log_level),
        ]
        .into_iter()
        .filter_map(|(flag, key, value)| Some((flag, key, value.as_deref()?)))
    }
}

/// A configuration with the origin of each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    pub config: Config,
    /// Origin of every setting, by key.
    pub origins: BTreeMap<&'static str, Origin>,
    /// Log messages about variables that have no effect and may have been intended for this server.
    pub remarks: Vec<String>,
}

impl Config {
    /// Merges the embedded defaults, `file`, the environment from `env`, and the flags. In the
    /// result, `storage.data_dir` is absolute. An empty environment variable counts as unset.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] with the origin of the invalid value, the expected and the
    /// received value.
    pub fn load(
        file: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
        overrides: &CliOverrides,
    ) -> Result<Config, ConfigError> {
        Config::load_with_origins(file, env, overrides).map(|effective| effective.config)
    }

    /// Loads like [`Config::load`], and also returns the origin of each value.
    ///
    /// # Errors
    /// Returns the errors of [`Config::load`].
    pub fn load_with_origins(
        file: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
        overrides: &CliOverrides,
    ) -> Result<Effective, ConfigError> {
        let mut merged = Merged::defaults()?;
        if let Some(path) = file {
            merged.add_file(path)?;
        }
        for setting in SETTINGS {
            merged.add_environment(setting, env)?;
        }
        for (flag, key, text) in overrides.given() {
            if let Some(setting) = settings::find(key) {
                merged.add_text(setting, text, Origin::Flag(flag))?;
            }
        }
        merged.finish(env)
    }

    /// Returns the parsed `devices.use`.
    pub fn device_selection(&self) -> DeviceSelection {
        // `load` has checked the value; an invalid value in a configuration created by code means
        // `auto`.
        self.devices.selection.parse().unwrap_or(DeviceSelection::Auto)
    }

    pub fn data_dir(&self) -> &Path {
        Path::new(&self.storage.data_dir)
    }
}

#[derive(Default)]
struct Merged {
    values: BTreeMap<&'static str, (toml::Value, Origin)>,
}

impl Merged {
    fn defaults() -> Result<Self, ConfigError> {
        let mut merged = Self::default();
        merged.add_toml(DEFAULT_TOML, Path::new("default.toml"), Path::new(""))?;
        for (_, origin) in merged.values.values_mut() {
            *origin = Origin::Default;
        }
        Ok(merged)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let read = |source| ConfigError::Read { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(read)?;
        let mut text = String::new();
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(read)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(ConfigError::TooLarge { path: path.to_owned(), limit: MAX_FILE_BYTES });
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        self.add_toml(&text, path, directory)
    }

    fn add_toml(&mut self, text: &str, path: &Path, directory: &Path) -> Result<(), ConfigError> {
        let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            message: error.message().to_owned(),
        })?;
        let origin =
            |offset: usize| Origin::File { path: path.to_owned(), line: line_of(text, offset) };
        for (name, entry) in document.get_ref() {
            let table = name.get_ref().as_ref();
            let at = origin(name.span().start);
            if !settings::tables().contains(&table) {
                return Err(unknown(at, table, settings::tables()));
            }
            let DeValue::Table(entries) = entry.get_ref() else {
                let expected = format!("a table: write `[{table}]` and its settings below");
                return Err(wrong(at, table, expected, entry.get_ref().type_str().to_owned()));
            };
            for (key, value) in entries {
                let at = origin(key.span().start);
                let full = format!("{table}.{}", key.get_ref());
                let Some(setting) = settings::find(&full) else {
                    return Err(unknown(at, &full, keys_of(table)));
                };
                self.add_file_value(setting, value.get_ref(), at, directory)?;
            }
        }
        Ok(())
    }

    fn add_file_value(
        &mut self,
        setting: &'static Setting,
        value: &DeValue<'_>,
        origin: Origin,
        directory: &Path,
    ) -> Result<(), ConfigError> {
        let checked = plain(value).and_then(|value| setting.kind.check(value));
        let Some(mut checked) = checked else {
            let got = shown(setting, &describe(value));
            return Err(wrong(origin, setting.key, setting.kind.expected(), got));
        };
        if let (SettingKind::Path, toml::Value::String(text)) = (setting.kind, &mut checked)
            && !text.is_empty()
        {
            *text = directory.join(&*text).to_string_lossy().into_owned();
        }
        self.values.insert(setting.key, (checked, origin));
        Ok(())
    }

    /// Adds the variable of the setting, or else the variable of the Remote GPU Execution Service.
    fn add_environment(
        &mut self,
        setting: &'static Setting,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), ConfigError> {
        let given = |name: Option<&'static str>| {
            let name = name?;
            let text = env(name).filter(|text| !text.is_empty())?;
            Some((name, text))
        };
        if let Some((name, text)) = given(setting.env) {
            return self.add_text(setting, &text, Origin::Environment(name));
        }
        let Some((name, text)) = given(setting.service_env) else { return Ok(()) };
        if setting.kind != SettingKind::Keys {
            return self.add_text(setting, &text, Origin::Environment(name));
        }
        // That service has a single key, which may contain commas.
        let key = toml::Value::Array(vec![toml::Value::String(text)]);
        let Some(value) = setting.kind.check(key) else {
            let got = shown(setting, "");
            let origin = Origin::Environment(name);
            return Err(wrong(origin, setting.key, setting.kind.expected(), got));
        };
        self.values.insert(setting.key, (value, Origin::Environment(name)));
        Ok(())
    }

    fn add_text(
        &mut self,
        setting: &'static Setting,
        text: &str,
        origin: Origin,
    ) -> Result<(), ConfigError> {
        let Some(value) = setting.kind.parse(text) else {
            let got = shown(setting, &format!("{text:?}"));
            return Err(wrong(origin, setting.key, setting.kind.expected(), got));
        };
        self.values.insert(setting.key, (value, origin));
        Ok(())
    }

    fn finish(self, env: &dyn Fn(&str) -> Option<String>) -> Result<Effective, ConfigError> {
        let mut tables = toml::Table::new();
        let mut origins = BTreeMap::new();
        for (key, (value, origin)) in self.values {
            if let Some((table, name)) = key.split_once('.') {
                let entry = tables
                    .entry(table.to_owned())
                    .or_insert_with(|| toml::Value::Table(toml::Table::new()));
                if let toml::Value::Table(entries) = entry {
                    entries.insert(name.to_owned(), value);
                }
            }
            origins.insert(key, origin);
        }
        // Every value was checked against the table of settings. An error here would mean that the
        // table and `Config` disagree, which a test of the defaults detects.
        let mut config = Config::deserialize(tables).map_err(|error| ConfigError::Syntax {
            path: PathBuf::from("default.toml"),
            line: 1,
            message: error.message().to_owned(),
        })?;
        config.storage.data_dir = data_dir(&config.storage.data_dir, env)?;
        let remarks =
            unread_database(&config, env).into_iter().chain(unread_of_service(env)).collect();
        Ok(Effective { config, origins, remarks })
    }
}

/// Returns a remark if `DATABASE_URL` names a database that may be intended for warpgauge. Earlier
/// versions read this variable.
fn unread_database(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let other = env("DATABASE_URL")?;
    let possible = ["postgres://", "postgresql://"].iter().any(|scheme| other.starts_with(scheme));
    (possible && config.storage.database_url.is_empty()).then(|| {
        "DATABASE_URL is not read: jobs are stored in the data directory. If that database is \
         intended for warpgauge, set WARPGAUGE_DATABASE_URL or storage.database_url"
            .to_owned()
    })
}

/// Returns a remark for each variable of the Remote GPU Execution Service that has no effect.
fn unread_of_service(env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let given = |name: &str| env(name).filter(|text| !text.is_empty());
    let hidden = SETTINGS.iter().filter_map(|setting| {
        let (own, other) = (setting.env?, setting.service_env?);
        let unread = given(own)? != given(other)?;
        unread.then(|| format!("{other} is not read, because {own} is set; unset one of them"))
    });
    let without_meaning = [
        (
            "GPU_SERVICE_REQUIRE_AUTH",
            "the server requires a key if keys are configured (GPU_SERVICE_API_KEY, \
             WARPGAUGE_API_KEYS); without keys it listens only on loopback",
        ),
        ("GPU_SERVICE_DEBUG", "LOG_LEVEL=debug makes the log more detailed"),
    ];
    let without_meaning = without_meaning
        .into_iter()
        .filter(|(name, _)| given(name).is_some())
        .map(|(name, instead)| format!("{name} is not read: {instead}"));
    hidden.chain(without_meaning).collect()
}

/// Returns the data directory as an absolute path, by default according to the XDG base directory
/// specification.
fn data_dir(given: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, ConfigError> {
    let path = if given.is_empty() {
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
        base.ok_or(ConfigError::NoDataDir)?.join("warpgauge")
    } else {
        std::path::absolute(given)
            .map_err(|source| ConfigError::Read { path: PathBuf::from(given), source })?
    };
    Ok(path.to_string_lossy().into_owned())
}

/// Returns a parsed value without source spans. Returns `None` for a number that does not fit `i64`
/// or `f64`, and for dates and tables, which are not settings.
fn plain(value: &DeValue<'_>) -> Option<toml::Value> {
    Some(match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Boolean(value) => toml::Value::Boolean(*value),
        DeValue::Integer(digits) => {
            toml::Value::Integer(i64::from_str_radix(digits.as_str(), digits.radix()).ok()?)
        }
        DeValue::Float(digits) => toml::Value::Float(digits.as_str().parse().ok()?),
        DeValue::Array(items) => toml::Value::Array(
            items.iter().map(|item| plain(item.get_ref())).collect::<Option<_>>()?,
        ),
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

fn describe(value: &DeValue<'_>) -> String {
    match plain(value) {
        Some(value) => value.to_string(),
        None => format!("a value of type {}", value.type_str()),
    }
}

/// Returns the part of a value that a message may repeat: no secrets, and at most one line.
fn shown(setting: &Setting, text: &str) -> String {
    if matches!(setting.kind, SettingKind::Keys | SettingKind::Secret | SettingKind::DatabaseUrl) {
        return "something else (not shown, because it may contain keys)".to_owned();
    }
    let mut short: String = text.chars().take(MAX_SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn keys_of(table: &str) -> Vec<&'static str> {
    SETTINGS
        .iter()
        .map(|setting| setting.key)
        .filter(|key| key.split_once('.').is_some_and(|(of, _)| of == table))
        .collect()
}

fn unknown(origin: Origin, key: &str, known: Vec<&'static str>) -> ConfigError {
    // A key in the wrong table is as likely as a misspelt key.
    let elsewhere = SETTINGS.iter().map(|setting| setting.key).find(|candidate| {
        candidate.split_once('.').map(|(_, name)| name) == key.split_once('.').map(|(_, name)| name)
            && key.contains('.')
    });
    let suggestion = elsewhere.or_else(|| warpgauge_model::nearest(key, known.iter().copied()));
    ConfigError::UnknownKey {
        origin,
        key: key.chars().take(MAX_SHOWN).collect(),
        suggestion: suggestion.map(str::to_owned),
        known: known.into_iter().map(str::to_owned).collect(),
    }
}

fn wrong(origin: Origin, key: &str, expected: String, got: String) -> ConfigError {
    ConfigError::Value { origin, key: key.to_owned(), expected, got }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests;
