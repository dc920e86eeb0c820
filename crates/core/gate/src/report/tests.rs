use serde_json::{Value, json};

use super::*;
use crate::GateOutcome;

/// Text that could end a table cell, a tag or a string.
const HOSTILE: &str = "a|b <script>alert(1)</script> & \"q\" 'p' @all [x](http://y) \u{1}";

fn comparison(ratio: f64) -> Value {
    let mut json: Value =
        serde_json::from_str(include_str!("../../../../../openapi/examples/comparison.json"))
            .expect("JSON");
    json["time"]["ratio"] = ratio.into();
    json["time"]["ci_low"] = (ratio - 0.004).into();
    json["time"]["ci_high"] = (ratio + 0.004).into();
    json
}

fn case(name: &str, outcome: &str, reason: &str, blocking: bool) -> Value {
    json!({
        "name": name, "metric": "time", "outcome": outcome, "reason": reason, "detail": "",
        "blocking": blocking, "duration_s": 0.5,
        "policy": {"margin": 0.005, "delta": 0.02, "alpha": 0.01, "count_margin": 0.0,
                   "on_inconclusive": "fail", "advisory": false},
    })
}

/// Returns a report with every outcome, times, counts and hostile texts.
fn report() -> GateReport {
    let mut slower = case(HOSTILE, "REGRESSION", "confirmed", true);
    slower["comparison"] = comparison(1.03);
    slower["confirmation"] = comparison(1.031);
    slower["baseline_ms"] = json!(0.1);
    slower["candidate_ms"] = json!(0.103);
    slower["adjusted_p"] = json!(1e-9);
    slower["identical_code"] = json!(false);
    slower["calibration"] =
        json!({"floor": 0.001, "minimum_detectable_effect": 0.01, "advisory": []});
    let mut counted = case("=counted", "IMPROVED", "less_work", false);
    counted["counts"] = json!([
        {"count": "warp_instructions", "reference": 100, "candidate": 90, "ratio": 0.9},
        {"count": "global_sectors", "reference": 0, "candidate": 0},
    ]);
    let mut wrong = case("wrong", "INVALID", "candidate_wrong", true);
    wrong["detail"] = json!(format!("]]> {HOSTILE}"));
    let mut new = case("new", "NEW", "new_case", false);
    new["candidate_ms"] = json!(0.2);
    new["candidate_counts"] = json!({"warp_instructions": 7});
    let mut quiet = case("quiet", "INCONCLUSIVE", "unresolved", false);
    quiet["policy"]["advisory"] = json!(true);
    quiet["comparison"] = comparison(1.0);
    let cases = json!([
        slower,
        counted,
        wrong,
        quiet,
        case("same", "PASS", "within_delta", false),
        case("gone", "ERROR", "not_measured", true),
        case("lost", "MISSING", "not_on_both_sides", true),
        new,
    ]);
    let mut report: GateReport = serde_json::from_value(json!({
        "schema_version": 1, "warpgauge_version": "0.1.0", "suite": "suite.yaml",
        "baseline": {"kind": "git", "name": "main", "commit": "0123456789abcdef0123"},
        "started_unix_s": 1, "duration_s": 2.5, "verdict": "INVALID", "exit_code": 4,
        "statement": "Times & counts.", "verdict_by": "times", "notes": [HOSTILE],
        "device": {"id": 0, "kind": "cuda", "name": "NVIDIA H200", "uuid": "u",
            "compute_capability": "9.0", "cuda_version": "13.0", "multiprocessors": 132,
            "memory_bytes": 1, "l2_bytes": 1},
        "method": {"method": "cuda_events_gated", "method_version": 2, "driver": "580"},
        "totals": {"pass": 0, "improved": 0, "inconclusive": 0, "error": 0, "missing": 0,
                   "regression": 0, "invalid": 0},
        "cases": cases,
    }))
    .expect("a report");
    report.totals = Totals::of(&report.cases);
    report
}

fn rendered(file: &str) -> String {
    let format = FORMATS.iter().find(|format| format.file == file).expect(file);
    (format.render)(&report()).expect(file)
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../openapi/gate-report.schema.json");
    let schema = schema_json().expect("a schema");
    if std::env::var_os("WARPGAUGE_UPDATE_SPEC").is_some() {
        std::fs::write(path, &schema).expect("writing the schema");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(published, schema, "run this test with WARPGAUGE_UPDATE_SPEC=1 and review it");
}

/// Makes unknown properties errors, so that the test detects a field without a schema.
fn closed(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(closed);
        }
        Value::Array(items) => items.iter_mut().for_each(closed),
        _ => {}
    }
}

