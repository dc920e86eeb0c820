use super::super::{Imported, import};
use super::*;
use crate::select::select;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../../tests/fixtures/profile/ncu/2025.3.1-h200-", $name))
    };
}

fn of(text: &str) -> (Vec<ImportedVerdict>, Vec<KernelRule>) {
    let Imported::Ncu { verdicts, rules, .. } = import(text, &select(&[])).unwrap() else {
        panic!()
    };
    (verdicts, rules)
}

/// A real page: the device's facts come from its attributes.
#[test]
fn a_verdict_for_each_kernel_by_total_time() {
    let (verdicts, _) = of(fixture!("raw_full_base.csv"));
    assert_eq!(verdicts.len(), 5);
    let shares: f64 = verdicts.iter().filter_map(|verdict| verdict.share_pct).sum();
    assert!((shares - 100.0).abs() < 1e-9, "{shares}");
    assert!(verdicts.is_sorted_by(|a, b| a.total_seconds >= b.total_seconds));
    assert!(verdicts[0].kernel.starts_with("matmul_tiled"));
    let add = verdicts.iter().find(|it| it.kernel.starts_with("vector_add")).unwrap();
    assert_eq!(add.launches, 2);
    assert_eq!(add.bound_by, Some(BoundBy::Dram), "{}", add.bound_reason);
    assert_eq!(add.top_stalls[0].metric, "stall_long_scoreboard");
    assert_eq!(add.occupancy_limiter.as_ref().unwrap().names, ["warps"]);
    assert!(add.arithmetic_intensity.unwrap() < 0.1);
    let roofline = add.roofline.as_ref().unwrap();
    assert!(!roofline.points.is_empty() && roofline.time.is_some());
}

/// The page's own rules name what this program names.
#[test]
fn verdicts_agree_with_the_rules_of_the_tool() {
    let (verdicts, rules) = of(fixture!("details_full.csv"));
    for verdict in &verdicts {
        let own = rules
            .iter()
            .find(|rule| rule.kernel == verdict.kernel && rule.rule.name == "SOLBottleneck")
            .unwrap();
        let latency = own.rule.description.contains("latency issues");
        let found = verdict.bound_by == Some(BoundBy::Latency);
        assert_eq!(found, latency, "{}: {:?} {}", verdict.kernel, verdict, own.rule.description);
    }
    let mut seen = std::collections::BTreeSet::new();
    for rule in &rules {
        assert!(seen.insert((rule.kernel.clone(), rule.rule.clone().name, words(&rule.rule))));
    }
    assert!(rules.iter().any(|rule| rule.launches == 2), "vector_add was profiled twice");
}

/// Other metrics than the selected ones are behind a verdict, too.
#[test]
fn a_selection_does_not_change_the_verdict() {
    let selection = select(&["duration".to_owned()]);
    let text = fixture!("raw_full_base.csv");
    let Imported::Ncu { verdicts, device_metrics, .. } = import(text, &selection).unwrap() else {
        panic!()
    };
    assert_eq!(device_metrics.metrics.len(), 1);
    assert_eq!(verdicts, of(text).0);
}
