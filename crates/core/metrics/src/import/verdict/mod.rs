//! Finds what limits the kernels of a report: bound, roofline, stalls, occupancy and advice. The
//! main type is [`ImportedVerdict`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::KernelRule;
use crate::advice::{self, Advice};
use crate::facts::{Facts, Timed, Values};
use crate::ncu::{NcuKernel, NcuRule};
use crate::roofline::{self, BoundBy, Roofline};
use crate::types::{DeviceMetrics, Metric};
use warpgauge_model::{DeviceInfo, DeviceKind, SmLimits, Target};

/// Maximum number of stall reasons of a kernel.
const MAX_STALLS: usize = 3;
/// Minimum share of a stall reason, percent.
const STALLS_FROM: f64 = 5.0;
/// Maximum number of rules of all kernels.
const MAX_RULES: usize = 1_000;

/// Metrics that limit the number of resident blocks, with the names of the resources.
const LIMITS: [(&str, &str); 5] = [
    ("occupancy_limit_registers", "registers"),
    ("occupancy_limit_shared_memory", "shared memory"),
    ("occupancy_limit_warps", "warps"),
    ("occupancy_limit_blocks", "blocks"),
    ("occupancy_limit_barriers", "barriers"),
];

/// Analysis of what limits a kernel, based on all its launches.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ImportedVerdict {
    /// Name of the kernel in the tool's output.
    pub kernel: String,
    /// Number of profiled launches.
    pub launches: u32,
    /// Time of all launches, seconds. Absent if the time of a launch is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_seconds: Option<f64>,
    /// `total_seconds` as a percentage of the time of all kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<f64>,
    /// Resource that limits the kernel. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<BoundBy>,
    /// Rule and numbers behind `bound_by`, or the reason why it is not known.
    pub bound_reason: String,
    /// Floating-point operations of all launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flop_count: Option<f64>,
    /// Floating-point operations per byte of device memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic_intensity: Option<f64>,
    /// Most frequent reasons why warps waited, in decreasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top_stalls: Vec<TopStall>,
    /// Resources that limit the number of resident blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupancy_limiter: Option<OccupancyLimiter>,
    /// Operations and bytes compared with the peaks of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// Observations with their evidence, the largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
}

/// A reason why warps waited.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopStall {
    /// Metric of the catalogue: `stall_long_scoreboard`.
    pub metric: String,
    /// Percentage of the resident warps that waited for this reason.
    pub pct: f64,
}

/// Resources that limit the number of resident blocks of a multiprocessor.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OccupancyLimiter {
    /// `registers`, `shared memory`, `warps`, `blocks`, `barriers`: those that allow the fewest
    /// blocks.
    pub names: Vec<&'static str>,
    /// Number of blocks that fit.
    pub blocks: f64,
}

/// Returns a verdict for each kernel, the longest total time first.
pub(super) fn verdicts(metrics: &DeviceMetrics, kernels: &[NcuKernel]) -> Vec<ImportedVerdict> {
    let mut by_name: BTreeMap<&str, &NcuKernel> = BTreeMap::new();
    for kernel in kernels {
        by_name.entry(&kernel.name).or_insert(kernel);
    }
    let all = Values::new(&metrics.metrics).get("duration").filter(|total| *total > 0.0);
    let of = |name: &str, launches: u32, metrics: &BTreeMap<String, Metric>| {
        let kernel = by_name.get(name)?;
        Some(verdict(kernel, launches, metrics, all))
    };
    match metrics.kernels.as_slice() {
        [] => of(&metrics.kernel, 1, &metrics.metrics).into_iter().collect(),
        several => {
            several.iter().filter_map(|one| of(&one.kernel, one.launches, &one.metrics)).collect()
        }
    }
}

fn verdict(
    kernel: &NcuKernel,
    launches: u32,
    metrics: &BTreeMap<String, Metric>,
    all: Option<f64>,
) -> ImportedVerdict {
    let values = Values::new(metrics);
    let device = device(kernel);
    let facts = Facts { device: &device, resources: None, inputs: &[], timed: Timed::default() };
    let roofline = roofline::roofline(values, &facts);
    let (bound_by, bound_reason) = match &roofline {
        Some(roofline) => (roofline.bound_by, roofline.bound_reason.clone()),
        None => roofline::bound_by(values, &facts),
    };
    let total_seconds = values.get("duration");
    ImportedVerdict {
        kernel: kernel.name.clone(),
        launches,
        total_seconds,
        share_pct: total_seconds.zip(all).map(|(time, all)| 100.0 * time / all),
        bound_by,
        bound_reason,
        flop_count: values.get("flop_count"),
        arithmetic_intensity: values.get("arithmetic_intensity"),
        top_stalls: top_stalls(metrics),
        occupancy_limiter: limiter(values),
        advice: advice::advise(values, &facts, roofline.as_ref()),
        roofline,
    }
}

