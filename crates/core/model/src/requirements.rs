//! Requirements of a request for its executor, and the capabilities of an executor. The main types
//! are [`Requirements`] and [`ExecutorCapabilities`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::DeviceKind;
use super::library::Library;

/// Languages that every executor supports. Requests need not require them.
pub const COMMON_LANGUAGES: [&str; 4] = ["cuda", "ptx", "cubin", "fatbin"];

/// Maximum length of a GPU's name in a requirement, bytes.
pub const MAX_GPU_MODEL_BYTES: usize = 96;

/// Requirements for the device and the installed tools. Without requirements, any device is
/// suitable.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Requirements {
    /// Kind of device. `cuda`: a GPU; `emulator`: the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceKind>,
    /// Exact compute capability, e.g. `sm_90`. `sm_90a` matches the same devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[sS][mM]_[0-9]{2,3}[af]?$"))]
    pub architecture: Option<String>,
    /// Consecutive words of the product name, in upper or lower case. `H200` matches `NVIDIA H200`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 96))]
    pub gpu_model: Option<String>,
    /// Tools that must be usable: `ncu`, `nsys`, `compute-sanitizer`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// Languages of the kernels beyond the [common ones](COMMON_LANGUAGES). The server determines them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(skip)]
    pub languages: BTreeSet<String>,
}

impl Requirements {
    /// Returns whether there are no requirements.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns a canonical text of the requirements; `None` if there are none. [`Self::of_key`]
    /// parses it.
    pub fn key(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let lower = |text: &Option<String>| text.as_deref().map(normal);
        let plain = |text: String| text.trim_end_matches(['a', 'f']).to_owned();
        let same = Self {
            architecture: lower(&self.architecture).map(plain),
            gpu_model: lower(&self.gpu_model),
            ..self.clone()
        };
        // Strings, a plain enum and sets of strings can always be serialised as JSON.
        serde_json::to_string(&same).ok()
    }

    /// Parses a key. Returns `None` if the key comes from an incompatible version.
    pub fn of_key(key: &str) -> Option<Self> {
        serde_json::from_str(key).ok()
    }

    /// Returns the field of the first invalid requirement, and a message.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        if let Some(text) = &self.architecture
            && compute_capability(text).is_none()
        {
            let short: String = text.chars().take(40).collect();
            return Some(("architecture", format!("expected e.g. `sm_90`, got {short:?}")));
        }
        if let Some(model) = &self.gpu_model
            && (normal(model).is_empty() || model.len() > MAX_GPU_MODEL_BYTES)
        {
            let expected = format!(
                "expected consecutive words of a product name, e.g. `H200`, of at most {MAX_GPU_MODEL_BYTES} bytes"
            );
            return Some(("gpu_model", expected));
        }
        None
    }

    /// Returns whether a device meets all requirements that concern the device.
    pub fn is_met_by(&self, device: &DeviceOffer) -> bool {
        self.device.is_none_or(|kind| kind == device.kind)
            && self
                .architecture
                .as_deref()
                .is_none_or(|text| compute_capability(text) == Some(device.compute_capability))
            && self.gpu_model.as_deref().is_none_or(|model| has_words(&device.name, model))
    }
}

/// Capabilities of an executor that requests can require.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorCapabilities {
    /// Devices of the executor, including those that do not work at the moment.
    pub devices: Vec<DeviceOffer>,
    pub tools: BTreeSet<String>,
    /// Languages beyond the [common ones](COMMON_LANGUAGES).
    pub languages: BTreeSet<String>,
    /// Languages that are missing, with the reason and a remedy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub no_languages: BTreeMap<String, String>,
}

/// Properties of a device that requests can require.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceOffer {
    pub kind: DeviceKind,
    /// Compute capability: major and minor number.
    pub compute_capability: (u32, u32),
    /// Product name.
    pub name: String,
}

impl ExecutorCapabilities {
    /// Checks whether the capabilities meet the requirements.
    ///
    /// # Errors
    /// Returns the first requirement that is not met, and the available devices, tools or languages.
    pub fn meet(&self, order: &Requirements) -> Result<(), String> {
        if !self.devices.iter().any(|device| order.is_met_by(device)) {
            let there = self.devices.iter().map(DeviceOffer::describe).collect::<Vec<_>>();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(format!("no device is {}; available: {there}", order.describe_device()));
        }
        for (what, wanted, there) in
            [("tool", &order.tools, &self.tools), ("language", &order.languages, &self.languages)]
        {
            if let Some(missing) = wanted.difference(there).next() {
                let is_library = what == "language" && Library::of_name(missing).is_some();
                let why = self.no_languages.get(missing).filter(|_| what == "language");
                let what = if is_library { "library" } else { what };
                if let Some(why) = why {
                    return Err(format!("{what} `{missing}` is missing: {why}"));
                }
                let there = there.iter().map(String::as_str).collect::<Vec<_>>();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                return Err(format!("{what} `{missing}` is missing; available: {there}"));
            }
        }
        Ok(())
    }
}

