//! The emulator as a source: what it counted in one launch, and what follows from the launch.

use std::collections::BTreeMap;

use super::catalogue::{FieldGroup, MetricInfo};
use super::occupancy::{self, Block, Limits};
use super::select::Selection;
use super::types::{DeviceMetrics, Metric, MetricGroups, MetricSource};
use crate::worker::protocol::{DeviceInfo, FunctionFacts, LaunchCounts};

const NO_CLOCK: &str = "the emulator has no clock, caches or pipelines of a GPU: evaluate on a GPU";
const NO_REQUESTS: &str = "the kernel makes no such request";
const NO_FACTS: &str = "the driver did not describe the kernel";
const ESTIMATED: &str = "rests on the emulator's estimate of the registers that a GPU would use";
const ALL_SHARED: &str =
    "if the driver gives blocks all the shared memory there is; it often sets up less";
const PTX: &str = "instructions of the PTX, before the assembler has optimised them";
const EXPANDED: &str =
    "with the operations that divisions, roots and the like usually take on sm_90";

/// A launch that was counted.
#[derive(Debug, Clone, Copy)]
pub struct Launched<'a> {
    /// The device.
    pub device: &'a DeviceInfo,
    /// What was counted.
    pub counts: &'a LaunchCounts,
    /// The kernel's resources, if the driver told them.
    pub function: Option<&'a FunctionFacts>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub dynamic_shared_bytes: u32,
}

/// A value and what to know about it, or why there is none.
type Found = Result<(f64, Option<&'static str>), &'static str>;

/// The selected metrics of a launch.
pub fn metrics(launched: &Launched<'_>, selection: &Selection) -> DeviceMetrics {
    let mut groups = MetricGroups::default();
    let mut metrics = BTreeMap::new();
    for info in &selection.metrics {
        let found = launched.value(info.id);
        if let Ok((value, _)) = found {
            place(&mut groups, info, value);
        }
        metrics.insert(info.id.to_owned(), metric(info, found));
    }
    for name in &selection.unknown {
        let reason = "no metric, group or NVIDIA metric of this name is in the catalogue";
        metrics.insert(name.clone(), Metric { unit: None, ..absent(reason) });
    }
    DeviceMetrics {
        original_device_metrics: groups,
        kernel: launched.counts.kernel.clone(),
        source: MetricSource::Emulator,
        tool: format!("warpgauge-emulator {}", launched.counts.version),
        metrics,
    }
}

fn absent(reason: &str) -> Metric {
    Metric { value: None, unit: None, source: None, note: None, reason: Some(reason.to_owned()) }
}

fn metric(info: &MetricInfo, found: Found) -> Metric {
    let unit = Some(info.unit.name().to_owned());
    match found {
        Ok((value, note)) => Metric {
            value: Some(value),
            unit,
            source: Some(MetricSource::Emulator),
            note: note.map(str::to_owned),
            reason: None,
        },
        Err(reason) => Metric { unit, ..absent(reason) },
    }
}

/// Puts a value where the CUDA Evaluation Server's responses have it.
fn place(groups: &mut MetricGroups, info: &MetricInfo, value: f64) {
    for field in info.fields {
        let group = match field.group {
            FieldGroup::SpeedOfLight => &mut groups.speed_of_light,
            FieldGroup::Detailed => &mut groups.detailed_metrics,
            FieldGroup::Memory => &mut groups.memory_metrics,
            FieldGroup::Compute => &mut groups.compute_metrics,
            FieldGroup::Pipeline => &mut groups.pipeline_metrics,
            FieldGroup::Occupancy => &mut groups.occupancy_metrics,
            FieldGroup::Stall => &mut groups.stall_metrics,
            FieldGroup::Scheduler => &mut groups.scheduler_metrics,
            FieldGroup::AccessPattern => &mut groups.access_pattern_metrics,
            FieldGroup::Roofline => &mut groups.roofline_metrics,
            FieldGroup::Timing => &mut groups.timing_metrics,
        };
        group.insert(field.name.to_owned(), value * field.scale);
    }
}

/// Counts whose sum is a metric, with their weights.
fn weights(id: &str) -> Option<&'static [(&'static str, f64)]> {
    Some(match id {
        "l2_sectors_global" => &[("global_load_sectors", 1.0), ("global_store_sectors", 1.0)],
        "l2_sectors_global_ideal" => {
            &[("global_load_ideal_sectors", 1.0), ("global_store_ideal_sectors", 1.0)]
        }
        "l2_sectors_global_excessive" => &[
            ("global_load_sectors", 1.0),
            ("global_store_sectors", 1.0),
            ("global_load_ideal_sectors", -1.0),
            ("global_store_ideal_sectors", -1.0),
        ],
        "flop_count_single" => &[("fadd", 1.0), ("fmul", 1.0), ("ffma", 2.0)],
        "flop_count_double" => &[("dadd", 1.0), ("dmul", 1.0), ("dfma", 2.0)],
        "flop_count_half" => &[("half_ops", 1.0)],
        "flop_count_tensor" => &[
            ("tensor_half_ops", 1.0),
            ("tensor_tf32_ops", 1.0),
            ("tensor_double_ops", 1.0),
            ("tensor_fp8_ops", 1.0),
        ],
        _ => return None,
    })
}

