//! Tests of the pages of prepared reports: each kind of report, and each failure.

use std::io::Write as _;

use html5ever::driver::ParseOpts;
use html5ever::tendril::TendrilSink as _;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use serde_json::{Value, json};

use super::*;
use warpgauge_job_views::{JobList, JobView};

/// Limit for the size of a compressed page, bytes. Every page must be smaller.
pub(crate) const FIRST_VIEW: usize = 40_000;

/// A name that would run a script if it were markup.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}'\"&</title></style></pre>";

pub(crate) fn example(name: &str) -> Value {
    let text = match name {
        "report" => include_str!("../../../../openapi/examples/report.json"),
        "comparison" => include_str!("../../../../openapi/examples/comparison.json"),
        "sweep" => include_str!("../../../../openapi/examples/sweep.json"),
        "gate" => include_str!("../../../../openapi/examples/gate.json"),
        "jobs" => include_str!("../../../../openapi/examples/jobs.json"),
        other => panic!("no example {other}"),
    };
    serde_json::from_str(text).unwrap()
}

/// Elements of a page with their attributes, and its text. The page must be valid HTML, which a
/// browser shows without corrections.
pub(crate) struct Parsed {
    pub(crate) elements: Vec<(String, Vec<(String, String)>)>,
    pub(crate) text: String,
}

impl Parsed {
    pub(crate) fn of(html: &str) -> Self {
        let dom = html5ever::parse_document(RcDom::default(), ParseOpts::default()).one(html);
        let errors = dom.errors.borrow();
        assert!(errors.is_empty(), "{errors:?}\n{html}");
        let mut parsed = Self { elements: Vec::new(), text: String::new() };
        parsed.visit(&dom.document);
        parsed.check();
        parsed
    }

    fn visit(&mut self, node: &Handle) {
        match &node.data {
            NodeData::Element { name, attrs, .. } => {
                let attributes = attrs.borrow();
                let attributes = attributes.iter();
                let attributes =
                    attributes.map(|one| (one.name.local.to_string(), one.value.to_string()));
                self.elements.push((name.local.to_string(), attributes.collect()));
                if &*name.local == "style" {
                    return;
                }
            }
            NodeData::Text { contents } => self.text.push_str(&contents.borrow()),
            _ => {}
        }
        node.children.borrow().iter().for_each(|child| self.visit(child));
    }

    /// Checks the properties that every page has.
    fn check(&self) {
        let mut ids = Vec::new();
        for (name, attributes) in &self.elements {
            assert!(!["img", "iframe", "object"].contains(&&**name), "<{name}>");
            let of = |wanted: &str| attributes.iter().find(|(attribute, _)| attribute == wanted);
            let is_own = of("src").is_some_and(|(_, src)| {
                PageScript::ALL.iter().any(|script| src.ends_with(script.path()))
            });
            assert!(name != "script" || is_own, "<{name}>");
            let action = attributes.iter().find(|(attribute, _)| attribute == "action");
            let sent_here = action
                .is_some_and(|(_, action)| action.starts_with("./") || action.starts_with("../"));
            assert!(name != "form" || sent_here, "a form is for this server only: {action:?}");
            for (attribute, value) in attributes {
                assert!(attribute != "style" && !attribute.starts_with("on"), "{name} {attribute}");
                assert!(!value.trim_start().to_lowercase().starts_with("javascript:"), "{value}");
                if attribute == "id" {
                    assert!(!ids.contains(&value), "two elements have the id {value}");
                    ids.push(value);
                }
            }
        }
        let headings = self.elements.iter().filter(|(name, _)| name == "h1").count();
        assert_eq!(headings, 1, "{:?}", self.text.chars().take(200).collect::<String>());
    }

    fn count(&self, name: &str) -> usize {
        self.elements.iter().filter(|(element, _)| element == name).count()
    }
}

