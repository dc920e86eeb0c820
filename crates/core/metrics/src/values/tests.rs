use super::super::testing::h200;
use super::*;
use crate::select;
use warpgauge_model::FunctionFacts;

const DURATION: &str = "gpu__time_duration.sum";
const LOADS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
const LOAD_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";

fn collected(values: &[(&str, f64)]) -> CollectedMetrics {
    CollectedMetrics {
        source: MetricSource::Cupti,
        tool: "CUPTI 13.0.85".to_owned(),
        kernel: "k".to_owned(),
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        missing: BTreeMap::new(),
        conditions: Conditions { passes: Some(3), ..Conditions::default() },
        note: None,
    }
}

fn report(collected: &CollectedMetrics, names: &[&str]) -> DeviceMetrics {
    let device = h200();
    let function = FunctionFacts {
        registers: 16,
        static_shared_bytes: 0,
        local_bytes: 0,
        const_bytes: 0,
        max_threads_per_block: 1024,
        max_active_blocks: 8,
    };
    let launch = DeviceLaunch {
        device: &device,
        function: Some(&function),
        grid: [65_536, 1, 1],
        block: [256, 1, 1],
        dynamic_shared_bytes: 0,
    };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    device_metrics(collected, &launch, &select(&names))
}

#[test]
fn formulas_are_evaluated_and_facts_of_the_launch_added() {
    let collected = collected(&[(DURATION, 64e-6), (LOADS, 10.0), (LOAD_SECTORS, 40.0)]);
    let report = report(&collected, &[]);
    assert_eq!(report.metrics["duration"].value, Some(64e-6));
    assert_eq!(report.metrics["duration"].source, Some(MetricSource::Cupti));
    assert_eq!(report.metrics["sectors_per_global_load"].value, Some(4.0));
    let timing = &report.original_device_metrics.timing_metrics;
    assert!((timing["gpu_time_duration_sum"] - 64_000.0).abs() < 1e-6);
    // The values are those that Nsight Compute 2025.3.1 reported for this launch on an H200.
    let registers = &report.metrics["registers_per_thread"];
    assert_eq!((registers.value, registers.source), (Some(16.0), Some(MetricSource::Static)));
    assert_eq!(registers.note, None, "no estimate on a GPU");
    assert!((report.metrics["waves_per_sm"].value.unwrap() - 62.06).abs() < 0.005);
    assert_eq!(report.conditions.unwrap().passes, Some(3));
}

#[test]
fn each_metric_without_a_value_has_its_reason() {
    let mut collected = collected(&[(LOADS, 0.0), (LOAD_SECTORS, 0.0)]);
    let refused = "the tool gave no number (nan)";
    collected.missing.insert(DURATION.to_owned(), refused.to_owned());
    let report = report(&collected, &[]);
    for (id, metric) in &report.metrics {
        assert_ne!(metric.value.is_some(), metric.reason.is_some(), "{id}");
        assert_eq!(metric.value.is_some(), metric.source.is_some(), "{id}");
    }
    let reason = |id: &str| report.metrics[id].reason.clone().unwrap();
    assert_eq!(reason("duration"), format!("{DURATION}: {refused}"));
    assert_eq!(reason("sectors_per_global_load"), NO_REQUESTS);
    assert_eq!(reason("ideal_read_bytes"), EMULATOR_ONLY);
    assert!(reason("dram_bytes").contains("CUPTI 13.0.85 does not report dram__bytes.sum"));
    // Properties of the launch do not depend on the counters.
    assert_eq!(report.metrics["block_size"].value, Some(256.0));
}

#[test]
fn names_to_ask_for_are_those_of_the_sources() {
    let names: Vec<String> =
        ["duration", "block_size", "sectors_per_global_load"].map(str::to_owned).to_vec();
    let selection = select(&names);
    let counters = [DURATION, LOADS, LOAD_SECTORS];
    assert_eq!(counter_names(&selection, 90), counters.into());
    let mut all: BTreeSet<&str> = counters.into();
    all.insert("launch__block_size");
    assert_eq!(nvidia_names(&selection, 90), all);
    assert!(nvidia_names(&selection, 60).is_empty(), "no such chip");
}
