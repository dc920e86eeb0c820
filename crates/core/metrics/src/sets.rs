//! Named sets of metrics: each is a list of metrics and groups of the catalogue.
//!
//! On a GPU each additional counter may need another pass, that is, another launch. `POST
//! /profile/plan` returns the number of passes of a set. Metrics of the launch and the kernel's
//! resources (registers, occupancy, grid) need no pass.

/// The sets with their members: metrics and groups of the catalogue, or `all`.
const SETS: [(&str, &[&str]); 4] = [
    // The resource that limits the kernel: 9 passes on an H100 or H200.
    (
        "speed_of_light",
        &[
            "speed_of_light", // the group: throughputs as percentages of their peaks
            "duration",
            "elapsed_cycles",
            "occupancy", // the group: follows from the launch
        ],
    ),
    // The resource that limits the kernel, with the reasons.
    (
        "core",
        &[
            "speed_of_light",
            "duration",
            "elapsed_cycles",
            "occupancy",
            "detailed", // hit rates, achieved occupancy, instructions per cycle
            "dram_bytes",
            "dram_bandwidth",
            "l2_throughput",
            "sectors_per_global_load",
            "sectors_per_global_store",
            "shared_load_conflicts",
            "shared_store_conflicts",
            "flop_count", // one pass for all instructions that it counts
            "flop_count_single",
            "flop_count_double",
            "flop_count_half",
            "arithmetic_intensity",
            "flop_rate",
            "warp_instructions",
            "warps_eligible",
            "issue_active",
            "tensor_pipe_active",
        ],
    ),
    // The metrics that the roofline and the advice need.
    (
        "explain",
        &[
            "speed_of_light",
            "duration",
            "elapsed_cycles",
            "occupancy",
            "detailed",
            "pipeline", // the group: activity of the pipelines and of instruction issue
            "dram_bytes",
            "dram_bandwidth",
            "l1_bytes",
            "l2_bytes",
            "l2_throughput",
            "sm_clock",
            "l1_clock",
            "l2_clock",
            "dram_clock",
            "peak_single", // peaks are known without a pass
            "peak_double",
            "peak_half",
            "peak_tensor_half",
            "peak_tensor_tf32",
            "peak_tensor_double",
            "peak_tensor_fp8",
            "peak_dram",
            "peak_l2",
            "peak_l1",
            "flop_count",
            "flop_count_single",
            "flop_count_double",
            "flop_count_half",
            "flop_count_tensor",
            "flop_count_tensor_half",
            "flop_count_tensor_tf32",
            "flop_count_tensor_double",
            "flop_count_tensor_narrow",
            "ffma_instructions",
            "hfma_instructions",
            "arithmetic_intensity",
            "flop_rate",
            "ideal_read_bytes", // from the emulator
            "ideal_write_bytes",
            "access_pattern", // the group: coalescing, bank conflicts, local memory
            "stall_long_scoreboard",
            "stall_short_scoreboard",
            "stall_barrier",
            "issue_active",
            "warps_eligible",
            "warp_instructions",
            "threads_per_instruction",
            "divergent_branches",
        ],
    ),
    // All metrics.
    ("full", &["all"]),
];

/// Returns the members of a set: metrics and groups of the catalogue, or `all`. Returns `None` if
/// there is no such set.
pub fn set(name: &str) -> Option<&'static [&'static str]> {
    SETS.iter().find(|(set, _)| *set == name).map(|(_, members)| *members)
}

/// Returns the names of the sets.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{CATALOGUE, MetricGroup};
    use super::*;
    use warpgauge_model::PresetName;
    use warpgauge_statistics::Preset;

    #[test]
    fn sets_are_made_of_what_the_catalogue_has() {
        let is_known = |name: &str| {
            name == "all"
                || CATALOGUE.iter().any(|info| info.id == name || info.group.name() == name)
        };
        assert!(names().eq(["speed_of_light", "core", "explain", "full"]));
        for name in names() {
            let members = set(name).unwrap();
            assert!(members.iter().all(|member| is_known(member)), "{name}: {members:?}");
        }
        // A set and a group share a name, so the set must contain the group.
        assert!(set(MetricGroup::SpeedOfLight.name()).unwrap().contains(&"speed_of_light"));
        assert!(set("none").is_none());
    }

    #[test]
    fn presets_name_sets() {
        for name in [PresetName::Quick, PresetName::Ci, PresetName::Deep] {
            let preset = Preset::builtin(name);
            assert!(set(&preset.metrics).is_some(), "{}", preset.metrics);
        }
    }
}
