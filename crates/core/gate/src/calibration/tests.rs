use super::*;

const PLANNED: PlannedTest = PlannedTest { margin: 0.005, delta: 0.02, alpha: 0.01, blocks: 64 };

fn run(ratio: f64, block_sd: f64, sound: bool) -> PairedComparison {
    let mut json: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../openapi/examples/comparison.json"))
            .expect("JSON");
    json["time"]["ratio"] = ratio.into();
    json["time"]["block_sd"] = block_sd.into();
    if !sound {
        json["p_value"] = serde_json::Value::Null;
    }
    serde_json::from_value(json).expect("a comparison")
}

fn conditions() -> CalibrationConditions {
    CalibrationConditions {
        device: "NVIDIA H200".to_owned(),
        driver: Some("580.1".to_owned()),
        cuda: "13.0".to_owned(),
        method: "cuda_events_gated".to_owned(),
        method_version: 2,
        preset: PresetName::Ci,
    }
}

#[test]
fn a_quiet_case_carries_the_gate() {
    let runs = [run(1.001, 0.005, true), run(0.998, 0.004, true), run(1.0, 0.003, true)];
    let found = calibrated(CacheState::default(), &runs, &PLANNED, Vec::new());
    assert!((found.floor - 0.002).abs() < 1e-12, "{found:?}");
    assert_eq!(found.block_sd, 0.005);
    // This is a row of the published table: margin 0.5 %, s = 0.5 %, 64 blocks.
    assert!((100.0 * found.minimum_detectable_effect - 0.75).abs() < 0.0075, "{found:?}");
    assert!(found.advisory.is_empty(), "{found:?}");
}

#[test]
fn a_case_that_cannot_carry_the_gate_says_why() {
    let noisy = [run(1.0, 0.05, true), run(1.0, 0.01, true), run(1.0, 0.01, true)];
    let of = |runs: &[PairedComparison]| {
        calibrated(CacheState::default(), runs, &PLANNED, Vec::new()).advisory.join("; ")
    };
    assert!(of(&noisy).contains("2.00 % must be detected"), "{}", of(&noisy));
    // A constant bias widens the margin beyond Δ.
    let biased = [run(1.0, 0.001, true), run(1.03, 0.001, true), run(1.0, 0.001, true)];
    assert!(of(&biased).contains("must be detected"), "{}", of(&biased));
    let unsound = [run(1.0, 0.001, true), run(1.0, 0.001, false)];
    assert!(of(&unsound).contains("1 of 2 runs"), "{}", of(&unsound));
    let extra = vec!["has two modes".to_owned()];
    let found = calibrated(CacheState::default(), &[run(1.0, 0.001, true)], &PLANNED, extra);
    assert_eq!(found.advisory, ["has two modes"]);
}

#[test]
fn another_machine_or_method_is_named() {
    let calibration = Calibration::new(conditions(), 64, 5, BTreeMap::new());
    assert!(calibration.check(&conditions()).is_ok());
    type Change = fn(&mut CalibrationConditions);
    let changes: [(Change, &str); 5] = [
        (|now| now.device = "NVIDIA H100".to_owned(), "device: NVIDIA H200 then, NVIDIA H100 now"),
        (|now| now.driver = None, "driver: 580.1 then, unknown now"),
        (|now| now.cuda = "12.9".to_owned(), "CUDA version: 13.0 then, 12.9 now"),
        (|now| now.method_version = 3, "cuda_events_gated version 3 now"),
        (|now| now.preset = PresetName::Deep, "preset: ci then, deep now"),
    ];
    for (change, expected) in changes {
        let mut now = conditions();
        change(&mut now);
        let said = calibration.check(&now).expect_err(expected).to_string();
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("calibrate again"), "{said}");
    }
}

#[test]
fn files_are_read_back_and_checked() {
    let case = calibrated(CacheState::default(), &[run(1.0, 0.001, true)], &PLANNED, Vec::new());
    let cases = BTreeMap::from([("a".to_owned(), case)]);
    let calibration = Calibration::new(conditions(), 64, 5, cases);
    let text = serde_json::to_string(&calibration).unwrap();
    assert_eq!(Calibration::parse(text.as_bytes()).unwrap(), calibration);
    for (from, to, expected) in [
        ("\"version\":1", "\"version\":2", "not the version that this program reads"),
        ("\"floor\":0.0", "\"floor\":-1.0", "cases.a.floor"),
        ("\"runs\":5", "\"runs\":5,\"more\":1", "more"),
        ("{", "", "cannot be read"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let said = Calibration::parse(text.replacen(from, to, 1).as_bytes());
        let said = said.expect_err(expected).to_string();
        assert!(said.contains(expected) && said.contains("gate calibrate"), "{said}");
    }
}
