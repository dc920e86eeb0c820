//! The emulator as a source of metrics. It counts the events of one launch. Other values follow
//! from the launch configuration.

use super::found::{Found, Known, Report};
use super::launch::DeviceLaunch;
use super::select::Selection;
use super::types::{DeviceMetrics, MetricSource};
use warpgauge_model::LaunchCounts;

const NO_CLOCK: &str = "the emulator does not simulate the clock, caches or pipelines of a GPU: \
                        evaluate on a GPU";
const NO_REQUESTS: &str = "the kernel makes no such request";
const PTX: &str = "counts the instructions of the PTX, before the assembler optimises them";
const EXPANDED: &str = "includes the operations that divisions, square roots and similar functions \
                        usually take on sm_90";

/// Metrics that the emulator counts, under their ids or under the names of the instructions.
const COUNTED: [&str; 60] = [
    "tensor_integer_ops",
    "ideal_read_bytes",
    "ideal_write_bytes",
    "shared_load_conflicts",
    "shared_store_conflicts",
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "global_atomic_requests",
    "global_reduction_requests",
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "shared_atomic_requests",
    "local_load_requests",
    "local_store_requests",
    "constant_requests",
    "local_bytes",
    "warp_instructions",
    "thread_instructions",
    "branches",
    "divergent_branches",
    "barriers",
    "fadd_instructions",
    "fmul_instructions",
    "ffma_instructions",
    "dadd_instructions",
    "dmul_instructions",
    "dfma_instructions",
    "hadd_instructions",
    "hmul_instructions",
    "hfma_instructions",
    "thread_integer",
    "thread_fp16",
    "thread_fp32",
    "thread_fp64",
    "thread_conversion",
    "thread_control",
    "thread_memory",
    "thread_exchange",
    "thread_special",
    "thread_move",
    "thread_atomic",
    "thread_synchronisation",
    "thread_tensor",
    "warp_integer",
    "warp_fp16",
    "warp_fp32",
    "warp_fp64",
    "warp_conversion",
    "warp_control",
    "warp_memory",
    "warp_exchange",
    "warp_special",
    "warp_move",
    "warp_atomic",
    "warp_synchronisation",
    "warp_tensor",
];

/// Metrics that are computed from several counts.
const QUOTIENTS: [&str; 5] = [
    "sectors_per_global_load",
    "sectors_per_global_store",
    "l2_sectors_global_excess",
    "threads_per_instruction",
    "flop_count",
];

/// Returns the reason why a metric of the catalogue is not available on the emulated device.
/// Returns `None` if it is available.
pub fn not_emulated(id: &str) -> Option<&'static str> {
    let counted = COUNTED.contains(&id) || weights(id).is_some() || QUOTIENTS.contains(&id);
    (!counted && !DeviceLaunch::follows(id)).then_some(NO_CLOCK)
}

/// Returns the selected metrics of a launch whose events the emulator counted.
pub fn metrics(
    counts: &LaunchCounts,
    launch: &DeviceLaunch<'_>,
    selection: &Selection,
) -> DeviceMetrics {
    let counted = Counted { counts, launch };
    Report {
        kernel: counts.kernel.clone(),
        source: MetricSource::Emulator,
        tool: format!("warpgauge-emulator {}", counts.version),
        conditions: None,
    }
    .of(selection, |info| counted.value(info.id))
}

/// The emulator's counts of a launch.
struct Counted<'a> {
    counts: &'a LaunchCounts,
    launch: &'a DeviceLaunch<'a>,
}

fn known(value: f64, note: Option<&'static str>) -> Found {
    Ok(Known { note: note.map(Into::into), ..Known::plain(value, MetricSource::Emulator) })
}

/// Returns the counts that add up to a metric, with their weights.
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
        "flop_count_tensor_half" => &[("tensor_half_ops", 1.0)],
        "flop_count_tensor_tf32" => &[("tensor_tf32_ops", 1.0)],
        "flop_count_tensor_double" => &[("tensor_double_ops", 1.0)],
        "flop_count_tensor_narrow" => &[("tensor_fp8_ops", 1.0)],
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

impl Counted<'_> {
    fn value(&self, id: &str) -> Found {
        if let Some(found) = self.launch.fact(id) {
            return found.map(|known| Known { source: MetricSource::Emulator, ..known });
        }
        if let Some(value) = self.sum(id) {
            return known(value, self.note(id));
        }
        let ratio = |above: &str, below: &str| match (self.sum(above), self.sum(below)) {
            (Some(_), Some(0.0)) => Err(NO_REQUESTS.into()),
            (Some(above), Some(below)) => known(above / below, None),
            _ => Err(NO_CLOCK.into()),
        };
        match id {
            "sectors_per_global_load" => ratio("global_load_sectors", "global_load_requests"),
            "sectors_per_global_store" => ratio("global_store_sectors", "global_store_requests"),
            "l2_sectors_global_excess" => ratio("l2_sectors_global_excessive", "l2_sectors_global"),
            "threads_per_instruction" => ratio("active_threads", "warp_instructions")
                .map(|known| Known { note: Some(PTX.into()), ..known }),
            "flop_count" => {
                let parts = FLOP_COUNTS.map(|id| self.sum(id));
                match parts.into_iter().sum::<Option<f64>>() {
                    Some(sum) => known(sum, Some(EXPANDED)),
                    None => Err(NO_CLOCK.into()),
                }
            }
            _ => Err(NO_CLOCK.into()),
        }
    }

    /// Returns a count, or a weighted sum of counts.
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
}

/// Returns whether the metric counts an arithmetic instruction. The emulator's count has the
/// instruction's name.
fn arithmetic(id: &str) -> bool {
    let name = id.strip_suffix("_instructions").unwrap_or_default();
    name.len() == 4 && ["add", "mul", "fma"].iter().any(|operation| name.ends_with(operation))
}

#[cfg(test)]
mod tests;