#[test]
fn the_json_fits_its_schema() {
    let mut schema: Value = serde_json::from_str(&schema_json().unwrap()).expect("JSON");
    closed(&mut schema);
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let document: Value = serde_json::from_str(&rendered("gate.json")).expect("JSON");
    let errors = validator.iter_errors(&document).map(|error| error.to_string());
    assert_eq!(errors.collect::<Vec<_>>(), Vec::<String>::new());
    assert_eq!(serde_json::from_value::<GateReport>(document.clone()).unwrap(), report());
    for (pointer, wrong) in [
        ("/cases/0/outcome", json!("BAD")),
        ("/verdict", json!(1)),
        ("/cases/0/comparison/time/ratio", json!("1")),
        ("/cases/0/policy/margin", Value::Null),
    ] {
        let mut broken = document.clone();
        *broken.pointer_mut(pointer).expect(pointer) = wrong;
        assert!(!validator.is_valid(&broken), "{pointer}");
    }
}

#[test]
fn junit_has_the_structure_that_ci_reads() {
    let xml = rendered("junit.xml");
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let suite = root.children().find(|node| node.has_tag_name("testsuite")).expect("a suite");
    let cases = suite.children().filter(|node| node.has_tag_name("testcase")).collect::<Vec<_>>();
    let with = |tag: &str| {
        let has = |case: &&roxmltree::Node<'_, '_>| case.children().any(|it| it.has_tag_name(tag));
        cases.iter().filter(has).count()
    };
    for node in [root, suite] {
        let number = |name: &str| node.attribute(name).unwrap().parse::<usize>().unwrap();
        assert_eq!(number("tests"), cases.len());
        assert_eq!(number("failures"), with("failure"));
        assert_eq!(number("errors"), with("error"));
        // The schema of Jenkins' xUnit plugin has `skipped` for suites only.
        assert_eq!(node.attribute("skipped").is_some(), node == suite);
        assert!(node.attribute("time").unwrap().parse::<f64>().is_ok());
    }
    assert_eq!(suite.attribute("skipped"), Some(with("skipped").to_string().as_str()));
    assert_eq!((cases.len(), with("failure"), with("error"), with("skipped")), (8, 2, 2, 1));
    for case in &cases {
        assert!(["name", "classname", "time"].iter().all(|name| case.has_attribute(*name)));
    }
    // Characters that XML cannot contain are replaced; all others are unchanged.
    assert_eq!(cases[0].attribute("name"), Some(HOSTILE.replace('\u{1}', "\u{fffd}").as_str()));
}

