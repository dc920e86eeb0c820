//! The gate on the emulated device: real repositories, real commits, exact counts.
//!
//! On a GPU host these tests have nothing to say: they are about counts, git and files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::server::{Server, device, root};
use crate::support::{outcome, warpgauge};

/// Adds an element to itself 16 times, in a loop of four instructions.
const LOOP: &str = include_str!("../fixtures/gate/loop.ptx");
/// One instruction more in the loop, and the same result.
const MORE: (&str, &str) =
    ("    add.s32 %r6, %r6, 1;", "    add.s32 %r6, %r6, 1;\n    mov.u32 %r7, %r6;");
/// Another result.
const WRONG: (&str, &str) = ("add.f32 %f2, %f2, %f1;", "add.f32 %f2, %f2, 0f40000000;");

const CONTRACT: &str = r#"
num_trials: 1
kernel:
  kernel_type: ptx
  source_file: loop.ptx
  metadata: {kernel_name: repeat}
  io:
    args:
      - {name: x, type: tensor, role: input, tensor_spec: {shape: [1024], dtype: float32, init: {kind: uniform, seed: 1}}}
      - {name: y, type: tensor, role: output, tensor_spec: {shape: [1024], dtype: float32}}
      - {name: "n", type: int, value: 1024}
    launch: {grid: {x: 4}, block: {x: 256}}
tolerance: {atol: 0.0, rtol: 0.0}
"#;

const SUITE: &str = "version: 1\ncases:\n  - {name: repeat, contract: k/contract.yaml}\n";

/// A repository with the suite in a folder of it, and one commit.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.write("perf/suite.yaml", SUITE);
        repository.write("perf/k/contract.yaml", CONTRACT);
        repository.write("perf/k/loop.ptx", LOOP);
        repository.commit("first");
        repository
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Changes the kernel.
    fn change(&self, (from, to): (&str, &str)) {
        assert!(LOOP.contains(from));
        self.write("perf/k/loop.ptx", &LOOP.replacen(from, to, 1));
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(arguments)
            .output()
            .expect("git");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}", output = output.stderr);
        text
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// `gate run perf/suite.yaml` in the repository: exit code, standard output, standard error.
    fn gate(&self, more: &[&str]) -> (i32, String, String) {
        let all = ["--device", "emulator", "gate", "run", "perf/suite.yaml"];
        let mut command = warpgauge(self.path(), &[&all, more].concat());
        command.current_dir(self.path()).envs(surroundings());
        outcome(command.output().unwrap())
    }

    /// Its report against `HEAD`.
    #[track_caller]
    fn report(&self, code: i32) -> Value {
        let (exit, stdout, stderr) = self.gate(&["--baseline", "HEAD", "--json", "--quiet"]);
        assert_eq!(exit, code, "{stdout}\n{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }
}

/// What of the environment says where compilers and programs are.
fn surroundings() -> impl Iterator<Item = (&'static str, String)> {
    let names = ["HOME", "PATH", "LD_LIBRARY_PATH", "WARPGAUGE_TOOLCHAIN", "XDG_DATA_HOME"];
    names.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)))
}

/// Whether this run is about the emulated device at all.
fn emulated() -> bool {
    device() == "emulator"
}

/// The counts of the first case, as they are reported.
fn counts(report: &Value) -> Value {
    report["cases"][0]["counts"].clone()
}

#[test]
fn good_commits_pass_and_worse_ones_do_not() {
    if !emulated() {
        return;
    }
    let repository = Repository::new();
    let same = repository.report(0);
    assert_eq!((&same["verdict"], &same["verdict_by"]), (&"PASS".into(), &"counts".into()));
    assert!(same["statement"].as_str().unwrap().contains("emulated device"), "{same}");
    assert_eq!(same["baseline"]["commit"].as_str().unwrap().len(), 40);

    // One instruction in the inner loop: 16 rounds × 32 warps more, to the last one.
    repository.change(MORE);
    let slower = repository.report(2);
    assert_eq!(slower["cases"][0]["outcome"], "REGRESSION");
    let counts = counts(&slower);
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
    if !emulated() {
        return;
    }
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
    if !emulated() {
        return;
    }
    let repository = Repository::new();
    repository.write("perf/other.ptx", LOOP);
    let case = "  - {name: repeat, contract: k/contract.yaml, source: other.ptx}\n";
    repository.write("perf/suite.yaml", &format!("version: 1\ncases:\n{case}"));
    repository.commit("with a source");
    repository.write("perf/other.ptx", &LOOP.replacen(MORE.0, MORE.1, 1));
    assert_eq!(repository.report(2)["cases"][0]["outcome"], "REGRESSION");
}

