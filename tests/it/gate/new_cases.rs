//! Cases without a baseline: the gate compiles, runs and checks them alone.

use serde_json::json;
use warpgauge_contract::{BodyFormat, parse};

use super::*;
use crate::server::Server;

/// What the kernel of [`LOOP`] computes, as a case of its own says it.
const EXPECTED: &str = "expected: {y: {kernel: {kernel_type: ptx, source_file: right.ptx, \
                        metadata: {kernel_name: repeat}}}}\n";

/// Code that is none, code that crashes, and code that is wrong.
const BAD: [(&str, &str); 3] = [
    (".version 7.0", "this is not PTX"),
    ("st.global.f32 [%rd5], %f2;", "st.global.f32 [%rd3], %f2;"),
    WRONG,
];

/// A repository whose suite gained a case with this kernel since its only commit.
fn with_new_case(kernel: &str) -> Repository {
    let repository = Repository::new();
    let contract = CONTRACT.replace("loop.ptx", "new.ptx");
    repository.write("perf/k/new.yaml", &format!("{contract}{EXPECTED}"));
    repository.write("perf/k/new.ptx", kernel);
    repository.write("perf/k/right.ptx", LOOP);
    let suite = format!("{SUITE}  - {{name: new, contract: k/new.yaml}}\n");
    repository.write("perf/suite.yaml", &suite);
    repository
}

fn outcomes(report: &Value) -> Vec<(&str, &str, &str)> {
    let cases = report["cases"].as_array().unwrap().iter();
    cases
        .map(|case| {
            let text = |name: &str| case[name].as_str().unwrap();
            (text("name"), text("outcome"), text("reason"))
        })
        .collect()
}

#[test]
fn a_sound_new_case_passes_and_every_format_says_that_it_is_new() {
    needs!("the emulated device", emulated());
    let repository = with_new_case(LOOP);
    let out = repository.path().join("out").display().to_string();
    let flags = ["--baseline", "HEAD", "--json", "--report", &out];
    let (exit, stdout, stderr) = repository.gate(&flags);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    assert!(stderr.contains("2 of 2: new"), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let expected = [("repeat", "PASS", "counts_within"), ("new", "NEW", "new_case")];
    assert_eq!(outcomes(&report), expected);
    let new = &report["cases"][1];
    assert!(new["detail"].as_str().unwrap().contains("checked against"), "{new}");
    assert_eq!(new["blocking"], false);
    assert_eq!((&report["totals"]["new"], &report["totals"]["pass"]), (&1.into(), &1.into()));
    // What it counts is what the case that was there counts: they are one kernel.
    let counted = report["cases"][0]["counts"][0]["candidate"].clone();
    assert_eq!(new["candidate_counts"]["warp_instructions"], counted);
    let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap();
    for (file, part) in [
        ("junit.xml", "warp_instructions 2592; a new case".to_owned()),
        ("comment.md", "| new | **NEW** |".to_owned()),
        ("gate.html", "<td class=\"new\">NEW</td>".to_owned()),
        ("gate.csv", "new,warp_instructions,NEW,false,false,,".to_owned()),
        ("benchmark.json", "new / warp_instructions".to_owned()),
        ("bmf.json", "\"new\": {".to_owned()),
    ] {
        assert!(read(file).contains(&part), "{file}: {part}\n{}", read(file));
    }
    assert!(read("junit.xml").contains("failures=\"0\" errors=\"0\""));
    let (exit, text, _) = repository.gate(&["--baseline", "HEAD"]);
    assert_eq!(exit, 0, "{text}");
    assert!(text.contains("PASS: 1 new, 1 pass"), "{text}");
    // Once it is in the baseline it is compared as any other.
    repository.commit("with the case");
    assert_eq!(repository.report(0)["totals"]["pass"], 2);
    // Its history begins with the run in which it was new.
    let (_, history, _) = repository.run(&["history", "new", "--json"]);
    let history: Value = serde_json::from_str(&history).unwrap();
    let points = history["series"][0]["points"].as_array().unwrap();
    assert_eq!(points[0]["verdict"], "NEW", "{history}");
    assert_eq!(points.last().unwrap()["verdict"], "PASS");
}

#[test]
fn a_new_case_that_is_no_kernel_crashes_or_is_wrong_is_invalid() {
    needs!("the emulated device", emulated());
    for (from, to) in BAD {
        assert!(LOOP.contains(from));
        let repository = with_new_case(&LOOP.replacen(from, to, 1));
        let report = repository.report(4);
        assert_eq!(outcomes(&report)[1], ("new", "INVALID", "candidate_wrong"), "{report}");
        let suite = std::fs::read_to_string(repository.path().join("perf/suite.yaml")).unwrap();
        repository.write("perf/suite.yaml", &suite.replace("cases:", "on_missing: warn\ncases:"));
        assert_eq!(repository.report(4)["verdict"], "INVALID");
    }
}

#[test]
fn a_new_case_of_cuda_that_is_not_c_or_does_not_fit_its_contract_is_invalid() {
    needs!("the emulated device", emulated());
    let repository = with_new_case(LOOP);
    let contract = CONTRACT.replace("loop.ptx", "new.cu").replace("ptx\n", "cuda\n");
    repository.write("perf/k/new.yaml", &contract);
    let takes = |args: &str| format!("extern \"C\" __global__ void repeat({args}) {{}}\n");
    for (code, part) in [
        ("this is not C".to_owned(), "does not compile"),
        (takes("const float* x, float* y, int n, int more"), "more"),
    ] {
        repository.write("perf/k/new.cu", &code);
        let report = repository.report(4);
        let detail = report["cases"][1]["detail"].as_str().unwrap();
        assert_eq!(report["cases"][1]["outcome"], "INVALID", "{report}");
        assert!(detail.contains(part), "{detail}");
    }
    // Nothing says what it must leave: it passes as elsewhere, and the report says so.
    repository.write("perf/k/new.cu", &takes("const float* x, float* y, int n"));
    let report = repository.report(0);
    let detail = report["cases"][1]["detail"].as_str().unwrap();
    assert!(detail.contains("not checked") && detail.contains("`expected`"), "{detail}");
}

#[test]
fn a_suite_of_new_cases_alone_is_judged_and_promoted() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.write("elsewhere/nothing", "");
    let flags = ["--baseline", "./elsewhere", "--promote", "first", "--json", "--quiet"];
    let (exit, stdout, stderr) = repository.gate(&flags);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(outcomes(&report), [("repeat", "NEW", "new_case")]);
    assert!(report["statement"].as_str().unwrap().contains("Nothing was compared"), "{report}");
    assert_eq!(report["method"]["method"], "emulated");
    // A stored baseline that lacks a case; what passes beside it is stored with it.
    let more = format!("{SUITE}  - {{name: new, contract: k/contract.yaml}}\n");
    repository.write("perf/suite.yaml", &more);
    let stored = ["--baseline", "stored:first", "--promote", "first", "--json", "--quiet"];
    let (exit, stdout, stderr) = repository.gate(&stored);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(outcomes(&report)[1], ("new", "NEW", "new_case"));
    let (exit, stdout, stderr) = repository.gate(&stored);
    assert_eq!(exit, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["totals"]["pass"], 2, "{report}");
}