fn top_stalls(metrics: &BTreeMap<String, Metric>) -> Vec<TopStall> {
    // A selected warp does not wait.
    let waits = |name: &str| name.starts_with("stall_") && name != "stall_selected";
    let stalls = metrics.iter().filter(|(name, _)| waits(name)).filter_map(|(name, metric)| {
        let pct = metric.value.filter(|pct| *pct >= STALLS_FROM)?;
        Some(TopStall { metric: name.clone(), pct })
    });
    let mut stalls: Vec<TopStall> = stalls.collect();
    stalls.sort_by(|a, b| b.pct.total_cmp(&a.pct));
    stalls.truncate(MAX_STALLS);
    stalls
}

fn limiter(values: Values<'_>) -> Option<OccupancyLimiter> {
    let limits = || LIMITS.iter().filter_map(|(id, name)| Some((values.get(id)?, *name)));
    let blocks = limits().map(|(blocks, _)| blocks).min_by(f64::total_cmp)?;
    let names = limits().filter(|(limit, _)| *limit == blocks).map(|(_, name)| name).collect();
    Some(OccupancyLimiter { names, blocks })
}

/// Returns the properties of the device that the page contains. All others are 0, which no analysis
/// uses.
fn device(kernel: &NcuKernel) -> DeviceInfo {
    let attribute = |name: &str| {
        kernel.values.get(&format!("device__attribute_{name}")).copied().unwrap_or(0.0)
    };
    let whole = |name: &str| attribute(name) as u32;
    let multiprocessors = match whole("multiprocessor_count") {
        0 => kernel.values.get("launch__sm_count").map_or(0, |count| *count as u32),
        count => count,
    };
    let capability = kernel.capability.unwrap_or(0);
    DeviceInfo {
        ordinal: kernel.device.unwrap_or(0),
        kind: DeviceKind::Cuda,
        name: kernel.texts.get("device__attribute_display_name").cloned().unwrap_or_default(),
        uuid: String::new(),
        target: Target {
            compute_capability: (capability / 10, capability % 10),
            driver_version: 0,
            emulated: false,
        },
        multiprocessors,
        memory_bytes: attribute("total_memory") as u64,
        l2_bytes: attribute("l2_cache_size") as u64,
        clock_khz: whole("clock_rate"),
        memory_clock_khz: whole("memory_clock_rate"),
        memory_bus_bits: whole("global_memory_bus_width"),
        max_shared_optin_bytes: whole("max_shared_memory_per_block_optin"),
        pci_bus_id: String::new(),
        sm: SmLimits {
            threads: whole("max_threads_per_multiprocessor"),
            blocks: whole("max_blocks_per_multiprocessor"),
            registers: whole("max_registers_per_multiprocessor"),
            shared_bytes: whole("max_shared_memory_per_multiprocessor"),
            reserved_shared_bytes: whole("reserved_shared_memory_per_block"),
        },
        unmonitored: None,
    }
}

/// Section, name and kind of a rule, and its words without numbers.
type RuleKey<'a> = (&'a str, &'a str, &'a str, String);

/// Returns the findings of the tool's rules. Each occurs once, with the number of launches that
/// have it.
pub(super) fn rules(kernels: &[NcuKernel]) -> Vec<KernelRule> {
    let mut places: BTreeMap<(&str, RuleKey<'_>, u32), usize> = BTreeMap::new();
    let mut rules: Vec<KernelRule> = Vec::new();
    for kernel in kernels {
        // One launch may have several findings that differ in their ends and numbers only. These
        // are no findings of several launches.
        let mut seen: BTreeMap<RuleKey<'_>, BTreeSet<&str>> = BTreeMap::new();
        for rule in &kernel.rules {
            let key: RuleKey<'_> = (&rule.section, &rule.name, &rule.kind, words(rule));
            let texts = seen.entry(key.clone()).or_default();
            let nth = texts.len() as u32;
            if !texts.insert(&rule.description) {
                continue;
            }
            let key = (kernel.name.as_str(), key, nth);
            match places.get(&key) {
                Some(&place) => rules[place].launches += 1,
                None if rules.len() < MAX_RULES => {
                    places.insert(key, rules.len());
                    rules.push(KernelRule {
                        kernel: kernel.name.clone(),
                        rule: rule.clone(),
                        launches: 1,
                    });
                }
                None => {}
            }
        }
    }
    rules
}

/// Returns the first words of a rule's text without its numbers, which differ between launches.
fn words(rule: &NcuRule) -> String {
    rule.description.chars().filter(|c| !c.is_ascii_digit()).take(80).collect()
}

#[cfg(test)]
mod tests;