impl DeviceOffer {
    fn describe(&self) -> String {
        let (major, minor) = self.compute_capability;
        format!("{} (sm_{major}{minor})", self.name)
    }
}

impl Requirements {
    /// Describes the required device in words, such as "a GPU with `sm_90`".
    pub fn describe_device(&self) -> String {
        let kind = match self.device {
            Some(DeviceKind::Cuda) => "a GPU",
            Some(DeviceKind::Emulator) => "the emulated device",
            None => "a device",
        };
        let model = self.gpu_model.as_deref().map(|model| format!(" of the model `{model}`"));
        let arch = self.architecture.as_deref().map(|text| format!(" with `{text}`"));
        format!("{kind}{}{}", model.unwrap_or_default(), arch.unwrap_or_default())
    }
}

/// Parses an architecture: `sm_90` is 9.0, and `sm_120` is 12.0. `sm_90a` is also parsed as 9.0.
fn compute_capability(text: &str) -> Option<(u32, u32)> {
    let text = text.to_lowercase();
    let digits = text.strip_prefix("sm_")?;
    let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
    let plain = (2..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u32 = digits.parse().ok().filter(|_| plain)?;
    Some((number / 10, number % 10))
}

/// Converts a name to lower case, with one space between words.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns whether a name contains these words in sequence.
fn has_words(name: &str, words: &str) -> bool {
    format!(" {} ", normal(name)).contains(&format!(" {} ", normal(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> ExecutorCapabilities {
        let gpu = |name: &str, compute_capability| DeviceOffer {
            kind: DeviceKind::Cuda,
            compute_capability,
            name: name.to_owned(),
        };
        ExecutorCapabilities {
            devices: vec![gpu("NVIDIA H200", (9, 0)), gpu("NVIDIA L4", (8, 9))],
            tools: ["ncu".to_owned()].into(),
            languages: BTreeSet::new(),
            no_languages: BTreeMap::new(),
        }
    }

    fn wants(text: &str) -> Requirements {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn one_device_must_be_all_that_is_required() {
        for (order, met) in [
            ("{}", true),
            (r#"{"device": "cuda", "tools": ["ncu"]}"#, true),
            (r#"{"gpu_model": "h200"}"#, true),
            (r#"{"gpu_model": "nvidia  H200", "architecture": "sm_90"}"#, true),
            (r#"{"gpu_model": "H200", "architecture": "sm_89"}"#, false),
            (r#"{"architecture": "sm_90a"}"#, true),
            (r#"{"gpu_model": "H20"}"#, false),
            (r#"{"device": "emulator"}"#, false),
            (r#"{"architecture": "sm_120"}"#, false),
            (r#"{"tools": ["nsys"]}"#, false),
        ] {
            assert_eq!(host().meet(&wants(order)).is_ok(), met, "{order}");
        }
        let why = host().meet(&wants(r#"{"gpu_model": "B200"}"#)).unwrap_err();
        assert!(why.contains("`B200`") && why.contains("NVIDIA L4 (sm_89)"), "{why}");
        let triton = Requirements { languages: ["triton".to_owned()].into(), ..wants("{}") };
        assert!(host().meet(&triton).unwrap_err().contains("`triton`"));
        let no_languages = [("triton".to_owned(), "none; get one".to_owned())].into();
        let told = ExecutorCapabilities { no_languages, ..host() }.meet(&triton).unwrap_err();
        assert_eq!(told, "language `triton` is missing: none; get one");
        assert!(ExecutorCapabilities::default().meet(&wants("{}")).unwrap_err().contains("none"));
    }

    #[test]
    fn the_same_requirements_have_the_same_key() {
        assert_eq!(wants("{}").key(), None);
        let key = |text: &str| wants(text).key().unwrap();
        let one = key(r#"{"gpu_model": "H200", "tools": ["nsys", "ncu"]}"#);
        assert_eq!(one, key(r#"{"tools": ["ncu", "nsys"], "gpu_model": " h200 "}"#));
        assert!(
            host().meet(&Requirements::of_key(&key(r#"{"gpu_model": "L4"}"#)).unwrap()).is_ok()
        );
        assert_eq!(Requirements::of_key(r#"{"colour": "red"}"#), None);
    }

    #[test]
    fn what_is_not_well_said_is_told() {
        for (text, field) in [
            (r#"{"architecture": "90"}"#, "architecture"),
            (r#"{"architecture": "sm_9x"}"#, "architecture"),
            (r#"{"architecture": "sm_1234"}"#, "architecture"),
            (r#"{"gpu_model": "  "}"#, "gpu_model"),
        ] {
            assert_eq!(wants(text).problem().map(|(field, _)| field), Some(field), "{text}");
        }
        assert_eq!(wants(r#"{"architecture": "sm_100", "gpu_model": "B200"}"#).problem(), None);
    }
}
