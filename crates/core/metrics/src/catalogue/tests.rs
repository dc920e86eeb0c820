use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::values::is_counter;

#[test]
fn ids_and_fields_are_unique_and_described() {
    let mut ids = BTreeSet::new();
    let mut fields = BTreeSet::new();
    for info in CATALOGUE {
        assert!(ids.insert(info.id), "{} twice", info.id);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(info.id.chars().all(plain), "{}", info.id);
        assert!(info.description.ends_with('.'), "{}", info.id);
        for field in info.fields {
            let path = format!("{:?}.{}", field.group, field.name);
            assert!(fields.insert(path.clone()), "{path} twice");
        }
    }
    // The CUDA Evaluation Server's responses have this many numbers.
    assert_eq!(fields.len(), 6 + 6 + 6 + 11 + 6 + 8 + 4 + 3 + 8 + 4 + 3);
}

/// Compute capabilities (times 10) of the chips that CUPTI names.
const CHIPS: [(&str, u32); 12] = [
    ("GV100", 70),
    ("TU102", 75),
    ("GA100", 80),
    ("GA102", 86),
    ("GA10B", 87),
    ("AD102", 89),
    ("GH100", 90),
    ("GB100", 100),
    ("GB102", 103),
    ("GB10B", 110),
    ("GB202", 120),
    ("GB20B", 121),
];

/// Returns CUPTI's list of metrics for each chip.
fn told() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let text = include_str!("../../../../../tests/fixtures/profile/nvidia-metrics-cupti-12.9.txt");
    let line = |line: &'static str| {
        let (name, chips) = line.split_once(' ').unwrap();
        let all = || CHIPS.map(|(chip, _)| chip).into();
        let chips = if chips == "all" { all() } else { chips.split(' ').collect() };
        (name, chips)
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

#[test]
fn each_source_exists_on_the_chips_that_it_is_for() {
    let told = told();
    let mut checked = 0;
    for info in CATALOGUE {
        for (chip, capability) in CHIPS {
            for name in info.sources_for(capability).flat_map(ChipFormula::names) {
                if !is_counter(name) {
                    continue;
                }
                let chips = told.get(name).unwrap_or_else(|| panic!("{}: {name}", info.id));
                assert!(chips.contains(chip), "{}: {chip} has no {name}", info.id);
                checked += 1;
            }
        }
    }
    assert!(checked > 2000, "{checked}");
}

/// The converse: every chip with a metric gets its source.
#[test]
fn each_metric_has_a_source_on_the_chips_that_know_one() {
    let told = told();
    for info in CATALOGUE {
        for (chip, capability) in CHIPS {
            let knows = |name: &str| told.get(name).is_some_and(|chips| chips.contains(chip));
            let whole = |source: &ChipFormula| matches!(source.formula, Formula::Metric(name) if knows(name));
            if info.sources.iter().any(whole) {
                let sources = info.sources_for(capability).count();
                assert!(sources > 0, "{}: {chip} has a source for it", info.id);
            }
        }
    }
}

#[test]
fn chips_without_counters_have_names_in_imported_pages_only() {
    let sources =
        |capability| CATALOGUE.iter().flat_map(|info| info.sources_for(capability)).count();
    assert!([35, 60, 61, 72].iter().all(|chip| !has_counters(*chip) && sources(*chip) > 0));
    assert!(has_counters(70) && has_counters(75) && has_counters(UNKNOWN));
    assert_eq!(sources(101), sources(110), "the same chip");
}

#[test]
fn formulas_are_sums_and_quotients() {
    let value = |name: &str| match name {
        "a" => Some(6.0),
        "b" => Some(4.0),
        "zero" => Some(0.0),
        _ => None,
    };
    let of = |formula: Formula| formula.evaluate(&value);
    assert_eq!(of(Formula::Sum(&["a", "b"])), Some(Ok(10.0)));
    assert_eq!(of(Formula::Difference("a", "b")), Some(Ok(2.0)));
    assert_eq!(of(Formula::Ratio("a", "b", 100.0)), Some(Ok(150.0)));
    assert_eq!(of(Formula::Weighted(&[("a", 2.0), ("b", 0.5)])), Some(Ok(14.0)));
    assert_eq!(of(Formula::Quotient(&[("a", 2.0)], &[("b", 1.0), ("a", 1.0)])), Some(Ok(1.2)));
    assert_eq!(of(Formula::Ratio("a", "zero", 1.0)), Some(Err(DividedByZero)));
    assert_eq!(of(Formula::Sum(&["a", "unknown"])), None);
}