#[test]
fn new_and_removed_cases_are_errors_unless_they_may_be() {
    if !emulated() {
        return;
    }
    let repository = Repository::new();
    repository.write("perf/k/new.yaml", CONTRACT);
    let suite = SUITE.replace("name: repeat", "name: again");
    let suite = format!("{suite}  - {{name: new, contract: k/new.yaml}}\n");
    repository.write("perf/suite.yaml", &suite);
    let report = repository.report(1);
    let found = report["cases"].as_array().unwrap().iter();
    let found =
        found.map(|case| (case["name"].as_str().unwrap(), case["outcome"].as_str().unwrap()));
    let expected = [("again", "PASS"), ("new", "MISSING"), ("repeat", "MISSING")];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    repository.write("perf/suite.yaml", &suite.replace("cases:", "on_missing: warn\ncases:"));
    assert_eq!(repository.report(0)["totals"]["missing"], 2);
}

#[test]
fn what_keeps_the_gate_from_its_work_is_no_regression() {
    if !emulated() {
        return;
    }
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
    // Counts are exact: there is nothing to calibrate.
    let all = ["--device", "emulator", "gate", "calibrate", "perf/suite.yaml"];
    let mut command = warpgauge(repository.path(), &all);
    command.current_dir(repository.path()).envs(surroundings());
    let (exit, _, stderr) = outcome(command.output().unwrap());
    assert!(exit == 1 && stderr.contains("nothing to calibrate"), "{exit} {stderr}");
}

#[test]
fn directories_and_servers_serve_as_well() {
    if !emulated() {
        return;
    }
    let (old, new) = (Repository::new(), Repository::new());
    new.change(MORE);
    let server = Server::start();
    let baseline = old.path().join("perf");
    let address = server.url.clone();
    let reports = tempfile::tempdir().unwrap();
    let out = reports.path().join("deep/er");
    let (exit, stdout, stderr) = new.gate(&[
        "--baseline",
        baseline.to_str().unwrap(),
        "--server",
        &address,
        "--report",
        out.to_str().unwrap(),
    ]);
    assert_eq!(exit, 2, "{stdout}\n{stderr}");
    assert!(stdout.contains("REGRESSION") && stdout.contains("Exact counts"), "{stdout}");
    // Not a terminal: a line per case.
    assert!(stderr.contains("warpgauge: 1 of 1: repeat"), "{stderr}");
    let mut files: Vec<_> =
        std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    let expected = [
        "benchmark.json",
        "bmf.json",
        "comment.md",
        "gate.csv",
        "gate.html",
        "gate.json",
        "junit.xml",
    ];
    assert_eq!(files, expected);
    let schema: Value = serde_json::from_str(
        &std::fs::read_to_string(root().join("openapi/gate-report.schema.json")).unwrap(),
    )
    .unwrap();
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("gate.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(report["baseline"]["kind"], "directory");
    for file in ["comment.md", "junit.xml", "gate.html"] {
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains("emulated device"), "{file} does not say what it rests on");
    }
}

/// Passes one request on to a server, and is gone.
fn pass_one_on(server: Server) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let passing = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ends early");
        }
        let lengths = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
        });
        let mut body = vec![0; lengths.expect("a length")];
        reader.read_exact(&mut body).unwrap();
        // Nobody listens any more once the answer is there.
        drop(listener);
        let json = [("Content-Type", "application/json")];
        let answer = server.post("/compare", &json, &body);
        let text = answer.text;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            text.len()
        );
        (&stream).write_all(format!("{head}{text}").as_bytes()).unwrap();
    });
    (url, passing)
}

