//! Parsing and checking of values of settings. The main type is [`DeviceSelection`].

use std::str::FromStr;

use super::settings::SettingKind;
use warpgauge_model::HostPattern;

/// Devices that evaluations may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelection {
    /// Every GPU, or the emulator if there is none.
    Auto,
    Emulator,
    /// The GPUs with these CUDA ordinals, in this order, without repetition.
    Ordinals(Vec<u32>),
}

/// Maximum number of ordinals in a selection.
const MAX_ORDINALS: usize = 64;

impl FromStr for DeviceSelection {
    type Err = String;

    /// Parses `auto`, `emulator`, or ordinals separated by commas. The error describes valid
    /// values.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "`auto`, `emulator`, or different device ordinals such as `0,1`".to_owned();
        match text.trim() {
            "auto" => return Ok(DeviceSelection::Auto),
            "emulator" => return Ok(DeviceSelection::Emulator),
            _ => {}
        }
        let mut ordinals = Vec::new();
        for part in text.split(',') {
            let ordinal: u32 = part.trim().parse().map_err(|_| expected())?;
            if ordinals.contains(&ordinal) || ordinals.len() == MAX_ORDINALS {
                return Err(expected());
            }
            ordinals.push(ordinal);
        }
        Ok(DeviceSelection::Ordinals(ordinals))
    }
}

/// Maximum length of a setting's text, in bytes.
/// Maximum length of the server's public address, bytes.
const MAX_WEB_ADDRESS: usize = 200;

const MAX_TEXT_BYTES: usize = 4_096;

const MAX_KEYS: usize = 10_000;

/// Maximum number of hosts in a list.
const MAX_HOSTS: usize = 1_000;

/// Minimum length of a secret, in characters.
const MIN_SECRET: usize = 16;

impl SettingKind {
    /// Returns a description of valid values, for messages.
    pub fn expected(self) -> String {
        match self {
            SettingKind::Integer(min, max) => format!("a whole number from {min} to {max}"),
            SettingKind::Number(min, max) => format!("a number from {min} to {max}"),
            SettingKind::Boolean => "true or false".to_owned(),
            SettingKind::Text => format!("text of at most {MAX_TEXT_BYTES} bytes"),
            SettingKind::Host => "a host name or address".to_owned(),
            SettingKind::Keys => {
                format!("a list of at most {MAX_KEYS} keys, each of 1 to 512 printable characters")
            }
            SettingKind::DatabaseUrl => "empty, or postgres://user:password@host/name".to_owned(),
            SettingKind::Secret => {
                "empty, or a secret of 16 to 512 printable characters".to_owned()
            }
            SettingKind::WebAddress => format!(
                "empty, or a URL of at most {MAX_WEB_ADDRESS} bytes such as \
                 \"https://gpu.example.org\", without login, query and fragment"
            ),
            SettingKind::Hosts => format!(
                "a list of at most {MAX_HOSTS} hosts such as \"ci.example.org\", \
                 \"*.example.org\" or \"ci.example.org:8443\""
            ),
            SettingKind::Devices => {
                "`auto`, `emulator`, or different device ordinals such as `0,1`".to_owned()
            }
            SettingKind::Choice(words) => format!("one of {}", words.join(", ")),
            SettingKind::LogFilter => {
                "off, error, warn, info, debug or trace, or a filter such as \
                                `info,warpgauge=debug`"
                    .to_owned()
            }
            SettingKind::Path => {
                "a path; only shells expand `~`, so write the whole path".to_owned()
            }
        }
    }

    /// Parses a value from an environment variable or a flag. Returns `None` if it is invalid.
    pub(super) fn parse(self, text: &str) -> Option<toml::Value> {
        let value = match self {
            SettingKind::Integer(..) => toml::Value::Integer(text.trim().parse().ok()?),
            SettingKind::Number(..) => toml::Value::Float(text.trim().parse().ok()?),
            SettingKind::Boolean => toml::Value::Boolean(parse_bool(text.trim())?),
            SettingKind::Keys | SettingKind::Hosts => toml::Value::Array(
                text.split(',')
                    .map(str::trim)
                    .filter(|key| !key.is_empty())
                    .map(|key| toml::Value::String(key.to_owned()))
                    .collect(),
            ),
            SettingKind::Text
            | SettingKind::Secret
            | SettingKind::DatabaseUrl
            | SettingKind::Host
            | SettingKind::WebAddress
            | SettingKind::Devices
            | SettingKind::Choice(_)
            | SettingKind::LogFilter
            | SettingKind::Path => toml::Value::String(text.to_owned()),
        };
        self.check(value)
    }