#[test]
fn a_broken_baseline_does_not_keep_a_change_from_mending_it() {
    needs!("the emulated device", emulated());
    for (from, to) in &BAD[..2] {
        let repository = Repository::new();
        repository.write("perf/k/right.ptx", LOOP);
        repository.write("perf/k/loop.ptx", &LOOP.replacen(from, to, 1));
        repository.commit("broken");
        // The same code on both sides is as broken as before.
        let report = repository.report(4);
        assert_eq!(outcomes(&report), [("repeat", "INVALID", "candidate_wrong")], "{report}");
        // Nothing says whether what runs now is right.
        repository.write("perf/k/loop.ptx", LOOP);
        let report = repository.report(1);
        assert_eq!(outcomes(&report), [("repeat", "ERROR", "not_measured")], "{report}");
        assert!(report["cases"][0]["detail"].as_str().unwrap().contains("`expected`"), "{report}");
        repository.write("perf/k/contract.yaml", &format!("{CONTRACT}{EXPECTED}"));
        let report = repository.report(0);
        assert_eq!(outcomes(&report), [("repeat", "NEW", "baseline_broken")], "{report}");
        let detail = report["cases"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("nothing can be compared with the baseline"), "{detail}");
    }
    // The suite has the case, and the commit lacks the kernel's file.
    let repository = Repository::new();
    std::fs::remove_file(repository.path().join("perf/k/loop.ptx")).unwrap();
    repository.commit("forgotten");
    repository.write("perf/k/loop.ptx", LOOP);
    let report = repository.report(0);
    assert_eq!(outcomes(&report), [("repeat", "NEW", "new_case")], "{report}");
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.contains("`repeat`") && note.contains("loop.ptx"), "{note}");
}

#[test]
fn what_a_contract_expects_holds_for_a_case_that_never_was_right() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.write("perf/k/contract.yaml", &format!("{CONTRACT}{EXPECTED}"));
    repository.write("perf/k/right.ptx", LOOP);
    repository.change(WRONG);
    repository.commit("wrong from the beginning");
    // Both sides are one image: there is nothing to measure, and there was never a check.
    let report = repository.report(4);
    let detail = report["cases"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("`expected`"), "{detail}");
    repository.write("perf/k/loop.ptx", LOOP);
    let report = repository.report(0);
    assert_eq!(outcomes(&report), [("repeat", "NEW", "baseline_broken")], "{report}");
    // Of two that are right the candidate's must still be what the baseline's is.
    repository.commit("right");
    assert_eq!(repository.report(0)["totals"]["pass"], 1);
    repository.change(WRONG);
    assert_eq!(repository.report(4)["verdict"], "INVALID");
}

#[test]
fn a_case_that_is_renamed_is_compared_and_one_that_is_removed_is_missed() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.write("perf/suite.yaml", &SUITE.replace("name: repeat", "name: again"));
    let report = repository.report(0);
    assert_eq!((outcomes(&report)[0].0, outcomes(&report)[0].1), ("again", "PASS"));
    assert!(report["notes"][0].as_str().unwrap().contains("`again` is `repeat`"), "{report}");
    repository.change(MORE);
    assert_eq!(repository.report(2)["cases"][0]["outcome"], "REGRESSION");
}

#[test]
fn new_cases_over_http_are_checked() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let case = |name: &str, kernel: &str| {
        let mut contract: Value = parse(BodyFormat::Yaml, CONTRACT.as_bytes()).unwrap();
        let fields = contract["kernel"].as_object_mut().unwrap();
        fields.remove("source_file");
        fields.insert("source_code".to_owned(), kernel.into());
        json!({"name": name, "contract": contract})
    };
    let (from, to) = BAD[0];
    let answer = server.post_json(
        "/gate",
        &json!({"cases": [case("a", LOOP), case("b", &LOOP.replacen(from, to, 1)), case("c", LOOP)]}),
    );
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["exit_code"], 4);
    let found = outcomes(&answer.json).into_iter().map(|(name, outcome, _)| (name, outcome));
    let expected = [("a", "NEW"), ("b", "INVALID"), ("c", "NEW")];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let csv = server.post_json("/gate?format=csv", &json!({"cases": [case("a", LOOP)]}));
    assert!(csv.text.contains(",NEW,"), "{}", csv.text);
}