#[test]
fn a_server_that_goes_away_half_way_is_an_error_that_keeps_what_was_measured() {
    if !emulated() {
        return;
    }
    let repository = Repository::new();
    let more = |name: &str| format!("  - {{name: {name}, contract: k/contract.yaml}}\n");
    let suite = format!("{SUITE}{}{}", more("second"), more("third"));
    repository.write("perf/suite.yaml", &suite);
    repository.commit("three cases");
    let (url, passing) = pass_one_on(Server::start());
    let (exit, stdout, stderr) =
        repository.gate(&["--baseline", "HEAD", "--server", &url, "--json", "--quiet"]);
    passing.join().unwrap();
    assert_eq!(exit, 1, "{stdout}\n{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let cases = report["cases"].as_array().unwrap();
    let outcomes: Vec<_> = cases.iter().map(|case| case["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["PASS", "ERROR", "ERROR"]);
    assert!(cases[1]["detail"].as_str().unwrap().contains("no server answers"), "{}", cases[1]);
    assert!(cases[2]["detail"].as_str().unwrap().contains("not measured, because"), "{}", cases[2]);
}

#[test]
fn counts_are_the_same_in_every_run_and_on_any_number_of_cores() {
    if !emulated() {
        return;
    }
    let repository = Repository::new();
    repository.change(MORE);
    let on = |launcher: &[&str]| {
        let program = crate::server::program_path();
        let mut words = launcher.iter().map(PathBuf::from).collect::<Vec<_>>();
        words.push(program);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["--device", "emulator", "gate", "run", "perf/suite.yaml"])
            .args(["--baseline", "HEAD", "--json", "--quiet"])
            .current_dir(repository.path())
            .env_clear()
            .envs(surroundings());
        let (exit, stdout, stderr) = outcome(command.output().unwrap());
        assert_eq!(exit, 2, "{launcher:?} {stderr}");
        counts(&serde_json::from_str(&stdout).unwrap())
    };
    let first = on(&[]);
    assert_eq!(first.as_array().unwrap().len(), 2);
    for _ in 0..3 {
        assert_eq!(on(&[]), first);
        assert_eq!(on(&["taskset", "--cpu-list", "0"]), first);
    }
}

/// A shell to run what CI would, in a clone of `origin`.
struct Ci {
    origin: Repository,
    clone: tempfile::TempDir,
    programs: tempfile::TempDir,
}

impl Ci {
    fn new() -> Self {
        let (clone, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = programs.path().join("warpgauge");
        std::os::unix::fs::symlink(crate::server::program_path(), link).unwrap();
        Self { origin: Repository::new(), clone, programs }
    }

    /// A clone of the newest commit of `branch` alone, as CI makes it.
    fn check_out(&self, branch: &str, into: &str) -> PathBuf {
        let url = format!("file://{}", self.origin.path().display());
        let path = self.clone.path().join(into);
        let clone = Command::new("git")
            .args(["clone", "--quiet", "--depth", "1", "--branch", branch, &url])
            .arg(&path)
            .status();
        assert!(clone.unwrap().success());
        path
    }

    /// Runs a script as a runner does, stopping at the first error.
    fn shell(&self, directory: &Path, script: &str, variables: &[(&str, &str)]) -> i32 {
        let path = std::env::var("PATH").expect("PATH");
        let path = format!("{}:{path}", self.programs.path().display());
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(directory)
            .env_clear()
            .envs(surroundings())
            .env("PATH", path)
            .envs(variables.iter().copied())
            .output()
            .expect("bash");
        let code = output.status.code().expect("an exit code");
        if code != 0 {
            eprintln!("{code}: {}", String::from_utf8_lossy(&output.stderr));
        }
        code
    }

    /// A good and a worse branch off `main`.
    fn branches(&self) {
        self.origin.git(&["checkout", "--quiet", "-b", "good"]);
        self.origin.write("README", "better words");
        self.origin.commit("good");
        self.origin.git(&["checkout", "--quiet", "-b", "worse"]);
        self.origin.change(MORE);
        self.origin.commit("worse");
    }
}

/// Both steps of action.yml, with what GitHub would set.
fn action(ci: &Ci, directory: &Path, base_branch: &str) -> (i32, String, String) {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action: Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(action["runs"]["using"], "composite");
    let output = directory.join("github-output");
    let summary = directory.join("github-summary");
    let mut variables = vec![
        ("GITHUB_OUTPUT".to_owned(), output.display().to_string()),
        ("GITHUB_STEP_SUMMARY".to_owned(), summary.display().to_string()),
    ];
    let mut known = vec![
        ("${{ inputs.suite }}".to_owned(), "perf/suite.yaml".to_owned()),
        ("${{ inputs.device }}".to_owned(), "emulator".to_owned()),
        ("${{ github.base_ref }}".to_owned(), base_branch.to_owned()),
    ];
    for (name, input) in action["inputs"].as_object().unwrap() {
        let default = input["default"].as_str().unwrap_or_default().to_owned();
        known.push((format!("${{{{ inputs.{name} }}}}"), default));
    }
    let mut code = 0;
    for step in action["runs"]["steps"].as_array().unwrap() {
        assert_eq!(step["shell"], "bash");
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "inputs reach a script by its environment only");
        for (name, value) in step["env"].as_object().unwrap() {
            let expression = value.as_str().unwrap();
            let found = known.iter().find(|(text, _)| text == expression);
            let (_, value) = found.unwrap_or_else(|| panic!("{expression} is not known"));
            variables.push((name.clone(), value.clone()));
        }
        let borrowed: Vec<_> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        code = ci.shell(directory, script, &borrowed);
        if code != 0 {
            break;
        }
        for line in std::fs::read_to_string(&output).unwrap_or_default().lines() {
            let (name, value) = line.split_once('=').expect("name=value");
            let id = step["id"].as_str().unwrap();
            known.push((format!("${{{{ steps.{id}.outputs.{name} }}}}"), value.to_owned()));
        }
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    (code, read(&output), read(&summary))
}

#[test]
fn the_action_passes_good_commits_and_stops_worse_ones() {
    if !emulated() {
        return;
    }
    let ci = Ci::new();
    ci.branches();
    // A pull request into main, and pushes judged against the commit before.
    for (branch, base, expected) in
        [("good", "main", 0), ("worse", "main", 2), ("good", "", 0), ("worse", "", 2)]
    {
        let clone = ci.check_out(branch, &format!("{branch}-{base}"));
        let (code, output, summary) = action(&ci, &clone, base);
        assert_eq!(code, expected, "{branch} {base}");
        assert!(output.contains(&format!("exit-code={expected}")), "{output}");
        let verdict = if expected == 0 { "PASS" } else { "REGRESSION" };
        assert!(summary.contains(&format!("Performance gate: {verdict}")), "{summary}");
    }
}

#[test]
fn the_gitlab_job_passes_good_commits_and_stops_worse_ones() {
    if !emulated() {
        return;
    }
    let docs = std::fs::read_to_string(root().join("docs/gate.md")).unwrap();
    let start = docs.find("   # .gitlab-ci.yml").expect("the snippet");
    let snippet = &docs[start..start + docs[start..].find("```").expect("its end")];
    let snippet: String =
        snippet.lines().map(|line| format!("{}\n", line.get(3..).unwrap_or(""))).collect();
    let job: Value = serde_yaml::from_str(&snippet).unwrap();
    let script = job["gate"]["script"].as_array().unwrap().iter();
    let script = script.map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n");
    assert_eq!(job["gate"]["variables"]["SUITE"], "suite.yaml");
    let ci = Ci::new();
    let base = ci.origin.git(&["rev-parse", "main"]);
    ci.branches();
    for (branch, expected) in [("good", 0), ("worse", 2)] {
        let clone = ci.check_out(branch, branch);
        let variables = [
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.trim()),
            ("SUITE", "perf/suite.yaml"),
            ("DEVICE", "emulator"),
        ];
        assert_eq!(ci.shell(&clone, &script, &variables), expected, "{branch}");
        let junit = job["gate"]["artifacts"]["reports"]["junit"].as_str().unwrap();
        let junit = std::fs::read_to_string(clone.join(junit)).unwrap();
        let junit = roxmltree::Document::parse(&junit).unwrap();
        let failures = junit.root_element().attribute("failures").unwrap();
        assert_eq!(failures, if expected == 0 { "0" } else { "1" });
    }
}