    /// Checks a value from a file, and converts it to the type in the configuration. Returns `None`
    /// if it is invalid.
    pub(super) fn check(self, value: toml::Value) -> Option<toml::Value> {
        use toml::Value::{Array, Boolean, Float, Integer, String};
        let fits = match (self, &value) {
            (SettingKind::Integer(min, max), Integer(n)) => (min..=max).contains(n),
            (SettingKind::Number(min, max), Float(x)) => (min..=max).contains(x),
            (SettingKind::Number(..), Integer(n)) => return self.check(Float(*n as f64)),
            (SettingKind::Boolean, Boolean(_)) => true,
            // A single GPU may be given as a number.
            (SettingKind::Devices, Integer(n)) => return self.check(String(n.to_string())),
            (SettingKind::Keys, Array(keys)) => keys.len() <= MAX_KEYS && keys.iter().all(is_key),
            (SettingKind::Hosts, Array(hosts)) => {
                hosts.len() <= MAX_HOSTS && hosts.iter().all(is_host)
            }
            (SettingKind::LogFilter, String(text)) if text.len() <= MAX_TEXT_BYTES => {
                let text = with_own_levels(text);
                return is_log_filter(&text).then_some(String(text));
            }
            (kind, String(text)) => text.len() <= MAX_TEXT_BYTES && kind.text_fits(text),
            _ => false,
        };
        fits.then_some(value)
    }

    fn text_fits(self, text: &str) -> bool {
        match self {
            SettingKind::Text => true,
            SettingKind::DatabaseUrl => {
                text.is_empty() || (text.contains("://") && text.len() <= MAX_TEXT_BYTES)
            }
            SettingKind::Secret => {
                text.is_empty() || (text.len() >= MIN_SECRET && is_key_text(text))
            }
            SettingKind::Host => !text.is_empty() && !text.contains(char::is_whitespace),
            SettingKind::WebAddress => text.is_empty() || is_web_address(text),
            SettingKind::Devices => text.parse::<DeviceSelection>().is_ok(),
            SettingKind::Choice(words) => words.contains(&text),
            SettingKind::LogFilter => is_log_filter(text),
            SettingKind::Path => !text.starts_with('~') && !text.contains('\0'),
            SettingKind::Integer(..)
            | SettingKind::Number(..)
            | SettingKind::Boolean
            | SettingKind::Keys
            | SettingKind::Hosts => false,
        }
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Returns whether a text is an `http` or `https` URL of a server: host, optional port and path.
fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest.filter(|_| text.len() <= MAX_WEB_ADDRESS) else { return false };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte);
    !host.contains('*') && HostPattern::parse(host).is_some() && path.bytes().all(is_path)
}

fn is_key(value: &toml::Value) -> bool {
    value.as_str().is_some_and(is_key_text)
}

fn is_key_text(key: &str) -> bool {
    (1..=512).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
}

fn is_host(value: &toml::Value) -> bool {
    value.as_str().is_some_and(|text| HostPattern::parse(text).is_some())
}

/// Replaces Python's names of log levels by those of this program.
fn with_own_levels(text: &str) -> String {
    let own = |directive: &str| {
        let (target, level) =
            directive.rsplit_once('=').map_or((None, directive), |(t, l)| (Some(t), l));
        let level = match level.trim().to_ascii_lowercase().as_str() {
            "warning" => "warn",
            "critical" | "fatal" => "error",
            "notset" => "trace",
            _ => level,
        };
        target.map_or_else(|| level.to_owned(), |target| format!("{target}={level}"))
    };
    text.split(',').map(own).collect::<Vec<_>>().join(",")
}

