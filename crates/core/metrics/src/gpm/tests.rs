use super::*;
use crate::catalogue::CATALOGUE;
use crate::select;

fn window(period_us: f64, values: &[(&str, f64)]) -> MonitorWindow {
    MonitorWindow {
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        missing: BTreeMap::new(),
        window_s: 0.2,
        period_s: 1e-6 * period_us,
        repetitions: 1000,
    }
}

fn facts(running: MonitorWindow, restoring: Option<MonitorWindow>) -> MonitorFacts {
    MonitorFacts { running, restoring, empty_period_s: 2e-6, ..MonitorFacts::default() }
}

fn found(collected: &CollectedMetrics, id: &str) -> Found {
    told(collected, CATALOGUE.iter().find(|info| info.id == id).unwrap())
}

const BUSY: [(&str, f64); 4] = [
    ("gpm__sm_util", 80.0),
    ("gpm__sm_occupancy", 40.0),
    ("gpm__dram_bw_util", 60.0),
    ("gpm__fp16_util", 1.0),
];

#[test]
fn the_table_names_metrics_of_the_catalogue() {
    for id in metrics() {
        let info = CATALOGUE.iter().find(|info| info.id == id);
        assert_eq!(info.map(|info| info.unit), Some(MetricUnit::Percent), "{id}");
    }
    assert!(tells(&select(&["speed_of_light".to_owned()])));
    assert!(!tells(&select(&["flop_count".to_owned()])));
}

#[test]
fn shares_are_told_with_what_they_are_means_of() {
    let collected = collected(&facts(window(50.0, &BUSY), None), "k", Some("580.1")).unwrap();
    assert_eq!(collected.tool, "NVML GPM, driver 580.1");
    let dram = found(&collected, "dram_throughput").unwrap();
    assert_eq!((dram.value, dram.source), (60.0, MetricSource::Gpm));
    let note = dram.note.unwrap();
    assert!(note.contains("200 ms of launches back to back, 50.0 us apart"), "{note}");
    assert!(note.contains("up to 4 % of the time"), "{note}");
    // Idle time is in both the dividend and the divisor.
    assert_eq!(found(&collected, "achieved_occupancy").unwrap().value, 50.0);
    assert_eq!(found(&collected, "fp16_pipe_utilization").unwrap().value, 1.25);
    let counts = found(&collected, "flop_count").unwrap_err();
    assert!(counts.contains("no counts"), "{counts}");
    assert!(found(&collected, "fp64_pipe_active").unwrap_err().contains("gpm__fp64_util"));
    let conditions = &collected.conditions;
    assert_eq!(conditions.cache_control, Some(CacheControl::None));
    assert_eq!((conditions.window_ms, conditions.launches), (Some(200), Some(4000)));

    let mut metrics = BTreeMap::new();
    add_others(&mut metrics, &collected);
    assert_eq!(metrics["gpm__fp16_util"].value, Some(1.0));
    assert!(metrics["gpm__fp32_util"].reason.is_some() && metrics.len() == OTHERS.len());
}

/// The kernel takes 30 of 50 us and uses 80 % of the memory bandwidth; the copies use 30 %.
#[test]
fn what_puts_inputs_back_is_taken_out() {
    let copies = window(20.0, &[("gpm__sm_util", 50.0), ("gpm__dram_bw_util", 30.0)]);
    let collected = collected(&facts(window(50.0, &BUSY), Some(copies)), "k", None).unwrap();
    let value = |id| found(&collected, id).map(|known| known.value);
    assert!((value("dram_throughput").unwrap() - 80.0).abs() < 1e-9);
    assert!((value("sm_active_cycles").unwrap() - 100.0).abs() < 1e-9);
    assert!(value("achieved_occupancy").is_err(), "the copies' is not known");
    let note = collected.note.unwrap();
    assert!(note.contains("30.0 us apart") && note.contains("20.0 us for restoring"), "{note}");
}

#[test]
fn a_kernel_that_is_lost_among_copies_or_gaps_is_refused() {
    let copies = window(40.0, &BUSY);
    let refused = collected(&facts(window(50.0, &BUSY), Some(copies)), "k", None).unwrap_err();
    assert_eq!(refused.code, "no_data");
    assert!(refused.reason.contains("restoring the inputs takes 40.0"), "{}", refused.reason);

    let short = collected(&facts(window(3.0, &BUSY), None), "k", None).unwrap();
    assert!(found(&short, "achieved_occupancy").is_err());
    let dram = found(&short, "dram_throughput").unwrap_err();
    assert!(dram.contains("too short") && dram.contains("67 %"), "{dram}");

    let nothing = MonitorWindow::default();
    assert_eq!(collected(&facts(nothing, None), "k", None).unwrap_err().code, "no_data");
    let why = Cause::NoPermission.because("no");
    let refused = MonitorFacts { unavailable: Some(why.clone()), ..MonitorFacts::default() };
    assert_eq!(collected(&refused, "k", None).unwrap_err(), why);
}

#[test]
fn an_idle_gpu_has_no_occupancy() {
    let idle = [("gpm__sm_util", 0.2), ("gpm__sm_occupancy", 0.1)];
    let collected = collected(&facts(window(50.0, &idle), None), "k", None).unwrap();
    assert!(found(&collected, "achieved_occupancy").unwrap_err().contains("hardly active"));
    assert_eq!(found(&collected, "sm_active_cycles").unwrap().value, 0.2);
}
