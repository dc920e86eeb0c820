use super::*;

const SMALL: &str = "version: 1\ncases:\n  - name: add\n    contract: add/contract.yaml\n";

fn refusal(text: &str) -> String {
    let error = Suite::parse(text.as_bytes()).expect_err(text);
    error.to_string()
}

#[test]
fn what_is_left_out_is_the_presets() {
    let suite = Suite::parse(SMALL.as_bytes()).unwrap();
    assert_eq!((suite.preset, suite.on_missing), (PresetName::Ci, OnMissing::Fail));
    let [case] = suite.cases.as_slice() else { panic!("{suite:?}") };
    assert_eq!((case.name.as_str(), case.metric, &case.source), ("add", GateMetric::Time, &None));
    let expected = CasePolicy {
        margin: 0.005,
        delta: 0.02,
        alpha: 0.01,
        count_margin: 0.0,
        on_inconclusive: OnInconclusive::Fail,
        advisory: false,
    };
    assert_eq!(case.policy, expected);
}

#[test]
fn a_case_overrides_the_defaults_and_they_the_preset() {
    let text = "version: 1
preset: deep
on_missing: warn
defaults: {margin: 0.02, delta: 0.05, on_inconclusive: warn}
cases:
  - {name: a, contract: a.yaml}
  - name: b
    contract: sub/b.yaml
    source: ../b.cu
    metric: warp_instructions
    policy: {margin: 0.01, advisory: true, count_margin: 0.1, alpha: 0.05, on_inconclusive: pass}
";
    let suite = Suite::parse(text.as_bytes()).unwrap();
    assert_eq!((suite.preset, suite.on_missing), (PresetName::Deep, OnMissing::Warn));
    let (a, b) = (&suite.cases[0], &suite.cases[1]);
    assert_eq!((a.policy.margin, a.policy.delta), (0.02, 0.05));
    assert_eq!(a.policy.on_inconclusive, OnInconclusive::Warn);
    assert_eq!((b.policy.margin, b.policy.delta, b.policy.alpha), (0.01, 0.05, 0.05));
    assert_eq!((b.policy.advisory, b.policy.count_margin), (true, 0.1));
    assert_eq!(b.policy.on_inconclusive, OnInconclusive::Pass);
    assert_eq!(
        (b.metric, b.source.as_deref()),
        (GateMetric::Count("warp_instructions"), Some("../b.cu"))
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let with = |more: &str| format!("{SMALL}{more}");
    let many: String =
        (0..=MAX_CASES).map(|i| format!("  - {{name: c{i}, contract: a.yaml}}\n")).collect();
    for (text, parts) in [
        ("".to_owned(), &["empty"][..]),
        ("version: [".to_owned(), &["suite cannot be read"]),
        ("version: 1\ncases: []\n".to_owned(), &["cases", "at least one case"]),
        ("version: 1\n".to_owned(), &["cases"]),
        ("version: 2\ncases: [{name: a, contract: a}]".to_owned(), &["version", "reads version 1"]),
        (format!("version: 1\ncases:\n{many}"), &["cases", "201"]),
        (with("extra: 1\n"), &["extra"]),
        (with("    kernel: a.cu\n"), &["cases[0]", "kernel"]),
        (with("    policy: {treshold: 1}\n"), &["policy", "treshold"]),
        (with("    policy: {margin: 0}\n"), &["cases[0].policy.margin", "is 0"]),
        (with("    policy: {margin: .nan}\n"), &["cases[0].policy.margin"]),
        (with("    policy: {margin: 5}\n"), &["cases[0].policy.margin", "relative"]),
        (with("    policy: {delta: 0.006}\n"), &["cases[0].policy.delta", "two margins"]),
        (with("    policy: {alpha: 0.5}\n"), &["cases[0].policy.alpha"]),
        (with("    policy: {count_margin: -0.1}\n"), &["cases[0].policy.count_margin"]),
        (with("    policy: {on_inconclusive: maybe}\n"), &["on_inconclusive"]),
        (with("    metric: registers\n"), &["cases[0].metric", "warp_instructions"]),
        (with("    source: /etc/passwd\n"), &["cases[0].source", "relative to the suite"]),
        (with("    source: ''\n"), &["cases[0].source"]),
        (with("  - {name: add, contract: b.yaml}\n"), &["cases[1].name", "earlier case"]),
        (with("  - {name: '', contract: b.yaml}\n"), &["cases[1].name"]),
        (with("  - {name: \"a\\nb\", contract: b.yaml}\n"), &["cases[1].name", "printable"]),
        (with("defaults: {margin: 0.3}\n"), &["defaults.margin"]),
        (with("preset: fast\n"), &["preset"]),
    ] {
        let said = refusal(&text);
        for part in parts {
            assert!(said.contains(part), "{text}\n→ {said}");
        }
    }
}

#[test]
fn keys_given_twice_are_refused() {
    let said = refusal("version: 1\nversion: 1\ncases: [{name: a, contract: a}]");
    assert!(said.contains("version"), "{said}");
}