/// Returns whether every directive is a level, or names a target and a level. The parser itself
/// would interpret a misspelt level as a target, and nothing else would be logged.
fn is_log_filter(text: &str) -> bool {
    let is_level = |word: &str| {
        ["off", "error", "warn", "info", "debug", "trace"]
            .iter()
            .any(|level| level.eq_ignore_ascii_case(word.trim()))
    };
    text.split(',')
        .all(|directive| is_level(directive.rsplit_once('=').map_or(directive, |(_, level)| level)))
        && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_selections() {
        assert_eq!("auto".parse(), Ok(DeviceSelection::Auto));
        assert_eq!("emulator".parse(), Ok(DeviceSelection::Emulator));
        assert_eq!("0".parse(), Ok(DeviceSelection::Ordinals(vec![0])));
        assert_eq!("2, 0".parse(), Ok(DeviceSelection::Ordinals(vec![2, 0])));
        for wrong in ["", "gpu", "0,0", "-1", "0,", "1.5"] {
            assert!(wrong.parse::<DeviceSelection>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn log_filters() {
        for right in ["info", "WARN", "off", "info,warpgauge=debug", "warpgauge::api=trace"] {
            assert!(is_log_filter(right), "{right:?}");
        }
        for (theirs, own) in [
            ("WARNING", "warn"),
            ("CRITICAL", "error"),
            ("notset", "trace"),
            ("info,a::b=Warning", "info,a::b=warn"),
            ("DEBUG", "DEBUG"),
        ] {
            let kept = SettingKind::LogFilter.parse(theirs);
            assert_eq!(kept, Some(toml::Value::String(own.to_owned())), "{theirs:?}");
        }
        for wrong in ["", "inof", "info,", "warpgauge=loud", "info debug"] {
            assert!(!is_log_filter(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn booleans_from_text() {
        for text in ["true", "1", "YES", "on"] {
            assert_eq!(
                SettingKind::Boolean.parse(text),
                Some(toml::Value::Boolean(true)),
                "{text}"
            );
        }
        for text in ["false", "0", "No", "off"] {
            assert_eq!(
                SettingKind::Boolean.parse(text),
                Some(toml::Value::Boolean(false)),
                "{text}"
            );
        }
        assert_eq!(SettingKind::Boolean.parse("maybe"), None);
    }

    #[test]
    fn numbers_must_be_in_range_and_finite() {
        let kind = SettingKind::Number(0.0, 10.0);
        assert_eq!(kind.parse("2.5"), Some(toml::Value::Float(2.5)));
        assert_eq!(kind.check(toml::Value::Integer(3)), Some(toml::Value::Float(3.0)));
        for wrong in ["-1", "10.1", "nan", "inf", "1s", ""] {
            assert_eq!(kind.parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn secrets_are_long_or_not_there() {
        let secret = |text: &str| SettingKind::Secret.parse(text).is_some();
        assert!(secret("") && secret("0123456789abcdef"));
        assert!(!secret("short") && !secret("with a blank in the middle"));
        assert!(!secret(&"x".repeat(513)));
    }

    #[test]
    fn hosts_from_text() {
        let hosts = |text: &str| SettingKind::Hosts.parse(text).map(|v| v.as_array().map(Vec::len));
        assert_eq!(hosts("a.example, *.example.org:*"), Some(Some(2)));
        assert_eq!(hosts("http://a.example"), None);
    }

    #[test]
    fn web_addresses() {
        let fits = |text: &str| SettingKind::WebAddress.parse(text).is_some();
        for right in ["", "http://localhost:8000", "https://gpu.example.org/tools/warpgauge/"] {
            assert!(fits(right), "{right:?}");
        }
        let long = format!("https://h/{}", "a".repeat(200));
        for wrong in [
            "gpu.example.org",
            "ftp://h",
            "http://",
            "http:///x",
            "http://user:secret@h",
            "http://h/?q",
            "http://h/#f",
            "http://h/<b>",
            "http://*.h",
            "http://h x",
            &long,
        ] {
            assert!(!fits(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn keys_from_text() {
        let keys = |text: &str| SettingKind::Keys.parse(text).map(|v| v.as_array().map(Vec::len));
        assert_eq!(keys("a, b,,c"), Some(Some(3)));
        assert_eq!(keys("with blank"), None);
        assert_eq!(keys(&"x".repeat(513)), None);
    }
}
