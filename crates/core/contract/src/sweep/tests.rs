use proptest::prelude::*;
use serde_json::{Value, json};

use super::range;
use super::{AxisValue, SweepPlan, SweepRequest};
use crate::{ContractError, ContractLimits, Extent, validate};

use warpgauge_model::FailureCode;

fn expanded(text: &str) -> Value {
    match range::expand(text, 1024) {
        Ok(values) => serde_json::to_value(values).unwrap(),
        Err(message) => json!({ "error": message }),
    }
}

#[test]
fn ranges() {
    for (text, values) in [
        ("1..4", json!([1, 2, 3, 4])),
        ("2^10..2^16 by x4", json!([1024, 4096, 16384, 65536])),
        ("2^10 .. 2^11 by *3", json!([1024])),
        ("1..100 by 33", json!([1, 34, 67, 100])),
        ("-2..2 by 2", json!([-2, 0, 2])),
        ("0..1 by 0.25", json!([0.0, 0.25, 0.5, 0.75, 1.0])),
        // Sums of doubles would give 0.30000000000000004.
        ("0.1..0.3 by 0.1", json!([0.1, 0.2, 0.3])),
        ("0.5..4 by x2", json!([0.5, 1.0, 2.0, 4.0])),
        ("7..7", json!([7])),
        ("2^20", json!([1_048_576])),
        ("9223372036854775807..9223372036854775807", json!([i64::MAX])),
        ("float", json!(["float"])),
        ("a..b", json!(["a..b"])),
        ("64", json!(["64"])),
        ("", json!([""])),
    ] {
        assert_eq!(expanded(text), values, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_range_is_said() {
    for (text, part) in [
        ("4..1", "swap the ends"),
        ("1..4 by 0", "above 0"),
        ("1..4 by -1", "above 0"),
        ("1..4 by x1", "at least 2"),
        ("1..4 by x1.5", "at least 2"),
        ("0..4 by x2", "start above 0"),
        ("1..", "`` is not a number"),
        ("1..x", "`x` is not a number"),
        ("1..2..3", "is not a number"),
        ("1.5.5..2", "is not a number"),
        ("1...5", "is not a number"),
        ("1..2^64 by x2", "64 bits"),
        ("1..99999999999999999999999999999999999999999999", "64 bits"),
        ("2^200", "64 bits"),
        ("1..2 by 0.0000000000001", "12 digits"),
        ("1..100000000", "at most 1024"),
    ] {
        let answer = expanded(text);
        let message = answer["error"].as_str().unwrap_or_else(|| panic!("{text}: {answer}"));
        assert!(message.contains(part), "{text}: {message}");
    }
    let long = format!("1..{}", " ".repeat(200));
    assert!(expanded(&long)["error"].is_string() || long.trim() == "1..");
}

proptest! {
    #[test]
    fn expanding_is_total_and_bounded(
        text in "[0-9.^xby*+ -]{0,24}|\\PC{0,40}",
        limit in 0_usize..64,
    ) {
        if let Ok(values) = range::expand(&text, limit) {
            prop_assert!(values.len() <= limit);
        }
    }

    #[test]
    fn additive_ranges_are_those_of_counting(
        start in -1000_i64..1000,
        count in 0_i64..50,
        step in 1_i64..50,
    ) {
        let text = format!("{start}..{} by {step}", start + count * step);
        let expected = (0..=count).map(|i| AxisValue::Int(start + i * step)).collect::<Vec<_>>();
        prop_assert_eq!(range::expand(&text, 1024).unwrap(), expected);
    }

    #[test]
    fn substitution_is_total(text in "[$a-c{}\\[\\]* 0-9]{0,24}|\\PC{0,40}") {
        let mut body = contract();
        body["kernel"]["metadata"]["description"] = text.into();
        if let Ok(plan) = plan(body) {
            for index in 0..plan.points() {
                let _ = plan.request(index);
            }
        }
    }
}

fn contract() -> Value {
    json!({
        "axes": {"n": ["2^10..2^12 by x4"], "block": [64, 128], "type": ["float", "double"]},
        "kernel": {
            "kernel_type": "cuda",
            "source_code": "$n is untouched here",
            "metadata": {
                "kernel_name": "scale<${type}>",
                "compiler_options": ["-DBLOCK=$block", "-D$$", "$n"],
            },
            "io": {
                "args": [
                    {"name": "x", "type": "tensor", "role": "inout", "tensor_spec": {
                        "shape": ["m", "$n + 1", 2],
                        "init": {"kind": "full", "fill_value": "$block"}}},
                    {"name": "m", "type": "int", "value": "$n * 2"},
                ],
                "launch": {"grid": {"x": "ceil_div(m, $block)"}, "block": {"x": "$block"}},
            },
        },
        "num_trials": "$block / 2",
        "work": {"bytes": "8 * $n"},
    })
}

fn plan(body: Value) -> Result<SweepPlan, Vec<ContractError>> {
    SweepPlan::new(
        serde_json::from_value::<SweepRequest>(body).unwrap(),
        &ContractLimits::default(),
    )
}

#[test]
fn points_are_contracts() {
    let plan = plan(contract()).unwrap();
    assert_eq!(plan.points(), 8);
    let names: Vec<_> = plan.axes().iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["block", "n", "type"]);
    let values = serde_json::to_value(plan.values(6)).unwrap();
    assert_eq!(values, json!({"block": 128, "n": 4096, "type": "float"}));
    let request = plan.request(6).unwrap();
    let metadata = request.kernel.metadata.unwrap();
    assert_eq!(metadata.kernel_name.as_deref(), Some("scale<float>"));
    assert_eq!(metadata.compiler_options, ["-DBLOCK=128", "-D$", "4096"]);
    assert_eq!(request.kernel.source_code.as_deref(), Some("$n is untouched here"));
    let io = request.kernel.io.unwrap();
    let spec = io.args[0].tensor_spec.as_ref().unwrap();
    assert_eq!(spec.shape, [8192, 4097, 2]);
    assert_eq!(spec.init.as_ref().unwrap().fill_value, Some(128.0));
    assert_eq!(io.args[1].value, Some(json!(8192)));
    let launch = io.launch.unwrap();
    assert_eq!(launch.block.unwrap().x, Extent::Value(128));
    assert_eq!(launch.grid.unwrap().x, Extent::Expression("ceil_div(m, 128)".into()));
    assert_eq!(request.num_trials, Some(64));
    assert_eq!(request.work.unwrap().bytes, Some(32768.0));
}

#[test]
fn every_point_comes_once() {
    let plan = plan(contract()).unwrap();
    let mut all: Vec<_> = (0..plan.points())
        .map(|index| serde_json::to_string(&plan.values(index)).unwrap())
        .collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8);
}

/// Returns the first mistake of the changed contract.
fn mistake(change: impl FnOnce(&mut Value)) -> (String, FailureCode, String) {
    let mut body = contract();
    change(&mut body);
    let error = match plan(body) {
        Err(errors) => errors[0].clone(),
        Ok(plan) => match plan.request(0) {
            Err(errors) => errors[0].clone(),
            Ok(request) => validate(&request, &ContractLimits::default()).unwrap_err()[0].clone(),
        },
    };
    (error.path, error.code, error.message)
}

#[test]
fn mistakes_are_located() {
    type Change = fn(&mut Value);
    let cases: [(&str, &str, Change); 15] = [
        ("axes", "axes", |b| b["axes"] = json!({})),
        ("axes", "axes", |b| {
            for axis in 0..9 {
                b["axes"][format!("a{axis}")] = json!([1]);
            }
        }),
        ("axes.n", "axis_value", |b| b["axes"]["n"] = json!([])),
        ("axes.n[1]", "axis_value", |b| b["axes"]["n"] = json!([1, "4..1"])),
        ("axes.n", "duplicate_value", |b| b["axes"]["n"] = json!([2, "1..3"])),
        ("axes.1n", "axis_name", |b| b["axes"]["1n"] = json!([1])),
        ("axes.more", "unused_axis", |b| b["axes"]["more"] = json!([1])),
        ("axes", "too_many_points", |b| b["axes"]["n"] = json!(["1..1000"])),
        ("kernel.metadata.kernel_name", "axis_reference", |b| {
            b["kernel"]["metadata"]["kernel_name"] = json!("k$typo")
        }),
        ("kernel.metadata.compiler_options[0]", "axis_reference", |b| {
            b["kernel"]["metadata"]["compiler_options"][0] = json!("-DX=${block")
        }),
        ("kernel.io.args[0].tensor_spec.shape[1]", "invalid_expression", |b| {
            b["kernel"]["io"]["args"][0]["tensor_spec"]["shape"][1] = json!("n")
        }),
        ("kernel.io.args[0].tensor_spec.shape[1]", "invalid_expression", |b| {
            b["kernel"]["io"]["args"][0]["tensor_spec"]["shape"][1] = json!("0 - $n")
        }),
        ("kernel.io.args[0].name", "wrong_type", |b| {
            b["kernel"]["io"]["args"][0]["name"] = json!("$n")
        }),
        ("kernel.io.wrong", "unknown_field", |b| b["kernel"]["io"]["wrong"] = json!(1)),
        ("return_outputs", "not_in_a_sweep", |b| b["return_outputs"] = json!("all")),
    ];
    for (path, code, change) in cases {
        let (found_path, found_code, message) = mistake(change);
        assert_eq!((found_path.as_str(), found_code.as_str()), (path, code), "{message}");
        assert!(message.len() > 10, "{message}");
    }
}

#[test]
fn a_contract_times_its_points_is_bounded() {
    let (path, code, _) = mistake(|body| {
        body["axes"]["n"] = json!(["1..250"]);
        body["kernel"]["source_code"] = "x".repeat(20 << 20).into();
    });
    assert_eq!((path.as_str(), code), ("axes", FailureCode::TooLarge));
}

#[test]
fn values_are_scalars() {
    for wrong in [json!([null]), json!([[1]]), json!([{"a": 1}]), json!([u64::MAX]), json!(1)] {
        let mut body = contract();
        body["axes"]["n"] = wrong.clone();
        assert!(serde_json::from_value::<SweepRequest>(body).is_err(), "{wrong}");
    }
}
