//! Selects the metrics that a contract requests. The main type is [`Selection`].

use std::collections::BTreeSet;

use super::catalogue::{CATALOGUE, Formula, MetricInfo};
use super::sets;
use warpgauge_model::edit_distance;

/// Metrics that a contract requests.
#[derive(Debug, Default)]
pub struct Selection {
    /// Requested metrics of the catalogue, in the catalogue's order.
    pub metrics: Vec<&'static MetricInfo>,
    /// Requested names that the catalogue does not contain.
    pub unknown: BTreeSet<String>,
}

impl Selection {
    /// Returns whether the whole catalogue is selected.
    pub fn is_all(&self) -> bool {
        self.metrics.len() == CATALOGUE.len()
    }
}

/// Returns the metrics of a list of names: ids, sets, groups, `all`, or NVIDIA's metrics. An empty
/// list means all metrics.
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

/// Returns names similar to a wrong one, the most similar first: names that differ in few letters,
/// contain it, or have a part in common with it.
pub fn near(name: &str) -> Vec<&'static str> {
    const MOST: usize = 6;
    let wanted = name.to_ascii_lowercase();
    let mut names: Vec<&'static str> = sets::names().chain(["all"]).collect();
    for info in CATALOGUE {
        names.extend([info.group.name(), info.id]);
        names.extend(info.sources.iter().filter_map(|source| match source.formula {
            Formula::Metric(name) => Some(name),
            _ => None,
        }));
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let parts = |name: &str| -> Vec<String> {
        name.split(['_', '.']).filter(|part| part.len() > 2).map(str::to_owned).collect()
    };
    let own = parts(&wanted);
    let mut ranked: Vec<(usize, &'static str)> = names
        .into_iter()
        .filter_map(|candidate| {
            let distance = edit_distance(&wanted, candidate);
            let within = wanted.len() > 2 && candidate.contains(&wanted);
            let shared = parts(candidate).iter().filter(|part| own.contains(part)).count();
            let close = distance <= 1 + candidate.len() / 4;
            // A common part counts as much as a few letters.
            (close || within || shared > 0).then(|| {
                (distance.saturating_sub(if within { wanted.len() } else { 4 * shared }), candidate)
            })
        })
        .collect();
    ranked.sort_by_key(|(distance, name)| (*distance, name.len()));
    ranked.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Returns the error message for an unknown name of a metric, group or set.
pub fn unknown_name(name: &str) -> String {
    let name: String = name.chars().take(80).collect();
    let near = near(&name);
    let hint = match near.is_empty() {
        true => {
            let sets: Vec<&str> = sets::names().collect();
            format!("sets are {}; docs/metrics.md lists all metrics", sets.join(", "))
        }
        false => format!("similar names are {}", near.join(", ")),
    };
    format!("no metric, group or set is called `{name}`; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names() {
        assert_eq!(near("nosuch"), [""; 0]);
        assert_eq!(near("dram_throughputs")[0], "dram_throughput");
        assert_eq!(near("speed-of-light")[0], "speed_of_light");
        assert!(near("occupancy").contains(&"achieved_occupancy"));
        assert!(near("l1_hitrate").contains(&"l1_hit_rate"));
        assert!(unknown_name("nosuch").contains("explain"));
    }

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