pub(crate) fn zipped(html: &str) -> usize {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(html.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

fn evaluation_page(report: &Value) -> String {
    let report = serde_json::from_value(report.clone()).unwrap();
    file(PageOf::Evaluation(&report))
}

/// Returns the example report with this number of samples, and with metrics.
pub(crate) fn measured(samples: usize) -> Value {
    let mut report = example("report");
    let times = (0..samples).map(|n| 0.0071 + 0.0003 * (n % 17) as f64 / 17.0);
    report["measurement"]["samples_ms"] = times.collect();
    let clock = |n: usize| if n == 3 { 1.5e9 } else { 1.98e9 };
    let trials = samples / 10;
    let batches = (0..10).map(|n| json!({"trials": trials, "sm_clock_hz": clock(n)}));
    report["measurement"]["batches"] = batches.collect();
    report["measurement"]["rejected"] = json!([{"reason": "clock_drop", "count": trials}]);
    report["measurement"]["rates"] = json!({
        "bytes": 12.6e6, "bytes_from": "declared", "bytes_per_second": 1.5e12,
        "peak_bytes_per_second": 4.9e12, "least_ms": 0.0025, "limit": "memory",
        "of_speed_of_light": 0.35,
    });
    let ceiling = json!({"per_second": 4.9e12, "source": "profiler", "derivation": "d"});
    report["kernel_exec_result"]["metadata"]["device_metrics"] = json!({
        "original_device_metrics": {}, "kernel": "vector_add", "source": "cupti", "tool": "CUPTI 13.0",
        "metrics": {
            "dram_throughput": {"value": 61.25, "unit": "%", "source": "cupti", "note": "a note"},
            "duration": {"unit": "s", "reason": "no permission"},
            "a_later_metric": {"value": 1234567.0, "unit": "sectors", "source": "cupti"},
        },
        "roofline": {
            "bound_by": "dram", "bound_reason": "it moves most",
            "compute": [{"precision": "fp32", "operations": 1e6, "rate": 1e11, "ceiling": ceiling}],
            "memory": [{"level": "dram", "bytes": 1.2e7, "rate": 1.5e12, "ceiling": ceiling}],
            "points": [{"precision": "fp32", "level": "dram", "intensity": 0.08, "rate": 1e11}],
        },
        "advice": [{
            "code": "dram_saturated", "message": "Fewer `bytes` would help.", "share": 0.61,
            "share_of": "time", "threshold": "t",
            "evidence": [{"metric": "dram_throughput", "value": 61.25, "unit": "%"}],
        }],
    });
    report
}

#[test]
fn a_correct_kernel_is_understood_from_the_first_lines() {
    let html = evaluation_page(&measured(400));
    let page = Parsed::of(&html);
    for text in [
        "CORRECT",
        "vector_add",
        "7.200\u{202f}µs",
        "95\u{202f}% CI",
        "35\u{202f}%",
        "1.50\u{202f}TB/s of 4.90\u{202f}TB/s",
        "device memory",
        "At most 61\u{202f}% of its time",
        "Shaded batches are rejected",
        "40 rejected",
        "61.25\u{202f}%",
        "1\u{202f}234\u{202f}567\u{202f}sectors",
        "no permission",
        "NVIDIA H200",
    ] {
        assert!(page.text.contains(text), "{text} is missing in {}", page.text);
    }
    let words = page.text.find("CORRECT").unwrap();
    assert!(words < page.text.find("Advice").unwrap());
    assert_eq!(page.count("figure"), 3, "two of the samples, and the roofline");
    assert!(html.contains("<code>bytes</code>"), "code in a message is code");
}

#[test]
fn the_first_view_names_the_cause_that_the_report_knows() {
    let shows = |report: &Value, texts: &[&str]| {
        let page = Parsed::of(&evaluation_page(report));
        for text in texts {
            assert!(page.text.contains(text), "{text} is missing in {}", page.text);
        }
    };
    // Neither roofline nor advice: the busiest unit, which may be one that was not measured.
    let mut busy = measured(40);
    let metrics = &mut busy["kernel_exec_result"]["metadata"]["device_metrics"];
    (metrics["advice"], metrics["roofline"]) = (json!([]), Value::Null);
    let unit = |value: f64| json!({"value": value, "unit": "%", "source": "cupti"});
    metrics["metrics"]["l1_throughput"] = unit(87.7);
    shows(&busy, &["Busiest unit", "L1 and shared memory 87.7", "device memory 61.3", "explain"]);
    let metrics = &mut busy["kernel_exec_result"]["metadata"]["device_metrics"];
    metrics["metrics"]["compute_memory_throughput"] = unit(95.0);
    shows(&busy, &["a unit that was not measured", "busy for 95"]);
    // Two modes stand beside the median.
    let mut modes = measured(40);
    modes["measurement"]["summary"]["modes"] =
        json!({"fast_ms": 0.27, "slow_ms": 0.51, "slow_share": 0.52});
    shows(&modes, &["Two modes: 270.0\u{202f}µs and 510.0\u{202f}µs, 52\u{202f}% of the launches"]);
    // Spills are known without a profile.
    let mut spilled = example("report");
    let resources = &mut spilled["compile"]["resources"];
    (resources["spill_store_bytes"], resources["spill_load_bytes"]) = (json!(900), json!(932));
    shows(
        &spilled,
        &["spilled registers", "900\u{202f}B stored and 932\u{202f}B loaded per thread"],
    );
    // What the memory checks found comes before its consequences.
    let mut raced = example("report");
    raced["verdict"] = json!("wrong");
    raced["failure"] =
        json!({"stage": "verifying", "code": "nondeterministic", "message": "launches differ"});
    raced["sanitize"] = json!({"available": true, "findings": [{
        "check": "shared_race", "kernel": "k", "source": "kernel.cu:7", "message": "m", "count": 3,
    }]});
    shows(
        &raced,
        &["The memory checks found a shared race at kernel.cu:7. Besides, launches differ"],
    );
}

#[test]
fn a_roofline_without_times_is_not_drawn() {
    let mut report = measured(400);
    let roofline = &mut report["kernel_exec_result"]["metadata"]["device_metrics"]["roofline"];
    roofline["points"][0].as_object_mut().unwrap().remove("rate");
    let page = Parsed::of(&evaluation_page(&report));
    assert_eq!(page.count("figure"), 2);
    assert!(!page.text.contains("Roofline"));
}

#[test]
fn a_wrong_kernel_has_its_first_mismatches_in_place() {
    let mut report = example("report");
    report["verdict"] = json!("wrong");
    report["kernel_exec_result"]["correctness"] = json!(false);
    report["kernel_exec_result"]["runtime_stats"] = Value::Null;
    report["outputs"] = json!({"c": {"dtype": "float32", "shape": [64, 32], "blake3": "00"}});
    report["validation"]["status"] = json!("failed");
    let output = &mut report["validation"]["outputs"]["c"];
    (output["passed"], output["elements"], output["matched"]) =
        (json!(false), json!(2048), json!(1024));
    output["pattern"] = json!("rows 32 to 63");
    output["max_abs_error"] = json!(3.5);
    output["first_mismatches"] = json!([
        {"index": [32, 0], "actual": "1", "expected": "2"},
        {"index": [32, 31], "actual": "NaN", "expected": "2"},
    ]);
    let html = evaluation_page(&report);
    let page = Parsed::of(&html);
    for text in [
        "WRONG",
        "1\u{202f}024 of 2\u{202f}048 elements differ: rows 32 to 63.",
        "c[32, 31]",
        "3.500e0 absolute",
        "does not contain the places of the other 1\u{202f}022",
    ] {
        assert!(page.text.contains(text), "{text} is missing in {}", page.text);
    }
    assert!(!page.text.contains("Median time"), "no time is shown for a wrong kernel");
    // The tensor begins at 24 pixels and is 240 pixels high, so row 32 of 64 begins at 144 pixels.
    assert!(html.contains("<rect class=\"wrong\" x=\"72.0\" y=\"144.0\""), "{html}");
    // Indices that do not fit the shape are listed and not drawn.
    report["outputs"]["c"]["shape"] = json!([2048]);
    let page = Parsed::of(&evaluation_page(&report));
    assert_eq!((page.count("figure"), page.text.contains("c[32, 31]")), (0, true));
}

#[test]
fn every_failure_says_what_it_is() {
    let failure = json!({"stage": "execute", "code": "illegal_address", "message": "thread 7 read beyond `x`"});
    let finding = json!({"check": "out_of_bounds", "kernel": "k", "block": [1, 0, 0], "thread": [7, 0, 0],
        "source": "kernel.cu:3", "message": "4 bytes beyond x", "count": 12});
    let cases = [
        (
            json!({"verdict": "not_compiled", "kernel_exec_result": {"compiled": false,
            "compilation_error": "e", "metadata": {}},
            "compile": {"compiler": "nvrtc", "cache_hit": false, "key": "", "kernels": [], "symbol": "",
                "log": "the whole log", "diagnostics": [{"severity": "error", "file": "kernel.cu", "line": 3,
                "column": 9, "message": "`blockIdxx` is undefined\n  3 | int i = blockIdxx.x"}]}}),
            &[
                "NOT COMPILED",
                "Line 3: blockIdxx is undefined.",
                "kernel.cu:3:9",
                "blockIdxx is undefined",
                "3 | int i",
                "the whole log",
            ][..],
        ),
        (
            json!({"verdict": "failed", "failure": failure, "validation": {"status": "not_run"},
            "sanitize": {"available": true, "source": "emulator", "findings": [finding]}}),
            &[
                "FAILED",
                "Thread 7 read beyond x",
                "illegal_address",
                "out of bounds",
                "kernel.cu:3",
                "12 times",
                "block (1, 0, 0)",
            ],
        ),
        (
            json!({"verdict": "weak", "validation": {"status": "passed", "weaknesses": [
            {"code": "zeros_pass", "output": "c", "message": "zeros pass", "blocks": true}]}}),
            &["WEAK", "zeros pass", "zeros_pass"],
        ),
        (
            json!({"verdict": "error", "status": "error", "failure": {"stage": "execute", "code": "device_lost",
            "message": "the device went away"}}),
            &["ERROR", "The device went away"],
        ),
        (
            json!({"profile": {"available": false, "reason": "no ncu was found"}}),
            &["no ncu was found"],
        ),
        (
            json!({"device": {"id": 0, "kind": "emulator", "name": "e", "uuid": "u", "compute_capability": "9.0",
            "cuda_version": "13.0", "multiprocessors": 16, "memory_bytes": 1024, "l2_bytes": 1024},
            "counted": {"warp_instructions": 704, "global_sectors": 384}}),
            &["Median time, emulated", "It says nothing about a GPU", "704", "384 sectors"],
        ),
    ];
    for (changes, texts) in cases {
        let mut report = example("report");
        for (name, value) in changes.as_object().unwrap() {
            report[name] = value.clone();
        }
        let page = Parsed::of(&evaluation_page(&report));
        for text in texts {
            assert!(page.text.contains(text), "{text} is missing in {}", page.text);
        }
    }
}

#[test]
fn nothing_of_a_kernel_is_markup() {
    let mut report = serde_json::to_string(&measured(40)).unwrap();
    let name = serde_json::to_string(HOSTILE).unwrap();
    for text in
        ["vector_add", "NVIDIA H200", "nvrtc 13.0.88", "no permission", "a note", "it moves most"]
    {
        report = report.replace(&format!("\"{text}\""), &name);
    }
    let html = evaluation_page(&serde_json::from_str(&report).unwrap());
    let page = Parsed::of(&html);
    assert!(
        page.text.contains("<img src=x onerror=alert(1)>\u{fffd}'\"&</title>"),
        "{}",
        page.text
    );
    assert!(!html.contains('\u{202e}'));
    let job: JobView = serde_json::from_value(json!({
        "job_id": HOSTILE, "state": "failed", "created_at": 0.0, "trials_done": 0, "label": HOSTILE,
        "error": HOSTILE, "code": HOSTILE,
    }))
    .unwrap();
    Parsed::of(&super::job(&job, None, &Links::none()));
    let page = Parsed::of(&notice(
        Notice { word: HOSTILE, heading: HOSTILE, sentence: HOSTILE, commands: HOSTILE },
        &Links::none(),
    ));
    assert!(page.text.contains("onerror"));
}

#[test]
fn a_comparison_shows_its_blocks_and_the_difference_of_the_code() {
    let mut evaluation = example("report");
    let pair = example("comparison");
    let candidate = json!({
        "name": HOSTILE, "evaluation": evaluation, "comparison": pair,
        "code_diff": {"language": "sass", "identical": false, "reference_instructions": 12,
            "candidate_instructions": 9, "added": 1, "removed": 4,
            "unified": "--- reference\n+++ candidate\n-FADD R1\n+FFMA <R2>\n EXIT\n", "truncated": false,
            "opcodes": [{"opcode": "FADD", "reference": 4, "candidate": 0}, {"opcode": "MOV", "reference": 1, "candidate": 3}]},
        "counts": [{"count": "warp_instructions", "reference": 12, "candidate": 9, "ratio": 0.75}],
    });
    let wrong = {
        evaluation["verdict"] = json!("wrong");
        evaluation["kernel_exec_result"]["runtime"] = Value::Null;
        json!({"name": "b.cu", "evaluation": evaluation})
    };
    let whole = json!({
        "job_id": "j", "status": "success", "kernel_exec_result": example("report")["kernel_exec_result"],
        "reference": example("report"), "candidates": [candidate, wrong],
        "timings": example("report")["timings"],
    });
    let response: CompareResponse = serde_json::from_value(whole).unwrap();
    let html = file(PageOf::Comparison(&response, "a.cu"));
    let page = Parsed::of(&html).text;
    for text in [
        "Side by side",
        "+FFMA <R2>",
        "FADD",
        "WRONG",
        "Evaluation of b.cu",
        "0.7500",
        "FADD40−4",
        "MOV13+2",
    ] {
        assert!(page.contains(text), "{text} is missing in {page}");
    }
    // The tables call the kernels as the title does.
    for name in ["reference", "candidate"] {
        let head = format!("scope=\"col\">{name}</th>");
        assert!(!html.contains(&head), "{head}");
    }
    assert!(html.matches(">a.cu</th>").count() >= 3, "{html}");
    assert!(html.contains("class=\"line add\"") && html.contains("class=\"line cut\""));
}

#[test]
fn sweeps_gates_and_lists_are_pages() {
    let response: SweepResponse = serde_json::from_value(example("sweep")).unwrap();
    let sweep = Parsed::of(&file(PageOf::Sweep(&response)));
    assert!(sweep.text.contains("Every one of 4 points is correct."), "{}", sweep.text);
    assert!(sweep.count("figure") == 1 && sweep.text.contains("11\u{202f}264"), "{}", sweep.text);
    let gate = json!({
        "job_id": "j", "kind": "gate", "state": "completed", "created_at": 0.0, "trials_done": 0,
        "gate": example("gate"),
    });
    let gate = Parsed::of(&job(&serde_json::from_value(gate).unwrap(), None, &Links::none()));
    assert!(
        gate.text.contains("vector_add") && gate.text.contains("counts within"),
        "{}",
        gate.text
    );
    let jobs: JobList = serde_json::from_value(example("jobs")).unwrap();
    let links = Links { root: Some("./"), ..Links::none() };
    let all = ListFilter::default();
    let html = list(Listed { jobs: &jobs, filter: &all, is_later: false }, &links);
    let page = Parsed::of(&html);
    assert!(page.text.contains("2026-01-01 00:00:00 UTC") && page.text.contains("nightly"));
    assert!(html.contains("http-equiv=\"refresh\""), "a job has not ended");
    assert!(html.contains(&format!("href=\"./{}\"", style::path())) && page.count("style") == 0);
    assert!(html.contains("href=\"./?cursor="));
    // A script updates the first page.
    let script =
        |html: &str| html.matches(&format!("src=\"./{}\"", PageScript::List.path())).count();
    assert!(script(&html) == 1 && html.contains("data-running=\"1\""), "{html}");
    let ids = jobs.jobs.iter().map(|job| format!("<tr data-job=\"{}\">", job.job_id));
    assert!(ids.into_iter().all(|row| html.contains(&row)), "{html}");
    let later = list(Listed { jobs: &jobs, filter: &all, is_later: true }, &links);
    assert!(script(&later) == 0 && !later.contains("<script") && !later.contains("new-jobs"));
    let none = JobList { jobs: Vec::new(), next_cursor: None };
    let html = list(Listed { jobs: &none, filter: &all, is_later: false }, &links);
    assert!(Parsed::of(&html).text.contains("There are no jobs yet"));
    // Nothing in it changes by itself, but a job may be added.
    assert!(script(&html) == 1 && !html.contains("http-equiv=\"refresh\""), "{html}");
}

#[test]
fn a_job_on_its_way_says_how_far_it_is() {
    let view = |state: &str| {
        json!({
            "job_id": "j", "state": state, "created_at": 1767225600.0, "trials_done": 120, "attempt": 1,
        })
    };
    let served = Links { root: Some("../"), ..Links::none() };
    let running = job(&serde_json::from_value(view("profiling")).unwrap(), None, &served);
    assert!(Parsed::of(&running).text.contains("120 launches timed"));
    assert!(running.contains("http-equiv=\"refresh\""));
    let view_now = serde_json::from_value(view("profiling")).unwrap();
    assert!(!file(PageOf::Job(&view_now)).contains("http-equiv=\"refresh\""));
    let mut failed = view("timed_out");
    failed["error"] = json!("the job's time was up");
    let failed = job(&serde_json::from_value(failed).unwrap(), None, &Links::none());
    assert!(Parsed::of(&failed).text.contains("the job's time was up"));
    assert!(!failed.contains("http-equiv=\"refresh\""));
}

#[test]
fn two_evaluations_differ_where_their_reports_do() {
    let view = |change: &dyn Fn(&mut Value)| {
        let mut report = example("report");
        change(&mut report);
        let view = json!({
            "job_id": "j", "state": "completed", "created_at": 0.0, "trials_done": 0, "result": report,
        });
        serde_json::from_value::<JobView>(view).unwrap()
    };
    let links = Links { root: Some("../"), ..Links::none() };
    let one = view(&|_| {});
    let same = Parsed::of(&differences([&one, &one], &links).unwrap());
    assert!(same.text.contains("nothing differs") && !same.text.contains('≠'), "{}", same.text);
    let other = view(&|report| {
        report["device"]["cuda_version"] = json!("12.9");
        report["compile"]["compiler"] = json!(HOSTILE);
        report["measurement"]["cache"] = json!("hot");
        report["compile"]["resources"]["registers"] = json!(40);
    });
    let page = Parsed::of(&differences([&one, &other], &links).unwrap());
    assert_eq!(page.text.matches('≠').count(), 4, "{}", page.text);
    for text in ["4 facts of the two reports differ", "12.9", "<img src=x", "2 of "] {
        assert!(page.text.contains(text), "{text} is missing in {}", page.text);
    }
    let running = json!({"job_id": "j", "state": "queued", "created_at": 0.0, "trials_done": 0});
    let running = serde_json::from_value(running).unwrap();
    assert!(differences([&one, &running], &links).is_none());
}

#[test]
fn a_page_is_small_whatever_the_report_holds() {
    let html = evaluation_page(&measured(10_000));
    Parsed::of(&html);
    assert!(zipped(&html) < FIRST_VIEW, "{} bytes", zipped(&html));
    let mut report = measured(400);
    report["compile"]["log"] = json!("x".repeat(1 << 20));
    report["kernel_exec_result"]["metadata"]["kernel_name"] = json!("k".repeat(1 << 20));
    report["printed"] = json!("ü\n".repeat(1 << 19));
    let note = json!("n".repeat(1 << 16));
    report["measurement"]["notes"] = json!(vec![note; 200]);
    let html = evaluation_page(&report);
    Parsed::of(&html);
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
}

#[test]
fn the_policy_of_a_file_is_that_of_its_style() {
    let html = evaluation_page(&example("report"));
    let (_, style) = html.split_once("<style>").unwrap();
    let (style, _) = style.split_once("</style>").unwrap();
    assert_eq!(style, style::CSS);
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(style));
    assert!(html.contains(&format!("style-src 'sha256-{digest}'")), "{html}");
    assert!(
        !style.contains("url(") && !style.contains("@import"),
        "a style sheet that loads nothing"
    );
}
