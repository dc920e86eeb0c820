//! Commits of a repository, compared with one another.

use super::*;

#[test]
fn good_commits_pass_and_worse_ones_do_not() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    let same = repository.report(0);
    assert_eq!((&same["verdict"], &same["verdict_by"]), (&"PASS".into(), &"counts".into()));
    assert!(same["statement"].as_str().unwrap().contains("emulated device"), "{same}");
    assert_eq!(same["baseline"]["commit"].as_str().unwrap().len(), 40);

    // One instruction in the inner loop: 16 rounds × 32 warps more, to the last one.
    repository.change(MORE);
    let slower = repository.report(2);
    assert_eq!(slower["cases"][0]["outcome"], "REGRESSION");
    let counts = super::counts(&slower);
    let [reference, candidate] =
        ["reference", "candidate"].map(|side| counts[0][side].as_u64().unwrap());
    assert_eq!(
        (counts[0]["count"].as_str(), candidate - reference),
        (Some("warp_instructions"), 512)
    );

    // The other way round it is an improvement.
    repository.commit("slower");
    repository.write("perf/k/loop.ptx", LOOP);
    assert_eq!(repository.report(0)["cases"][0]["outcome"], "IMPROVED");

    repository.change(WRONG);
    let wrong = repository.report(4);
    assert_eq!(wrong["cases"][0]["outcome"], "INVALID");
    repository.write("perf/k/loop.ptx", ".version 7.0\nnonsense");
    assert_eq!(repository.report(4)["cases"][0]["outcome"], "INVALID");
    // None of this left anything in the repository.
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repository.git(&["status", "--short"]), " M perf/k/loop.ptx\n");
}

#[test]
fn margins_and_advice_are_the_suites() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.change(MORE);
    let with = |policy: &str, code: i32| {
        let case = format!("  - {{name: repeat, contract: k/contract.yaml, {policy}}}\n");
        repository.write("perf/suite.yaml", &format!("version: 1\ncases:\n{case}"));
        repository.report(code)["cases"][0].clone()
    };
    let within = with("policy: {count_margin: 0.25}", 0);
    assert_eq!((&within["outcome"], &within["blocking"]), (&"PASS".into(), &false.into()));
    assert_eq!(with("policy: {count_margin: 0.01}", 2)["outcome"], "REGRESSION");
    let advisory = with("policy: {advisory: true}", 0);
    assert_eq!(
        (&advisory["outcome"], &advisory["blocking"]),
        (&"REGRESSION".into(), &false.into())
    );
    let sectors = with("metric: global_load_sectors", 0);
    assert_eq!(
        (&sectors["outcome"], sectors["counts"].as_array().unwrap().len()),
        (&"PASS".into(), 1)
    );
}

#[test]
fn sources_of_the_suite_take_the_place_of_the_contracts() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.write("perf/other.ptx", LOOP);
    let case = "  - {name: repeat, contract: k/contract.yaml, source: other.ptx}\n";
    repository.write("perf/suite.yaml", &format!("version: 1\ncases:\n{case}"));
    repository.commit("with a source");
    repository.write("perf/other.ptx", &LOOP.replacen(MORE.0, MORE.1, 1));
    assert_eq!(repository.report(2)["cases"][0]["outcome"], "REGRESSION");
}

#[test]
fn removed_cases_are_errors_unless_they_may_be() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.write("perf/k/new.yaml", CONTRACT);
    let suite = SUITE.replace("name: repeat", "name: new").replace("contract.yaml", "new.yaml");
    repository.write("perf/suite.yaml", &suite);
    let report = repository.report(1);
    let found = report["cases"].as_array().unwrap().iter();
    let found =
        found.map(|case| (case["name"].as_str().unwrap(), case["outcome"].as_str().unwrap()));
    let expected = [("new", "NEW"), ("repeat", "MISSING")];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    repository.write("perf/suite.yaml", &suite.replace("cases:", "on_missing: warn\ncases:"));
    assert_eq!(repository.report(0)["totals"]["missing"], 1);
}

#[test]
fn what_keeps_the_gate_from_its_work_is_no_regression() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    let refuse = |arguments: &[&str], parts: &[&str]| {
        let (exit, stdout, stderr) = repository.gate(arguments);
        assert_eq!(exit, 1, "{arguments:?}\n{stdout}\n{stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{part}\n{stderr}");
        }
    };
    refuse(&[], &["--baseline"]);
    refuse(&["--baseline", "HEAD", "--bogus"], &["--bogus"]);
    refuse(&["--baseline", "nowhere"], &["nowhere", "git fetch"]);
    refuse(&["--baseline", "--upload-pack=x"], &["--baseline"]);
    refuse(&["--baseline", "HEAD", "--server", "http://127.0.0.1:9"], &["no server answers"]);
    refuse(&["--baseline", "HEAD", "--server", "nonsense"], &["not the address"]);
    repository.write("main/x", "");
    refuse(&["--baseline", "main"], &["both a directory and a git ref", "./main"]);
    std::fs::remove_dir_all(repository.path().join("main")).unwrap();
    let head = &["--baseline", "HEAD"];
    for (suite, parts) in [
        ("version: 1\ncases: []\n".to_owned(), &["perf/suite.yaml", "at least one case"][..]),
        (SUITE.replace("name: repeat", "nam: repeat"), &["perf/suite.yaml", "cases[0]", "nam"]),
        (format!("{SUITE}{}", &SUITE[18..]), &["perf/suite.yaml", "earlier case"]),
        (
            SUITE.replace("k/contract", "k/gone"),
            &["`repeat`", "perf/k/gone.yaml", "does not exist"],
        ),
        (SUITE.replace("k/contract.yaml", "k/loop.ptx"), &["perf/k/loop.ptx", "format"]),
        (SUITE.replace("k/contract.yaml", "suite.yaml"), &["no `kernel`"]),
        (SUITE.replace(".yaml}", ".yaml, source: k}"), &["`repeat`", "expected a kernel"]),
    ] {
        repository.write("perf/suite.yaml", &suite);
        refuse(head, parts);
    }
    std::fs::remove_file(repository.path().join("perf/suite.yaml")).unwrap();
    refuse(head, &["perf/suite.yaml"]);
    // A baseline that does not compile is no verdict on the candidate.
    repository.write("perf/suite.yaml", SUITE);
    repository.write("perf/k/loop.ptx", ".version 7.0\nnonsense");
    repository.commit("broken");
    repository.write("perf/k/loop.ptx", LOOP);
    let report = repository.report(1);
    assert_eq!(report["cases"][0]["outcome"], "ERROR");
    let detail = report["cases"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("the reference kernel does not compile"), "{detail}");
    // Counts are exact: they need no calibration.
    let all = ["--device", "emulator", "gate", "calibrate", "perf/suite.yaml"];
    let mut command = warpgauge(repository.path(), &all);
    command.current_dir(repository.path()).envs(repository.surroundings());
    let (exit, _, stderr) = outcome(command.output().unwrap());
    assert!(exit == 1 && stderr.contains("need no calibration"), "{exit} {stderr}");
}
