//! The gate over HTTP: suites in requests, stored baselines, and the history.

use serde_json::json;
use warpgauge_contract::{BodyFormat, parse};

use super::*;
use crate::server::Server;
use crate::stores::{Home, on_both};

on_both!(baselines_are_code_that_is_kept_and_promoted);

/// The contract with a kernel in it.
fn contract(kernel: &str) -> Value {
    let mut contract: Value = parse(BodyFormat::Yaml, CONTRACT.as_bytes()).unwrap();
    let fields = contract["kernel"].as_object_mut().unwrap();
    fields.remove("source_file");
    fields.insert("source_code".to_owned(), kernel.into());
    contract
}

fn more() -> String {
    LOOP.replacen(MORE.0, MORE.1, 1)
}

fn case(kernel: &str) -> Value {
    json!({"name": "repeat", "contract": contract(kernel)})
}

fn suite(kernel: &str, commit: &str) -> Value {
    json!({"suite": "perf", "baseline": "main", "commit": commit, "cases": [case(kernel)]})
}

#[test]
fn a_suite_that_travels_is_judged_as_one_of_files() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let suite = |old: &str, new: &str| {
        let mut case = case(new);
        case["baseline"] = contract(old);
        json!({"cases": [case]})
    };
    for (old, new, code, outcome) in [
        (LOOP.to_owned(), LOOP.to_owned(), 0, "PASS"),
        (LOOP.to_owned(), more(), 2, "REGRESSION"),
        (more(), LOOP.to_owned(), 0, "IMPROVED"),
        (LOOP.to_owned(), LOOP.replacen(WRONG.0, WRONG.1, 1), 4, "INVALID"),
    ] {
        let answer = server.post_json("/gate", &suite(&old, &new));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let report = answer.json;
        let found = (&report["exit_code"], &report["cases"][0]["outcome"]);
        assert_eq!(found, (&code.into(), &outcome.into()), "{report}");
        assert_eq!(report["baseline"]["kind"], "inline");
    }
    // One that nobody waits for is a job like any other.
    let accepted = server.post_json("/gate?wait=false", &suite(LOOP, &more()));
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let url = accepted.header("location").unwrap().to_owned();
    let job = crate::server::until("the gate's end", || {
        let job = server.get(&url).json;
        job["finished_at"].is_number().then_some(job)
    });
    assert_eq!((&job["kind"], &job["gate"]["verdict"]), (&"gate".into(), &"REGRESSION".into()));
    // Several can be handed in at once.
    let item = |kernel: &str| json!({"kind": "gate", "request": suite(LOOP, kernel)});
    let batch = json!({"jobs": [item(LOOP), item(&more())]});
    let accepted = server.post_json("/jobs", &batch);
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let verdicts = accepted.json["jobs"].as_array().unwrap().iter().map(|job| {
        crate::server::until("a batched gate's end", || {
            let job = server.get(job["status_url"].as_str().unwrap()).json;
            job["finished_at"].is_number().then(|| job["gate"]["verdict"].clone())
        })
    });
    assert_eq!(verdicts.collect::<Vec<_>>(), ["PASS", "REGRESSION"]);
    // Lists have the decision and the worst case, and filter by both words.
    let listed = |query: &str| server.get(&format!("/jobs?{query}")).json["jobs"].clone();
    let regressed = listed("decision=REGRESSION");
    let regressed = regressed.as_array().unwrap();
    // Two that nobody waited for, and the first one.
    assert_eq!(regressed.len(), 3, "{regressed:?}");
    for job in regressed {
        assert_eq!((&job["kind"], &job["decision"]), (&"gate".into(), &"REGRESSION".into()));
        let worst = &job["worst_case"];
        assert_eq!((&worst["name"], &worst["outcome"]), (&"repeat".into(), &"REGRESSION".into()));
        assert!(worst["ratio"].as_f64().unwrap() > 1.0 && worst["ci_low"].is_null(), "{worst}");
    }
    assert_eq!(listed("decision=PASS&kind=gate").as_array().map(Vec::len), Some(3));
    assert_eq!(listed("decision=INVALID&verdict=wrong").as_array().map(Vec::len), Some(1));
    assert_eq!(listed("decision=REGRESSION&verdict=wrong"), json!([]));
    let refused = server.get("/jobs?decision=FAIL");
    assert_eq!(refused.status, 400, "{}", refused.text);
    let mut wrong = item(LOOP);
    wrong["request"]["cases"][0]["contract"]["num_trials"] = json!(0);
    let answer = server.post_json("/jobs", &json!({"jobs": [wrong]}));
    assert_eq!(answer.json["path"], "jobs[0].request.cases[0].contract.num_trials");
    // A case with a contract that cannot be is told before anything runs.
    let mut wrong = suite(LOOP, LOOP);
    wrong["cases"][0]["contract"]["num_trials"] = json!(0);
    let answer = server.post_json("/gate", &wrong);
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json["path"], "cases[0].contract.num_trials");
    assert!(answer.text.contains("(case `repeat`)"), "{}", answer.text);
}