const FLOP_COUNTS: [&str; 4] =
    ["flop_count_single", "flop_count_double", "flop_count_half", "flop_count_tensor"];

impl Launched<'_> {
    fn value(&self, id: &str) -> Found {
        if let Some(found) = self.occupancy(id) {
            return found;
        }
        if let Some(value) = self.sum(id) {
            return Ok((value, self.note(id)));
        }
        let ratio = |above: &str, below: &str| match (self.sum(above), self.sum(below)) {
            (Some(_), Some(0.0)) => Err(NO_REQUESTS),
            (Some(above), Some(below)) => Ok((above / below, None)),
            _ => Err(NO_CLOCK),
        };
        match id {
            "sectors_per_global_load" => ratio("global_load_sectors", "global_load_requests"),
            "sectors_per_global_store" => ratio("global_store_sectors", "global_store_requests"),
            "l2_sectors_global_excess" => ratio("l2_sectors_global_excessive", "l2_sectors_global"),
            "threads_per_instruction" => {
                ratio("active_threads", "warp_instructions").map(|(value, _)| (value, Some(PTX)))
            }
            "flop_count" => {
                let parts = FLOP_COUNTS.map(|id| self.sum(id));
                parts
                    .into_iter()
                    .sum::<Option<f64>>()
                    .map(|sum| (sum, Some(EXPANDED)))
                    .ok_or(NO_CLOCK)
            }
            _ => Err(NO_CLOCK),
        }
    }

    /// A count, or a weighted sum of counts.
    fn sum(&self, id: &str) -> Option<f64> {
        let count = |name: &str| self.counts.counts.get(name).map(|&count| count as f64);
        match weights(id) {
            Some(parts) => parts.iter().map(|(name, weight)| Some(count(name)? * weight)).sum(),
            None => {
                count(id.strip_suffix("_instructions").filter(|_| arithmetic(id)).unwrap_or(id))
            }
        }
    }

    fn note(&self, id: &str) -> Option<&'static str> {
        let instructions = ["warp_", "thread_", "branches", "divergent_branches", "barriers"];
        if arithmetic(id) || matches!(id, "flop_count_single" | "flop_count_double") {
            return Some(EXPANDED);
        }
        instructions.iter().any(|prefix| id.starts_with(prefix)).then_some(PTX)
    }

    /// What follows from the launch and the kernel's resources; `None` for other metrics.
    fn occupancy(&self, id: &str) -> Option<Found> {
        let threads = self.block.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let blocks = self.grid.iter().map(|&extent| f64::from(extent)).product::<f64>();
        let limit = |of: fn(&Limits) -> u32, note| match self.limits() {
            Some(limits) => Ok((f64::from(of(&limits)), note)),
            None => Err(NO_FACTS),
        };
        let resident = self.function.map(|facts| facts.max_active_blocks);
        Some(match id {
            "block_size" => Ok((threads as f64, None)),
            "grid_size" => Ok((blocks, None)),
            "registers_per_thread" => match self.function {
                Some(facts) => Ok((f64::from(facts.registers), Some(ESTIMATED))),
                None => Err(NO_FACTS),
            },
            "shared_memory_per_block" => match self.function {
                Some(_) => Ok((f64::from(self.shared_bytes()) + self.reserved(), None)),
                None => Err(NO_FACTS),
            },
            "occupancy_limit_registers" => limit(|limits| limits.registers, Some(ESTIMATED)),
            "occupancy_limit_shared_memory" => limit(|limits| limits.shared, Some(ALL_SHARED)),
            "occupancy_limit_warps" => limit(|limits| limits.warps, None),
            "occupancy_limit_blocks" => limit(|limits| limits.blocks, None),
            "theoretical_occupancy" => match resident {
                Some(resident) => {
                    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
                    let pct = occupancy::theoretical_pct(&self.device.sm, threads, resident);
                    Ok((pct, Some(ESTIMATED)))
                }
                None => Err(NO_FACTS),
            },
            "waves_per_sm" => match resident {
                Some(resident) if resident > 0 && self.device.multiprocessors > 0 => {
                    let at_once = f64::from(resident) * f64::from(self.device.multiprocessors);
                    Ok((blocks / at_once, Some(ESTIMATED)))
                }
                _ => Err(NO_FACTS),
            },
            _ => return None,
        })
    }

    fn shared_bytes(&self) -> u32 {
        let fixed = self.function.map_or(0, |facts| facts.static_shared_bytes);
        fixed.saturating_add(self.dynamic_shared_bytes)
    }

    fn reserved(&self) -> f64 {
        f64::from(self.device.sm.reserved_shared_bytes)
    }

    fn limits(&self) -> Option<Limits> {
        let threads = self.block.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let block = Block {
            threads: u32::try_from(threads).ok()?,
            registers: self.function?.registers,
            shared_bytes: self.shared_bytes(),
        };
        occupancy::limits(&self.device.sm, self.device.target.compute_capability.0, block)
    }
}

/// Whether the metric is a count of an arithmetic instruction, which the emulator calls by the
/// instruction's name.
fn arithmetic(id: &str) -> bool {
    let name = id.strip_suffix("_instructions").unwrap_or_default();
    name.len() == 4 && ["add", "mul", "fma"].iter().any(|operation| name.ends_with(operation))
}

#[cfg(test)]
mod tests;
