//! Named sets of metrics: `profiles/metrics.yaml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Set that a contract gets on a GPU if neither it nor its preset names metrics.
pub const DEFAULT_SET: &str = "core";

/// Set with every metric.
pub const FULL_SET: &str = "full";

static SETS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let text = include_str!("../../profiles/metrics.yaml");
    serde_yaml::from_str(text).expect("a file of this program, which a test reads")
});

/// What a set is made of: metrics and groups of the catalogue, or `all`; `None`: no such set.
pub fn set(name: &str) -> Option<&'static [String]> {
    SETS.get(name).map(Vec::as_slice)
}

/// Names of the sets.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETS.keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{CATALOGUE, Group};
    use super::*;
    use crate::contract::PresetName;
    use crate::measure::Preset;

    #[test]
    fn sets_are_made_of_what_the_catalogue_has() {
        let is_known = |name: &str| {
            name == "all"
                || CATALOGUE.iter().any(|info| info.id == name || info.group.name() == name)
        };
        assert!(names().eq(["core", "explain", "full", "speed_of_light"]));
        for name in names() {
            let members = set(name).unwrap();
            assert!(members.iter().all(|member| is_known(member)), "{name}: {members:?}");
        }
        // A set and a group share a name: the set has all of the group.
        assert!(set(Group::SpeedOfLight.name()).unwrap().contains(&"speed_of_light".to_owned()));
        assert!(set(DEFAULT_SET).is_some() && set(FULL_SET).is_some() && set("none").is_none());
    }

    #[test]
    fn presets_name_sets() {
        for name in [PresetName::Quick, PresetName::Ci, PresetName::Deep] {
            let preset = Preset::builtin(name);
            assert!(set(&preset.metrics).is_some(), "{}", preset.metrics);
        }
    }
}
