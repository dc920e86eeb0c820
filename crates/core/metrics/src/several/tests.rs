use super::*;
use crate::select;
use crate::types::{Conditions, MetricSource};

const LOADS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
const SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
const DRAM: &str = "dram__bytes.sum";
const OCCUPANCY: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";
const REGISTERS: &str = "launch__registers_per_thread";

fn collected(kernel: &str, values: &[(&str, f64)]) -> CollectedMetrics {
    CollectedMetrics {
        source: MetricSource::Ncu,
        tool: "Nsight Compute 2025.3.1".to_owned(),
        kernel: kernel.to_owned(),
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        missing: BTreeMap::new(),
        conditions: Conditions { passes: Some(4), ..Conditions::default() },
        note: None,
    }
}

fn of(all: &[CollectedMetrics]) -> DeviceMetrics {
    let profiled: Vec<ProfiledLaunch<'_>> = all
        .iter()
        .map(|collected| ProfiledLaunch { collected, capability: 90, launch: None })
        .collect();
    several_metrics(&profiled, &select(&[])).unwrap()
}

fn two() -> [CollectedMetrics; 2] {
    [
        collected(
            "a",
            &[
                (DURATION, 1e-6),
                (DRAM, 1000.0),
                (OCCUPANCY, 90.0),
                (LOADS, 10.0),
                (SECTORS, 320.0),
                (REGISTERS, 32.0),
                ("dram__bytes.sum.per_second", 1e9),
            ],
        ),
        collected(
            "b",
            &[
                (DURATION, 3e-6),
                (DRAM, 500.0),
                (OCCUPANCY, 50.0),
                (LOADS, 30.0),
                (SECTORS, 120.0),
                (REGISTERS, 64.0),
                ("dram__bytes.sum.per_second", 500.0 / 3e-6),
            ],
        ),
    ]
}

#[test]
fn counts_are_added_and_percentages_weighted() {
    let metrics = of(&two());
    let value = |id: &str| metrics.metrics[id].value.unwrap();
    assert!((value("duration") - 4e-6).abs() < 1e-15);
    assert_eq!(value("dram_bytes"), 1500.0);
    assert!((value("achieved_occupancy") - 60.0).abs() < 1e-9, "(90·1 + 50·3) / 4");
    assert_eq!(metrics.metrics["achieved_occupancy"].note.as_deref(), Some(WEIGHTED));
    assert!((value("sectors_per_global_load") - 11.0).abs() < 1e-9, "440 / 40, not (32 + 4) / 2");
    assert!((value("dram_bandwidth") - 1500.0 / 4e-6).abs() < 1.0, "all bytes in all time");
    assert_eq!(metrics.metrics["registers_per_thread"].reason.as_deref(), Some(DIFFERS));
    assert_eq!(metrics.kernel, "2 kernels");
    let timing = &metrics.original_device_metrics.timing_metrics;
    assert!((timing["gpu_time_duration_sum"] - 4000.0).abs() < 1e-6);
}

#[test]
fn kernels_are_kept_apart_longest_first() {
    let [a, b] = two();
    let metrics = of(&[a.clone(), b, a]);
    let told: Vec<(&str, u32, f64)> = metrics
        .kernels
        .iter()
        .map(|kernel| {
            (kernel.kernel.as_str(), kernel.launches, kernel.metrics["dram_bytes"].value.unwrap())
        })
        .collect();
    assert_eq!(told, [("b", 1, 500.0), ("a", 2, 2000.0)]);
    let registers = &metrics.kernels[1].metrics["registers_per_thread"];
    assert_eq!(registers.value, Some(32.0), "the same for both launches");
    assert_eq!(of(&two()[..1]).kernels, [], "one is told as one");
}

#[test]
fn a_kernel_without_a_value_leaves_the_whole_without_one() {
    let [mut a, b] = two();
    a.values.remove(DRAM);
    let metrics = of(&[a, b]);
    let bytes = &metrics.metrics["dram_bytes"];
    assert_eq!(bytes.value, None);
    assert!(bytes.reason.as_ref().unwrap().starts_with("a: "), "{bytes:?}");
    let [mut a, b] = two();
    a.values.remove(DURATION);
    let metrics = of(&[a, b]);
    assert!(metrics.metrics["achieved_occupancy"].reason.as_ref().unwrap().contains(DURATION));
}

#[test]
fn kernels_beyond_the_bound_are_counted() {
    let all: Vec<CollectedMetrics> = (0..MAX_KERNELS + 2)
        .map(|index| collected(&format!("k{index}"), &[(DURATION, 1e-6)]))
        .collect();
    let metrics = of(&all);
    assert_eq!((metrics.kernels.len(), metrics.kernels_left_out), (MAX_KERNELS, Some(2)));
}

#[test]
fn every_metric_has_a_rule_that_never_adds_percentages() {
    use crate::catalogue::CATALOGUE;
    for info in CATALOGUE {
        let added = rule(info) == Rule::Sum;
        let averaged = matches!(
            info.unit,
            MetricUnit::Percent | MetricUnit::Hertz | MetricUnit::BytesPerSecond
        );
        assert!(!(added && averaged), "{}", info.id);
    }
}