fn baselines_are_code_that_is_kept_and_promoted(home: &Home) {
    needs!("the emulated device", emulated());
    let server = home.start(&[]);
    let broken = json!({"name": "main", "cases": [case(".version 7.0\nnonsense")]});
    let answer = server.post_json("/baselines", &broken);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert_eq!(answer.json["path"], "cases[0].contract.kernel");
    let missing = server.post_json("/gate", &suite(LOOP, "c0"));
    assert_eq!((missing.status, &missing.json["code"]), (404, &"no_such_baseline".into()));

    let elsewhere = json!({"name": "main", "cases": [case(LOOP)], "pin": {
        "device": "NVIDIA H200", "cuda": "13.0", "method": "cuda_events_gated",
        "method_version": 2,
    }});
    let answer = server.post_json("/baselines", &elsewhere);
    assert_eq!((answer.status, &answer.json["code"]), (409, &"conditions_differ".into()));
    assert!(answer.text.contains("a different device: NVIDIA H200"), "{}", answer.text);

    let new = json!({"name": "main", "suite": "perf", "cases": [case(LOOP)]});
    let stored = server.post_json("/baselines", &new).json;
    assert_eq!(
        (&stored["cases"], &stored["pin"]["method"]),
        (&json!(["repeat"]), &"emulated".into())
    );

    // What does not pass is not promoted; what passes is.
    let job = |kernel: &str, commit: &str| {
        let accepted = server.post_json("/gate?wait=false", &suite(kernel, commit));
        let url = accepted.header("location").unwrap().to_owned();
        let job = crate::server::until("the gate's end", || {
            let job = server.get(&url).json;
            job["finished_at"].is_number().then_some(job)
        });
        (job["job_id"].clone(), job["gate"]["verdict"].clone())
    };
    let promote = |id: &Value| server.post_json("/baselines/main/promote", &json!({"job_id": id}));
    let (worse, verdict) = job(&more(), "c1");
    assert_eq!(verdict, "REGRESSION");
    let refused = promote(&worse);
    assert_eq!((refused.status, &refused.json["code"]), (409, &"not_promotable".into()));
    let less = LOOP.replacen("    mov.u32 %r7, %r6;\n", "", 1);
    let (same, verdict) = job(&less, "c2");
    assert_eq!(verdict, "PASS");
    let promoted = promote(&same).json;
    assert_eq!((&promoted["promoted_from"], &promoted["commit"]), (&same, &"c2".into()));
    let list = server.get("/baselines").json;
    assert_eq!(list["baselines"], json!([promoted]));

    // Each run left a point: three of the same work, one of more.
    let history = server.get("/history?case=repeat").json;
    let series = history["series"].as_array().unwrap();
    let of = |name: &str| series.iter().find(|one| one["metric"] == name).unwrap();
    let instructions = of("warp_instructions");
    let commits = instructions["points"].as_array().unwrap().iter();
    let commits = commits.map(|point| point["commit"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(commits, ["c1", "c2"]);
    assert_eq!(instructions["changes"][0]["at"], 1);
    assert_eq!(instructions["key"]["kind"], "emulator");
    let drawing = server.get("/history?case=repeat&format=svg").text;
    assert!(drawing.starts_with("<svg") && drawing.contains("warp_instructions"), "{drawing}");

    let removed = server.delete("/baselines/main");
    assert_eq!(removed.status, 200);
    assert_eq!(server.get("/baselines/main").status, 404);
}

#[test]
fn the_command_line_uses_stored_baselines_and_shows_the_history() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    let server = Server::start();
    let gate = |more: &[&str]| repository.gate(&[&["--baseline", "stored:main"], more].concat());
    let remote = ["--server", server.url.as_str(), "--quiet", "--json"];
    let (exit, _, stderr) = gate(&remote);
    assert!(exit == 1 && stderr.contains("no baseline `main`"), "{exit} {stderr}");
    let new = json!({"name": "main", "commit": "abc", "cases": [case(LOOP)]});
    assert_eq!(server.post_json("/baselines", &new).status, 200);
    let (exit, stdout, stderr) = gate(&remote);
    assert_eq!(exit, 0, "{stdout}\n{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["baseline"], json!({"kind": "stored", "name": "main", "commit": "abc"}));
    repository.change(MORE);
    assert_eq!(gate(&remote).0, 2);
    let (exit, _, stderr) = repository.gate(&["--baseline", "stored:../x"]);
    assert!(exit == 1 && stderr.contains("letters, digits"), "{exit} {stderr}");

    // Runs of this machine are in its own history.
    assert_eq!(repository.gate(&["--baseline", "HEAD"]).0, 2);
    repository.commit("slower");
    assert_eq!(repository.gate(&["--baseline", "HEAD"]).0, 0);
    let svg = repository.path().join("trend.svg");
    let words = ["history", "repeat", "--json", "--svg", svg.to_str().unwrap()];
    let mut command = warpgauge(repository.path(), &words);
    command.current_dir(repository.path()).envs(repository.surroundings());
    let (exit, stdout, stderr) = outcome(command.output().unwrap());
    assert_eq!(exit, 0, "{stderr}");
    let history: Value = serde_json::from_str(&stdout).unwrap();
    let points = history["series"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{history}");
    let head = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(points[1]["commit"], head.trim());
    assert!(points[0]["commit"].as_str().unwrap().ends_with("-dirty"));
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
}

#[test]
fn evaluations_leave_points_of_their_contract() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    for kernel in [LOOP.to_owned(), more()] {
        let mut contract = contract(&kernel);
        contract["profile"] = json!({});
        server.evaluate(&contract);
    }
    // They are written after the answers.
    let series = crate::server::until("both points of both counts", || {
        let series = server.get("/history").json["series"].clone();
        let all = series.as_array().unwrap();
        let whole = |one: &Value| one["points"].as_array().unwrap().len() == 2;
        (all.len() == 2 && all.iter().all(whole)).then_some(series)
    });
    let cases = series.as_array().unwrap().iter().map(|one| one["key"]["case"].to_string());
    let cases = cases.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(cases.len(), 1, "one contract, one case: {cases:?}");
    let changes = series.as_array().unwrap().iter().map(|one| one["changes"].clone());
    assert!(changes.flat_map(|all| all.as_array().unwrap().clone()).all(|one| one["at"] == 1));
}
