use super::super::testing::emulated_h200;
use super::*;
use crate::catalogue::CATALOGUE;
use crate::select;
use warpgauge_model::{DeviceInfo, FunctionFacts};

/// Returns the counts of a kernel of 2 warps. Each thread loads 8 bytes, stores 4, and does one
/// multiplication and one f16 pair operation.
fn counts() -> LaunchCounts {
    let counts = [
        ("global_load_requests", 4),
        ("global_load_sectors", 64),
        ("global_load_ideal_sectors", 16),
        ("global_store_requests", 0),
        ("global_store_sectors", 0),
        ("global_store_ideal_sectors", 0),
        ("fadd", 0),
        ("fmul", 64),
        ("ffma", 1),
        ("dadd", 0),
        ("dmul", 0),
        ("dfma", 0),
        ("half_ops", 128),
        ("tensor_half_ops", 0),
        ("tensor_tf32_ops", 0),
        ("tensor_double_ops", 0),
        ("tensor_fp8_ops", 0),
        ("warp_instructions", 10),
        ("active_threads", 160),
    ];
    LaunchCounts {
        kernels: std::collections::BTreeMap::new(),
        kernel: "k".to_owned(),
        version: "1.2.3".to_owned(),
        counts: counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        instructions: Vec::new(),
    }
}

fn report(names: &[&str]) -> DeviceMetrics {
    let device = DeviceInfo { multiprocessors: 10, ..emulated_h200() };
    let function = FunctionFacts {
        registers: 40,
        static_shared_bytes: 3000,
        local_bytes: 0,
        const_bytes: 0,
        max_threads_per_block: 1024,
        max_active_blocks: 24,
    };
    let launch = DeviceLaunch {
        device: &device,
        function: Some(&function),
        grid: [60, 2, 1],
        block: [32, 2, 1],
        dynamic_shared_bytes: 96,
    };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    metrics(&counts(), &launch, &select(&names))
}

#[test]
fn values_follow_from_counts_and_launch() {
    let report = report(&[]);
    let value = |id: &str| report.metrics[id].value;
    assert_eq!(value("sectors_per_global_load"), Some(16.0));
    assert_eq!(value("l2_sectors_global_excessive"), Some(48.0));
    assert_eq!(value("l2_sectors_global_excess"), Some(0.75));
    assert_eq!(value("fmul_instructions"), Some(64.0));
    assert_eq!(value("flop_count"), Some(64.0 + 2.0 + 128.0));
    assert_eq!(value("threads_per_instruction"), Some(16.0));
    assert_eq!(value("block_size"), Some(64.0));
    assert_eq!(value("grid_size"), Some(120.0));
    assert_eq!(value("shared_memory_per_block"), Some(3000.0 + 96.0 + 1024.0));
    assert_eq!(value("occupancy_limit_registers"), Some(24.0));
    assert_eq!(value("theoretical_occupancy"), Some(75.0));
    assert_eq!(value("waves_per_sm"), Some(0.5));
    assert_eq!(report.tool, "warpgauge-emulator 1.2.3");
    let groups = &report.original_device_metrics;
    assert_eq!(groups.access_pattern_metrics["l1_load_sectors_per_req"], 16.0);
    assert_eq!(groups.occupancy_metrics["shared_mem_per_block"], 4120.0);
    assert_eq!(groups.compute_metrics["registers_per_thread"], 40.0);
    assert!(report.metrics["registers_per_thread"].note.is_some(), "an estimate, and says so");
}

/// A count of zero is a value. A metric that the emulator cannot know has no value, not zero.
#[test]
fn what_is_not_known_is_absent_with_a_reason() {
    let report = report(&[]);
    assert_eq!(report.metrics.len(), CATALOGUE.len());
    for (id, metric) in &report.metrics {
        assert_ne!(metric.value.is_some(), metric.reason.is_some(), "{id}");
        assert_eq!(metric.value.is_some(), metric.source.is_some(), "{id}");
    }
    assert_eq!(report.metrics["fadd_instructions"].value, Some(0.0));
    assert_eq!(report.metrics["sectors_per_global_store"].reason.as_deref(), Some(NO_REQUESTS));
    for id in ["dram_throughput", "stall_barrier", "duration", "l1_hit_rate", "flop_rate"] {
        assert_eq!(report.metrics[id].reason.as_deref(), Some(NO_CLOCK), "{id}");
    }
    let groups = &report.original_device_metrics;
    assert!(groups.speed_of_light.is_empty() && groups.timing_metrics.is_empty());
    assert!(!groups.access_pattern_metrics.contains_key("l1_store_sectors_per_req"));
}

#[test]
fn names_that_are_no_metrics_are_answered() {
    let report = report(&["roofline", "bogus"]);
    assert!(report.metrics["bogus"].reason.is_some());
    assert_eq!(report.metrics["bogus"].unit, None);
    assert!(report.metrics.contains_key("flop_count"));
    assert!(!report.metrics.contains_key("block_size"));
}

/// A plan names what a profile then has: each metric has a value, or the reason that it needs a GPU.
#[test]
fn metrics_that_a_gpu_alone_has_are_known_before() {
    let device = emulated_h200();
    let launch = DeviceLaunch {
        device: &device,
        function: None,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        dynamic_shared_bytes: 0,
    };
    let mut counts = counts();
    for id in COUNTED {
        let name = if arithmetic(id) { id.strip_suffix("_instructions").unwrap() } else { id };
        counts.counts.insert(name.to_owned(), 1);
    }
    let found = metrics(&counts, &launch, &select(&[]));
    for info in CATALOGUE {
        let gpu_alone = found.metrics[info.id].reason.as_deref() == Some(NO_CLOCK);
        assert_eq!(not_emulated(info.id).is_some(), gpu_alone, "{}", info.id);
        assert_eq!(launch.fact(info.id).is_some(), DeviceLaunch::follows(info.id), "{}", info.id);
    }
}