#[test]
fn bencher_metrics_have_values_within_their_bounds() {
    let document: Value = serde_json::from_str(&rendered("bmf.json")).expect("JSON");
    let benchmarks = document.as_object().expect("benchmarks by name");
    let names = benchmarks.keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(names, ["=counted", HOSTILE, "new", "quiet"]);
    for measures in benchmarks.values() {
        for (measure, metric) in measures.as_object().expect("measures by name") {
            assert!(measure.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{measure}");
            let metric = metric.as_object().expect("a metric");
            let number = |name: &str| metric.get(name).map(|value| value.as_f64().expect(name));
            let value = number("value").expect("a value");
            assert!(number("lower_value").is_none_or(|low| low <= value), "{metric:?}");
            assert!(number("upper_value").is_none_or(|high| value <= high), "{metric:?}");
            let known = ["value", "lower_value", "upper_value"];
            assert!(metric.keys().all(|key| known.contains(&key.as_str())), "{metric:?}");
        }
    }
    assert_eq!(document[HOSTILE]["latency"]["value"], 103_000.0);
}

#[test]
fn smaller_is_better_has_what_the_action_asks_for() {
    let document: Value = serde_json::from_str(&rendered("benchmark.json")).expect("JSON");
    let entries = document.as_array().expect("entries");
    assert_eq!(entries.len(), 5);
    for entry in entries {
        assert!(entry["name"].is_string() && entry["unit"].is_string(), "{entry}");
        assert!(entry["value"].is_number(), "{entry}");
        assert!(entry.get("range").is_none_or(Value::is_string), "{entry}");
    }
    assert_eq!(entries[0]["unit"], "ms");
    assert_eq!(entries[1]["name"], "=counted / warp_instructions");
}

#[test]
fn rows_of_csv_come_back_and_are_no_formulas() {
    let text = rendered("gate.csv");
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    assert_eq!(reader.headers().unwrap(), super::csv::COLUMNS.as_slice());
    let rows = reader.records().collect::<Result<Vec<_>, _>>().expect("rows of one length");
    // There is a row per case, and one more for the second count.
    assert_eq!(rows.len(), 9);
    assert_eq!(&rows[0][0], HOSTILE);
    assert_eq!((&rows[0][2], &rows[0][7]), ("REGRESSION", "1.03"));
    assert_eq!((&rows[1][0], &rows[1][5], &rows[1][6]), ("'=counted", "100", "90"));
}

#[test]
fn the_comment_keeps_its_table() {
    let text = rendered("comment.md");
    assert!(text.starts_with("<!-- warpgauge gate: suite.yaml -->\n"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| ")).collect::<Vec<_>>();
    assert!(rows.len() >= 9, "{text}");
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 6, "{row}");
    }
    assert!(!text.contains("<script") && !text.contains("@all"), "{text}");
    assert!(!text.contains("[x]("), "{text}");
    let at = |name: &str| text.find(name).expect(name);
    assert!(at("wrong") < at("<details>") && at("<details>") < at("| same"), "{text}");
}

#[test]
fn a_comment_has_the_worst_first_and_fits_into_github() {
    let mut report = report();
    report.suite = "a -->\n<b> -- suite.yaml".to_owned();
    let pattern = report.cases.clone();
    report.cases = (0..25)
        .flat_map(|round| {
            pattern.iter().map(move |case| CaseReport {
                name: format!("{round} {}", "|".repeat(120)),
                detail: "<".repeat(2_000),
                ..case.clone()
            })
        })
        .collect();
    report.notes = vec!["&".repeat(4_096); 16];
    report.totals = Totals::of(&report.cases);
    let text = markdown::markdown(&report);
    assert!(text.len() <= 65_536, "{}", text.len());
    assert!(text.starts_with("<!-- warpgauge gate: a ???"), "{text}");
    assert_eq!(text.lines().next().unwrap().matches("--").count(), 2);
    let rows = text.lines().filter(|line| line.contains(" **")).collect::<Vec<_>>();
    assert!(rows.len() > 20 && rows[..20].iter().all(|row| row.contains("**INVALID**")));
    let dropped = format!("\n{} more cases do not fit", 200 - rows.len());
    assert!(text.contains(&dropped), "{dropped}\n{}", &text[text.len() - 2_000..]);
    assert!(text.contains("gate.json contains more notes") && text.contains("\n- &amp;"));
}

#[test]
fn the_page_of_a_run_is_a_link_only_if_it_is_a_web_address() {
    let mut report = report();
    let forms = |report: &GateReport| [markdown::markdown(report), html::html(report)];
    let links = |report: &GateReport| forms(report).map(|text| text.contains("Page of this run"));
    assert_eq!(links(&report), [false; 2]);
    report.page = Some("https://gpu.example.org/(x)/jobs/1?a=1&b=2".to_owned());
    let [markdown, html] = forms(&report);
    assert!(
        markdown.ends_with("\n[Page of this run](<https://gpu.example.org/(x)/jobs/1?a=1&b=2>)\n")
    );
    assert!(html.contains("<a href=\"https://gpu.example.org/(x)/jobs/1?a=1&amp;b=2\">"), "{html}");
    assert!(text(&report).contains("\npage https://gpu.example.org/(x)/jobs/1?a=1&b=2\n"));
    report.page = Some("javascript:alert(1)".to_owned());
    assert_eq!(links(&report), [false; 2]);
    report.page = Some("https://h/> <script>".to_owned());
    assert!(!markdown::markdown(&report).contains("Page of this run"));
}

#[test]
fn annotations_name_files_and_end_with_their_line() {
    let mut report = report();
    report.cases[0].file = Some("a b/k,1:%.cu".to_owned());
    report.cases[0].line = Some(7);
    report.cases[2].detail = "first\n::error::second".to_owned();
    let text = annotations::annotations(&report);
    let lines = text.lines().collect::<Vec<_>>();
    let kinds = lines.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(kinds, ["::error", "::error", "::error", "::error", "::warning"], "{text}");
    assert!(lines[0].starts_with("::error title=wrong%3A INVALID::"), "{text}");
    let file = "::error file=a b/k%2C1%3A%25.cu,line=7,title=";
    assert!(lines[1].starts_with(file) && lines[1].contains("+3.00 %25"), "{text}");
    report.cases = vec![report.cases[0].clone(); 200];
    assert_eq!(annotations::annotations(&report).lines().count(), 10);
}

#[test]
fn the_page_is_well_formed_and_stands_for_itself() {
    let page = rendered("gate.html");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
    let count = |tag: &str| document.descendants().filter(|it| it.has_tag_name(tag)).count();
    assert_eq!((count("script"), count("link"), count("img"), count("iframe")), (0, 0, 0, 0));
    let svg = "http://www.w3.org/2000/svg";
    let of_svg =
        |tag: &str| document.descendants().filter(|it| it.has_tag_name((svg, tag))).count();
    // The points are two comparisons, and the one count that has a ratio.
    assert_eq!((of_svg("svg"), of_svg("circle")), (1, 3));
    for node in document.descendants().filter(|it| it.has_tag_name((svg, "circle"))) {
        let x: f64 = node.attribute("cx").unwrap().parse().unwrap();
        assert!((0.0..=820.0).contains(&x), "{x}");
    }
    assert_eq!(count("tr"), 1 + 8);
    let fetched = ["href", "src", "srcset", "onload"];
    let any = document.descendants().flat_map(|it| it.attributes());
    assert!(any.into_iter().all(|attribute| !fetched.contains(&attribute.name())));
}

#[test]
fn a_bar_that_leaves_the_scale_has_a_break_and_its_number() {
    let mut report = report();
    let counts = |candidates: [u64; 2]| {
        let count = |name: &str, candidate: u64| {
            let ratio = candidate as f64 / 1_000.0;
            json!({"count": name, "reference": 1_000, "candidate": candidate, "ratio": ratio})
        };
        json!([count("a", candidates[0]), count("b", candidates[1])])
    };
    let mut far = case("far", "REGRESSION", "more_work", true);
    far["counts"] = counts([7_788, 1_000]);
    let mut near = case("near", "REGRESSION", "more_work", true);
    near["counts"] = counts([1_010, 990]);
    report.cases = serde_json::from_value(json!([far, near])).unwrap();
    let page = (FORMATS[7].render)(&report).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let with = |class: &str| {
        document
            .descendants()
            .filter(|node| node.attribute("class") == Some(class))
            .collect::<Vec<_>>()
    };
    // The scale shows a per cent, so that only the far one leaves it.
    assert_eq!(with("break").len(), 2, "{page}");
    let text = with("change").into_iter().filter_map(|node| node.text()).collect::<Vec<_>>();
    assert_eq!(text, ["+678.80 %"]);
    assert!(with("tick").iter().any(|node| node.text() == Some("+3.0 %")), "{page}");
    assert!(page.contains("extends beyond the scale") && !page.contains("band is the margin"));
    // A count that stayed the same is not red.
    let groups = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "g")));
    let classes = groups.filter_map(|node| node.attribute("class")).collect::<Vec<_>>();
    assert_eq!(classes, ["regression", "pass", "regression", "improved"]);
}

