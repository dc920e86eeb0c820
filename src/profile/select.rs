//! Which metrics a contract asks for.

use std::collections::BTreeSet;

use super::catalogue::{CATALOGUE, MetricInfo};
use super::sets;

/// Metrics that were asked for.
#[derive(Debug, Default)]
pub struct Selection {
    /// Those of the catalogue, in its order.
    pub metrics: Vec<&'static MetricInfo>,
    /// Names that are in no catalogue.
    pub unknown: BTreeSet<String>,
}

/// The metrics of a list of ids, names of sets or groups, `all`, or names of NVIDIA's metrics; all
/// metrics for an empty list.
pub fn select(names: &[String]) -> Selection {
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        match sets::set(name) {
            Some(set) => members.extend_from_slice(set),
            None => members.push(name.as_str()),
        }
    }
    let names = members;
    let chosen = |info: &MetricInfo, name: &str| {
        name == "all" || name == info.id || name == info.group.name() || info.has_source(name)
    };
    let wanted =
        |info: &&MetricInfo| names.is_empty() || names.iter().any(|name| chosen(info, name));
    let known = |name: &str| CATALOGUE.iter().any(|info| chosen(info, name));
    Selection {
        metrics: CATALOGUE.iter().filter(wanted).collect(),
        unknown: names.iter().filter(|name| !known(name)).map(|name| (*name).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_groups_and_sources_are_names() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let selection = select(&names);
            let ids: Vec<&str> = selection.metrics.iter().map(|info| info.id).collect();
            (ids, selection.unknown.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(ids(&["ffma_instructions"]).0, ["ffma_instructions"]);
        assert_eq!(
            ids(&["dram__throughput.avg.pct_of_peak_sustained_elapsed"]).0,
            ["dram_throughput"]
        );
        assert_eq!(ids(&["stall", "bogus", "stall"]).0.len(), 19);
        assert_eq!(ids(&["stall", "bogus"]).1, ["bogus"]);
        let bound = ids(&["speed_of_light"]);
        assert!(bound.0.contains(&"sm_throughput") && bound.0.contains(&"duration"));
        assert!(bound.1.is_empty() && bound.0.len() < ids(&["core"]).0.len());
        assert_eq!(ids(&[]).0.len(), CATALOGUE.len());
        assert_eq!(ids(&["all"]).0.len(), CATALOGUE.len());
    }
}
