use serde_json::{Value, json};

use super::*;
use crate::BaselinePin;

fn contract(code: &str) -> Value {
    json!({"kernel": {"kernel_type": "ptx", "source_code": code}})
}

fn request(more: Value) -> GateRequest {
    let mut request = json!({"cases": [
        {"name": "a", "contract": contract("new a"), "baseline": contract("old a")},
        {"name": "b", "contract": contract("new b")},
    ]});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(request).unwrap()
}

fn stored(names: &[&str]) -> Baseline {
    let contract = |name: &&str| {
        ((*name).to_owned(), serde_json::from_value(contract(&format!("stored {name}"))).unwrap())
    };
    Baseline {
        name: "main".to_owned(),
        pin: BaselinePin {
            device: "d".to_owned(),
            driver: None,
            cuda: "13.0".to_owned(),
            method: "m".to_owned(),
            method_version: 1,
        },
        suite: "s".to_owned(),
        commit: Some("c0ffee".to_owned()),
        promoted_from: None,
        stored_unix_s: 1.0,
        cases: names.iter().map(contract).collect(),
    }
}

fn code(contract: &EvaluateRequest) -> &str {
    contract.kernel.source_code.as_deref().unwrap()
}

#[test]
fn each_case_brings_its_baseline_or_lacks_it() {
    let plan = request(json!({"suite": "s", "preset": "quick"})).plan(None).unwrap();
    assert_eq!((plan.suite.as_str(), plan.preset), ("s", PresetName::Quick));
    assert_eq!(plan.baseline.kind, BaselineKind::Inline);
    let CaseCode::Both(sides) = &plan.cases[0].code else { panic!("both sides have it") };
    assert_eq!((code(&sides.baseline), code(&sides.candidate)), ("old a", "new a"));
    let CaseCode::New { contract, why } = &plan.cases[1].code else { panic!("it is new") };
    assert_eq!(code(contract), "new b");
    assert!(why.contains("as given does not have the case"), "{why}");
}

#[test]
fn a_stored_baseline_has_its_pin_and_its_removed_cases() {
    let mut request = request(json!({"baseline": "main"}));
    request.cases[0].baseline = None;
    let plan = request.plan(Some(stored(&["a", "b", "gone"]))).unwrap();
    assert_eq!((plan.baseline.kind, plan.baseline.name.as_str()), (BaselineKind::Stored, "main"));
    assert_eq!(plan.baseline.commit.as_deref(), Some("c0ffee"));
    assert!(plan.pin.is_some());
    let found = plan.cases.iter().map(|case| (case.spec.name.as_str(), case.candidate().is_some()));
    assert_eq!(found.collect::<Vec<_>>(), [("a", true), ("b", true), ("gone", false)]);
    let CaseCode::Both(sides) = &plan.cases[1].code else { panic!("both sides have it") };
    assert_eq!(code(&sides.baseline), "stored b");
}

#[test]
fn what_the_requests_maker_knows_of_the_baseline_is_in_the_plan() {
    let plan = request(json!({
        "baseline_origin": {"kind": "git", "name": "main", "commit": "c0ffee"},
        "defaults": {"margin": 0.01, "delta": 0.04},
        "removed": [
            {"name": "gone", "metric": "barriers", "policy": {"advisory": true}},
            {"name": "lost"},
        ],
        "notes": ["n"],
    }));
    let plan = plan.plan(None).unwrap();
    assert_eq!((plan.baseline.kind, plan.baseline.name.as_str()), (BaselineKind::Git, "main"));
    assert_eq!(plan.baseline.commit.as_deref(), Some("c0ffee"));
    let CaseCode::New { why, .. } = &plan.cases[1].code else { panic!("it is new") };
    assert!(why.contains("main lacks files of the case"), "{why}");
    let [.., gone, lost] = &plan.cases[..] else { panic!("four cases") };
    assert_eq!(
        (gone.spec.name.as_str(), gone.spec.metric.to_string().as_str()),
        ("gone", "barriers")
    );
    assert!(gone.spec.policy.advisory);
    assert!([gone, lost].iter().all(|case| matches!(case.code, CaseCode::Removed(_))));
    assert!((lost.spec.policy.margin - 0.01).abs() < 1e-12 && !lost.spec.policy.advisory);
    assert_eq!(plan.notes, ["n"]);
    assert!(plan.pin.is_none());
}

#[test]
fn mistakes_are_found_where_they_are() {
    let at = |more: Value| match request(more).check() {
        Err(SuiteError::Value { at, .. }) => at,
        other => panic!("{other:?}"),
    };
    assert_eq!(at(json!({"baseline": "main"})), "cases[0].baseline");
    assert_eq!(at(json!({"cases": []})), "cases");
    assert_eq!(at(json!({"suite": ""})), "suite");
    assert_eq!(at(json!({"suite": "a".repeat(1025)})), "suite");
    let of = |kind: &str, name: &str| json!({"baseline_origin": {"kind": kind, "name": name}});
    assert_eq!(at(of("stored", "main")), "baseline_origin");
    assert_eq!(at(of("git", "a\nb")), "baseline_origin.name");
    assert_eq!(at(json!({"removed": [{"name": "b"}]})), "removed[0].name");
    assert_eq!(at(json!({"removed": [{"name": "c"}, {"name": "c"}]})), "removed[1].name");
    let metric = json!({"name": "c", "metric": "speed"});
    assert_eq!(at(json!({"removed": [metric]})), "removed[0].metric");
    assert_eq!(at(json!({"notes": ["ok", "\u{1b}[2J"]})), "notes[1]");
    assert_eq!(at(json!({"notes": vec!["n"; 17]})), "notes");
    assert_eq!(at(json!({"commit": "a\u{0}"})), "commit");
    assert_eq!(at(json!({"branch": "a\nb"})), "branch");
    assert_eq!(at(json!({"defaults": {"margin": 0.5}})), "defaults.margin");
    let twice = vec![json!({"name": "a", "contract": contract("x")}); 2];
    assert_eq!(at(json!({"cases": twice})), "cases[1].name");
    let metric = json!({"name": "a", "contract": contract("x"), "metric": "speed"});
    assert_eq!(at(json!({"cases": [metric]})), "cases[0].metric");
}

#[test]
fn names_of_baselines_stand_in_addresses() {
    for name in ["main", "a", "v1.2-rc_3", "0"] {
        assert!(crate::check_baseline_name(name).is_ok(), "{name}");
    }
    for name in ["", ".", "..", "a/b", "-x", "a b", "é", &"a".repeat(129)] {
        assert!(crate::check_baseline_name(name).is_err(), "{name}");
    }
}