#[test]
fn a_terminal_is_told_every_case_and_what_would_have_been_found() {
    let text = text(&report());
    for part in [
        "REGRESSION",
        "+3.00 % [+2.60 %, +3.40 %]",
        "100 → 90 (-10, -10.00 %)",
        "detects slowdowns of 1.80 % or more",
        "(advisory)",
        "main (0123456789ab)",
        "INVALID: 1 invalid, 1 regression, 1 missing, 1 error, 1 inconclusive, 1 new, 1 improved, 1 pass",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_worst_case_has_its_change_against_its_margin() {
    let mut report = report();
    let worst = WorstCase::of(&report).unwrap();
    assert_eq!((worst.name.as_str(), worst.outcome), ("wrong", GateOutcome::Invalid));
    assert_eq!((worst.ratio, worst.change()), (None, None));
    report.cases.retain(|case| case.outcome == GateOutcome::Regression);
    report.cases[0].name = "é".repeat(500);
    let worst = WorstCase::of(&report).unwrap();
    assert_eq!(worst.change().unwrap(), "+3.00 % [+2.60 %, +3.40 %], margin 0.50 %");
    assert_eq!((worst.metric.as_str(), worst.name.chars().count()), ("time", 128));
    assert!(worst.name.ends_with('…'));
    let json = serde_json::to_value(&worst).unwrap();
    assert_eq!(serde_json::from_value::<WorstCase>(json).unwrap(), worst);
    report.cases[0].comparison = None;
    report.cases[0].counts = serde_json::from_value(json!([
        {"count": "warp_instructions", "reference": 100, "candidate": 90, "ratio": 0.9},
        {"count": "global_sectors", "reference": 100, "candidate": 125, "ratio": 1.25},
        {"count": "new", "reference": 0, "candidate": 5},
    ]))
    .unwrap();
    let change = WorstCase::of(&report).unwrap().change().unwrap();
    assert_eq!(change, "global_sectors +25.00 %, margin 0.00 %");
    report.cases.clear();
    assert_eq!(WorstCase::of(&report), None);
}
