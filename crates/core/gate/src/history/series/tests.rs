use super::*;
use crate::history::PointSource;
use warpgauge_statistics::random::RandomStream;

fn key(case: &str, kind: DeviceKind, driver: &str) -> SeriesKey {
    SeriesKey {
        case: case.to_owned(),
        kind,
        device: "NVIDIA H200".to_owned(),
        driver: Some(driver.to_owned()),
        cuda: "13.0".to_owned(),
        method: "cuda_events_gated".to_owned(),
        method_version: 2,
    }
}

fn point(key: SeriesKey, unix_s: f64, ms: Option<f64>, counts: &[(&str, u64)]) -> HistoryPoint {
    HistoryPoint {
        key,
        unix_s,
        source: PointSource::Gate,
        job_id: None,
        commit: Some(format!("c{unix_s}")),
        branch: None,
        verdict: GateOutcome::Pass,
        count_verdicts: Default::default(),
        median_ms: ms,
        ci_low_ms: ms.map(|ms| ms * 0.99),
        ci_high_ms: ms.map(|ms| ms * 1.01),
        counts: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
    }
}

#[test]
fn what_was_measured_otherwise_is_another_series() {
    let gpu = |driver| key("a", DeviceKind::Cuda, driver);
    let emulated = key("a", DeviceKind::Emulator, "580");
    let points = vec![
        point(gpu("580"), 2.0, Some(2.0), &[]),
        point(gpu("580"), 1.0, Some(1.0), &[]),
        point(gpu("570"), 1.0, Some(1.0), &[]),
        // Times of the emulated device are ignored.
        point(emulated, 1.0, Some(5.0), &[("x", 1), ("y", 0)]),
        point(gpu("580"), 3.0, Some(f64::NAN), &[]),
    ];
    let series = group(points);
    let found = series.iter().map(|one| (one.key.kind, one.metric.as_str(), one.points.len()));
    let found = found.collect::<Vec<_>>();
    let (cuda, emulator) = (DeviceKind::Cuda, DeviceKind::Emulator);
    for expected in [(cuda, "time", 1), (cuda, "time", 2), (emulator, "x", 1), (emulator, "y", 1)] {
        assert!(found.contains(&expected), "{found:?}");
    }
    assert_eq!(found.len(), 4);
    let sorted = series.iter().find(|one| one.points.len() == 2).unwrap();
    assert!(sorted.points[0].unix_s < sorted.points[1].unix_s);
}

#[test]
fn times_change_where_it_is_no_chance_and_counts_where_they_differ() {
    let mut random = RandomStream::new(9);
    let time = |index: usize, noise: f64| {
        let level = if index < 25 { 0.1 } else { 0.103 };
        let key = key("t", DeviceKind::Cuda, "580");
        point(key, index as f64, Some(level * (1.0 + 0.004 * noise)), &[])
    };
    let times = (0..50).map(|index| time(index, random.normal())).collect();
    let [series] = group(times).try_into().unwrap();
    let [change] = series.changes.as_slice() else { panic!("{:?}", series.changes) };
    assert_eq!((change.at, change.commit.as_deref()), (25, Some("c25")));
    assert!((change.after / change.before - 1.03).abs() < 0.005 && change.p_value < 0.01);

    let count = |(index, count): (usize, &u64)| {
        point(key("c", DeviceKind::Emulator, "580"), index as f64, None, &[("n", *count)])
    };
    let counts = [7, 7, 8, 8, 7].iter().enumerate().map(count).collect();
    let [series] = group(counts).try_into().unwrap();
    let found = series.changes.iter().map(|one| (one.at, one.before, one.after));
    assert_eq!(found.collect::<Vec<_>>(), [(2, 7.0, 8.0), (4, 8.0, 7.0)]);
}
